#!/usr/bin/env bash
# What only tests need, from Debian's packages: a browser, Prometheus and Alertmanager. Called by `make test`; safe to
# repeat. Installs only on Debian and only as root; elsewhere, or when it fails, the tests that need them are skipped and say so.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }

missing=()
command -v chromium > /dev/null || missing+=(chromium)
command -v prometheus > /dev/null || missing+=(prometheus)
command -v prometheus-alertmanager > /dev/null || missing+=(prometheus-alertmanager)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ ! -f /etc/debian_version ] || [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  say "without ${missing[*]} some tests are skipped. On Debian run: sudo apt-get install -y --no-install-recommends ${missing[*]}"
  exit 0
fi
say "installing ${missing[*]} for the tests"
# The packages would start their servers: tests start their own. A policy that somebody has set stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' > $policy && chmod +x $policy
  trap 'rm -f $policy' EXIT
fi
{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >&2 ||
  say "could not install ${missing[*]}: the tests that need them are skipped"
