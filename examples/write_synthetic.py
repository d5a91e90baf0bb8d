"""Drawn images with boxes and captions as WebDataset shards, by several processes. Killed, it goes on where it was.

  PYTHONPATH=bazel-bin/python/site python3 examples/write_synthetic.py OUT [SAMPLES [PROCESSES]]
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from typing import Any

import numpy
import shardpack

SIDE = 64
SHAPES = ("square", "disc")
EXISTS = 3  # exit code of a process that may not write OUT


def draw(n: int) -> tuple[str, Any, list[int]]:
  """(name of the shape, pixels, box) of sample n, and of no other."""
  random = numpy.random.default_rng(n)
  radius = int(random.integers(6, 20))
  x, y = (int(value) for value in random.integers(radius, SIDE - radius, 2))
  rows, columns = numpy.mgrid[:SIDE, :SIDE]
  across, down = abs(columns - x), abs(rows - y)
  inside = numpy.maximum(across, down) < radius if n % 2 == 0 else across**2 + down**2 < radius**2
  pixels = random.integers(0, 32, (SIDE, SIDE, 3), dtype=numpy.uint8)
  pixels[inside] = random.integers(128, 256, 3)
  return SHAPES[n % 2], pixels, [x - radius, y - radius, 2 * radius, 2 * radius]


def write(out: str, count: int, worker: int, workers: int) -> None:
  """The samples of one process."""
  try:
    opened = shardpack.Writer(out, worker=worker, workers=workers, encode="png", fields=["image", "txt", "json"])
  except shardpack.ExistsError:
    sys.exit(EXISTS)
  with opened as writer:
    for n in range(worker, count, workers):
      key = f"{n % 100:02}/{n:06}"
      if key not in writer:
        shape, pixels, box = draw(n)
        writer.add(key, pixels, label=shape, txt=f"a {shape}", json={"boxes": [{"bbox": box, "label": SHAPES.index(shape)}]})


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("out", metavar="OUT")
  parser.add_argument("samples", metavar="SAMPLES", nargs="?", type=int, default=2000)
  parser.add_argument("processes", metavar="PROCESSES", nargs="?", type=int, default=2)
  given = parser.parse_args()
  path, samples, processes = given.out, given.samples, given.processes
  running = [multiprocessing.get_context("spawn").Process(target=write, args=(path, samples, n, processes)) for n in range(processes)]
  for process in running:
    process.start()
  for process in running:
    process.join()
  if any(process.exitcode == EXISTS for process in running):
    sys.exit(f"{path} is complete already, or has files of other programs: give another OUT")
  if any(process.exitcode for process in running):
    sys.exit("a process has failed; the same command goes on")
  print(shardpack.finish(path))
