#!/usr/bin/env bash
# Finds the project behind the runfiles and checks it: the test reads every source, so listing them as data would make
# each folder export its files. The folder is that of WORKSPACE, which is a symbolic link here.
set -euo pipefail

script=$TEST_SRCDIR/$TEST_WORKSPACE/tests/architecture/dependency_test.py
if [[ ${1:-} == --self-test ]]; then
  exec python3 "$script" --self-test
fi
workspace=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/WORKSPACE")
exec python3 "$script" "${workspace%/*}"
