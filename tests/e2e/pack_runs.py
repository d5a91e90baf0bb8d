"""Running the program pack in tests, and comparing the folders it leaves.

  source = pack_runs.make_source(scratch, count=3000)
  pack_runs.run([PACK, source, "-o", out], expect=3)
  assert pack_runs.contents(out) == pack_runs.contents(other)
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import sample_images

# Relative to the folder that tests run in, which is the root of the project or a copy of its shape.
PACK = os.path.abspath(os.environ.get("SHARDPACK_PACK", "cli/pack"))
TESTDATA = pathlib.Path(os.environ.get("SHARDPACK_TESTDATA", "testdata/images")).resolve()

# What to write; with files beside the shards, which are published like them.
FORMATS = {
    "webdataset": ["-f", "webdataset", "--sidecar-index", "dali,energon,wids"],
    "tfrecord": ["-f", "tfrecord", "--sidecar-index", "dali"],
    "lmdb": ["-f", "lmdb", "--layout", "raw"],
    "lmdb-pickle": ["-f", "lmdb", "--layout", "pickle"],
    "hdf5": ["-f", "hdf5"],
}
# Sources hold a few inputs that are not images, fewer than --max-skip allows: skips must come out the same as well.
BAD_INPUTS = 5
DONE_WITH_SKIPS = 3


def make_source(scratch, count):
  source = pathlib.Path(scratch) / "source"
  sample_images.write_class_folders(source, TESTDATA, count, classes=10, seed=3)
  images = sorted(source.rglob("*.jpg"))
  for i in range(BAD_INPUTS):
    image = images[len(images) * (2 * i + 1) // (2 * BAD_INPUTS)]
    image.write_bytes((b"", b"<html>", image.read_bytes()[:-20])[i % 3])
  return source


def start(command, **options):
  return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", **options)


def run(command, expect, **options):
  """Runs to the end and insists on the exit code; returns what was printed."""
  process = start(command, **options)
  output, _ = process.communicate()
  if process.returncode != expect:
    raise AssertionError(f"exit code {process.returncode}, not {expect}: {' '.join(map(str, command))}\n{output}")
  return output


def contents(folder):
  """{path: SHA-256} of every file below the folder, hidden ones included."""
  folder = pathlib.Path(folder)
  return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
          for path in sorted(folder.rglob("*")) if not path.is_dir()}


def journal_lines(out):
  """How many shards an unfinished build has finished."""
  lines = 0
  for path in pathlib.Path(out).glob(".pack/journal*.jsonl"):
    try:
      data = path.read_bytes()
      lines += data.count(b"\n") - data.count(b'"pending":')  # those are of what is about to be published
    except FileNotFoundError:
      pass  # the build ended in between
  return lines


class PackTest(unittest.TestCase):
  """Has a source of `count` images; self.scratch is gone afterwards."""

  count = 3000

  @classmethod
  def setUpClass(cls):
    cls.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    cls.source = make_source(cls.scratch, cls.count)

  @classmethod
  def tearDownClass(cls):
    shutil.rmtree(cls.scratch, ignore_errors=True)

  def assert_same(self, want, out):
    """Every file of OUT is that of `want`, and no other is there."""
    got = contents(out)
    self.assertEqual(sorted(want), sorted(got), "other files than expected")
    differing = [name for name in want if want[name] != got[name]]
    self.assertEqual([], differing, "files with other bytes")


def main():
  if not os.access(PACK, os.X_OK):
    sys.exit(f"{PACK} is missing; run through Bazel, or set SHARDPACK_PACK and SHARDPACK_TESTDATA")
  unittest.main(verbosity=2)
