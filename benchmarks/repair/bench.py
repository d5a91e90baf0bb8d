"""How long `pack repair` takes for one damaged shard of many, beside building that shard alone.

  ./bazelw build //cli:pack && python3 benchmarks/repair/bench.py [--pack FILE] [--source DIR] [--reps 5] [--log FILE]

Without --source 60,000 small images are made. The peer is a worker that builds that one shard from a shared plan
(pack build --plan FILE --shards-range N-N), which neither lists the source nor looks at any other shard. Repairs look at
all of the dataset's sizes (--level quick), at one shard by its name, and at every byte; what hashing every byte costs
alone is measured too (a repair of a whole dataset). Runs alternate; medians, and ratios within this run.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

SHARDS, LOST = 64, 17


def make_source(folder, count):
  base = pathlib.Path(__file__).parents[2].joinpath("testdata/images/baseline.jpg").read_bytes()
  for i in range(count):
    path = folder / f"class-{i % 20:02}" / f"{i:06}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    comment = b"%d" % i
    path.write_bytes(base[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + base[2:])


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", default="bazel-bin/cli/pack")
  parser.add_argument("--source")
  parser.add_argument("--count", type=int, default=60_000)
  parser.add_argument("--reps", type=int, default=5)
  parser.add_argument("--log", help="a file that gains a row a measure")
  options = parser.parse_args()
  pack = str(pathlib.Path(options.pack).resolve())
  with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    source = pathlib.Path(options.source).resolve() if options.source else work / "src"
    if not options.source:
      make_source(source, options.count)

    def timed(*words):
      begin = time.perf_counter()
      subprocess.run([pack, *map(str, words)], check=True, capture_output=True)
      return time.perf_counter() - begin

    rows = []
    for fmt in ("webdataset", "tfrecord", "lmdb", "hdf5"):
      out, plan, part = work / fmt, work / f"{fmt}.plan", work / "part"
      timed(source, "-o", out, "-f", fmt, "--shards", SHARDS, "-q")
      timed("plan", source, "-f", fmt, "--shards", SHARDS, "--write", plan, "-q")
      shard = json.loads((out / "manifest.json").read_text())["shards"][LOST]

      def lose():
        path = out / shard["name"]
        shutil.rmtree(path) if path.is_dir() else path.unlink()

      measures = {name: [] for name in ("build", "quick", "named", "full", "look")}
      for _ in range(options.reps):
        shutil.rmtree(part, ignore_errors=True)
        measures["build"].append(timed("build", "--plan", plan, "-o", part, "--shards-range", f"{LOST}-{LOST}", "-q"))
        for name, words in (("quick", ["--level", "quick"]), ("named", [shard["name"]]), ("full", [])):
          lose()
          measures[name].append(timed("repair", out, *words, "-q"))
        measures["look"].append(timed("repair", out, "-q"))
      seconds = {name: statistics.median(times) for name, times in measures.items()}
      less = seconds["full"] - seconds["look"] + 0.0
      row = [fmt, *(f"{seconds[name] / seconds['build']:.2f}" for name in ("quick", "named", "full", "look")),
             f"{less / seconds['build']:.2f}", f"{seconds['build']:.3f} s"]
      rows.append("| " + " | ".join(row) + " |")
    table = "\n".join(["| format | --level quick | SHARD | every byte | nothing lost | every byte less that | building the shard |",
                       "|---|---|---|---|---|---|---|", *rows])
    print(table)
    if options.log:
      pathlib.Path(options.log).write_text(f"# Repair of 1 damaged shard of {SHARDS}\n\nTimes of building that shard alone "
                                           f"(`benchmarks/repair/bench.py`, medians of {options.reps}).\n\n{table}\n")


if __name__ == "__main__":
  main()
