"""The dataset that examples use: 60 drawings of 3 classes (cat, dog, owl), splits train (48) and val (12), with boxes (json) and a
caption (txt). A quarter of them are PNG. The same arguments give the same bytes.

  example_shards.make(folder)   # folder/photos and folder/shards
"""

import json
import os
import pathlib
import subprocess

CLASSES = ("cat", "dog", "owl")
EACH = 20
PACK = os.environ.setdefault("SHARDPACK_PACK", os.path.abspath("cli/pack"))  # where Bazel puts it


def drawing(label, number):
  """(image, box): a disc of the class's colour on a gradient, and where it is, as COCO says it: x, y, width, height."""
  import PIL.Image  # pylint: disable=import-outside-toplevel
  import PIL.ImageDraw  # pylint: disable=import-outside-toplevel
  width, height = 64 + 8 * (number % 5), 64 + 4 * (number % 7)
  image = PIL.Image.linear_gradient("L").resize((width, height)).convert("RGB")
  left, top, size = 4 + number, 2 + number % 11, 24 + number % 8
  box = [left, top, size, size]
  PIL.ImageDraw.Draw(image).ellipse([left, top, left + size, top + size], fill=[(230, 140, 30), (60, 120, 230), (40, 170, 90)][label])
  return image, box


def write_photos(folder):
  """Class folders: cat/000.jpg with cat/000.json and cat/000.txt beside it, and so on."""
  for label, name in enumerate(CLASSES):
    place = pathlib.Path(folder, name)
    place.mkdir(parents=True)
    for number in range(EACH):
      image, box = drawing(label, number)
      kind = "png" if number % 4 == 3 else "jpg"
      image.save(place / f"{number:03d}.{kind}", **({} if kind == "png" else {"quality": 90}))
      facts = {"boxes": [{"bbox": box, "category": name, "label": label}], "number": number}
      (place / f"{number:03d}.json").write_text(json.dumps(facts))
      (place / f"{number:03d}.txt").write_text(f"{'an' if name[0] in 'aeiou' else 'a'} {name}, number {number}")


def make(folder, pack=PACK):
  folder = pathlib.Path(folder)
  write_photos(folder / "photos")
  subprocess.run([pack, folder / "photos", "-o", folder / "shards", "-q", "--fields", "json,txt", "--image-field", "img",
                  "--split", "train=0.8,val=0.2", "--split-by", "stratified"], check=True, stdout=subprocess.DEVNULL)
