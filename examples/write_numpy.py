"""NumPy arrays as a dataset of .npy arrays, which numpy.load maps and a Loader reads without decoding.

  PYTHONPATH=bazel-bin/python/site python3 examples/write_numpy.py OUT [SAMPLES]
"""

import argparse

import numpy
import shardpack

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("out", metavar="OUT")
parser.add_argument("samples", metavar="SAMPLES", nargs="?", type=int, default=1000)
given = parser.parse_args()

random = numpy.random.default_rng(1)
with shardpack.Writer(given.out, format="npy", shard_size="64MB") as writer:
  for n in range(given.samples):
    digit = n % 10
    pixels = random.integers(0, 64, (28, 28, 3), dtype=numpy.uint8)  # all of one shape: height, width, channels
    pixels[4:24, 2 * digit:2 * digit + 8] += 128
    writer.add(f"{n:07}", pixels, label=f"digit-{digit}")
print(writer.result)
