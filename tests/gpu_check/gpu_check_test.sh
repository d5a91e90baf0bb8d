#!/usr/bin/env bash
set -euo pipefail
exec python3 -B tests/gpu_check/gpu_check_test.py
