"""Runs the examples of docs/formats/*.md on datasets packed for them; each must print what is true of the source.

usage: format_pages.py ENVIRONMENT=PYTHON...
  ENVIRONMENT   of the blocks to run, as in the mark before each: <!-- run: system -->
PACK and READ_DATASET name the programs (default: as Bazel's tests see them).
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

BLOCK = re.compile(r"<!-- run: (\w+) -->\n```python\n(.*?)```", re.DOTALL)


def expected(source):
  """The line that every example prints."""
  files = [(label, path) for label, folder in enumerate(sorted(source.iterdir())) for path in folder.iterdir()]
  return (f"{len(files)} images, {sum(path.stat().st_size for _, path in files)} bytes, "
          f"labels sum to {sum(label for label, _ in files)}")


def run(words, folder):
  done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
  return done.stdout.strip() if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr[-1500:]}"


def main():
  pythons = dict(word.split("=", 1) for word in sys.argv[1:])
  pack, read_dataset = (os.path.abspath(os.environ.get(name, default))
                        for name, default in (("PACK", "cli/pack"), ("READ_DATASET", "examples/read_dataset")))
  passed = failed = 0
  with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    sample_images.write_class_folders(work / "photos", ROOT / "testdata" / "images", count=200, classes=7, seed=2)
    want = expected(work / "photos")
    for page in sorted((ROOT / "docs" / "formats").glob("*.md")):
      blocks = BLOCK.findall(page.read_text())
      if not blocks:
        continue
      folder = work / page.stem
      folder.mkdir()
      subprocess.run([pack, work / "photos", "-o", folder / "shards", "-f", page.stem, "--shards", "3", "-q"], check=True,
                     stdout=subprocess.DEVNULL)
      results = {name: run([pythons[name], "-c", code], folder) for name, code in blocks if name in pythons}
      if os.path.exists(read_dataset):
        source = (ROOT / "examples" / "read_dataset.cc").read_text()
        results["C++"] = (run([read_dataset, "shards"], folder) if f"```cpp\n{source}```" in page.read_text()
                          else "the page does not show examples/read_dataset.cc")
      for name, printed in results.items():
        good = printed == want
        passed, failed = passed + good, failed + (not good)
        print(f"{page.name}, {name}: {'ok' if good else f'printed {printed!r}, not {want!r}'}", flush=True)
  print(f"{passed} passed, {failed} failed")
  return 1 if failed or not passed else 0


if __name__ == "__main__":
  sys.exit(main())
