"""A disk that gives one file of a dataset, of a copy or of the source no more. pack repair rebuilds that of a dataset, and the
others; of a copy it never says that it lacks what nobody could read. By hand as syscall_fault_test.py.
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


class DeadFileTest(unittest.TestCase):

  def setUp(self):
    self.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    self.source, self.out = self.scratch / "src", self.scratch / "out"
    sample_images.write_class_folders(self.source, pack_runs.TESTDATA, 40, classes=2, seed=4)
    pack_runs.run([PACK, self.source, "-o", self.out, "--shards", "4", "-q", "--no-fsync"], expect=0)
    self.want = pack_runs.contents(self.out)

  def tearDown(self):
    shutil.rmtree(self.scratch, ignore_errors=True)

  def repair(self, dead, error, *words):
    """With a file that cannot be opened; the exit code, and what was said."""
    env = dict(os.environ, LD_PRELOAD=SHIM, SHARDPACK_FAULT_ROOT=str(dead), SHARDPACK_FAULT_EACH="open",
               SHARDPACK_FAULT_DO=str(int(error)))
    done = subprocess.run([PACK, "repair", self.out, *words], env=env, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()

  def test_an_input_that_cannot_be_opened(self):
    copy = self.scratch / "copy"
    pack_runs.run([PACK, "convert", self.out, "-o", copy, "-f", "tfrecord", "-q", "--no-fsync"], expect=0)
    dead = next(path for path in sorted(self.source.rglob("*")) if path.is_file())
    for lost in ([".tar"], [".tar", ".pidx"]):
      with self.subTest(lost):
        for path in self.out.glob("train-*"):
          if path.suffix in lost:
            path.unlink()
        code, said = self.repair(dead, errno.EIO)
        self.assertEqual(6, code, said)
        self.assertIn(f"{dead}: Input/output error", said)
        self.assertNotIn("has changed", said)
        code, said = self.repair(dead, errno.EIO, "--from", self.source, "--from", copy)
        self.assertEqual(0, code, said)
        self.assertEqual(self.want, pack_runs.contents(self.out))

  def test_a_file_that_cannot_be_opened(self):
    for dead in ("train-000002.tar", "train-000002.pidx"):
      with self.subTest(dead):
        before = os.stat(self.out / dead).st_ino
        (self.out / "train-000000.tar").unlink(missing_ok=True)
        code, said = self.repair(self.out / dead, errno.EIO)
        self.assertEqual(0, code, said)
        self.assertEqual(self.want, pack_runs.contents(self.out))
        self.assertNotEqual(before, os.stat(self.out / dead).st_ino, "it is another file")

  def test_a_copy_that_cannot_be_opened(self):
    same, other = self.scratch / "same", self.scratch / "other"
    shutil.copytree(self.out, same)
    pack_runs.run([PACK, "convert", self.out, "-o", other, "-f", "tfrecord", "--shards", "1", "-q", "--no-fsync"], expect=0)
    shard, index = "train-000002.tar", "train-000002.pidx"
    cases = [(same, shard, [shard]), (same, index, [index]), (other, "train-00000-of-00001.tfrecord", [shard]),
             (other, "train-00000-of-00001.pidx", [shard]), (other, "train-00000-of-00001.pidx", [shard, index]),
             (other, "train-00000-of-00001.tfrecord", [shard, index])]
    for copy, dead, lost in cases:
      for flags in ([], ["--dry-run"]):
        with self.subTest(f"{copy.name}/{dead}", lost=lost, flags=flags):
          for name in lost:
            (self.out / name).unlink(missing_ok=True)
          before = pack_runs.contents(self.out)
          code, said = self.repair(copy / dead, errno.EIO, "--from", copy, *flags)
          self.assertEqual(3, code, said)
          self.assertIn(f"{copy / dead}: Input/output error", said)
          for lie in ("nowhere", "damaged index", "lacks"):
            self.assertNotIn(lie, said)
          for error in (errno.EMFILE, errno.ENOMEM):
            code, said = self.repair(copy / dead, error, "--from", copy, *flags)
            self.assertEqual(6, code, said)
            self.assertIn(str(copy / dead), said)
          self.assertEqual(before, pack_runs.contents(self.out))
      pack_runs.run([PACK, "repair", self.out, "--from", copy, "-q", "--no-fsync"], expect=0)
      self.assertEqual(self.want, pack_runs.contents(self.out))

  def test_a_file_of_the_source_that_cannot_be_opened(self):
    dead = sorted(path for path in self.source.rglob("*") if path.is_file())[0]
    for path in self.out.glob("train-*"):
      path.unlink()
    code, said = self.repair(dead, errno.EIO)
    self.assertEqual(6, code, said)
    self.assertIn(f"{dead.name}: Input/output error", said)
    self.assertNotIn("--exclude", said)  # pack repair has no such flag
    pack_runs.run([PACK, "repair", self.out, "-q", "--no-fsync"], expect=0)
    self.assertEqual(self.want, pack_runs.contents(self.out))


if __name__ == "__main__":
  unittest.main(verbosity=2)
