#!/usr/bin/env bash
# Runs one of the Python tests here: Bazel's own Python rules would need a toolchain, and these use the library alone.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec python3 "packaging/portable/$1" "${@:2}"
