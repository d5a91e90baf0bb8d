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

# The library holds as the least size of a struct that of the first release; of a later struct, at most today's.
cp -L "$root/api/abi/shardpack.h" "$TEST_TMPDIR/shardpack.h"
python3 "$root/tests/api/calls.py" "$TEST_TMPDIR/shardpack.h" layout > "$TEST_TMPDIR/first.c"
gcc -I "$TEST_TMPDIR" -o "$TEST_TMPDIR/first" "$TEST_TMPDIR/first.c"
"$TEST_TMPDIR/first" > "$TEST_TMPDIR/first.txt"
sed -n 's/^inline constexpr size_t kFirstSize<\(shardpack_[a-z_]*\)> = \([0-9]*\);$/\1 \2/p' "$root/api/structs.h" > "$TEST_TMPDIR/least.txt"
[[ $(wc -l < "$TEST_TMPDIR/least.txt") -ge 20 ]]
while read -r name size; do
  first=$(sed -n "s/^$name //p" "$TEST_TMPDIR/first.txt") today=$(sed -n "s/^$name //p" "$TEST_TMPDIR/layout.txt")
  ((size == ${first:-$size} && size <= today)) || { echo "layout_test: the least size of $name is not $size" >&2; exit 1; }
done < "$TEST_TMPDIR/least.txt"
