"""Has other programs write shards, makes them datasets with `pack index`, and compares every image and label with the source.

Then the check is checked: a bit flipped in a shard after it was indexed must be found, and so must a sample whose label the
comparison expects to be another. Part of interop_check.py; alone it ends with `N passed, N failed` as well.
usage: index_check.py --pack PACK [--venv DIR/venv] [--keep DIR] [FOLDER...]
  FOLDER   class folders of images to index beside the generated ones (real data)
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import environments
import interop_check

HERE = pathlib.Path(__file__).resolve().parent

# `labels`: the shards hold them.
Writer = collections.namedtuple("Writer", "name script arguments venv layouts labels")
WRITERS = (
    Writer("webdataset ShardWriter", "write_webdataset.py", [], "readers", ["pax"], True),
    Writer("GNU tar", "write_plain_tar.py", ["tar"], None, ["gnu", "pax", "ustar"], True),
    Writer("bsdtar", "write_plain_tar.py", ["bsdtar"], None, ["pax", "ustar"], True),
    Writer("TensorFlow", "write_tensorflow.py", [], "tensorflow", ["example"], True),
    Writer("py-lmdb", "write_lmdb.py", [], "readers", ["caffe"], True),
    Writer("py-lmdb", "write_lmdb.py", [], "readers", ["raw"], False),
    Writer("h5py", "write_h5py.py", [], "readers", ["packed", "vlen"], True),
)


def samples_of(source):
  """[(key, path, label)] of class folders; the keys are such that every format has them in this order."""
  classes = sorted((folder.name for folder in source.iterdir() if folder.is_dir()), key=os.fsencode)
  paths = [(path, label) for label, name in enumerate(classes) for path in sorted((source / name).rglob("*"))
           if path.is_file()]
  return [(f"{number:06d}", str(path), label) for number, (path, label) in enumerate(paths)]


def run(*command):
  return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def delivered(program, dataset, work):
  """{number: (sha256, label)}: labels as `pack ls` has them, bytes as `pack extract` writes them."""
  rows = [json.loads(line) for line in run(program, "ls", dataset, "--json").stdout.splitlines()]
  # Shards that hold no name have files named by place; `cat` knows the number alone.
  named = all(row["path"] for row in rows) and len({row["path"] for row in rows}) == len(rows)
  files = work / "files"
  shutil.rmtree(files, ignore_errors=True)
  if named and run(program, "extract", dataset, files, "-q").returncode != 0:
    raise RuntimeError("pack extract failed")
  answer = {}
  for row in rows:
    image = files / row["path"] if named else None
    data = image.read_bytes() if named and image.exists() else run(program, "cat", dataset, "--record", row["id"]).stdout
    answer[row["id"]] = (hashlib.sha256(data).hexdigest(), -1 if row["label"] is None else row["label"])
  return answer


def difference(want, got):
  """What is wrong with the answer; None when nothing is."""
  if len(want) != len(got):
    return f"{len(got)} samples, not {len(want)}"
  for number, expected in enumerate(want):
    if got.get(number) != expected:
      return f"sample {number} is {got.get(number)}, not {expected}"
  return None


def check_dataset(program, shards, out, want, work):
  """Trouble with the dataset made of these shards; None when all is well, and when all faults are found."""
  before = {path: path.read_bytes() for path in shards.rglob("*") if path.is_file() and path.name != "lock.mdb"}
  indexed = run(program, "index", shards, "-o", out, "-q")
  if indexed.returncode != 0:
    return f"pack index: {indexed.returncode}: {indexed.stderr.decode()[-300:]}"
  for words in (["validate", out], ["index", shards, "-o", out, "-q"], ["index", shards, "-q"], ["validate", shards]):
    done = run(program, *words)
    if done.returncode != 0:
      return f"pack {words[0]}: {done.returncode}: {done.stdout.decode()[-300:]}{done.stderr.decode()[-300:]}"
  if any(path.read_bytes() != data for path, data in before.items()):
    return "pack index has changed a shard"
  got = delivered(program, out, work)
  trouble = difference(want, got)
  if trouble:
    return trouble
  if difference([*want[:-1], (want[-1][0], want[-1][1] + 1)], got) is None:
    return "a wrong label was not noticed"
  # One bit of an image.
  largest = max(before, key=lambda path: len(before[path]))
  data = bytearray(before[largest])
  data[len(data) // 2] ^= 4
  largest.write_bytes(data)
  found = run(program, "validate", out)
  largest.write_bytes(before[largest])
  return None if found.returncode == 4 else f"a flipped bit was not noticed: exit code {found.returncode}"


def check(program, sources, pythons, work, results):
  """Adds a row for each writer, layout and source."""
  jobs = collections.defaultdict(list)  # of a writer
  cases = []
  for source in map(pathlib.Path, sources):
    samples = samples_of(source)
    hashes = [hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() for _, path, _ in samples]
    for number, writer in enumerate(WRITERS):
      for layout in writer.layouts:
        name = f"{number}-{layout}-{source.name}"
        root = work / f"foreign-{name}"
        root.mkdir()
        want = [(sha256, label if writer.labels else -1) for sha256, (_, _, label) in zip(hashes, samples)]
        jobs[number].append({"id": name, "layout": layout, "root": str(root), "samples": samples,
                             "records": (len(samples) + 3) // 4})
        cases.append((number, layout, source.name, name, root, want))
  answers, versions = {}, {}
  for number, writer in enumerate(WRITERS):
    versions[number], told = interop_check.ask(writer, pythons[writer.venv], jobs[number])
    answers.update(told)
  for number, layout, source, name, root, want in cases:
    trouble = answers[name].get("error") or check_dataset(program, root, work / f"indexed-{name}", want, work)
    results.add((WRITERS[number].name + " writes", versions[number], layout, f"index {source}", len(want)), trouble)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", required=True)
  parser.add_argument("--venv", default=HERE / "venv", help="prints the Python of a named environment")
  parser.add_argument("--keep", help="work in this folder and leave it")
  parser.add_argument("folders", nargs="*")
  arguments = parser.parse_args()
  results = interop_check.Results()
  work = pathlib.Path(arguments.keep or tempfile.mkdtemp(prefix="shardpack-index-"))
  work.mkdir(parents=True, exist_ok=True)
  try:
    pythons = {name: environments.python_of(name, arguments.venv) for name in {writer.venv for writer in WRITERS}}
    generated = work / "generated"
    interop_check.sample_images.write_class_folders(generated, interop_check.ROOT / "testdata" / "images",
                                                    count=300, classes=10, seed=1)
    check(arguments.pack, [generated, *arguments.folders], pythons, work, results)
  finally:
    if not arguments.keep:
      shutil.rmtree(work, ignore_errors=True)
  results.print_table()
  print(f"{results.passed} passed, {results.failed} failed")
  return 1 if results.failed else 0


if __name__ == "__main__":
  sys.exit(main())
