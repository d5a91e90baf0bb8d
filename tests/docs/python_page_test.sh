#!/usr/bin/env bash
set -euo pipefail
export PYTHONPATH=python/site PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 tests/docs/python_page.py
