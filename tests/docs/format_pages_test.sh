#!/usr/bin/env bash
# The examples that need only what the distribution has; tests/interop runs the others.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
# Not one that somebody's PATH puts first: it has the distribution's modules.
exec /usr/bin/python3 tests/docs/format_pages.py system=/usr/bin/python3
