#!/usr/bin/env bash
# As python_test.sh, with the distribution's Python, which has NumPy, h5py and Pillow.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "tests/cli/$1"
