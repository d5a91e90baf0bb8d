"""Ctrl-C and SIGTERM while every write takes as long as this test likes: what is begun is waited for, nothing else is.

A shim makes each write below the test's folder say that it begins, and wait to be let go. So nothing here depends on
time: between two writes the test decides what happens. By hand as syscall_fault_test.py.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import pack_runs
import sample_images
from pack_runs import PACK

SHIM = os.path.abspath(os.environ.get("SHARDPACK_FAULT_SHIM", "tests/faults/libfault_shim.so"))
ONE = ["-j", "1", "--io-depth", "1"]
# A shard that is whole but for its last steps is finished, and so may be one more, which another thread had come as far
# with: its data (HDF5 writes it in many small parts, LMDB in a few), its index, its line in the journal. All of a run are
# several times as many.
WRITES_AFTER = {"hdf5": 60, "lmdb": 20, "extract": 2}


class SlowRun:
  """A run of pack each of whose writes waits."""

  def __init__(self, command, root):
    said, says = os.pipe()
    waits, self.go = os.pipe()
    for descriptor in (says, waits):
      os.set_inheritable(descriptor, True)
    env = dict(os.environ, LD_PRELOAD=SHIM, SHARDPACK_FAULT_ROOT=str(root), SHARDPACK_FAULT_SAYS=str(says),
               SHARDPACK_FAULT_WAITS=str(waits))
    # Who started the test may ignore SIGINT, and so would the program.
    self.process = subprocess.Popen(
        [str(word) for word in command], env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        pass_fds=(says, waits), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    os.close(says)
    os.close(waits)
    self.said = os.fdopen(said, "rb", buffering=0)

  def next_write(self):
    """True when a write begins; False when the run has ended."""
    return self.said.read(1) == b"."

  def let_go(self):
    os.write(self.go, b".")

  def end(self):
    os.close(self.go)
    self.process.communicate()
    self.said.close()
    return self.process.returncode

  def __enter__(self):
    return self

  def __exit__(self, *failed):
    if self.process.poll() is None:
      self.process.kill()


class SlowWriteTest(unittest.TestCase):

  def setUp(self):
    self.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    self.root = self.scratch / "root"
    self.root.mkdir()
    self.source = self.scratch / "src"
    sample_images.write_class_folders(self.source, pack_runs.TESTDATA, 40, classes=2, seed=4)
    self.packed = self.scratch / "packed"
    pack_runs.run([PACK, self.source, "-o", self.packed, "--samples-per-shard", "2", "-q", "--no-fsync"], expect=0)

  def tearDown(self):
    shutil.rmtree(self.scratch, ignore_errors=True)

  def commands(self):
    build = ["--samples-per-shard", "2", "-q", *ONE]
    for name, *words in (("build", PACK, self.source, *build), ("hdf5", PACK, self.source, "-f", "hdf5", *build),
                         ("lmdb", PACK, self.source, "-f", "lmdb", *build),
                         ("convert", PACK, "convert", self.packed, "-f", "tfrecord", *build),
                         ("extract", PACK, "extract", self.packed, "-q")):
      pack_runs.run([*words, "-o", self.scratch / f"want-{name}"], expect=0)
      yield name, words, pack_runs.contents(self.scratch / f"want-{name}")

  def test_one_signal_waits_for_what_is_begun(self):
    for name, words, want in self.commands():
      for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        out = self.root / f"{name}-{number}"
        with self.subTest(name, signal=number.name), SlowRun([*words, "-o", out], self.root) as run:
          for _ in range(10):
            self.assertTrue(run.next_write())
            run.let_go()
          self.assertTrue(run.next_write())
          run.process.send_signal(number)
          # It says what it waits for, while it waits.
          said = b""
          while b"second Ctrl-C" not in said:
            part = run.process.stderr.read1()
            self.assertTrue(part, said)
            said += part
          run.let_go()
          after = 0
          while run.next_write():
            after += 1
            self.assertLessEqual(after, WRITES_AFTER.get(name, 10), "the run goes on")
            run.let_go()
          self.assertEqual(code, run.end())
          pack_runs.run([*words, "-o", out], expect=0)
          self.assertEqual(want, pack_runs.contents(out))

  def test_a_second_signal_ends_at_once(self):
    for name, words, want in self.commands():
      out = self.root / name
      with self.subTest(name), SlowRun([*words, "-o", out], self.root) as run:
        for _ in range(10):
          self.assertTrue(run.next_write())
          run.let_go()
        self.assertTrue(run.next_write())
        run.process.send_signal(signal.SIGINT)
        run.process.send_signal(signal.SIGTERM)
        # Its write is never let go, nor is one that another thread had begun.
        while run.next_write():
          pass
        self.assertIn(run.end(), (130, 143))
        pack_runs.run([*words, "-o", out], expect=0)
        self.assertEqual(want, pack_runs.contents(out))

  def test_a_signal_while_a_page_or_list_is_written(self):
    for name, *words in (("page", "report", self.packed, "-o"), ("list", "dups", self.packed, "--write-list")):
      for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        out = self.root / f"{name}-{number}.html"
        with self.subTest(name, signal=number.name), SlowRun([PACK, *words, out], self.root) as run:
          self.assertTrue(run.next_write())
          self.assertEqual([f"{out.name}.part-{run.process.pid}"], os.listdir(self.root))
          run.process.send_signal(number)
          run.let_go()
          while run.next_write():
            run.let_go()
          self.assertEqual(code, run.end())
          self.assertEqual([], os.listdir(self.root))
          pack_runs.run([PACK, *words, out], expect=0)
          out.unlink()


if __name__ == "__main__":
  unittest.main(verbosity=2)
