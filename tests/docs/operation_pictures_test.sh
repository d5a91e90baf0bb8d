#!/usr/bin/env bash
# docs/operations.md and its pictures are those of the table of operations.
set -euo pipefail
made=$TEST_TMPDIR/made
mkdir "$made"
tests/docs/operation_pictures docs/pictures/scene.png "$made"
diff docs/operations.md "$made/operations.md" && rm "$made/operations.md"
diff -r docs/pictures/operations "$made" || { echo "run docs/update_operation_pictures.sh"; exit 1; }
