#!/usr/bin/env bash
# Debian's Python, which has NumPy and Pillow, not one that stands before it in PATH.
set -euo pipefail
PYTHONPATH=python/site PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$1"
