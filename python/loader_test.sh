#!/usr/bin/env bash
# Debian's Python, for which the module is made, not one that stands before it in PATH.
set -euo pipefail
PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "${1:-python/loader_test.py}"
