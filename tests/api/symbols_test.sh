#!/usr/bin/env bash
# The library exports the functions of shardpack.h and nothing else, under the name and with the libraries that programs
# rely on.
set -euo pipefail

root=$TEST_SRCDIR/$TEST_WORKSPACE
library=$root/api/libshardpack.so.0
export LC_ALL=C

fail() {
  echo "symbols_test: $1" >&2
  exit 1
}

python3 "$root/tests/api/calls.py" "$root/api/shardpack.h" functions > "$TEST_TMPDIR/header"
sed -n 's/^ *\(shardpack_[a-z_]*\);$/\1/p' "$root/api/shardpack.map" | sort > "$TEST_TMPDIR/map"
nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sort > "$TEST_TMPDIR/exports"
[[ -s $TEST_TMPDIR/header ]] || fail "no functions found in the header"
diff "$TEST_TMPDIR/header" "$TEST_TMPDIR/map" >&2 || fail "shardpack.h (<) and shardpack.map (>) differ"
sed 's/$/@@SHARDPACK_0/' "$TEST_TMPDIR/map" > "$TEST_TMPDIR/wanted"
diff "$TEST_TMPDIR/wanted" "$TEST_TMPDIR/exports" >&2 || fail "shardpack.map (<) and what is exported (>) differ"

readelf -dW "$library" > "$TEST_TMPDIR/dynamic"
grep -q 'SONAME.*\[libshardpack\.so\.0\]' "$TEST_TMPDIR/dynamic" || fail "not named libshardpack.so.0"
grep -q 'NODELETE' "$TEST_TMPDIR/dynamic" || fail "dlclose would unload it, under its own threads"
# Where the libraries are is the package's affair.
! grep -qE 'RPATH|RUNPATH' "$TEST_TMPDIR/dynamic" || fail "it has a path to search for libraries in"
sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$TEST_TMPDIR/dynamic" | sort > "$TEST_TMPDIR/needed"
diff <(grep -v '^#' "$root/tests/api/needed.txt") "$TEST_TMPDIR/needed" >&2 ||
  fail "needed.txt (<) and the libraries that it loads (>) differ"
