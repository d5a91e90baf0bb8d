"""The pictures of README.md show what is shown today: docs/update_readme_pictures.py makes them."""

import os
import pathlib
import subprocess
import sys

from PIL import Image

import command

DOCS = pathlib.Path("docs").absolute()
sys.path.insert(0, str(DOCS))
import update_readme_pictures  # noqa: E402  pylint: disable=wrong-import-position

PICTURES = DOCS / "pictures/readme"
UPDATE = "run docs/update_readme_pictures.py"


class ReadmePictures(command.PackTest):

  def test_the_live_block(self):
    made = subprocess.run([os.path.abspath("cli/terminal/progress_picture")], check=True, stdout=subprocess.PIPE).stdout
    self.assertEqual(made.decode(), (PICTURES / "progress.svg").read_text(), UPDATE)
    self.assertIn(b"packing", made)

  def test_the_report(self):
    page = update_readme_pictures.make_page(command.PACK, self.folder)
    with Image.open(PICTURES / "report.png") as picture:
      self.assertEqual(update_readme_pictures.SIZE, picture.size)
      self.assertEqual(update_readme_pictures.hash_of(page), picture.text[update_readme_pictures.HASH], UPDATE)
    text = page.read_text()
    for planted in ("1 image is packed under several classes", "4 samples of class triangle lie in a folder called circle", "1 class of a single sample: hexagon"):
      self.assertIn(planted, text)
    # The hash sees what the page shows.
    page.write_text(text.replace("hexagon", "heptagon"))
    self.assertNotEqual(update_readme_pictures.hash_of(page), picture.text[update_readme_pictures.HASH])

  def test_they_are_small_and_shown(self):
    self.assertEqual(["progress.svg", "report.png"], sorted(path.name for path in PICTURES.iterdir()))
    for path in PICTURES.iterdir():
      self.assertLess(path.stat().st_size, 200_000)
      self.assertIn(f"](docs/pictures/readme/{path.name})", pathlib.Path("README.md").read_text())


if __name__ == "__main__":
  command.main()
