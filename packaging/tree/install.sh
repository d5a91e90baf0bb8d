#!/usr/bin/env bash
# What `./bazelw run //:install` starts, in the folder of its runfiles.
exec /usr/bin/python3 -B packaging/tree/install.py --tree packaging/tree/tree.tar "$@"
