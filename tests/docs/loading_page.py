"""The example of docs/loading.md: shown as it is, delivers every batch, and goes on where it was killed.

TRAIN_LOADER and PACK name the programs (default: as Bazel's tests see them).
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

PACK = os.path.abspath(os.environ.get("PACK", "cli/pack"))
TRAIN_LOADER = os.path.abspath(os.environ.get("TRAIN_LOADER", "examples/train_loader"))
LINE = re.compile(r"epoch (\d+) step (\d+): (\d+) images of 224 x 224")
STEPS, EPOCHS, BATCH = 7, 2, 16  # 100 samples


class LoadingPageTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    sample_images.write_class_folders(self.folder / "photos", ROOT / "testdata" / "images", count=100, classes=3, seed=4)
    subprocess.run([PACK, "photos", "-o", "shards", "-q"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

  def batches(self, *words):
    done = subprocess.run([TRAIN_LOADER, "shards", *words], cwd=self.folder, capture_output=True, text=True, check=False)
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertIn("the bottleneck is ", done.stderr)
    self.assertEqual("all epochs are done" in done.stderr, not done.stdout)
    return [tuple(map(int, LINE.fullmatch(line).groups())) for line in done.stdout.splitlines()]

  def test_the_page_shows_it(self):
    source = (ROOT / "examples" / "train_loader.cc").read_text()
    self.assertIn(f"```cpp\n{source}```", (ROOT / "docs" / "loading.md").read_text())
    self.assertLess(len(source.splitlines()), 60)

  def test_every_batch_comes_once(self):
    self.assertEqual([(epoch, step, BATCH) for epoch in range(EPOCHS) for step in range(STEPS)], self.batches())
    self.assertEqual([], self.batches())  # its cursor stands at the end
    (self.folder / "cursor.txt").unlink()
    self.assertEqual([(epoch, step, BATCH // 2) for epoch in range(EPOCHS) for step in range(STEPS)], self.batches("1", "2"))

  def test_it_goes_on_where_it_was_killed(self):
    with subprocess.Popen(["stdbuf", "-oL", TRAIN_LOADER, "shards"], cwd=self.folder, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as run:
      seen = [tuple(map(int, LINE.fullmatch(run.stdout.readline().strip()).groups())) for _ in range(3)]
      run.send_signal(signal.SIGKILL)
      seen += [tuple(map(int, LINE.fullmatch(line.strip()).groups())) for line in run.stdout]
    rest = self.batches()
    every = [(epoch, step, BATCH) for epoch in range(EPOCHS) for step in range(STEPS)]
    # The last batch printed may have come before its cursor was saved.
    self.assertIn(every.index(rest[0]) if rest else len(every), (len(seen), len(seen) - 1))
    self.assertEqual(every[len(every) - len(rest):], rest)


if __name__ == "__main__":
  unittest.main()
