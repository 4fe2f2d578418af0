#!/usr/bin/env bash
# Asks for known vulnerabilities of the locked packages. pip-audit and what it needs are locked too, and are installed in a
# folder of their own. Its data come from the package index or, with AUDIT_SERVICE=osv, from OSV: both are on the network.
# A package that could not be looked up counts as a problem: pip-audit itself passes over it.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d); trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/supply.txt
mkdir -p out/supply
for lock in runtime thin; do
  report=out/supply/vulnerabilities-$lock.json
  rm -f "$report"
  "$tools/bin/pip-audit" --progress-spinner off --disable-pip --require-hashes -r "requirements/$lock.txt" \
    --vulnerability-service "${AUDIT_SERVICE:-pypi}" --format json --output "$report" >"$report.log" 2>&1 || true
  if [ ! -s "$report" ]; then
    tail -n 1 "$report.log" >&2
    echo "No advisories could be read: nothing is known about requirements/$lock.txt. Run it where they can be reached." >&2
    exit 1
  fi
  PYTHONPATH=src:tools .venv/bin/python -m supply audited "$report"
done
