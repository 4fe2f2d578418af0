#!/usr/bin/env bash
# Everything between a fresh machine and a working `.venv/bin/penstock`: Java, a virtual environment, locked
# packages. Called by the Makefile; safe to repeat. Installs system packages only on Debian and only as root.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
VENV=.venv

say() { printf 'setup: %s\n' "$*" >&2; }
stop() { say "$*"; exit 1; }
may_install() { [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; }
install() {
  say "installing $*"
  apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

java_version() {  # the major version, 0 if there is none
  local java=java
  [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
  command -v "$java" > /dev/null || { echo 0; return; }
  "$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1 | grep . || echo 0
}

need_java() {
  local version; version=$(java_version)
  [ "$version" -lt 17 ] || return 0
  if may_install && [ -z "${JAVA_HOME:-}" ]; then
    install openjdk-17-jre-headless || stop "could not install Java. Run: apt-get install -y openjdk-17-jre-headless"
    return 0
  fi
  local found="there is none"; [ "$version" = 0 ] || found="found $version"
  stop "Java 17 or newer is needed, $found. On Debian run: sudo apt-get install -y openjdk-17-jre-headless" \
    "(elsewhere install any Java 17 and put it on the PATH or name it in JAVA_HOME), then run make again."
}

need_python() {
  command -v "$PYTHON" > /dev/null || stop "there is no $PYTHON. On Debian run: sudo apt-get install -y python3 python3-venv"
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "Python 3.11 or newer is needed, $PYTHON is $("$PYTHON" -V 2>&1). Name another: make PYTHON=python3.11 ..."
  "$PYTHON" -c 'import ensurepip, venv' 2> /dev/null && return 0
  if may_install; then install python3-venv && return 0; fi
  stop "Python's venv module is missing. On Debian run: sudo apt-get install -y python3-venv, then run make again."
}

packages() {
  # In one go or not at all: a half-made environment is made anew.
  [ -f $VENV/.whole ] || rm -rf $VENV
  [ -d $VENV ] || "$PYTHON" -m venv $VENV
  rm -f $VENV/.whole
  local quiet=-q; [ ! -t 2 ] || quiet=
  local pip="$VENV/bin/python -m pip --disable-pip-version-check install $quiet --require-hashes --no-deps"
  say "installing the locked Python packages (about two minutes the first time)"
  # The locks name every package, so pip resolves nothing (--no-deps): it would look at newer releases for a
  # package that another one wants with an extra, and refuse them because they are not locked.
  $pip -r requirements/build.txt >&2
  # Nothing unlocked slips in: packages that come as source are built with the locked tools above.
  $pip --no-build-isolation -r requirements/development.txt >&2
  $VENV/bin/python -m pip --disable-pip-version-check install -q --no-deps --no-build-isolation -e . >&2
  $VENV/bin/python -m pip --disable-pip-version-check check >&2 || stop "the locked packages do not fit together: make lock"
  touch $VENV/.whole
}

need_java
need_python
packages
say "ready: $VENV/bin/penstock"
