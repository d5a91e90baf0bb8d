#!/usr/bin/env bash
# shardpack.h and shardpack_op.h compile without a warning, alone, in every standard that they promise.
set -euo pipefail

headers=("$TEST_SRCDIR/$TEST_WORKSPACE"/{api/shardpack.h,augment/shardpack_op.h})
strict=(-Wall -Wextra -pedantic -Werror -fsyntax-only)
clang=$(command -v clang-14 || command -v clang) || { echo "header_test: no clang" >&2; exit 1; }
for c in gcc "$clang"; do
  for header in "${headers[@]}"; do
    for standard in c99 c11 c17; do
      "$c" "${strict[@]}" -Wpadded -Wstrict-prototypes "-std=$standard" -x c "$header"
    done
    for standard in c++11 c++14 c++17 c++20 c++2b; do
      "$c" "${strict[@]}" -Wold-style-cast "-std=$standard" -x c++ "$header"
    done
  done
done
