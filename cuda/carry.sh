#!/usr/bin/env bash
# Copies a program and the shared libraries it needs into a folder, for a machine with a GPU that does not have them:
#   ./bazelw build //cuda/kernels:preprocess_gpu_test && cuda/carry.sh bazel-bin/cuda/preprocess_gpu_test FOLDER
#   FOLDER/run            there; FOLDER/run compute-sanitizer --error-exitcode 1 runs it under another program
#   FOLDER/run -- WORDS   with these words: bazel-bin/cli/pack-bench-device takes `bench DATASET --device cuda`
set -euo pipefail

binary=$1 folder=$2
mkdir -p "$folder/lib"
cp -L "$binary" "$folder/"
# With the loader and the C library: the other machine's may be older.
ldd "$binary" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1}' | xargs -I{} cp -L {} "$folder/lib/"
cat >"$folder/run" <<'END'
#!/usr/bin/env bash
here=$(dirname "$(readlink -f "$0")")
# There is to be a GPU: tests that pass without one fail.
export SHARDPACK_REQUIRE_GPU="${SHARDPACK_REQUIRE_GPU:-1}"
under=()
while (($# > 0)) && [[ $1 != -- ]]; do
  under+=("$1")
  shift
done
shift
exec "${under[@]}" "$here"/lib/ld-linux-* --library-path "$here/lib:${LD_LIBRARY_PATH:-/usr/lib/x86_64-linux-gnu}" \
END
echo "  \"\$here/${binary##*/}\" \"\$@\"" >>"$folder/run"
chmod +x "$folder/run"
