"""The Python examples of README.md and docs/ run, one block after the other on each page, with what a reader has: `photos` and `shards`
(see python/tests/example_shards.py), `shapes` of the tutorial, `my_noise.so` of examples/plugin, and a function train().

usage: python_page.py           the blocks that need no framework
       python_page.py torch coco     those too that are marked <!-- run: torch --> or coco (or transformers), under a Python that has it
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "tests"))
import example_shards  # noqa: E402  pylint: disable=wrong-import-position
import shardpack  # noqa: E402  pylint: disable=wrong-import-position

PACK = os.path.abspath(os.environ.get("PACK", "cli/pack"))
BLOCK = re.compile(r"^(?:<!-- run: (\w+) -->\n)?```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# The pages whose blocks use shardpack, how many there are at least, and whether they train.
PAGES = {"README.md": (1, True), "docs/python.md": (12, True), "docs/augment.md": (5, False), "docs/geometry.md": (4, False), "docs/tutorial.md": (1, False)}
HAS = set(sys.argv[1:])


class PythonPageTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(folder.name)
    os.environ["SHARDPACK_PACK"] = PACK

  def test_every_block(self):
    for page, (least, trains) in PAGES.items():
      with self.subTest(page):
        folder = pathlib.Path(page).stem
        example_shards.make(folder, PACK)
        subprocess.run([PACK, ROOT / "testdata" / "shapes", "-o", f"{folder}/shapes", "-q", "--follow", "--split", "train=0.9,val=0.1"], check=True,
                       stdout=subprocess.DEVNULL)
        # The plug-in that docs/augment.md names, compiled as it says itself.
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", ROOT / "augment", "-o", f"{folder}/my_noise.so", ROOT / "examples/plugin/my_noise.c"], check=True)
        found = BLOCK.findall((ROOT / page).read_text())
        self.assertGreaterEqual(len(found), least)
        trained = []
        names = {"shardpack": shardpack, "train": lambda images, labels: trained.append((len(images), len(labels)))}
        os.chdir(folder)
        for needs, block in found:
          if not needs or needs in HAS:
            exec(compile(block, page, "exec"), names)  # pylint: disable=exec-used
        os.chdir("..")
        self.assertEqual(bool(trained), trains)
        self.assertEqual([a for a, _ in trained], [b for _, b in trained])

  def test_every_reader_is_shown_what_there_is(self):
    """No public name without a word on the page."""
    text = (ROOT / "docs" / "python.md").read_text()
    unmentioned = [name for name in shardpack.__all__ if not re.search(rf"\b{name}\b", text)]
    self.assertEqual(unmentioned, [])


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
