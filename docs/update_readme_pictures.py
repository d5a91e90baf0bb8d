#!/usr/bin/env python3
"""Makes the pictures of README.md: docs/update_readme_pictures.py [--pack FILE] [--progress FILE] [--folder FOLDER]

progress.svg is what //cli/terminal:progress_picture prints. report.png is the upper part of a report on the drawings of testdata/shapes, with some
mistakes planted among them, as Chromium shows it. What the page says is kept in the picture as a hash: a test makes the page again and compares,
without a browser; tests/interop/report_check.py, with one, compares the pixels. Needs chromium and Pillow.
"""

import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).absolute().parent.parent
SIZE = (1120, 1380)
HASH = "page"  # the key of the hash in the PNG


def make_page(pack, folder):
  """The page, in an empty folder."""
  folder = pathlib.Path(folder)
  shapes = folder / "shapes"
  for path in sorted((ROOT / "testdata/shapes").rglob("*.jpg")):
    (shapes / path.parent.name).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, shapes / path.parent.name / path.name)
  circles = sorted((shapes / "circle").iterdir())
  shutil.copyfile(circles[0], shapes / "square" / "copy.jpg")           # an image under two labels
  (shapes / "triangle" / "circle").mkdir()
  for path in circles[1:5]:                                             # a folder in the folder of another class
    path.rename(shapes / "triangle" / "circle" / path.name)
  (shapes / "hexagon").mkdir()
  circles[5].rename(shapes / "hexagon" / "only.jpg")
  run = lambda *words: subprocess.run([pack, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
  run("shapes", "-o", "drawings", "-q", "--split", "train=0.8,val=0.2", "--report=report.html")
  return folder / "report.html"


def hash_of(page):
  """Of what the page shows, but for the folder that its dataset was made in."""
  text = re.sub(r"<tr><td>source</td>.*?</tr>", "", page.read_text(encoding="utf-8"))
  return hashlib.sha256(text.encode()).hexdigest()


def screenshot(page, scratch):
  """The page's upper part, in light colours: an image."""
  import PIL.Image  # pylint: disable=import-outside-toplevel
  shot = pathlib.Path(scratch) / "shot.png"
  subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                  f"--user-data-dir={scratch}/profile", "--virtual-time-budget=5000", f"--window-size={SIZE[0]},{SIZE[1]}",
                  f"--screenshot={shot}", f"file://{page}"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
  return PIL.Image.open(shot).convert("RGB")


def main():
  import PIL.PngImagePlugin  # pylint: disable=import-outside-toplevel
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", type=pathlib.Path, default=ROOT / "bazel-bin/cli/pack")
  parser.add_argument("--progress", type=pathlib.Path, default=ROOT / "bazel-bin/cli/terminal/progress_picture")
  parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "docs/pictures/readme")
  options = parser.parse_args()
  options.folder.mkdir(parents=True, exist_ok=True)
  (options.folder / "progress.svg").write_bytes(subprocess.run([options.progress], check=True, stdout=subprocess.PIPE).stdout)
  with tempfile.TemporaryDirectory() as scratch:
    page = make_page(options.pack.absolute(), scratch)
    facts = PIL.PngImagePlugin.PngInfo()
    facts.add_text(HASH, hash_of(page))
    screenshot(page, scratch).quantize(128, dither=0).save(options.folder / "report.png", optimize=True, pnginfo=facts)


if __name__ == "__main__":
  main()
