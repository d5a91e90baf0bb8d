"""A file of a user that comes to OUT while a build runs, under a name that the build is about to give: it stays, whenever
it comes, and is named. By hand as syscall_fault_test.py, with PYTHONPATH=tests/e2e:tests/faults.
"""

import os
import pathlib
import shutil
import tempfile
import unittest

import pack_runs
import sample_images
from pack_runs import PACK
from slow_write_test import ONE, SlowRun


class LateFileTest(unittest.TestCase):

  def setUp(self):
    self.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    self.root = self.scratch / "root"
    self.root.mkdir()
    source = self.scratch / "src"
    sample_images.write_class_folders(source, pack_runs.TESTDATA, 8, classes=2, seed=4)
    self.command = [PACK, source, "--samples-per-shard", "4", "--sha256", *ONE]
    pack_runs.run([*self.command, "-o", self.scratch / "want"], expect=0)
    self.want = pack_runs.contents(self.scratch / "want")

  def tearDown(self):
    shutil.rmtree(self.scratch, ignore_errors=True)

  def put_at(self, number, out, name, words=()):
    """True when the file came at that write of the run; false when the run had come further before."""
    path = out / name
    with SlowRun([*self.command, "-o", out, *words], self.root) as run:
      came, count, said = False, 0, b""
      while run.next_write():
        count += 1
        if count == number and not path.exists():
          path.write_bytes(b"precious")
          came = True
        run.let_go()
      said = run.process.stderr.read()
      code = run.end()
    if came:
      self.assertEqual(5, code, said)
      self.assertIn(name, said.decode())
      self.assertEqual(b"precious", path.read_bytes())
      path.unlink()
    return came

  def test_a_file_that_comes_while_a_build_runs(self):
    for name in ("train-000001.tar", "train-000001.pidx", "SHA256SUMS", "manifest.json"):
      number = 1
      while True:
        out = self.root / "out"
        shutil.rmtree(out, ignore_errors=True)
        with self.subTest(name, write=number):
          came = self.put_at(number, out, name)
          pack_runs.run([*self.command, "-o", out], expect=0)
          self.assertEqual(self.want, pack_runs.contents(out))
        if not came:
          break
        number += 1
      self.assertGreater(number, 3, "it never came")

  def test_in_the_place_of_a_shard_that_was_lost(self):
    out = self.root / "out"
    shutil.rmtree(out, ignore_errors=True)
    never = ["--expect", "xxh3:" + "0" * 32]
    pack_runs.run([*self.command, "-o", out, *never], expect=4)
    for name in ("train-000001.tar", "train-000001.pidx"):
      (out / name).unlink()
      with self.subTest(name):
        self.assertTrue(self.put_at(3, out, name))
        pack_runs.run([*self.command, "-o", out, *never], expect=4)
    pack_runs.run([*self.command, "-o", out], expect=0)
    self.assertEqual(self.want, pack_runs.contents(out))


if __name__ == "__main__":
  unittest.main(verbosity=2)
