"""The loader against plain reads (cold) and memcpy (warm) of the same samples, and what opening a large dataset costs.

usage: bench.py --large FOLDER [--pack PACK] [--work DIR] [--reps 5]
  --large   images of about 100 KB in class folders
Needs root: the page cache is dropped before each cold run. Prints a table; see docs/benchmarks.md.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def built(target):
  subprocess.run([ROOT / "bazelw", "build", "--noshow_progress", target], check=True, cwd=ROOT)
  return str(ROOT / "bazel-bin" / target.lstrip("/").replace(":", "/"))


def run(*words):
  done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
  return json.loads(done.stdout.splitlines()[-1])


def cold(*words):
  subprocess.run(["sync"], check=True)
  pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
  return run(*words)


def best_epoch(*words):
  done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
  return max(line["bytes"] / line["seconds"] for line in map(json.loads, done.stdout.splitlines()) if line["epoch"] >= 0)


def row(name, values, unit, scale=1):
  values = [value * scale for value in values]
  print(f"| {name} | {statistics.median(values):.3g} {unit} | {min(values):.3g} .. {max(values):.3g} |")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--large", required=True)
  parser.add_argument("--pack")
  parser.add_argument("--loader-bench")
  parser.add_argument("--loading-bench")
  parser.add_argument("--work", default=tempfile.gettempdir() + "/shardpack-loading")
  parser.add_argument("--reps", type=int, default=5)
  arguments = parser.parse_args()
  pack = arguments.pack or built("//cli:pack")
  loader_bench = arguments.loader_bench or built("//benchmarks/peers:loader_bench")
  loading_bench = arguments.loading_bench or built("//benchmarks/loading:loading_bench")
  work = pathlib.Path(arguments.work)
  work.mkdir(parents=True, exist_ok=True)
  if not (work / "large" / "manifest.json").exists():
    subprocess.run([pack, arguments.large, "-o", work / "large", "-q"], check=True, stdout=subprocess.DEVNULL)
  if not (work / "imagenet" / "manifest.json").exists():
    subprocess.run([loading_bench, "generate", work / "imagenet"], check=True)

  plain, ours = [], []
  for _ in range(arguments.reps):
    done = cold(loading_bench, "reads", work / "large", "--depth", 32)
    plain.append(done["bytes"] / done["seconds"])
    done = cold(loader_bench, "batches", work / "large", "--batch", 64, "--epochs", 0, "--no-digest")
    ours.append(done["bytes"] / done["seconds"])
  copied, spread, verified, unverified = [], [], [], []
  for _ in range(arguments.reps):
    # Into one slab a thread, which stays in the cache, and into as many as the loader fills in turn.
    for rates, slabs in ((copied, 1), (spread, 3)):
      done = run(loading_bench, "copy", work / "large", "--depth", 2, "--slabs", slabs)
      rates.append(done["bytes"] / done["seconds"])
    for rates, verify in ((verified, "on"), (unverified, "off")):
      rates.append(best_epoch(loader_bench, "batches", work / "large", "--batch", 64, "--epochs", 6, "--threads", 2,
                              "--verify", verify))
  opened = [run(loading_bench, "open", work / "imagenet") for _ in range(arguments.reps)]
  print("| what | median | spread |\n|---|---|---|")
  row("cold, random, plain reads by 32 threads", plain, "GB/s", 1e-9)
  row("cold, random, batches of 64, verified", ours, "GB/s", 1e-9)
  row("ratio of each pair", [b / a for a, b in zip(plain, ours)], "x")
  for name, rates in (("one slab a thread, which stays in the cache", copied), ("as many slabs as the loader", spread)):
    row(f"warm, random, memcpy by 2 threads into {name}", rates, "GB/s", 1e-9)
    row("batches of 64, verified: ratio to it", [b / a for a, b in zip(rates, verified)], "x")
    row("batches of 64, not verified: ratio to it", [b / a for a, b in zip(rates, unverified)], "x")
  row(f"open {opened[0]['samples']:,} samples in {opened[0]['shards']:,} shards, to the first id",
      [each["open_seconds"] for each in opened], "ms", 1e3)
  row("restore a cursor in the middle of epoch 40", [each["restore_seconds"] for each in opened], "ms", 1e3)
  return 0


if __name__ == "__main__":
  sys.exit(main())
