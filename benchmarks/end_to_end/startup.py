"""How long the programs take to start: `pack --version`, and `import shardpack` with and without NumPy.

usage: startup.py [--pack PACK] [--library LIBSHARDPACK] [--rounds 40] [--json FILE]

Every run is a process of its own; the runs take turns, and a round that nobody times comes first. An import is timed inside its
process, so that the start of Python itself does not count; its imports of other modules do. `import shardpack` imports no NumPy:
the last row is what it adds to a program that has NumPy, each round's time with both less that of NumPy alone. Bytecode is kept as
for an installed package, whatever PYTHONDONTWRITEBYTECODE says.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bench

PACKAGE = bench.ROOT / "python"
IMPORT = "import time; begin = time.perf_counter(); {}; print(time.perf_counter() - begin)"
# What is run, and the most milliseconds that it may take.
MEASURES = (
    ("pack --version", None, 10),
    ("import shardpack", "import shardpack", 30),
    ("import shardpack, numpy", "import shardpack, numpy", 60),
    ("import numpy", "import numpy", None),
)


def run(words, environment, prints_seconds):
  """The seconds of one process, or those that it prints."""
  begin = time.perf_counter()
  done = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE)
  seconds = time.perf_counter() - begin
  return float(done.stdout) if prints_seconds else seconds


def table(seconds):
  lines = ["| what | median | min .. max | target | |", "|---|---|---|---|---|"]
  added = [both - alone for both, alone in zip(seconds["import shardpack, numpy"], seconds["import numpy"])]
  rows = [(name, seconds[name], most) for name, _, most in MEASURES] + [("shardpack beside numpy", added, 30)]
  for name, each_round, most in rows:
    ms = [1000 * each for each in each_round]
    middle = statistics.median(ms)
    verdict = "" if most is None else "met" if middle < most else "**missed**"
    lines.append(f"| {name} | {middle:.1f} ms | {min(ms):.1f} .. {max(ms):.1f} | {'' if most is None else f'< {most} ms'} "
                 f"| {verdict} |")
  return "\n".join(lines)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", help="the program (default: built with Bazel)")
  parser.add_argument("--library", help="libshardpack.so.0 (default: built with Bazel)")
  parser.add_argument("--rounds", type=int, default=40)
  parser.add_argument("--json", help="write the seconds of every run here")
  arguments = parser.parse_args()
  pack = bench.find_program(arguments.pack, "//cli:pack")
  library = bench.find_program(arguments.library, "//api:libshardpack.so.0")
  environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "SHARDPACK_LIBRARY": str(library)}
  environment.pop("PYTHONDONTWRITEBYTECODE", None)
  seconds = {name: [] for name, _, _ in MEASURES}
  with tempfile.TemporaryDirectory() as bytecode:
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    for n in range(-1, arguments.rounds):
      for name, statement, _ in MEASURES[n % 2:] + MEASURES[:n % 2]:
        words = [pack, "--version"] if statement is None else [sys.executable, "-c", IMPORT.format(statement)]
        took = run(words, environment, statement is not None)
        if n >= 0:
          seconds[name].append(took)
  print(table(seconds))
  if arguments.json:
    pathlib.Path(arguments.json).write_text(json.dumps(seconds, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
  main()
