#!/usr/bin/env bash
# Runs charts.py --check in the project behind the runfiles.
set -euo pipefail
exec python3 -B "$(dirname "$(readlink -f WORKSPACE)")/benchmarks/charts/charts.py" --check
