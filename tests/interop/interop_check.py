"""Packs images with pack in all formats and has other programs read them: every byte and label must be the source's.

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

import environments
import plant

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

# `kinds`: formats, with the layout where it is not the default. `plain`: takes only images of one kind under portable names.
Reader = collections.namedtuple("Reader", "name script arguments venv kinds plain")
TARS = ["webdataset", "webdataset pax"]
READERS = (
    Reader("Python tarfile", "read_plain_tar.py", ["tarfile"], None, TARS, False),
    Reader("GNU tar", "read_plain_tar.py", ["tar"], None, TARS, False),
    Reader("bsdtar", "read_plain_tar.py", ["bsdtar"], None, TARS, False),
    Reader("webdataset", "read_webdataset.py", [], "readers", TARS, False),
    Reader("wids", "read_wids.py", [], "torch", ["webdataset"], True),
    Reader("HF datasets", "read_huggingface.py", ["files"], "datasets", ["webdataset"], True),
    Reader("HF datasets, folder", "read_huggingface.py", ["folder"], "datasets", ["webdataset bare"], False),
    Reader("Energon", "read_energon.py", [], "torch", ["webdataset"], True),
    Reader("DALI", "read_dali.py", [], "dali", [*TARS, "tfrecord", "lmdb"], False),
    Reader("TensorFlow", "read_tensorflow.py", [], "tensorflow", ["tfrecord", "tfrecord imagenet"], False),
    Reader("TFDS", "read_tfds.py", [], "tensorflow", ["tfrecord tfds"], False),
    Reader("vahidk/tfrecord", "read_vahidk_tfrecord.py", [], "readers", ["tfrecord"], False),
    Reader("py-lmdb", "read_lmdb.py", [], "readers", ["lmdb", "lmdb raw", "lmdb pickle"], False),
    Reader("MMEngine", "read_mmengine.py", [], "readers", ["lmdb raw"], False),
    Reader("torchvision LSUN", "read_torchvision.py", [], "torch", ["lmdb raw"], False),
    Reader("h5py", "read_h5py.py", [], "readers", ["hdf5", "hdf5 vlen"], False),
)
# Where a planted drop leaves their indexes behind: they may also refuse the shard.
COUNTED = ("wids", "Energon", "TFDS")
# DALI's own makers of indexes; their results and ours must be equal byte for byte.
INDEX_TOOLS = {"webdataset": "wds2idx", "tfrecord": "tfrecord2idx"}
# The index files that are asked for; those of the first line with every dataset of the format.
SIDECARS = {"webdataset": "dali", "tfrecord": "dali"}
PLAIN_SIDECARS = {"webdataset": "dali,wids,energon,timm,openclip"}
DEFAULT_LAYOUTS = {"webdataset": "ustar", "tfrecord": "classification", "lmdb": "caffe", "hdf5": "packed"}

# Of a dataset without index files of other tools: pack's own files must be in nobody's way.
BARE = " bare"


class Case:
  """One packed dataset: what was packed how, and what readers must return."""

  def __init__(self, name, source, kind, options, keys="path", foreign_index=True, plain=False):
    self.name, self.source, self.kind, self.options = name, pathlib.Path(source), kind, options
    self.format, _, layout = kind.removesuffix(BARE).partition(" ")
    self.layout = layout or DEFAULT_LAYOUTS[self.format]
    self.keys = keys  # "path": readers must deliver it; "index": keys are numbers
    # False: names that DALI's own tools do not understand
    self.foreign_index = foreign_index and self.format in INDEX_TOOLS
    self.plain = plain
    self.fault = None
    self.out = None

  def takes(self, reader):
    return self.kind in reader.kinds and (self.plain or not reader.plain)

  def sidecars(self):
    if self.kind.endswith(BARE):
      return []
    table = {**SIDECARS, **PLAIN_SIDECARS} if self.plain else SIDECARS
    return ["--sidecar-index", table[self.format]] if self.format in table else []

  def shards(self):
    manifest = json.loads((self.out / "manifest.json").read_text())
    return [self.out / shard["name"] for shard in manifest["shards"]]

  def index_of(self, shard):
    return shard.with_suffix(".idx") if self.format == "webdataset" else shard.with_name(shard.name + ".idx")

  def job(self):
    shards = self.shards()
    return {"id": self.name, "format": self.format, "layout": self.layout, "root": str(self.out),
            "shards": [str(shard) for shard in shards], "indexes": [str(self.index_of(shard)) for shard in shards]}

  def delivered_name(self, relative):
    """What a reader of this layout gives as the name of that source file; None: nothing, or a number."""
    if self.layout in ("tfds", "pickle") or (self.keys == "index" and self.format != "tfrecord"):
      return None
    if self.layout == "imagenet":
      return relative.name
    if self.format == "tfrecord" or self.layout == "caffe":
      return str(relative)
    return str(relative.with_name(relative.stem.replace(".", "_")))

  def delivered_label(self, label):
    return {"imagenet": label + 1, "raw": -1}.get(self.layout, label)

  def expected(self):
    """(name, sha256, label) of each source file, as a reader of this layout delivers it."""
    classes = sorted((folder.name for folder in self.source.iterdir() if folder.is_dir()), key=os.fsencode)
    samples = []
    for label, name in enumerate(classes):
      for path in sorted((self.source / name).rglob("*")):
        if path.is_file():
          samples.append((self.delivered_name(path.relative_to(self.source)),
                          hashlib.sha256(path.read_bytes()).hexdigest(), self.delivered_label(label)))
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

  def take(self, other):
    self.passed += other.passed
    self.failed += other.failed
    self.rows += other.rows[1:]

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
  command = [program, str(case.source), "-o", str(case.out), "-f", case.format, "--layout", case.layout,
             *case.sidecars(), "--no-fsync", "-q", *case.options]
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
  several = ["--shards", "4"]
  generated = work / "generated"
  three_splits = ["--split", "train=0.7,val=0.2,test=0.1", "--shards", "7", "--seed", "7"]
  cases = [
      Case("wds", generated, "webdataset", several, plain=True),
      Case("wds splits", generated, "webdataset", three_splits, plain=True),
      Case("wds json in order", generated, "webdataset",
           ["--with-json", "--no-shuffle", "--samples-per-shard", "64"]),
      Case("wds bare", generated, "webdataset bare", several, foreign_index=False),
      Case("wds bare splits", generated, "webdataset bare", three_splits, foreign_index=False),
      Case("wds index keys", generated, "webdataset", ["--key", "index", *several], keys="index", plain=True),
      Case("wds odd names", work / "odd", "webdataset", ["--shards", "3"], keys="index"),
      Case("wds ustar prefix", work / "odd", "webdataset", ["--key", "path", "--shards", "3"], foreign_index=False),
      Case("wds pax", work / "long", "webdataset pax", ["--key", "path", "--shards", "3"], foreign_index=False),
      Case("tfr", generated, "tfrecord", several),
      Case("tfr splits", generated, "tfrecord", three_splits),
      Case("tfr in order", generated, "tfrecord", ["--no-shuffle", "--samples-per-shard", "64"]),
      Case("tfr odd names", work / "long", "tfrecord", ["--shards", "3"]),
      Case("tfr imagenet", generated, "tfrecord imagenet", several),
      Case("tfr tfds", generated, "tfrecord tfds", three_splits),
      Case("lmdb", generated, "lmdb", several),
      Case("lmdb splits", generated, "lmdb", three_splits),
      Case("lmdb odd names", work / "long", "lmdb", ["--shards", "3"]),
      Case("lmdb raw", generated, "lmdb raw", several),
      Case("lmdb pickle", generated, "lmdb pickle", several),
      Case("hdf5", generated, "hdf5", several),
      Case("hdf5 odd names", work / "long", "hdf5", ["--shards", "3"], keys="index"),
      Case("hdf5 vlen", generated, "hdf5 vlen", several),
  ]
  for folder in real:
    name = pathlib.Path(folder).name
    for kind in ("webdataset", "tfrecord", "tfrecord tfds", "lmdb", "lmdb raw", "hdf5", "hdf5 vlen"):
      cases.append(Case(f"{kind} {name}", folder, kind, several, plain=kind == "webdataset"))
  return cases


def plant_faults(cases, tools, work):
  """Copies of a dataset of each layout with one fault each; indexes fit the copies."""
  planted = []
  first_of_kind = {case.kind: case for case in reversed(cases)}
  for case in first_of_kind.values():
    if case.format in INDEX_TOOLS and not case.foreign_index:
      continue  # no index would fit the copy
    sources = [path.read_bytes() for path in case.source.rglob("*.jpg")]
    for fault in plant.FAULTS:
      if fault == "label" and case.layout == "raw":
        continue  # it holds none
      copy = Case(f"{case.name} {fault}", case.source, case.kind, case.options, case.keys,
                  case.foreign_index, case.plain)
      copy.fault = fault
      copy.out = work / f"planted-{case.kind.replace(' ', '-')}-{fault}"
      shutil.copytree(case.out, copy.out)
      shard = copy.shards()[1]
      plant.PLANT[case.format](shard, fault, sources, copy.layout)
      if copy.foreign_index:
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
    jobs = [case.job() for case in (*cases, *planted) if case.takes(reader)]
    return ask(reader, pythons[reader.venv], jobs)

  expected = {case.name: case.expected() for case in (*cases, *planted)}
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    answered = list(pool.map(drive, READERS))
  for reader, (version, answers) in zip(READERS, answered):
    for case in cases:
      if case.takes(reader):
        answer = answers[case.name]
        results.add((reader.name, version, case.kind, case.name, len(answer.get("samples", ()))),
                    trouble_of(expected[case.name], answer))
  for reader, (version, answers) in zip(READERS, answered):
    for case in planted:
      if case.takes(reader):
        answer = answers[case.name]
        results.add((reader.name, version, case.kind, f"planted {case.fault}", len(answer.get("samples", ()))),
                    planted_trouble(reader, case.fault, expected[case.name], answer))


def planted_trouble(reader, fault, expected, answer):
  """None when the comparison finds just the planted fault: not more, not less, and no error of the reader."""
  if fault == "drop" and reader.name in COUNTED:
    return None if trouble_of(expected, answer) else "the drop was not noticed"
  if "error" in answer:
    return "the reader was to deliver it all the same: " + " ".join(answer["error"].split())
  missing, unexpected = difference(expected, answer["samples"])
  found = (sum(missing.values()), sum(unexpected.values()))
  want = (1, 0) if fault == "drop" else (1, 1)
  return None if found == want else f"{found[0]} missing and {found[1]} unexpected, not {want[0]} and {want[1]}"


def check_examples(program, pythons, results):
  """The examples of docs/formats that need one of these environments."""
  known = [f"{name}={python}" for name, python in pythons.items() if name]
  run = subprocess.run([sys.executable, str(ROOT / "tests" / "docs" / "format_pages.py"), *known],
                       env={**os.environ, "PACK": program, "READ_DATASET": os.devnull + "/none"},
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
  rows = [line.partition(": ") for line in run.stdout.splitlines()[:-1]]
  for example, _, verdict in rows or [("none", "", run.stderr.strip()[-300:])]:
    results.add(("example in docs/formats", "", "", example, ""), None if verdict == "ok" else verdict)


def run_beside(checks, results):
  """Runs the checks, functions of a Results, as many at once as there are cores; most import slowly, on one core. The rows keep the order."""
  parts = [Results() for _ in checks]
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for _ in pool.map(lambda check, part: check(part), checks, parts):
      pass
  for part in parts:
    results.take(part)


def package_checks(arguments, pythons):
  """Of the Python package: in training programs, as types, with tables, beside other libraries, and as a wheel. package_check.py has the rest."""
  import augment_check  # pylint: disable=import-outside-toplevel
  import module_check  # pylint: disable=import-outside-toplevel
  import neighbours_check  # pylint: disable=import-outside-toplevel
  import tables_check  # pylint: disable=import-outside-toplevel
  import types_check  # pylint: disable=import-outside-toplevel
  import wheel_check  # pylint: disable=import-outside-toplevel
  import writing_check  # pylint: disable=import-outside-toplevel
  program, module = pathlib.Path(arguments.pack).resolve(), pathlib.Path(arguments.module).resolve()
  for name in ("neighbours", "tables", "types", "wheel"):
    pythons[name] = environments.python_of(name, arguments.venv)
  checks = [
      lambda results: neighbours_check.check(program, module, arguments.wheel, pythons, results),
      lambda results: module_check.check(program, module, pythons["torch"], results),
      lambda results: augment_check.check(module, arguments.folders, pythons, results),
      lambda results: types_check.check(module, pythons, results),
      lambda results: tables_check.check(program, module, pythons, results),
      lambda results: writing_check.check(program, module, pythons["datasets"], results),
  ]
  if arguments.wheel:
    checks.append(lambda results: wheel_check.check(arguments.wheel, pythons["wheel"], results))
  return checks


def main():
  import index_check  # which uses this file  # pylint: disable=import-outside-toplevel
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", required=True)
  parser.add_argument("--module", required=True, help="the folder of the Python module shardpack")
  parser.add_argument("--wheel", help="the wheel of //packaging:wheel")
  parser.add_argument("--venv", default=HERE / "venv", help="prints the Python of a named environment")
  parser.add_argument("--keep", help="work in this folder and leave it")
  parser.add_argument("folders", nargs="*")
  arguments = parser.parse_args()
  begin = time.monotonic()
  results = Results()
  work = pathlib.Path(arguments.keep or tempfile.mkdtemp(prefix="shardpack-interop-"))
  work.mkdir(parents=True, exist_ok=True)
  try:
    pythons = {name: environments.python_of(name, arguments.venv) for name in {reader.venv for reader in READERS}}
    tools = pathlib.Path(pythons["dali"]).parent
    print(f"environments ready after {time.monotonic() - begin:.0f} s", flush=True)
    cases = []
    for case in make_cases(work, [pathlib.Path(folder).resolve() for folder in arguments.folders]):
      trouble = pack(arguments.pack, case, work)
      results.add(("pack", "", case.kind, case.name, len(case.expected())), trouble)
      if not trouble:
        cases.append(case)
    print(f"packed {len(cases)} datasets after {time.monotonic() - begin:.0f} s", flush=True)
    planted = plant_faults(cases, tools, work)
    for case in cases:
      if case.foreign_index:
        results.add((f"{INDEX_TOOLS[case.format]}, equal bytes", "DALI's", case.kind, case.name, ""),
                    check_indexes(case, tools, work))
    check_readers(cases, planted, pythons, results)
    # The other way round: what they write becomes a dataset.
    # A process a sample where shards hold no paths: not for thousands.
    few = [folder for folder in arguments.folders if sum(path.is_file() for path in pathlib.Path(folder).rglob("*")) <= 1000]
    print(f"readers done after {time.monotonic() - begin:.0f} s", flush=True)
    run_beside([lambda part: index_check.check(arguments.pack, [work / "generated", *few], pythons, work, part),
                lambda part: check_examples(arguments.pack, pythons, part),
                *package_checks(arguments, pythons)], results)
  finally:
    if not arguments.keep:
      shutil.rmtree(work, ignore_errors=True)
  results.print_table()
  print(f"read after {time.monotonic() - begin:.0f} s")
  print(f"{results.passed} passed, {results.failed} failed")
  return 1 if results.failed else 0


if __name__ == "__main__":
  sys.exit(main())
