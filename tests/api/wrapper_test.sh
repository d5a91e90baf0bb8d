#!/usr/bin/env bash
# Compiles the wrapper under every standard, with and without exceptions, with every warning, and runs
# three of the programs against the library. clang only parses.
set -euo pipefail

api=$PWD/api tests=$PWD/tests/api program=$PWD/tests/api/wrapper_test_program.cc pack=$PWD/cli/pack images=$PWD/testdata/images
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/wrapper.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
ln -s "$api/libshardpack.so.0" "$work/lib/libshardpack.so"
ln -s "$api/libshardpack.so.0" "$work/lib/libshardpack.so.0"
warnings=(-Wall -Wextra -pedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Werror)
export SHARDPACK_PACK=$pack LD_LIBRARY_PATH=$work/lib

clang=$(command -v clang++-14 || command -v clang++) || { echo "wrapper_test: no clang" >&2; exit 1; }

cd "$work"
cp -rL "$images" images  # in a test's folder they are links
"$pack" images -o shards -q >/dev/null
for standard in 17 20 23; do
  for mode in -fexceptions -fno-exceptions -DSHARDPACK_NO_EXCEPTIONS; do
    [[ $standard$mode != 2*NO_EXCEPTIONS ]] || continue
    echo "c++$standard $mode"
    flags=("${warnings[@]}" "$mode" -I"$api" "$program")
    "$clang" -std=c++"${standard/23/2b}" "${flags[@]}" -fsyntax-only
    case $standard$mode in
      17-f* | 23-fno*)
        g++ -std=c++$standard "${flags[@]}" -Llib -o program -lshardpack
        ./program shards
        ;;
      *) g++ -std=c++$standard "${flags[@]}" -fsyntax-only ;;
    esac
  done
done
# With sanitizers gcc warns of other things.
cat >sanitized.cc <<'END'
#include <shardpack.hpp>
int main() {
  const shardpack_api::Dataset data("shards");
  const shardpack_api::Loader loader(data, shardpack_api::OrderOptions().set_global_batch(16), shardpack_api::LoaderOptions());
}
END
for mode in -O1 -O3; do
  g++ -std=c++17 -fsanitize=address $mode "${warnings[@]}" -I"$api" -c sanitized.cc -o sanitized.o
done
for compiler in g++ "$clang"; do
  said=$("$compiler" -std=c++14 -I"$api" -fsyntax-only "$program" 2>&1) && exit 1
  [[ $said == *"needs C++17"* ]]
done
g++ -std=c++17 "${warnings[@]}" -I"$api" "$tests/old_library_test_program.cc" -Llib -o old -lshardpack
./old shards
# Objects of both kinds in one program.
g++ -std=c++17 "${warnings[@]}" -DBOTH -I"$api" -c "$program" -o throwing.o
g++ -std=c++20 "${warnings[@]}" -fno-exceptions -DOTHER_MAIN -I"$api" -c "$program" -o returning.o
g++ throwing.o returning.o -Llib -lshardpack -o both
./both shards
