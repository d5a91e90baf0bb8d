"""What the Python interface adds to a batch of 256: microseconds to look at one that the library has already made.

usage: interface.py DATASET [--batch 256] [--rounds 200]      SHARDPACK_LIBRARY: the library; PYTHONPATH: the package

Each row is the median and the least over the rounds, in a fresh Batch object each time; nothing is read or decoded meanwhile.
"""

import argparse
import statistics
import time

import shardpack


def make_batch(batch):
  """The same batch with nothing remembered, as the loader gives it."""
  return type(batch)(batch._handle, batch._look)  # pylint: disable=protected-access


LOOKS = (
    ("Batch made", lambda batch: None),
    ("pixels and labels", lambda batch: (batch.pixels, batch.labels)),
    ("pixels, labels, ids and valid", lambda batch: (batch.pixels, batch.labels, batch.ids, batch.valid)),
)
RAW_LOOKS = (
    ("a span of every encoded image", lambda batch: batch._of_field("image")),  # pylint: disable=protected-access
    ("256 memoryviews of encoded images", lambda batch: [batch.view(slot) for slot in range(len(batch))]),
    ("256 copies of encoded images", lambda batch: batch.bytes()),
)


def measure(batch, look, rounds):
  taken = []
  for _ in range(rounds):
    begin = time.perf_counter()
    look(make_batch(batch))
    taken.append(1e6 * (time.perf_counter() - begin))
  return statistics.median(taken), min(taken)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("dataset")
  parser.add_argument("--batch", type=int, default=256)
  parser.add_argument("--rounds", type=int, default=200)
  arguments = parser.parse_args()
  print("| what, for a batch of {} | median | least |\n|---|---|---|".format(arguments.batch))
  for size, looks in ((32, LOOKS), (None, RAW_LOOKS)):
    with shardpack.load(arguments.dataset, batch=arguments.batch, size=size, epochs=1) as loader:
      batch = next(iter(loader))
      for name, look in looks:
        middle, least = measure(batch, look, arguments.rounds)
        print(f"| {name} | {middle:.1f} us | {least:.1f} us |")


if __name__ == "__main__":
  main()
