#!/usr/bin/env bash
# What `./bazelw run --config=deb //packaging:debs` starts, in the folder of its runfiles.
exec /usr/bin/python3 -B packaging/debs/debs.py "$@"
