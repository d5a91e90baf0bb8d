#!/usr/bin/env bash
# Fails for C and C++ sources that clang-format 14 would change (the style is that of .clang-format), and for those that
# leave it to others, such as the precompiled headers, to include what they use of the standard library.
set -euo pipefail
cd "$(dirname "$(readlink -f WORKSPACE)")"
files=$(mktemp)
trap 'rm -f "$files"' EXIT
find . -name 'bazel-*' -prune -o -name '.?*' -prune -o -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.c' \) \
  -print >"$files"
# A wrong folder must not look like a tidy project.
(($(wc -l <"$files") > 100)) || { echo "too few files: $(wc -l <"$files")"; exit 1; }
# As many at once as there are cores.
xargs -P "$(nproc)" -n 50 clang-format-14 --dry-run -Werror --ferror-limit=1 <"$files" ||
  { echo "Format them: git ls-files '*.h' '*.cc' '*.cu' '*.c' | xargs clang-format-14 -i"; exit 1; }
grep -v '\.cu\?$' "$files" | xargs -P "$(nproc)" -n 50 cpplint --quiet --filter=-,+build/include_what_you_use
