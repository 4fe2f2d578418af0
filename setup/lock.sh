#!/usr/bin/env bash
# Compiles requirements/*.in into exact versions with hashes, naming no download address. A release must be a week old:
# most bad ones are found by then.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d); trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools" && "$tools/bin/pip" install -q uv
compile() {
  "$tools/bin/uv" pip compile -q --universal --generate-hashes --no-header --python-version 3.11 \
    --exclude-newer "$(date -d '7 days ago' +%F)" "$@"
}
compile requirements/development.in -o requirements/development.txt
for set in runtime thin build; do
  compile -c requirements/development.txt "requirements/$set.in" -o "requirements/$set.txt"
done
