"""Shrinks the same JPEGs with Shardpack, an OpenCV loop and img2dataset, in interleaved runs, and prints ratios.

usage: bench.py --source FOLDER [--pack PACK] [--images 1000] [--reps 5] [--work DIR] [--no-img2dataset] [--decode-bench PROGRAM]
  --source  JPEGs of ImageNet size, repeated under other names to --images
Every program writes JPEGs of quality 95 whose shorter side is 256 into tar files. Each round runs all of them once, in an
order that changes; a ratio is of the wall times of one round, and the median over rounds is printed. The rows "raw" write
pixels, 256 x 256, into HDF5 instead; with --decode-bench (bazel-bin/images/decode_bench) what decoding alone takes on two
threads is printed beside them.
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def python_of(name):
  made = subprocess.run([ROOT / "tests" / "interop" / "venv", HERE / f"requirements-{name}.txt"], stdout=subprocess.PIPE,
                        text=True, check=False)
  return made.stdout.strip() if made.returncode == 0 else None


def repeat(source, target, count):
  """Names of their own for each; the bytes too, by a comment, so that nothing is a copy of another."""
  paths = sorted(path for path in pathlib.Path(source).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
  for number, path in zip(range(count), itertools.cycle(paths)):
    data, comment = path.read_bytes(), b"number %d" % number
    folder = target / f"class-{number % 10}"
    folder.mkdir(parents=True, exist_ok=True)
    length = (len(comment) + 2).to_bytes(2, "big")
    (folder / f"{number:06}.jpg").write_bytes(data[:2] + b"\xff\xfe" + length + comment + data[2:])


def run(words, log):
  begin = time.monotonic()
  done = subprocess.run([str(word) for word in words], stdout=log, stderr=log, check=False)
  wall = time.monotonic() - begin
  if done.returncode:
    raise RuntimeError(f"{words[0]} ended with {done.returncode}; see {log.name}")
  usage = os.times()
  return wall, usage.children_user + usage.children_system


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--source", required=True)
  parser.add_argument("--pack", default=ROOT / "bazel-bin" / "cli" / "pack")
  parser.add_argument("--images", type=int, default=1000)
  parser.add_argument("--reps", type=int, default=5)
  parser.add_argument("--work")
  parser.add_argument("--no-img2dataset", action="store_true")
  parser.add_argument("--decode-bench")
  options = parser.parse_args()
  work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="shardpack-pixels-"))
  source = work / "src"
  if not source.exists():
    repeat(options.source, source, options.images)
  pixels = ["--resize", "shortest", "--size", "256", "--encode", "jpg", "--quality", "95", "--no-fsync", "-q", "--shards", "4"]
  def ours(jobs, *more):
    # The JPEGs that are 256 pixels high already keep their bytes; here all are larger or smaller.
    return lambda out: [options.pack, source, "-o", out, *pixels, "-j", jobs, *more]
  programs = {"Shardpack, 2 threads": ours(2), "Shardpack, 1 thread": ours(1),
              "Shardpack, 2 threads, area": ours(2, "--interpolation", "area")}
  raw = ["-f", "hdf5", "--layout", "decoded", "--resize", "crop", "--size", "256", "--color", "rgb", "--encode", "raw"]
  programs["Shardpack raw, 2 threads"] = lambda out: [options.pack, source, "-o", out, *raw, "--no-fsync", "-q", "-j", 2]
  opencv = python_of("opencv")
  if opencv:
    programs["OpenCV loop, 2 threads"] = lambda out: [opencv, HERE / "opencv_loop.py", source, f"{out}.tar", 2]
  img2dataset = None if options.no_img2dataset else python_of("img2dataset")
  if img2dataset:
    programs["img2dataset, 2 processes"] = lambda out: [img2dataset, HERE / "img2dataset_run.py", source, out, 2]
  walls, cpus = {name: [] for name in programs}, {name: [] for name in programs}
  names = list(programs)
  with open(work / "log", "w", encoding="utf-8") as log:
    for turn in range(options.reps + 1):  # the first round warms files and programs
      for name in names[turn % len(names):] + names[:turn % len(names)]:
        out = work / "out"
        shutil.rmtree(out, ignore_errors=True)
        before = os.times()
        wall, after = run(programs[name](out), log)
        if turn > 0:
          walls[name].append(wall)
          cpus[name].append(after - before.children_user - before.children_system)
  rows = []
  for name in names:
    ratio = statistics.median(theirs / own for theirs, own in zip(walls[name], walls[names[0]]))
    rows.append({"program": name, "images_a_second": options.images / statistics.median(walls[name]),
                 "wall_seconds": statistics.median(walls[name]), "cpu_seconds": statistics.median(cpus[name]),
                 "times_the_wall_of_the_first": ratio})
  print(json.dumps({"images": options.images, "rounds": options.reps, "cores": os.cpu_count(), "rows": rows}, indent=1))
  for row in rows:
    print(f"{row['program']:28} {row['images_a_second']:8.0f} images/s  {row['cpu_seconds'] * 1e3 / options.images:6.2f} ms of a "
          f"core an image  {row['times_the_wall_of_the_first']:5.2f} x the time", file=sys.stderr)
  one, two = walls["Shardpack, 1 thread"], walls["Shardpack, 2 threads"]
  print(f"from 1 to 2 threads: {statistics.median(a / b for a, b in zip(one, two)):.2f} x", file=sys.stderr)
  if options.decode_bench:
    subprocess.run([options.decode_bench, source, "2", "1", "full decode"], stdout=sys.stderr, check=True)


main()
