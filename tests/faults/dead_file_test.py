"""A disk that gives one file no more. Of a dataset: pack repair rebuilds that file, and the others. Of the source: it says
so, and other sources are used. By hand as syscall_fault_test.py.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import pack_runs
import sample_images
from pack_runs import PACK

SHIM = os.path.abspath(os.environ.get("SHARDPACK_FAULT_SHIM", "tests/faults/libfault_shim.so"))


class DeadFileTest(unittest.TestCase):

  def setUp(self):
    self.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    self.source, self.out = self.scratch / "src", self.scratch / "out"
    sample_images.write_class_folders(self.source, pack_runs.TESTDATA, 40, classes=2, seed=4)
    pack_runs.run([PACK, self.source, "-o", self.out, "--shards", "4", "-q", "--no-fsync"], expect=0)
    self.want = pack_runs.contents(self.out)

  def tearDown(self):
    shutil.rmtree(self.scratch, ignore_errors=True)

  def repair(self, dead, *words):
    env = dict(os.environ, LD_PRELOAD=SHIM, SHARDPACK_FAULT_ROOT=str(dead), SHARDPACK_FAULT_EACH="open", SHARDPACK_FAULT_DO="5")
    return subprocess.run([PACK, "repair", self.out, *words], env=env, capture_output=True, text=True, check=False)

  def test_an_input_that_cannot_be_opened(self):
    copy = self.scratch / "copy"
    pack_runs.run([PACK, "convert", self.out, "-o", copy, "-f", "tfrecord", "-q", "--no-fsync"], expect=0)
    dead = next(path for path in sorted(self.source.rglob("*")) if path.is_file())
    for lost in ([".tar"], [".tar", ".pidx"]):
      with self.subTest(lost):
        for path in self.out.glob("train-*"):
          if path.suffix in lost:
            path.unlink()
        done = self.repair(dead)
        self.assertEqual(6, done.returncode, done.stderr)
        self.assertIn(f"{dead}: Input/output error", done.stderr)
        self.assertNotIn("has changed", done.stderr)
        done = self.repair(dead, "--from", self.source, "--from", copy)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(self.want, pack_runs.contents(self.out))

  def test_a_file_that_cannot_be_opened(self):
    for dead in ("train-000002.tar", "train-000002.pidx"):
      with self.subTest(dead):
        before = os.stat(self.out / dead).st_ino
        (self.out / "train-000000.tar").unlink(missing_ok=True)
        done = self.repair(self.out / dead)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(self.want, pack_runs.contents(self.out))
        self.assertNotEqual(before, os.stat(self.out / dead).st_ino, "it is another file")


if __name__ == "__main__":
  unittest.main(verbosity=2)
