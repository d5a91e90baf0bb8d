#!/usr/bin/env bash
# Debian's Python, which has NumPy and Pillow, not one that stands before it in PATH.
set -euo pipefail
# What a test lists of augment/opencv is found, as where libshardpack-opencv0 is installed.
export LD_LIBRARY_PATH=$PWD/augment/opencv
PYTHONPATH=python/site PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$1"
