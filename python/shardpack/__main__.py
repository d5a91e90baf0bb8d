"""The command: `python3 -m shardpack` runs `pack`: the one that SHARDPACK_PACK names, else that of the package, else that of this
version beside the library (in bin or ../bin) or in PATH."""

from __future__ import annotations

import os
import sys

from ._c import VERSION
from ._library import library

OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "pack")


def find() -> str:
  named = os.environ.get("SHARDPACK_PACK")
  if named:
    if not _runs(named):
      sys.exit(f"shardpack: there is no program {named}, which the variable SHARDPACK_PACK names")
    return os.path.abspath(named)
  if _runs(OWN):
    return OWN
  beside = os.path.dirname(library.path)
  folders = [os.path.join(beside, "bin"), os.path.join(os.path.dirname(beside), "bin"), *os.environ.get("PATH", "").split(os.pathsep)]
  others = []
  for folder in folders:
    program = os.path.join(folder, "pack")
    # A relative one would be in whatever folder the command happens to run.
    if os.path.isabs(folder) and _runs(program):
      version = _version(program)
      if version == VERSION:
        return program
      others.append(f"; {program} is " + (f"version {version}" if version else "another tool"))
  sys.exit(f"shardpack: no program pack of version {VERSION}: {OWN} is not there, nor is one beside the library or in PATH" + "".join(others) +
           "; the variable SHARDPACK_PACK can name one. Debian's package shardpack has it")


def _runs(program: str) -> bool:
  return os.path.isfile(program) and os.access(program, os.X_OK)


def _version(program: str) -> str | None:
  """None for what is not Shardpack's: there are other tools of this name."""
  import subprocess  # pylint: disable=import-outside-toplevel
  # A script of a Python package may come back here.
  environment = {**os.environ, "SHARDPACK_PACK": "/nowhere"}
  try:
    line = subprocess.run([program, "--version"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=10, check=False).stdout.decode(errors="replace").partition("\n")[0]
  except (OSError, subprocess.TimeoutExpired):
    return None
  words = line.split(" ")
  return words[1] if words[0] == "pack" and line.partition(" (")[2].startswith("shardpack,") and len(words) > 2 else None


def main() -> None:
  program = find()
  try:
    os.execv(program, [program, *sys.argv[1:]])
  except OSError as error:
    sys.exit(f"shardpack: {program} cannot be run: {error.strerror}")


if __name__ == "__main__":
  main()
