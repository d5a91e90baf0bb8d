#!/usr/bin/env bash
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/cli:tests/cluster:python/site SHARDPACK_PACK=$PWD/cli/pack
exec python3 tests/cluster/drivers_test.py
