"""What the readers of benchmarks/peers have alike: arguments, clock, counts, and a JSON line an epoch.

A peer's program gives main() its version and a class a kind of work, of which one is made, with the options:
  __init__(options)   opens the dataset; neither this nor the imports count as part of an epoch
  batches(epoch)      what a loop over one epoch goes through
  consume(batch)      (samples, bytes, sum of labels or None), after the length and a byte of every sample were looked at;
                      for pixels (samples, bytes, sum of labels or None, mean of the pixels from 0 to 255)
  check(batch)        the (image, label or None) of each sample, for one epoch that nobody times; not for pixels
usage: PROGRAM KIND DATASET --order random|sequential --batch N --epochs N --threads N [--check]
"""

import argparse
import glob
import json
import os
import time
import zlib

# One value of so many is looked at: each cache line of a batch of bytes.
PIXEL_STEP = 64


def shards(dataset, ending):
  found = sorted(glob.glob(os.path.join(dataset, "*" + ending)))
  if not found:
    raise SystemExit(f"no *{ending} in {dataset}")
  return found


def class_files(folder):
  """[(label, path)] of class folders, numbered in the order of their names."""
  classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
  return [(label, os.path.join(folder, name, file)) for label, name in enumerate(classes)
          for file in sorted(os.listdir(os.path.join(folder, name)))]


def look_at_pixels(batch):
  """(samples, bytes, mean) of an array N x 224 x 224 x 3 or N x 3 x 224 x 224, after a look at each of its cache lines."""
  if sorted(batch.shape[1:]) != [3, 224, 224]:
    raise SystemExit(f"a batch of {batch.shape}")
  values = batch.reshape(-1)
  return len(batch), batch.nbytes, float(values[::PIXEL_STEP // batch.itemsize].mean())


def words_of(path):
  """Of a file in /proc, after the name in brackets that it may have; none when its thread or process has ended."""
  try:
    with open(path, encoding="ascii", errors="replace") as file:
      return file.read().rpartition(")")[2].split()
  except OSError:
    return []


def cpu_seconds():
  """User and system time of this process and of the workers it has now, in ticks of 10 ms for these."""
  ticks = 0
  for children in glob.glob(f"/proc/{os.getpid()}/task/*/children"):
    for worker in words_of(children):
      ticks += sum(map(int, words_of(f"/proc/{worker}/stat")[11:13]))
  return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def run_epoch(peer, epoch):
  begin, cpu_begin = time.perf_counter(), cpu_seconds()
  first, samples, total, labels, means, known = None, 0, 0, 0, 0.0, True
  for batch in peer.batches(epoch):
    counts = peer.consume(batch)
    if first is None:
      first = time.perf_counter() - begin
    samples, total = samples + counts[0], total + counts[1]
    if counts[2] is None:
      known = False
    else:
      labels += counts[2]
    if len(counts) > 3:
      means += counts[3] * counts[0]
  line = {"epoch": epoch, "samples": int(samples), "bytes": int(total), "seconds": time.perf_counter() - begin,
          "first_seconds": first, "cpu_seconds": cpu_seconds() - cpu_begin, "labels": int(labels) if known else None}
  if means:
    line["mean"] = means / samples
  return line


def check_epoch(peer, epoch):
  samples, checksum, pairs = 0, 0, 0
  for batch in peer.batches(epoch):
    for image, label in peer.check(batch):
      crc = zlib.crc32(image)
      samples, checksum, pairs = samples + 1, checksum + crc, pairs + crc * (0 if label is None else int(label) + 1)
  return {"check": samples, "checksum": checksum, "pairs": pairs or None}


def main(version, kinds):
  parser = argparse.ArgumentParser()
  parser.add_argument("kind", choices=kinds)
  parser.add_argument("dataset")
  parser.add_argument("--order", choices=("random", "sequential"), default="random")
  parser.add_argument("--batch", type=int, default=64)
  parser.add_argument("--epochs", type=int, default=3)
  parser.add_argument("--threads", type=int, default=2)
  parser.add_argument("--check", action="store_true", help="one more epoch, for the bytes of every sample")
  options = parser.parse_args()
  begin = time.perf_counter()
  peer = kinds[options.kind](options)
  print(json.dumps({"version": version, "construct_seconds": time.perf_counter() - begin}), flush=True)
  for epoch in range(options.epochs):
    print(json.dumps(run_epoch(peer, epoch)), flush=True)
  if options.check and hasattr(peer, "check"):
    print(json.dumps(check_epoch(peer, options.epochs)), flush=True)
