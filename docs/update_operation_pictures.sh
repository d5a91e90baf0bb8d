#!/usr/bin/env bash
# Makes docs/operations.md and its pictures again.
#   usage: docs/update_operation_pictures.sh
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
./bazelw build //tests/docs:operation_pictures
folder=docs/pictures/operations
rm -rf "$folder"
mkdir "$folder"
bazel-bin/tests/docs/operation_pictures docs/pictures/scene.png "$folder"
mv "$folder/operations.md" docs/operations.md
