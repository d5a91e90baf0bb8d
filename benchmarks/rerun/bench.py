"""How long a rerun of a finished build takes, beside another program's: it looks at OUT and at the source, and packs nothing.

  ./bazelw build //cli:pack && python3 benchmarks/rerun/bench.py --before OTHER_PACK [--pack FILE] [--count 1000000] [--reps 5] [--log FILE]

The source is a folder of small generated images, which is listed by each run. Each program reruns a build of its own,
since they need not agree on plans; runs alternate, with a warm cache; medians and the difference within this run.
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time


def make_source(folder, count, per_folder=1000):
  base = pathlib.Path(__file__).parents[2].joinpath("testdata/images/baseline.jpg").read_bytes()
  for i in range(count):
    path = folder / f"class-{i // per_folder:04}" / f"{i:07}.jpg"
    if i % per_folder == 0:
      path.parent.mkdir(parents=True, exist_ok=True)
    comment = b"%d" % i
    path.write_bytes(base[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + base[2:])


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", default="bazel-bin/cli/pack")
  parser.add_argument("--before", required=True)
  parser.add_argument("--count", type=int, default=1_000_000)
  parser.add_argument("--reps", type=int, default=5)
  parser.add_argument("--log", help="a file that gains a row")
  options = parser.parse_args()
  programs = {"before": str(pathlib.Path(options.before).resolve()), "now": str(pathlib.Path(options.pack).resolve())}
  with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    make_source(work / "src", options.count)

    def timed(name):
      begin = time.perf_counter()
      done = subprocess.run([programs[name], "src", "-o", f"out-{name}", "--no-fsync"], cwd=work, check=True, capture_output=True, text=True)
      return time.perf_counter() - begin, done.stderr

    for name in programs:
      timed(name)
    times = {name: [] for name in programs}
    for _ in range(options.reps):
      for name in programs:
        seconds, said = timed(name)
        assert "complete" in said, said
        times[name].append(seconds)
  before, now = (statistics.median(times[name]) for name in ("before", "now"))
  row = (f"| {options.count:,} images | {before:.2f} s | {now:.2f} s | {now - before:+.2f} s | {now / before:.2f} | "
         f"{min(times['before']):.2f} - {max(times['before']):.2f} | {min(times['now']):.2f} - {max(times['now']):.2f} |")
  print(row)
  if options.log:
    with open(options.log, "a", encoding="utf-8") as log:
      log.write(row + "\n")


if __name__ == "__main__":
  main()
