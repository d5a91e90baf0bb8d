"""The examples that write datasets, as their first lines say."""

import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

import shardpack

ROOT = pathlib.Path(__file__).absolute().parents[2]
WORK = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
os.environ["SHARDPACK_PACK"] = os.path.abspath("cli/pack")


def run(example, *arguments):
  return subprocess.run([sys.executable, ROOT / "examples" / example, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout


class WriteExamplesTest(unittest.TestCase):

  def test_numpy(self):
    out = os.path.join(WORK, "arrays")
    self.assertIn("samples=100", run("write_numpy.py", out, 100))
    images = numpy.concatenate([numpy.load(path) for path in sorted(pathlib.Path(out).glob("*.npy/images.npy"))])
    self.assertEqual((images.shape, images.dtype), ((100, 28, 28, 3), numpy.uint8))
    self.assertTrue((images[23][4:24, 6:14] >= 128).all() and (images[23][:4] < 64).all())
    self.assertEqual(len(shardpack.Dataset(out).classes), 10)
    self.assertTrue(shardpack.validate(out, "deep").ok)

  def test_usage_and_a_dataset_that_is_complete(self):
    for example in ("write_numpy.py", "write_synthetic.py"):
      said = subprocess.run([sys.executable, ROOT / "examples" / example], stderr=subprocess.PIPE, text=True, check=False)
      self.assertEqual((said.returncode, said.stderr.startswith("usage: ")), (2, True), said.stderr)
    out = os.path.join(WORK, "twice")
    run("write_synthetic.py", out, 20, 2)
    said = subprocess.run([sys.executable, ROOT / "examples/write_synthetic.py", out, "20", "2"], stderr=subprocess.PIPE, text=True, check=False)
    self.assertEqual((said.returncode, said.stderr), (1, f"{out} is complete already, or has files of other programs: give another OUT\n"))

  def test_synthetic_killed(self):
    one, many = os.path.join(WORK, "one"), os.path.join(WORK, "many")
    run("write_synthetic.py", one, 2000, 1)
    program = [sys.executable, ROOT / "examples/write_synthetic.py", many, "2000", "3"]
    killed = subprocess.Popen(program, start_new_session=True, stdout=subprocess.DEVNULL)
    while not any(pathlib.Path(many + ".parts").glob("w*.pidx")):  # a process has ended its part
      self.assertIsNone(killed.poll(), "the writing ended before anybody looked")
      time.sleep(0.001)
    os.killpg(killed.pid, signal.SIGKILL)
    self.assertEqual(killed.wait(), -signal.SIGKILL)
    self.assertIn("samples=2000", run("write_synthetic.py", many, 2000, 3))
    dataset = shardpack.Dataset(many)
    self.assertEqual(dataset.identity, shardpack.Dataset(one).identity)
    draw = runpy.run_path(str(ROOT / "examples/write_synthetic.py"))["draw"]
    number = dataset.find_key("07/000107")
    self.assertEqual(dataset[number]["fields"]["txt"], f"a {draw(107)[0]}".encode())


if __name__ == "__main__":
  unittest.main()
