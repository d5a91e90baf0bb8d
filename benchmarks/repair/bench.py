"""How long `pack repair` takes for one damaged shard of many, beside building that shard alone.

  ./bazelw build //cli:pack && python3 benchmarks/repair/bench.py [--pack FILE] [--count N] [--image-bytes N] [--reps 5] [--log FILE]

The source is made: small images, padded to --image-bytes. The peer is a worker that builds that one shard from a shared
plan (pack build --plan FILE --shards-range N-N), which neither lists the source nor looks at any other shard. With the
shard alone lost, repairs find it by its size (--level quick), by its name (SHARD), and by every byte; what looking at every
byte costs alone is measured too (a repair of a whole dataset), beside `pack validate --level full` and `cat` of the same files. With its index lost as well the plan must be made again:
the peer is then `pack plan` and the build, and repair looks at sizes. Everything is in the page cache, --no-fsync everywhere. Runs alternate;
medians of the times, and of the processor's seconds, which others on the machine disturb less.
"""

import argparse
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

SHARDS, LOST = 64, 17
MEASURES = ("build", "quick", "named", "full", "look", "cat", "validate", "plan and build", "both lost")


def make_source(folder, count, image_bytes):
  base = pathlib.Path(__file__).parents[2].joinpath("testdata/images/baseline.jpg").read_bytes()
  for i in range(count):
    path = folder / f"class-{i % 20:02}" / f"{i:06}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    comments, rest = b"", max(0, image_bytes - len(base))
    while True:  # of at most 65,533 bytes each
      comment = (b"%d " % i).ljust(min(rest, 65_000), b"x")
      comments += b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
      rest -= len(comment)
      if rest <= 0:
        break
    path.write_bytes(base[:2] + comments + base[2:])


def table_of(rows, title):
  head = ("format", "the shard", "--level quick", "SHARD", "every byte", "looking alone", "looking / validate", "looking / cat",
          "with its index lost")
  lines = [title, "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
  for fmt, cost in rows:
    ratios = [cost[name] / cost["build"] for name in ("quick", "named", "full", "look")]
    ratios += [cost["look"] / cost["validate"], cost["look"] / cost["cat"]]
    ratios.append(cost["both lost"] / cost["plan and build"])
    lines.append(f"| {fmt} | {cost['build']:.3f} s | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")
  return "\n".join(lines)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", default="bazel-bin/cli/pack")
  parser.add_argument("--formats", default="webdataset,tfrecord,lmdb,hdf5")
  parser.add_argument("--count", type=int, default=60_000)
  parser.add_argument("--image-bytes", type=int, default=1000)
  parser.add_argument("--reps", type=int, default=5)
  parser.add_argument("--log", help="a file that gains the tables")
  options = parser.parse_args()
  pack = str(pathlib.Path(options.pack).resolve())
  with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    source = work / "src"
    make_source(source, options.count, options.image_bytes)

    def timed(*commands):
      """Wall time and processor time of these commands, one after the other."""
      begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
      for words in commands:
        program = words if words[0] == "cat" else [pack, *map(str, words), "-q"]
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
      after = resource.getrusage(resource.RUSAGE_CHILDREN)
      return (time.perf_counter() - begin, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)

    walls, cpus, dataset_bytes = [], [], 0
    for fmt in options.formats.split(","):
      out, plan, part = work / fmt, work / f"{fmt}.plan", work / "part"
      timed((source, "-o", out, "-f", fmt, "--shards", SHARDS, "--no-fsync"))
      plan_it = ("plan", source, "-f", fmt, "--shards", SHARDS, "--write", plan)
      build_it = ("build", "--plan", plan, "-o", part, "--shards-range", f"{LOST}-{LOST}", "--no-fsync")
      timed(plan_it)
      manifest = json.loads((out / "manifest.json").read_text())
      shard = manifest["shards"][LOST]
      dataset_bytes = sum(file["bytes"] for file in manifest["files"])

      def lose(*names):
        for path in (out / name for name in names):
          shutil.rmtree(path) if path.is_dir() else path.unlink()

      def repair(*words):
        return timed(("repair", out, *words, "--no-fsync"))

      measures = {name: [] for name in MEASURES}
      for _ in range(options.reps):
        shutil.rmtree(part, ignore_errors=True)
        measures["build"].append(timed(build_it))
        for name, words in (("quick", ("--level", "quick")), ("named", (shard["name"],)), ("full", ())):
          lose(shard["name"])
          measures[name].append(repair(*words))
        measures["look"].append(repair())
        measures["validate"].append(timed(("validate", out, "--level", "full")))
        measures["cat"].append(timed(("cat", *(path for path in out.rglob("*") if path.is_file()))))
        shutil.rmtree(part)
        plan.unlink()
        measures["plan and build"].append(timed(plan_it, build_it))
        lose(shard["name"], shard["index"]["name"])
        measures["both lost"].append(repair("--level", "quick"))
      walls.append((fmt, {name: statistics.median(wall for wall, _ in times) for name, times in measures.items()}))
      cpus.append((fmt, {name: statistics.median(cpu for _, cpu in times) for name, times in measures.items()}))
      shutil.rmtree(out)
    title = f"{options.count} images of {options.image_bytes} bytes, {SHARDS} shards, {dataset_bytes / 1e6:.0f} MB in all"
    text = "\n\n".join((table_of(walls, f"Time: {title}"), table_of(cpus, f"Processor's time: {title}")))
    print(text)
    if options.log:
      with open(options.log, "a", encoding="utf-8") as log:
        log.write(text + "\n\n")


if __name__ == "__main__":
  main()
