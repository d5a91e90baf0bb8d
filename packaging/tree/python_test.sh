#!/usr/bin/env bash
set -euo pipefail
exec /usr/bin/python3 -B "$@"
