#!/usr/bin/env bash
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 tests/docs/library_page.py
