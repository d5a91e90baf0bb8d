"""A disk that gives one file of a dataset no more: pack repair rebuilds that file, and the others. By hand as
syscall_fault_test.py.
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

  def test_a_file_that_cannot_be_opened(self):
    for dead in ("train-000002.tar", "train-000002.pidx"):
      with self.subTest(dead):
        env = dict(os.environ, LD_PRELOAD=SHIM, SHARDPACK_FAULT_ROOT=str(self.out / dead), SHARDPACK_FAULT_EACH="open",
                   SHARDPACK_FAULT_DO="5")
        before = os.stat(self.out / dead).st_ino
        (self.out / "train-000000.tar").unlink(missing_ok=True)
        done = subprocess.run([PACK, "repair", self.out], env=env, capture_output=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(self.want, pack_runs.contents(self.out))
        self.assertNotEqual(before, os.stat(self.out / dead).st_ino, "it is another file")


if __name__ == "__main__":
  unittest.main(verbosity=2)
