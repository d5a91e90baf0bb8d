"""The Python examples of README.md and docs/ run, one block after the other on each page, with what a reader has.

There is no torch here, so its two functions that the examples use are NumPy's; and no GPU, so that device is the CPU.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position
import shardpack  # noqa: E402  pylint: disable=wrong-import-position

PACK = os.path.abspath(os.environ.get("PACK", "cli/pack"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# The pages whose blocks use shardpack, and how many there are at least.
PAGES = {"README.md": 1, "docs/python.md": 3, "docs/tutorial.md": 1}


class PythonPageTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(folder.name)
    sample_images.write_class_folders(pathlib.Path("photos"), ROOT / "testdata" / "images", count=600, classes=3, seed=4)
    for name in ("shards", "shapes"):
      subprocess.run([PACK, "photos", "-o", name, "-q", "--split", "train=0.9,val=0.1"], check=True, stdout=subprocess.DEVNULL)

  def test_every_block(self):
    torch = types.ModuleType("torch")
    torch.from_dlpack, torch.from_numpy = numpy.from_dlpack, lambda array: array
    device = shardpack.Device
    for page, least in PAGES.items():
      with self.subTest(page), unittest.mock.patch.dict(sys.modules, torch=torch), \
          unittest.mock.patch.object(shardpack, "Device", lambda number: device("cpu")):
        trained = []
        dataset = shardpack.Dataset("shards")
        names = {"shardpack": shardpack, "torch": torch, "train": lambda *batch: trained.append(batch), "dataset": dataset,
                 "order": shardpack.Order(len(dataset), global_batch=256)}
        blocks = [block for block in BLOCK.findall((ROOT / page).read_text()) if "shardpack" in block]
        self.assertGreaterEqual(len(blocks), least)
        for block in blocks:
          # Ninety epochs show no more than two.
          exec(compile(re.sub(r"\b(90|10)\b", "2", block), page, "exec"), names)  # pylint: disable=exec-used
          for name in ("images", "labels"):
            if name in names and name in block:
              self.assertEqual(len(names[name]), len(names["batch"]))
        self.assertEqual(bool(trained), "train(torch" in "".join(blocks))


if __name__ == "__main__":
  unittest.main()
