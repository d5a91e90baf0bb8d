#!/usr/bin/env bash
# The sizes of structs, the places of members and the values of enumerations, which programs were compiled with, are those
# of layout.txt. In a later version more may come at the end of each, and nothing else may change.
set -euo pipefail

root=$TEST_SRCDIR/$TEST_WORKSPACE
python3 "$root/tests/api/calls.py" "$root/api/shardpack.h" layout > "$TEST_TMPDIR/layout.c"
gcc -I "$root/api" -o "$TEST_TMPDIR/layout" "$TEST_TMPDIR/layout.c"
"$TEST_TMPDIR/layout" > "$TEST_TMPDIR/layout.txt"
grep -q '^shardpack_batch_view ' "$TEST_TMPDIR/layout.txt"
diff "$root/tests/api/layout.txt" "$TEST_TMPDIR/layout.txt" >&2
