"""Reads the same packed images with Shardpack and with other loaders, in interleaved runs, and prints rates and ratios.

usage: bench.py --small ARCHIVE|FOLDER --large ARCHIVE|FOLDER [--pack PACK] [--loader-bench BIN] [--work DIR] [--reps 5] ...
  --small   images of about 1 KB in class folders, repeated to 50,000 files
  --large   images of about 100 KB, in class folders or as CLASS_name.jpg, repeated to 1,000 files
See docs/benchmarks.md for what is measured and how. Results go to benchmarks/log/.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))
import bench as end_to_end  # noqa: E402  pylint: disable=wrong-import-position,import-self

ROOT, LOG, DOCS, FORMATS = end_to_end.ROOT, end_to_end.LOG, end_to_end.DOCS, end_to_end.FORMATS
BEGIN, END = "<!-- latest table of loaders: begin -->", "<!-- latest table of loaders: end -->"
SMALL_FILES, LARGE_FILES = 50_000, 1_000
RAW, PIXELS = "raw bytes", "pixels"
PIXELS_BYTES = 3 * 224 * 224
LONGEST_RUN_SECONDS = 600
NO_DIGEST = "0" * 16
# How far the mean of a loader's pixels may lie from that of the others: other windows, other resizing, no black images.
MEAN_DISTANCE = 8

# Environments: those of tests/interop by name, and those that only loaders need.
FAMILIES = {
    **{name: name for name in ("readers", "torch", "tensorflow", "dali")},
    **{name: str(HERE / f"requirements-{name}.txt") for name in ("dali-images", "grain", "streaming", "turboloader", "spdl")},
}

# What is read: source, and how `pack` or a peer's own writer ("family", program) makes it. As many shards as the peers
# can use at a time, and one where they take only one.
DATASETS = {
    "small-webdataset": ("small", ["-f", "webdataset", "--shards", "4", "--sidecar-index", "dali"]),
    "small-tfrecord": ("small", ["-f", "tfrecord", "--shards", "4", "--sidecar-index", "dali"]),
    "small-lmdb": ("small", ["-f", "lmdb", "--layout", "raw", "--shards", "1"]),
    "small-hdf5": ("small", ["-f", "hdf5", "--shards", "1"]),
    "small-array_record": ("small", ("grain", "array_record_writer.py")),
    "small-mds": ("small", ("streaming", "mds_writer.py")),
    "large-webdataset": ("large", ["-f", "webdataset", "--shards", "1", "--sidecar-index", "dali"]),
    "large-tfrecord": ("large", ["-f", "tfrecord", "--shards", "4"]),
}


# ---- what is timed

class Loader:
  """One way to read a dataset: a program, and what its runs printed."""

  def __init__(self, group, name, order, family, program, kind, data, batch, epochs):
    self.group, self.name, self.order = group, name, order
    self.family, self.program, self.kind, self.data = family, program, kind, data
    self.batch, self.epochs = batch, epochs
    self.source = "small" if group == RAW else "large"
    self.version, self.failed, self.wrong, self.runs = "", None, None, []
    self.made_up = False  # what it delivers was packed by nobody

  def ours(self):
    return self.family is None

  def title(self):
    return f"{self.group}/{'ours' if self.ours() else 'peers'}/{self.name}, {self.order}"

  def words(self, places, threads, epochs, check=False):
    order = "sequential" if self.order == "in order" else "random"
    if self.ours():
      words = [places["loader_bench"], *self.kind, places[self.data], "--order", order, "--epochs", epochs]
      words += ["--threads", 1 if self.kind[0] == "views" else threads]
      words += ["--batch", self.batch] if self.batch else []
    else:
      words = [places[self.family], HERE / self.program, self.kind, places[self.data], "--order", order, "--batch", self.batch,
               "--epochs", epochs, "--threads", threads, *(["--check"] if check else [])]
    return [str(word) for word in words]

  def rates(self):
    return [run["rate"] for run in self.runs]

  def rate(self):
    return statistics.median(self.rates())


def make_loaders():
  """The rows, Shardpack's first; the order is what the peer can do: "random" is a permutation of all samples."""
  ours = [
      *(Loader(RAW, f"Shardpack views, {fmt}", order, None, None, ["views"], f"small-{fmt}", None, 20)
        for order in ("random", "in order") for fmt in FORMATS),
      *(Loader(RAW, f"Shardpack batches, {fmt}, verified", order, None, None, ["batches", "--verify", "on"],
               f"small-{fmt}", 250, 10) for order in ("random", "in order") for fmt in FORMATS),
      *(Loader(RAW, f"Shardpack batches, {fmt}, not verified", "random", None, None, ["batches", "--verify", "off"],
               f"small-{fmt}", 250, 10) for fmt in FORMATS),
      Loader(PIXELS, "Shardpack", "random", None, None, ["decode", "--size", "224"], "large-webdataset", 64, 4),
  ]
  def raw(name, order, family, program, kind, fmt, epochs, batch=250):
    return Loader(RAW, name, order, family, program, kind, f"small-{fmt}", batch, epochs)
  def pixels(name, order, family, program, kind, data):
    return Loader(PIXELS, name, order, family, program, kind, data, 64, 4)
  peers = [
      *(raw("py-lmdb views", order, "readers", "read_lmdb.py", "views", "lmdb", 20) for order in ("random", "in order")),
      *(raw(f"DALI {fmt}", order, "dali", "read_dali.py", fmt, fmt, 6)
        for fmt in ("webdataset", "tfrecord") for order in ("shuffle buffer", "in order")),
      *(raw("TensorFlow", order, "tensorflow", "read_tensorflow.py", "records", "tfrecord", 6, 1000)
        for order in ("shuffle buffer", "in order")),
      *(raw("ArrayRecord, 1,000 a read", order, "grain", "read_array_record.py", "records", "array_record", 6, 1000)
        for order in ("random", "in order")),
      raw("Grain over ArrayRecord", "random", "grain", "read_grain.py", "batches", "array_record", 4),
      raw("MDS by number", "random", "streaming", "read_streaming.py", "samples", "mds", 3),
      raw("h5py, one a read", "random", "readers", "read_h5py.py", "slices", "hdf5", 3),
      raw("h5py, 250 a read", "in order", "readers", "read_h5py.py", "slices", "hdf5", 20),
      *(raw("webdataset", order, "torch", "read_webdataset.py", "batches", "webdataset", 3)
        for order in ("shuffle buffer", "in order")),
      pixels("TurboLoader, float32", "random", "turboloader", "decode_turboloader.py", "plain", "large-webdataset"),
      pixels("TurboLoader, float32, antialiased", "random", "turboloader", "decode_turboloader.py", "antialiased",
             "large-webdataset"),
      pixels("DALI", "shuffle buffer", "dali-images", "decode_dali.py", "pixels", "large-webdataset"),
      pixels("torchvision decoder in DataLoader", "random", "torch", "decode_torch.py", "torchvision", "large"),
      pixels("PIL in DataLoader", "random", "torch", "decode_torch.py", "pil", "large"),
      pixels("tf.data", "shuffle buffer", "tensorflow", "decode_tensorflow.py", "pixels", "large-tfrecord"),
      pixels("SPDL", "random", "spdl", "decode_spdl.py", "pixels", "large"),
  ]
  return ours + peers


class RunFailed(Exception):
  pass


def run_once(loader, places, threads, epochs, check=False):
  """One fresh process: (the lines that it printed, peak bytes)."""
  words = loader.words(places, threads, epochs, check)
  environment = {**os.environ, "TORCH_PACKAGES": places.get("torch packages", "")}
  with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
    process = subprocess.Popen(["timeout", str(LONGEST_RUN_SECONDS), *words], stdout=printed, stderr=errors,
                               stdin=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    printed.seek(0)
    errors.seek(0)
    if process.returncode:
      lines = [line for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
      raise RunFailed(f"exit code {process.returncode}: {lines[-1].strip() if lines else 'it said nothing'}")
    return [json.loads(line) for line in printed.read().splitlines() if line.startswith(b"{")], usage.ru_maxrss * 1024


def first_difference(loader, lines, facts):
  """What was delivered against what was packed: the first difference in words, or None."""
  if loader.made_up:
    return None
  for line in lines:
    if line.get("epoch", -1) >= 0:
      # DALI's batches run across the ends of epochs; Shardpack's last one may be filled up.
      spare = loader.batch - 1 if loader.group == PIXELS else 0
      if abs(line["samples"] - facts["samples"]) > spare:
        return f"{line['samples']} samples instead of {facts['samples']}"
      if loader.group == RAW and line["bytes"] != facts["bytes"]:
        return f"{line['bytes']} bytes instead of {facts['bytes']}"
      if loader.group == PIXELS and line["bytes"] not in (line["samples"] * PIXELS_BYTES, line["samples"] * PIXELS_BYTES * 4):
        return f"{line['bytes']} bytes of {line['samples']} images"
      if line.get("labels") is not None and line["labels"] != facts["labels"]:
        return f"labels sum to {line['labels']} instead of {facts['labels']}"
    if "check" in line:
      if (line["check"], line["checksum"]) != (facts["samples"], facts["checksum"]):
        return f"the bytes of the samples sum to {line['checksum']} instead of {facts['checksum']}"
      if line["pairs"] is not None and line["pairs"] != facts["pairs"]:
        return "images with labels of others"
  if loader.ours() and loader.group == RAW and facts["digest"]:
    # Zeros stand for an epoch of which none was taken, so as not to be timed.
    digests = {line["digest"] for line in lines if line.get("digest", NO_DIGEST) != NO_DIGEST}
    if digests != {facts["digest"]}:
      return f"digests {', '.join(sorted(digests)) or 'missing'} instead of {facts['digest']}"
  return None


def summary(lines, peak_bytes):
  """The figures of one run; its first epoch is not part of the rate."""
  epochs = [line for line in lines if line.get("epoch", -1) >= 0]
  steady = epochs[1:]
  result = {
      "epochs": epochs, "peak_bytes": peak_bytes, "rate": statistics.median(e["samples"] / e["seconds"] for e in steady),
      "construct_seconds": next((line["construct_seconds"] for line in lines if "construct_seconds" in line), None),
      "first_seconds": epochs[0].get("first_seconds", epochs[0].get("first_batch_seconds")),
  }
  if all("cpu_seconds" in e for e in steady):
    result["cpu_seconds_a_sample"] = sum(e["cpu_seconds"] for e in steady) / sum(e["samples"] for e in steady)
  return result


def attempt(loader, places, threads, facts, epochs, check=False):
  """The summary of one run, or None; what went wrong is kept with the loader, which then runs no more."""
  missing = next((name for name in (loader.family or "loader_bench", loader.data) if name not in places), None)
  if missing:
    loader.failed = places["failed"].get(missing, f"no {missing}")
    return None
  try:
    lines, peak_bytes = run_once(loader, places, threads, epochs, check)
  except RunFailed as error:
    loader.failed = str(error)
    return None
  loader.wrong = first_difference(loader, lines, facts[loader.source])
  loader.version = next((line["version"] for line in lines if "version" in line), "")
  return None if loader.wrong else summary(lines, peak_bytes)


def run_all(loaders, places, threads, facts, reps):
  for loader in loaders:  # also brings the programs into memory
    attempt(loader, places, threads, facts, 2, check=not loader.ours())
    verdict = loader.wrong or loader.failed or "as packed"
    print(f"  checked: {loader.title()}: {verdict}", file=sys.stderr, flush=True)
  shuffle = random.Random(0)
  for repetition in range(reps):
    turn = list(loaders)
    shuffle.shuffle(turn)
    for loader in turn:
      if not loader.failed and not loader.wrong:
        run = attempt(loader, places, threads, facts, loader.epochs)
        if run:
          loader.runs.append({**run, "round": repetition})
    print(f"  round {repetition + 1} of {reps}", file=sys.stderr, flush=True)


def judge_pixels(loaders):
  """Pixels cannot be compared one by one: windows are random. Their means can."""
  def mean(loader):
    return statistics.mean(epoch["mean"] for run in loader.runs for epoch in run["epochs"] if "mean" in epoch)
  seen = [loader for loader in loaders if loader.group == PIXELS and loader.runs and "mean" in loader.runs[0]["epochs"][0]]
  if len(seen) > 2:
    middle = statistics.median(mean(loader) for loader in seen)
    for loader in seen:
      if abs(mean(loader) - middle) > MEAN_DISTANCE:
        loader.wrong = f"pixels have a mean of {mean(loader):.1f}, those of the others {middle:.1f}"


# ---- ratios

BATCHES_OF_OTHERS = tuple(f"{name}, {order}" for name in ("DALI webdataset", "DALI tfrecord", "TensorFlow")
                          for order in ("shuffle buffer", "in order"))
# group, ours, the peers of which the fastest counts, how they are called, reach
MEASURES = (
    *((RAW, f"Shardpack views, {fmt}, random", ("py-lmdb views, random",), "py-lmdb views, random", 3) for fmt in FORMATS),
    *((RAW, f"Shardpack batches, {fmt}, verified, random", BATCHES_OF_OTHERS, "the fastest of DALI and TensorFlow in any order", 4)
      for fmt in FORMATS),
    *((RAW, f"Shardpack batches, {fmt}, verified, random", ("webdataset, shuffle buffer",), "webdataset, shuffle buffer", 100)
      for fmt in FORMATS),
    (PIXELS, "Shardpack, random", ("DALI, shuffle buffer",), "DALI", 1.75),
    (PIXELS, "Shardpack, random", ("TurboLoader, float32, random",), "TurboLoader", 1.6),
    (PIXELS, "Shardpack, random", ("TurboLoader, float32, antialiased, random",), "TurboLoader, antialiased", 1.6),
)
# The row of ours that stands against every peer of a group in the tables.
AGAINST_ALL = {RAW: "Shardpack batches, webdataset, verified, random", PIXELS: "Shardpack, random"}


def find(loaders, group, name):
  return next((loader for loader in loaders if loader.group == group and f"{loader.name}, {loader.order}" == name
               and loader.runs and not loader.wrong), None)


def ratio_of(ours, theirs):
  """The ratios of the rounds in which all ran, which share the machine's mood; `theirs` are loaders, the fastest counts."""
  by_round = [{run["round"]: run["rate"] for run in loader.runs} for loader in (ours, *theirs)]
  return [by_round[0][n] / max(rates[n] for rates in by_round[1:]) for n in by_round[0]
          if all(n in rates for rates in by_round[1:])]


def ratios(loaders):
  rows = []
  for group, ours, theirs, called, reach in MEASURES:
    a, b = find(loaders, group, ours), [found for found in (find(loaders, group, name) for name in theirs) if found]
    values = ratio_of(a, b) if a and b else []
    if values:
      middle = statistics.median(values)
      rows.append({"group": group, "ours": ours, "theirs": called, "ratio": middle, "min": min(values), "max": max(values),
                   "reach": reach, "reached": middle >= reach})
  return rows


def ratio_table(rows):
  if not rows:
    return "No ratios: Shardpack's own program did not run."
  lines = ["| measure | ratio | min .. max | target | |", "|---|---|---|---|---|"]
  for row in rows:
    lines.append(f"| {row['group']}: {row['ours']} against {row['theirs']} | {row['ratio']:.2f} | {row['min']:.2f} .. "
                 f"{row['max']:.2f} | >= {row['reach']} | {'met' if row['reached'] else '**missed**'} |")
  return "\n".join(lines)


def rate_text(rate):
  return f"{rate / 1e6:.3f} M/s" if rate >= 1e4 else f"{rate:.0f} /s"


def group_table(loaders, group):
  lines = [f"### {group}", "", "| loader | order | samples per second | min .. max | CPU per sample | opening | first batch "
           "| peak memory | ours / it |", "|---|---|---|---|---|---|---|---|---|"]
  against = find(loaders, group, AGAINST_ALL[group])
  for loader in (loader for loader in loaders if loader.group == group):
    if not loader.runs or loader.wrong:
      why = f"**wrong**: {loader.wrong}" if loader.wrong else f"**missing**: {loader.failed or 'not run'}"
      lines.append(f"| {loader.name} | {loader.order} | {why.replace('|', '/')} | | | | | | |")
      continue
    def middle(key, loader=loader):
      values = [run[key] for run in loader.runs if run.get(key) is not None]
      return statistics.median(values) if values else None
    cpu, opening, first = middle("cpu_seconds_a_sample"), middle("construct_seconds"), middle("first_seconds")
    ratio = ratio_of(against, [loader]) if against and not loader.ours() else []
    later = f" (failed after {len(loader.runs)} runs: {loader.failed})".replace("|", "/") if loader.failed else ""
    lines.append(
        f"| {loader.name}{later} | {loader.order} | {rate_text(loader.rate())} | {rate_text(min(loader.rates()))} .. "
        f"{rate_text(max(loader.rates()))} | {f'{cpu * 1e6:.2f} us' if cpu is not None else ''} | "
        f"{f'{opening * 1e3:.0f} ms' if opening is not None else ''} | {f'{first * 1e3:.0f} ms' if first is not None else ''} | "
        f"{middle('peak_bytes') / 2**20:.0f} MiB | {f'{statistics.median(ratio):.2f}' if ratio else ''} |")
  return "\n".join(lines)


# ---- preparation

def environments(wanted):
  """Places of the Pythons, and why others are missing."""
  venv, places, failed = ROOT / "tests" / "interop" / "venv", {}, {}
  for name in sorted(wanted):
    made = subprocess.run([venv, FAMILIES[name]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode:
      reasons = [line for line in made.stderr.splitlines() if line.startswith("ERROR")] or made.stderr.splitlines()
      failed[name] = f"its environment {name} could not be installed: {reasons[-1] if reasons else ''}"
    else:
      places[name] = made.stdout.strip()
  if "torch" in places:
    # Ahead of whatever Python runs the benchmark: the one that will import it says where its packages lie.
    places["torch packages"] = subprocess.run([places["torch"], "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                                              stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
  return places, failed


def prepare(work, pack, loaders, places, failed):
  """Packs what the loaders read and is not there yet; everything is in memory afterwards."""
  needed = {loader.data for loader in loaders}
  for name in sorted(needed & DATASETS.keys()):
    source, how = DATASETS[name]
    target, marker = work / name, work / f"{name}.complete"
    if isinstance(how, tuple) and how[0] not in places:
      failed[name] = failed.get(how[0], f"no {how[0]}")
      continue
    if not marker.exists():
      print(f"packing {name}", file=sys.stderr, flush=True)
      subprocess.run(["rm", "-rf", str(target)], check=True)
      if isinstance(how, tuple):
        target.mkdir()
        words = [places[how[0]], HERE / how[1], work / source, target]
      else:
        words = [pack, work / source, "-o", target, *how, "-q"]
      made = subprocess.run([str(word) for word in words], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env={**os.environ, "TORCH_PACKAGES": places.get("torch packages", "")}, text=True)
      if made.returncode:
        failed[name] = f"{name} could not be written: {(made.stderr.strip().splitlines() or [''])[-1]}"
        continue
      marker.touch()
    places[name] = str(target)
  places.update({source: str(work / source) for source in ("small", "large")})
  for name in needed & places.keys():
    subprocess.run(f"find {places[name]} -type f -print0 | xargs -0 cat > /dev/null", shell=True, check=True)


def source_facts(folder, places):
  printed = subprocess.run([places.get("streaming", sys.executable), HERE / "source_facts.py", folder],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
  return json.loads(printed)


def find_loader_bench(given):
  if given:
    return str(pathlib.Path(given).resolve())
  subprocess.run([ROOT / "bazelw", "build", "--noshow_progress", "//benchmarks/peers:loader_bench"], check=True, cwd=ROOT)
  folder = subprocess.run([ROOT / "bazelw", "info", "bazel-bin"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True, cwd=ROOT).stdout.strip()
  return f"{folder}/benchmarks/peers/loader_bench"


# ---- the whole

def tables(loaders):
  groups = [group for group in (RAW, PIXELS) if any(loader.group == group for loader in loaders)]
  return [ratio_table(ratios(loaders)), *(group_table(loaders, group) for group in groups)]


def update_docs(parts):
  """Replaces what stands between the two marks."""
  before, rest = DOCS.read_text().split(BEGIN)
  DOCS.write_text(before + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + rest.split(END)[1])


def raw_log(loaders, facts, source, threads, date):
  raw = {
      "date": date, "machine": facts, "source": source, "threads": threads, "ratios": ratios(loaders),
      "loaders": [{"group": loader.group, "name": loader.name, "order": loader.order, "version": loader.version,
                   "program": loader.program or "loader_bench", "kind": loader.kind, "data": loader.data,
                   "batch": loader.batch, "missing": loader.failed, "wrong": loader.wrong, "runs": loader.runs}
                  for loader in loaders],
  }
  # Paths of this machine say nothing to a reader.
  text = json.dumps(raw, indent=1, sort_keys=True)
  return text.replace(str(ROOT) + "/", "").replace(str(pathlib.Path.home()), "~") + "\n"


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--small", help="archive or folder")
  parser.add_argument("--large", help="archive or folder")
  parser.add_argument("--pack", help="the program that packs (default: built with Bazel)")
  parser.add_argument("--loader-bench", help="Shardpack's own program (default: built with Bazel)")
  parser.add_argument("--work", default=tempfile.gettempdir() + "/shardpack-peers",
                      help="where the data lies, on one disk; it stays for the next run")
  parser.add_argument("--reps", type=int, default=5)
  parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads or workers of each loader")
  parser.add_argument("--only", default="", help='comma-separated parts of titles such as "raw bytes/peers/DALI tfrecord, in order"')
  parser.add_argument("--without", default="", help="comma-separated parts of titles to leave out")
  parser.add_argument("--json", help="write the raw figures here too")
  parser.add_argument("--log", default="peers", metavar="NAME", help="file name in benchmarks/log/ after the date")
  parser.add_argument("--no-log", action="store_true", help="write nothing to benchmarks/log/")
  parser.add_argument("--update-docs", action="store_true", help="also replace the tables in docs/benchmarks.md")
  arguments = parser.parse_args()

  wanted, unwanted = arguments.only.split(","), [part for part in arguments.without.split(",") if part]
  loaders = [loader for loader in make_loaders() if any(part in loader.title() for part in wanted)
             and not any(part in loader.title() for part in unwanted)]
  if not loaders:
    sys.exit("nothing has such a title")
  pack = end_to_end.find_program(arguments.pack, "//cli:pack")
  work = pathlib.Path(arguments.work).resolve()
  work.mkdir(parents=True, exist_ok=True)
  for given, target, files in ((arguments.small, work / "small", SMALL_FILES), (arguments.large, work / "large", LARGE_FILES)):
    if given:
      end_to_end.make_data(given, target, files, work)
    elif not target.exists():
      sys.exit(f"--{target.name} is needed the first time")

  # torch and streaming: what MDS stands on, and what hashes the sources.
  families = {loader.family for loader in loaders if loader.family}
  places, failed = environments(families | ({"torch"} if "streaming" in families else {"streaming"}))
  places["failed"] = failed
  if any(loader.ours() for loader in loaders):
    places["loader_bench"] = find_loader_bench(arguments.loader_bench)
  prepare(work, pack, loaders, places, failed)
  source = {name: source_facts(work / name, places) for name in ("small", "large")}
  facts = end_to_end.machine(work, pack, {})
  run_all(loaders, places, arguments.threads, source, arguments.reps)
  judge_pixels(loaders)

  facts["peers"] = {}
  for loader in loaders:
    if loader.version:
      facts["peers"].setdefault(loader.name.split(",")[0], loader.version)
  parts = tables(loaders)
  print("\n\n".join(parts))
  date = datetime.date.today().isoformat()
  raw = raw_log(loaders, facts, source, arguments.threads, date)
  text = f"{date}. {end_to_end.machine_text(facts)}"
  if arguments.json:
    pathlib.Path(arguments.json).write_text(raw)
  if not arguments.no_log:
    LOG.mkdir(exist_ok=True)
    (LOG / f"{date}-{arguments.log}.json").write_text(raw)
    (LOG / f"{date}-{arguments.log}.md").write_text("\n\n".join([f"# Loaders, {date}", text, *parts]) + "\n")
  if arguments.update_docs:
    update_docs([text, *parts])
  sys.exit(any(loader.wrong for loader in loaders))


if __name__ == "__main__":
  main()
