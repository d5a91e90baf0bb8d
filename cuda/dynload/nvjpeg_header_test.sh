#!/usr/bin/env bash
# Compares our prototypes of nvJPEG with NVIDIA's header, where there is one: $SHARDPACK_NVJPEG_HEADERS (folders, separated
# by colons), PyPI's nvidia-nvjpeg in a Python's packages, a CUDA toolkit. Only the compiler runs.
set -euo pipefail

IFS=: read -ra folders <<<"${SHARDPACK_NVJPEG_HEADERS:-}"
for place in "${VIRTUAL_ENV:-/none}"/lib/python3*/site-packages /usr/local/lib/python3*/{dist,site}-packages \
  /usr/lib/python3/dist-packages; do
  folders+=("$place/nvidia/cu13/include" "$place/nvidia/nvjpeg/include")
done
folders+=("${CUDA_HOME:-/usr/local/cuda}/include")

# What nvjpeg.h needs of the toolkit, for where there is none.
stand_in=$TEST_TMPDIR/stand_in
mkdir -p "$stand_in"
echo 'typedef struct CUstream_st* cudaStream_t;' >"$stand_in/cuda_runtime_api.h"
echo 'typedef enum { MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL } libraryPropertyType;' >"$stand_in/library_types.h"

compared=0
for folder in "${folders[@]}"; do
  [[ -f $folder/nvjpeg.h ]] || continue
  mkdir -p "$TEST_TMPDIR/$compared"
  cp "$folder/nvjpeg.h" "$TEST_TMPDIR/$compared/"
  g++ -std=c++20 -fsyntax-only -I. -isystem "$TEST_TMPDIR/$compared" -isystem "$stand_in" cuda/dynload/nvjpeg_header_check.cc
  echo "$folder/nvjpeg.h: version $(awk '/define NVJPEG_VER_M/ {printf "%s ", $3}' "$folder/nvjpeg.h"): the same"
  compared=$((compared + 1))
done
((compared)) || echo "NOT TESTED: no nvjpeg.h here (pip install nvidia-nvjpeg, then SHARDPACK_NVJPEG_HEADERS=.../include)"
