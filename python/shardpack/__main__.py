"""The command: `python3 -m shardpack` and the console scripts run the `pack` that the package brings."""

import os
import sys

PACK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "pack")


def main():
  if not os.access(PACK, os.X_OK):
    sys.exit(f"shardpack: this installation of the Python package brings no pack: {PACK} is not there")
  os.execv(PACK, [PACK, *sys.argv[1:]])


if __name__ == "__main__":
  main()
