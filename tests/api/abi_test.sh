#!/usr/bin/env bash
# Programs compiled with the header of the first release run with this library: abidiff finds nothing but what was added.
# What it compares are libraries of functions that do nothing, made from the headers; symbols_test says that the real one
# has the same functions.
#   abi_test.sh update FILE    writes the interface of today's header, for a release that breaks with the one before
set -euo pipefail

root=${TEST_SRCDIR:-$PWD/..}/${TEST_WORKSPACE:-$(basename "$PWD")}
scratch=${TEST_TMPDIR:-$(mktemp -d)}
first=$root/api/abi/libshardpack.so.0.abi

# stub HEADER NAME: the library of a header.
stub() {
  mkdir -p "$scratch/$2"
  cp "$1" "$scratch/$2/shardpack.h"
  python3 "$root/tests/api/calls.py" "$1" stub > "$scratch/$2/stub.c"
  gcc -g -shared -fPIC -Wl,-soname,libshardpack.so.0 -I "$scratch/$2" -o "$scratch/$2/libshardpack.so.0" "$scratch/$2/stub.c"
}

# compare NAME: whether the library has all of the first release, and at most more of it: functions, and members at the end
# of structs. abidiff's status tells these from other changes only where functions are gone (8), so its report is read too.
compare() {
  local status=0
  abidiff --no-show-locs --no-added-syms "$first" "$scratch/$1/libshardpack.so.0" > "$scratch/$1/report" 2>&1 || status=$?
  ((status == 0 || status == 4)) &&
    ! grep -qE 'data member (change|deletion)|name changed|was (added|removed)|return type changed' "$scratch/$1/report"
}

stub "$root/api/shardpack.h" today
if [[ ${1:-} == update ]]; then
  abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --out-file "$2" "$scratch/today/libshardpack.so.0"
  exit
fi

compare today || {
  cat "$scratch/today/report" >&2
  echo "abi_test: programs of the first release would not run with this library" >&2
  exit 1
}

# changed NAME allowed|refused SCRIPT: what would be said of a header that the script of sed makes.
changed() {
  local name=$1 wanted=$2 found=allowed
  sed "$3" "$root/api/shardpack.h" > "$scratch/changed.h"
  ! cmp -s "$root/api/shardpack.h" "$scratch/changed.h" || { echo "abi_test: $name changes nothing" >&2; exit 1; }
  stub "$scratch/changed.h" "$name"
  compare "$name" || found=refused
  [[ $found == "$wanted" ]] || { cat "$scratch/$name/report" >&2; echo "abi_test: $name is $found" >&2; exit 1; }
}
changed function_added allowed 's/^SHARDPACK_API const char\* shardpack_version(void);/& SHARDPACK_API int32_t shardpack_more(void);/'
changed member_added allowed 's/^} shardpack_loader_options;/  uint64_t more; &/'
changed function_gone refused '/^SHARDPACK_API const char\* shardpack_version(void);/d'
changed member_within refused 's/^  uint64_t samples;/  uint64_t more; &/'
changed member_gone refused '/^  uint32_t no_verify;/d'
changed member_larger refused 's/^  uint32_t shards, splits, classes;/  uint64_t shards, splits, classes;/'
changed member_larger_and_added refused 's/^  uint32_t shards, splits, classes;/  uint64_t shards, splits, classes;/
  s/^} shardpack_dataset_info;/  uint64_t more; &/'
changed parameter_larger refused 's/uint32_t first_slot/uint64_t first_slot/'
changed parameter_added refused 's/uint32_t first_slot/uint32_t more, uint32_t first_slot/'
changed result_larger refused 's/typedef int32_t shardpack_code;/typedef int64_t shardpack_code;/'
