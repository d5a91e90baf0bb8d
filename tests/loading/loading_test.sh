#!/usr/bin/env bash
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 tests/loading/loading_test.py
