#!/usr/bin/env bash
# Every function survives zeros for all its arguments.
set -euo pipefail

root=$TEST_SRCDIR/$TEST_WORKSPACE
library=$root/api/libshardpack.so.0
python3 "$root/tests/api/calls.py" "$root/api/shardpack.h" null > "$TEST_TMPDIR/null.c"
grep -q shardpack_loader_next "$TEST_TMPDIR/null.c"
gcc -std=c99 -I "$root/api" -o "$TEST_TMPDIR/null" "$TEST_TMPDIR/null.c" "$library"
LD_LIBRARY_PATH=$(dirname "$library") "$TEST_TMPDIR/null"
