#!/usr/bin/env bash
# With $SHARDPACK_PYTHON, else a Python that tests/interop/venv made, else the distribution's, whichever has NumPy; torch
# is tried where it is there.
set -euo pipefail
if grep -qE '__(asan|tsan|ubsan)_' cuda/loading/libdlpack_interop.so; then
  echo "SKIPPED: a library with a sanitizer cannot be loaded into Python"
  exit 0
fi
home=$(getent passwd "$(id -u)" | cut -d: -f6)
for python in "${SHARDPACK_PYTHON:-}" "$home"/.cache/shardpack/venvs/{torch,readers}-*/bin/python python3; do
  [[ -n $python ]] && "$python" -c 'import numpy' 2>/dev/null || continue
  TEST_TMPDIR=${TEST_TMPDIR:-/tmp} exec "$python" cuda/loading/dlpack_interop.py cuda/loading/libdlpack_interop.so
done
echo "SKIPPED: no Python with NumPy was found (tests/interop/venv makes one)"
