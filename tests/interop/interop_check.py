"""Packs images with pack in both formats and has other programs read them: every byte and label must be the source's.

Then the check is checked: faults that no reader can notice are planted in copies, and each reader's comparison must
find just them. Ends with `N passed, N failed`.
usage: interop_check.py --pack PACK [--venv DIR/venv] [--keep DIR] [FOLDER...]
  FOLDER   class folders of images to pack beside the generated ones (real data)
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import plant

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

Reader = collections.namedtuple("Reader", "name script arguments venv formats")
READERS = (
    Reader("Python tarfile", "read_plain_tar.py", ["tarfile"], None, ["webdataset"]),
    Reader("GNU tar", "read_plain_tar.py", ["tar"], None, ["webdataset"]),
    Reader("bsdtar", "read_plain_tar.py", ["bsdtar"], None, ["webdataset"]),
    Reader("webdataset", "read_webdataset.py", [], "readers", ["webdataset"]),
    Reader("DALI", "read_dali.py", [], "dali", ["webdataset", "tfrecord"]),
    Reader("TensorFlow", "read_tensorflow.py", [], "tensorflow", ["tfrecord"]),
    Reader("vahidk/tfrecord", "read_vahidk_tfrecord.py", [], "readers", ["tfrecord"]),
)
# DALI's own makers of indexes; their results and ours must be equal byte for byte.
INDEX_TOOLS = {"webdataset": "wds2idx", "tfrecord": "tfrecord2idx"}


class Case:
  """One packed dataset: what was packed how, and what readers must return."""

  def __init__(self, name, source, fmt, options, keys="path", foreign_index=True):
    self.name, self.source, self.format, self.options = name, pathlib.Path(source), fmt, options
    self.keys = keys  # "path": readers must deliver it; "index": keys are numbers
    self.foreign_index = foreign_index  # False: names that DALI's own tools do not understand
    self.out = None

  def shards(self):
    manifest = json.loads((self.out / "manifest.json").read_text())
    return [self.out / shard["name"] for shard in manifest["shards"]]

  def index_of(self, shard):
    return shard.with_suffix(".idx") if self.format == "webdataset" else shard.with_name(shard.name + ".idx")

  def job(self):
    shards = self.shards()
    return {"id": self.name, "format": self.format, "shards": [str(shard) for shard in shards],
            "indexes": [str(self.index_of(shard)) for shard in shards]}

  def expected(self):
    """(name, sha256, label) of each source file, with the name that a reader of this format delivers."""
    classes = sorted((folder.name for folder in self.source.iterdir() if folder.is_dir()), key=os.fsencode)
    samples = []
    for label, name in enumerate(classes):
      for path in sorted((self.source / name).rglob("*")):
        if not path.is_file():
          continue
        relative = path.relative_to(self.source)
        if self.format == "webdataset":
          delivered = str(relative.with_name(relative.stem.replace(".", "_"))) if self.keys == "path" else None
        else:
          delivered = str(relative)
        samples.append((delivered, hashlib.sha256(path.read_bytes()).hexdigest(), label))
    return samples


class Results:
  """The table and the two counts."""

  def __init__(self):
    self.passed = self.failed = 0
    self.rows = [("reader", "version", "format", "dataset", "samples", "verdict")]

  def add(self, row, trouble=None):
    self.passed += not trouble
    self.failed += bool(trouble)
    self.rows.append((*row, f"FAILED: {trouble}" if trouble else "ok"))

  def print_table(self):
    widths = [max(len(str(row[i])) for row in self.rows) for i in range(5)]
    for row in self.rows:
      print("  ".join([str(cell).ljust(width) for cell, width in zip(row, widths)] + [row[5]]))


def difference(expected, samples):
  """(missing, unexpected), each a Counter; names count only where both sides have them."""
  if any(name is None for name, _, _ in expected) or any(name is None for name, _, _ in samples):
    expected = [(sha256, label) for _, sha256, label in expected]
    samples = [(sha256, label) for _, sha256, label in samples]
  want, got = collections.Counter(map(tuple, expected)), collections.Counter(map(tuple, samples))
  return want - got, got - want


def trouble_of(expected, answer):
  """What is wrong with a reader's answer; None when nothing is."""
  if "error" in answer:
    return " ".join(answer["error"].split())
  missing, unexpected = difference(expected, answer["samples"])
  if not missing and not unexpected:
    return None if answer["samples"] else "no sample at all"
  parts = [f"{sum(side.values())} samples {word}, first {sorted(side, key=str)[0]}"
           for side, word in ((missing, "missing"), (unexpected, "unexpected")) if side]
  return "; ".join(parts)


def python_of(venv, name):
  if name is None:
    return sys.executable
  return subprocess.run([str(venv), name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def ask(reader, python, jobs):
  """Runs one reader over all its jobs; (version, {id: answer})."""
  run = subprocess.run([python, str(HERE / reader.script), *reader.arguments], input=json.dumps({"jobs": jobs}),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
  lines = [json.loads(line) for line in run.stdout.splitlines()]
  version = lines[0]["version"] if lines else "?"
  answers = {line["id"]: line for line in lines[1:]}
  for job in jobs:
    if job["id"] not in answers:
      last = (run.stderr.strip().splitlines() or ["no message"])[-1]
      answers[job["id"]] = {"id": job["id"], "error": f"the reader died with {run.returncode}: {last[:300]}"}
  return version, answers


def pack(program, case, folder):
  case.out = folder / case.name.replace(" ", "-")
  command = [program, str(case.source), "-o", str(case.out), "-f", case.format, "--sidecar-index", "dali",
             "--no-fsync", "-q", *case.options]
  run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
  if run.returncode != 0:
    return f"exit code {run.returncode} from {' '.join(command)}: {run.stdout.strip()[-500:]}"
  if len(case.shards()) < 2:
    return "only one shard: the case does not test what it should"
  return None


def write_odd_names(folder, images):
  """All kinds of images, under names that need pax records, the ustar prefix, or quoting."""
  kinds = sorted(path for path in images.iterdir() if path.suffix != ".tsv")
  names = ["plain", "b.v2", "with blank", "été", "数据", "-dash", "x" * 90, "deep/" + "y" * 80 + "/" + "z" * 85,
           "UPPER"]
  for i, path in enumerate(kinds):
    target = folder / ("cats", "dogs")[i % 2] / f"{i:02d}-{names[i % len(names)]}{path.suffix}"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def make_cases(work, real):
  images = ROOT / "testdata" / "images"
  sample_images.write_class_folders(work / "generated", images, count=300, classes=10, seed=1)
  write_odd_names(work / "odd", images)
  # Names beyond 100 bytes without a slash fit no ustar header; the pax layout takes them.
  shutil.copytree(work / "odd", work / "long")
  for path in list((work / "long" / "dogs").rglob("*.jpg")):
    path.rename(path.with_name((path.stem[:60] + "-").ljust(110, "w") + path.suffix))
  several = ["--shard-size", "150KB"]
  cases = [
      Case("wds", work / "generated", "webdataset", several),
      Case("wds splits", work / "generated", "webdataset",
           ["--split", "train=0.7,val=0.2,test=0.1", "--shards", "7", "--seed", "7"]),
      Case("wds json in order", work / "generated", "webdataset",
           ["--with-json", "--no-shuffle", "--samples-per-shard", "64"]),
      Case("wds index keys", work / "generated", "webdataset", ["--key", "index", *several], keys="index"),
      Case("wds odd names", work / "odd", "webdataset", ["--shards", "3"], keys="index"),
      Case("wds ustar prefix", work / "odd", "webdataset", ["--key", "path", "--shards", "3"], foreign_index=False),
      Case("wds pax", work / "long", "webdataset", ["--key", "path", "--layout", "pax", "--shards", "3"],
           foreign_index=False),
      Case("tfr", work / "generated", "tfrecord", several),
      Case("tfr splits", work / "generated", "tfrecord",
           ["--split", "train=0.7,val=0.2,test=0.1", "--shards", "7", "--seed", "7"]),
      Case("tfr in order", work / "generated", "tfrecord", ["--no-shuffle", "--samples-per-shard", "64"]),
      Case("tfr odd names", work / "long", "tfrecord", ["--shards", "3"]),
  ]
  for folder in real:
    name = pathlib.Path(folder).name
    cases.append(Case(f"wds {name}", folder, "webdataset", ["--shards", "4"]))
    cases.append(Case(f"tfr {name}", folder, "tfrecord", ["--shards", "4"]))
  return cases


def plant_faults(cases, tools, work):
  """Copies of two datasets with one fault each; the indexes fit the copies."""
  planted = []
  for case in (next(case for case in cases if case.name == name) for name in ("wds", "tfr")):
    sources = [path.read_bytes() for path in case.source.rglob("*.jpg")]
    for fault in plant.FAULTS:
      copy = Case(f"{case.name} {fault}", case.source, case.format, case.options)
      copy.fault = fault
      copy.out = work / f"planted-{case.format}-{fault}"
      shutil.copytree(case.out, copy.out)
      shard = copy.shards()[1]
      if case.format == "webdataset":
        plant.in_webdataset(shard, fault)
      else:
        plant.in_tfrecord(shard, fault, sources)
      foreign_index(tools, copy, shard, copy.index_of(shard))
      planted.append(copy)
  return planted


def foreign_index(tools, case, shard, target):
  subprocess.run([str(tools / INDEX_TOOLS[case.format]), str(shard), str(target)], check=True,
                 stdout=subprocess.DEVNULL)


def check_indexes(case, tools, work):
  """Trouble with our indexes against those of DALI's own tools; None when all are equal."""
  for shard in case.shards():
    target = work / "foreign.idx"
    foreign_index(tools, case, shard, target)
    if not case.index_of(shard).exists():
      return f"{case.index_of(shard).name} is missing"
    if target.read_bytes() != case.index_of(shard).read_bytes():
      return f"{case.index_of(shard).name} differs"
  return None


def check_readers(cases, planted, pythons, results):
  def drive(reader):
    jobs = [case.job() for case in (*cases, *planted) if case.format in reader.formats]
    return ask(reader, pythons[reader.venv], jobs)

  expected = {case.name: case.expected() for case in (*cases, *planted)}
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    answered = list(pool.map(drive, READERS))
  for reader, (version, answers) in zip(READERS, answered):
    for case in cases:
      if case.format in reader.formats:
        answer = answers[case.name]
        results.add((reader.name, version, case.format, case.name, len(answer.get("samples", ()))),
                    trouble_of(expected[case.name], answer))
  for reader, (version, answers) in zip(READERS, answered):
    for case in planted:
      if case.format in reader.formats:
        answer = answers[case.name]
        results.add((reader.name, version, case.format, f"planted {case.fault}", len(answer.get("samples", ()))),
                    planted_trouble(case.fault, expected[case.name], answer))


def planted_trouble(fault, expected, answer):
  """None when the comparison finds just the planted fault: not more, not less, and no error of the reader."""
  if "error" in answer:
    return "the reader was to deliver it all the same: " + " ".join(answer["error"].split())
  missing, unexpected = difference(expected, answer["samples"])
  found = (sum(missing.values()), sum(unexpected.values()))
  want = (1, 0) if fault == "drop" else (1, 1)
  return None if found == want else f"{found[0]} missing and {found[1]} unexpected, not {want[0]} and {want[1]}"


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", required=True)
  parser.add_argument("--venv", default=HERE / "venv", help="prints the Python of a named environment")
  parser.add_argument("--keep", help="work in this folder and leave it")
  parser.add_argument("folders", nargs="*")
  arguments = parser.parse_args()
  begin = time.monotonic()
  results = Results()
  work = pathlib.Path(arguments.keep or tempfile.mkdtemp(prefix="shardpack-interop-"))
  work.mkdir(parents=True, exist_ok=True)
  try:
    pythons = {name: python_of(arguments.venv, name) for name in {reader.venv for reader in READERS}}
    tools = pathlib.Path(pythons["dali"]).parent
    print(f"environments ready after {time.monotonic() - begin:.0f} s", flush=True)
    cases = []
    for case in make_cases(work, [pathlib.Path(folder).resolve() for folder in arguments.folders]):
      trouble = pack(arguments.pack, case, work)
      results.add(("pack", "", case.format, case.name, len(case.expected())), trouble)
      if not trouble:
        cases.append(case)
    print(f"packed {len(cases)} datasets after {time.monotonic() - begin:.0f} s", flush=True)
    planted = plant_faults(cases, tools, work)
    for case in cases:
      if case.foreign_index:
        results.add((f"{INDEX_TOOLS[case.format]}, equal bytes", "DALI's", case.format, case.name, ""),
                    check_indexes(case, tools, work))
    check_readers(cases, planted, pythons, results)
  finally:
    if not arguments.keep:
      shutil.rmtree(work, ignore_errors=True)
  results.print_table()
  print(f"read after {time.monotonic() - begin:.0f} s")
  print(f"{results.passed} passed, {results.failed} failed")
  return 1 if results.failed else 0


if __name__ == "__main__":
  sys.exit(main())
