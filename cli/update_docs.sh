#!/usr/bin/env bash
# Brings the reference part of docs/cli.md up to date with the tables of verbs, flags and exit codes.
#   usage: cli/update_docs.sh
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
./bazelw build //cli:pack
mark='<!-- From here on made by `pack man --as markdown`'
new=$(mktemp)
trap 'rm -f "$new"' EXIT
# The part above the mark is written by hand.
awk -v mark="$mark" 'index($0, mark) == 1 { exit } { print }' docs/cli.md >"$new"
bazel-bin/cli/pack man --as markdown >>"$new"
cat "$new" >docs/cli.md
