#!/usr/bin/env bash
# Programs in C and C++ run with the library, compiled with today's header and with that of the first release.
set -euo pipefail

root=$TEST_SRCDIR/$TEST_WORKSPACE
work=$TEST_TMPDIR/caller
mkdir -p "$work/images/class" "$work/first" "$work/today"
cp -L "$root"/testdata/images/{baseline,gray,progressive}.jpg "$root/testdata/images/gray.png" "$work/images/class"
"$root/cli/pack" "$work/images" -o "$work/shards" -q
bytes=$(cat "$work"/images/class/* | wc -c)

cp -L "$root/api/abi/shardpack.h" "$work/first"
cp -L "$root/api/shardpack.h" "$work/today"
export LD_LIBRARY_PATH=$root/api
for header in first today; do
  for compiler in "gcc -std=c99" "g++ -std=c++17 -xc++"; do
    $compiler -Wall -Wextra -pedantic -Werror -I "$work/$header" -o "$work/caller" "$root/tests/api/caller.c" \
      -xnone "$root/api/libshardpack.so.0"
    said=$("$work/caller" "$work/shards")
    [[ $said == "4 samples, $bytes bytes" ]] || { echo "caller_test: $header, $compiler: $said, not $bytes bytes" >&2; exit 1; }
  done
done
if "$work/caller" "$work/images" 2> "$work/said"; then
  echo "caller_test: a folder of images was opened as a dataset" >&2
  exit 1
fi
grep -q '^caller: INVALID: .*not a packed dataset' "$work/said"
