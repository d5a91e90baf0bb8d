#!/usr/bin/env bash
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/e2e
exec python3 tests/faults/no_exchange_test.py
