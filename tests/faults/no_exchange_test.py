"""A file system that knows no flags of renameat2, as many network ones: --overwrite is refused before anything is built, all
else works. By hand as syscall_fault_test.py.
"""

import errno
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


class NoExchangeTest(unittest.TestCase):

  def setUp(self):
    self.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    self.source, self.root = self.scratch / "src", self.scratch / "root"
    self.root.mkdir()
    sample_images.write_class_folders(self.source, pack_runs.TESTDATA, 12, classes=2, seed=4)

  def tearDown(self):
    shutil.rmtree(self.scratch, ignore_errors=True)

  def pack(self, *words):
    env = dict(os.environ, LD_PRELOAD=SHIM, SHARDPACK_FAULT_ROOT=str(self.root), SHARDPACK_FAULT_EACH="renameat2",
               SHARDPACK_FAULT_DO=str(errno.EINVAL))
    return subprocess.run([PACK, self.source, "-o", self.root / "out", *words], env=env, capture_output=True, text=True, check=False)

  def below_root(self):
    return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))

  def test_overwrite_is_refused_at_once(self):
    self.assertEqual(0, self.pack("--shards", "4").returncode)
    before, names = pack_runs.contents(self.root / "out"), self.below_root()
    for _ in range(2):
      refused = self.pack("--shards", "3", "--overwrite")
      self.assertEqual(5, refused.returncode, refused.stderr)
      self.assertIn("cannot be exchanged with the new dataset", refused.stderr)
      self.assertIn("build into another folder", refused.stderr)
      self.assertNotIn("run again", refused.stderr)
      self.assertEqual(names, self.below_root())
      self.assertEqual(before, pack_runs.contents(self.root / "out"))


if __name__ == "__main__":
  unittest.main(verbosity=2)
