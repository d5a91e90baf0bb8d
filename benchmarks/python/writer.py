#!/usr/bin/env python3
"""How long writers in Python take for small JPEGs from memory: shardpack.Writer, webdataset's ShardWriter, MosaicML Streaming's MDSWriter.

  ./bazelw build //cli:pack //python:shardpack && python3 benchmarks/python/writer.py --images CIFAR.tar.zst [--reps 5] [--log FILE]

The images (about 0.9 KB each, repeated to --count, keys 00000000, ...) are in memory when the clock starts; it stops when the dataset is
complete: shardpack's is then on disk, and was read again and compared twice, when its parts became safe and after it was packed.
The others verify nothing and do not wait for the disk; "without fsync" does not either. Each run is a process of its own; writers
alternate; medians, and ratios within this run.
"""

import argparse
import io
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = {"shardpack": {}, "shardpack without fsync": {"fsync": False}, "shardpack by columns": {},
        "shardpack by columns without fsync": {"fsync": False}}
WRITERS = (*OURS, "ShardWriter", "MDSWriter")
ENVIRONMENTS = {"ShardWriter": "readers", "MDSWriter": ROOT / "benchmarks/peers/requirements-streaming.txt"}


def load(images, count):
  """[(image, class)]"""
  data = subprocess.run(["zstd", "-dc", images], check=True, stdout=subprocess.PIPE).stdout if images.endswith(".zst") else open(images, "rb").read()
  with tarfile.open(fileobj=io.BytesIO(data)) as archive:
    members = [member for member in archive if member.isfile()]
    found = [(archive.extractfile(member).read(), member.name.split("/")[-2]) for member in members]
  return [found[n % len(found)] for n in range(count)]


def write_shardpack(samples, out, by_columns, **options):
  import shardpack  # pylint: disable=import-outside-toplevel
  begin = time.perf_counter()
  with shardpack.Writer(out, **options) as writer:
    if by_columns:
      writer.add_many([f"{n:08}" for n in range(len(samples))], *zip(*samples))
    else:
      for n, (image, label) in enumerate(samples):
        writer.add(f"{n:08}", image, label)
  seconds = time.perf_counter() - begin
  assert writer.result.samples == len(samples) and shardpack.validate(out).ok
  return seconds


def write_webdataset(samples, out):
  import webdataset  # pylint: disable=import-outside-toplevel
  classes = {name: n for n, name in enumerate(sorted({label for _, label in samples}))}
  os.makedirs(out)
  begin = time.perf_counter()
  with webdataset.ShardWriter(os.path.join(out, "train-%06d.tar"), maxcount=10**9, maxsize=256e6, verbose=0) as sink:
    for n, (image, label) in enumerate(samples):
      sink.write({"__key__": f"{n:08}", "jpg": image, "cls": classes[label]})
  return time.perf_counter() - begin


def write_streaming(samples, out):
  sys.path.append(os.environ["TORCH_PACKAGES"])
  import streaming  # pylint: disable=import-outside-toplevel
  classes = {name: n for n, name in enumerate(sorted({label for _, label in samples}))}
  begin = time.perf_counter()
  with streaming.MDSWriter(out=out, columns={"image": "bytes", "label": "int"}) as writer:
    for image, label in samples:
      writer.write({"image": image, "label": classes[label]})
  return time.perf_counter() - begin


def run_one(name, images, count, out):
  samples = load(images, count)
  if name == "ShardWriter":
    return write_webdataset(samples, out)
  if name == "MDSWriter":
    return write_streaming(samples, out)
  return write_shardpack(samples, out, "by columns" in name, **OURS[name])


def python_of(environment):
  return subprocess.run([ROOT / "tests/interop/venv", environment], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def packages_of(python):
  return subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True, stdout=subprocess.PIPE,
                        text=True).stdout.strip()


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--images", required=True)
  parser.add_argument("--count", type=int, default=50_000)
  parser.add_argument("--reps", type=int, default=5)
  parser.add_argument("--module", default=ROOT / "bazel-bin/python/site")
  parser.add_argument("--pack", default=ROOT / "bazel-bin/cli/pack")
  parser.add_argument("--only", action="append", choices=WRITERS)
  parser.add_argument("--work", default=tempfile.gettempdir(), help="the folder of the outputs")
  parser.add_argument("--log", help="a file that gains the rows")
  parser.add_argument("--one", help=argparse.SUPPRESS)
  parser.add_argument("--out", help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.one:
    print(json.dumps(run_one(options.one, options.images, options.count, options.out)))
    return
  names = options.only or WRITERS
  pythons = {name: python_of(str(ENVIRONMENTS[name])) if name in ENVIRONMENTS else "/usr/bin/python3" for name in names}
  environment = {**os.environ, "PYTHONPATH": str(options.module), "SHARDPACK_PACK": str(pathlib.Path(options.pack).resolve())}
  if "MDSWriter" in names:
    environment["TORCH_PACKAGES"] = packages_of(python_of("torch"))
  seconds = {name: [] for name in names}
  with tempfile.TemporaryDirectory(dir=options.work) as work:
    for _ in range(options.reps):
      for name in names:
        out = os.path.join(work, "out")
        run = subprocess.run([pythons[name], __file__, "--images", options.images, "--count", str(options.count), "--one", name, "--out", out],
                             env=environment, check=True, stdout=subprocess.PIPE, text=True)
        seconds[name].append(json.loads(run.stdout.splitlines()[-1]))
        shutil.rmtree(out)
  base = statistics.median(seconds[names[0]])
  for name in names:
    taken = statistics.median(seconds[name])
    row = f"| {name} | {taken:.2f} s | {min(seconds[name]):.2f} - {max(seconds[name]):.2f} | {options.count / taken:,.0f} | {taken / base:.1f} |"
    print(row)
    if options.log:
      with open(options.log, "a", encoding="utf-8") as log:
        log.write(row + "\n")


if __name__ == "__main__":
  main()
