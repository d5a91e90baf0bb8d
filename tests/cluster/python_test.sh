#!/usr/bin/env bash
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/cli:tests/cluster
exec python3 "tests/cluster/$1"
