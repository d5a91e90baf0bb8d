"""The example of docs/cuda.md: shown as it is, and on the CPU every batch comes from host memory.

CUDA_CONSUMER and PACK name the programs (default: as Bazel's tests see them).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

PACK = os.path.abspath(os.environ.get("PACK", "cli/pack"))
CUDA_CONSUMER = os.path.abspath(os.environ.get("CUDA_CONSUMER", "examples/cuda_consumer"))
LINE = re.compile(r"epoch (\d+) step (\d+): 16 x 3 x 64 x 64 halves at 0x[0-9a-f]+")


class CudaPageTest(unittest.TestCase):

  def test_the_page_shows_it(self):
    source = (ROOT / "examples" / "cuda_consumer.cc").read_text()
    self.assertIn(f"```cpp\n{source}```", (ROOT / "docs" / "cuda.md").read_text())

  def test_every_batch_comes_once(self):
    with tempfile.TemporaryDirectory() as folder:
      photos = pathlib.Path(folder) / "photos"
      sample_images.write_class_folders(photos, ROOT / "testdata" / "images", count=40, classes=3, seed=4)
      subprocess.run([PACK, "photos", "-o", "shards", "-q"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
      unasked = subprocess.run([CUDA_CONSUMER, "shards", "64"], cwd=folder, capture_output=True, text=True, check=False)
      done = subprocess.run([CUDA_CONSUMER, "shards", "64", "cpu"], cwd=folder, capture_output=True, text=True, check=False)
    self.assertEqual(0, done.returncode, done.stderr)
    seen = [tuple(map(int, LINE.fullmatch(line).groups())) for line in done.stdout.splitlines()]
    self.assertEqual([(epoch, step) for epoch in range(2) for step in range(3)], seen)
    self.assertIn("6 batches", done.stderr)
    if unasked.returncode != 0:  # no GPU, so no batches either
      self.assertRegex(unasked.stderr, "no GPU can be used|built without CUDA")
      self.assertEqual("", unasked.stdout)

  def test_pack_says_what_there_is(self):
    done = subprocess.run([PACK, "info", "--gpu"], capture_output=True, text=True, check=False)
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertRegex(done.stdout, r"(?m)^gpu +(0 |none: .+; loaders run with the device \"cpu\" alone)")
    self.assertRegex(done.stdout, r"(?m)^cuda  ")
    self.assertRegex(done.stdout, r"(?m)^nvjpeg  ")

  def test_bench_measures_the_way_to_a_device(self):
    with tempfile.TemporaryDirectory() as folder:
      photos = pathlib.Path(folder) / "photos"
      sample_images.write_class_folders(photos, ROOT / "testdata" / "images", count=40, classes=3, seed=4)
      subprocess.run([PACK, "photos", "-o", "shards", "-q"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
      bench = [PACK, "bench", "shards", "--decode", "32", "-b", "16", "--epochs", "2", "--rate", "0"]
      done = subprocess.run([*bench, "--device", "host"], cwd=folder, capture_output=True, text=True, check=False)
      self.assertEqual(0, done.returncode, done.stderr)
      self.assertRegex(done.stdout, r"(?m)^device     host; copy from page-locked memory \d+\.\d+ GB/s$")
      self.assertRegex(done.stdout, r"(?m)^preprocess \d+ images/s")
      self.assertRegex(done.stdout, r"(?m)^decode     \d+ images/s: 0 by engines, 0 hybrid, \d+ by the CPU")
      self.assertRegex(done.stdout, r"(?m)^decoded for the device\n +\d+ images/s, \d+\.\d+ cores, \d of 3 batches")
      done = subprocess.run([*bench, "--device", "host", "--json"], cwd=folder, capture_output=True, text=True, check=False)
      self.assertEqual(["decoded by the loader", "decoded for the device", "decoded for the device, whole images"],
                       [run["name"] for run in json.loads(done.stdout)["runs"]])
      done = subprocess.run([*bench, "--device", "cuda"], cwd=folder, capture_output=True, text=True, check=False)
      if done.returncode != 0:
        self.assertRegex(done.stderr, "no GPU can be used|built without CUDA")
        self.assertIn("--device host runs without one", done.stderr)
      alone = shutil.copy(PACK, folder)
      done = subprocess.run([alone, "bench", "shards", "--device", "host"], cwd=folder, capture_output=True, text=True, check=False)
    self.assertEqual(5, done.returncode)
    self.assertIn("//cli:pack-bench-device", done.stderr)


if __name__ == "__main__":
  unittest.main()
