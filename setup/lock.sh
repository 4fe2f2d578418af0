#!/usr/bin/env bash
# Compiles pyproject.toml and requirements/*.in into exact versions with hashes, naming no download address. A release
# must be a week old: most bad ones are found by then.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d); trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools" && "$tools/bin/pip" install -q uv
compile() {
  "$tools/bin/uv" pip compile -q --universal --generate-hashes --no-header --python-version 3.11 \
    --exclude-newer "$(date -d '7 days ago' +%F)" "$@"
}
# The program's own packages are listed once, in pyproject.toml; its extras say who needs what.
compile pyproject.toml --extra all requirements/development.in -o requirements/development.txt
same() { compile -c requirements/development.txt "$@"; }
same pyproject.toml --extra all -o requirements/runtime.txt
same pyproject.toml --extra connect -o requirements/thin.txt
same requirements/build.in -o requirements/build.txt
same requirements/supply.in -o requirements/supply.txt
