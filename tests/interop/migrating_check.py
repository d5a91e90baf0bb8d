"""Every pair of old and new code in docs/migrating.md runs, on the same generated photos: both sides deliver the same samples.

check(program, module, pythons, results): `module` is the folder in which the package is. `pythons`: name -> Python.

A block says what it is in the mark before it: `<!-- run: PAIR, before|after, ENVIRONMENT -->`. It runs in a process of its own, all of
them in one folder, in the order of the page. What it gives to train(), detect(), segment() or look(), or has written, is compared. Boxes and label
maps are those of docs/geometry.md, whose drawings are red where they say 0 and blue where they say 1, however they were moved.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import environments

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "python" / "tests"))
import example_shards  # noqa: E402  pylint: disable=wrong-import-position

BLOCK = re.compile(r"<!-- run: ([\w-]+), (before|after), ([\w-]+) -->\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WRITTEN = re.compile(r'shardpack\.Writer\("([\w-]+)"')
# How far the means of the pixels may lie apart: random crops of few images, so this finds another range or order of values alone.
MEAN_DISTANCE = 40
# How far the numbers of boxes may lie apart: of 80, random crops leave 64 with a standard deviation of 3.5, and two workers that draw alike 5.
BOX_SHARE = 0.35
# How many drawings with boxes, and how many with label maps, docs/geometry.md makes.
SCENES = 40
# What the page takes for granted, in every process, and at the end what was delivered.
GIVEN = """
import atexit, builtins, hashlib, json, multiprocessing, os, pathlib, sys
sys.path += json.loads(os.environ["BEHIND"])
batches, seen, objects, pixels = [], [], [0, 0, 0], [0, 0, 0, 0]
def train(images, labels):
  if len(labels.shape) > 1:  # shares of classes
    labels = labels.sum(0)
  batches.append((str(images.dtype), list(images.shape[1:]), float(images.numpy().mean()), len(images), [float(label) for label in labels]))
def detect(images, targets):
  import numpy
  for image, target in zip(images, targets, strict=True):
    objects[0] += 1
    for box, label in zip(target["boxes"].tolist(), target["labels"].tolist(), strict=True):
      x1, y1, x2, y2 = map(int, box)
      color = numpy.array([(220, 60, 40), (50, 90, 230)][label % 10]).reshape(3, 1, 1)
      off = abs(numpy.asarray(image)[:, y1:y2 + 1, x1:x2 + 1].astype(int) - color).sum(0)
      objects[1 if (off < 100).any() else 2] += 1
def segment(images, masks):
  red, masks = images[:, 0] > images[:, 2], masks.reshape(len(images), *images.shape[2:])
  known = masks != 255
  for i, count in enumerate((len(images), (red & (masks == 1))[known].sum(), (red | (masks == 1))[known].sum(), (~known).sum())):
    pixels[i] += int(count)
def look(image, label):
  seen.append([hashlib.sha256(image).hexdigest(), int(label)])
def end():
  if multiprocessing.parent_process() is None:
    print("DELIVERED " + json.dumps({"batches": batches, "seen": sorted(seen), "objects": objects, "pixels": pixels}))
builtins.train, builtins.look, builtins.detect, builtins.segment = train, look, detect, segment
builtins.samples = [(f"{path.parent.name}/{path.stem}", path.read_bytes(), label)
                    for label, folder in enumerate(sorted(pathlib.Path("photos").iterdir())) for path in sorted(folder.iterdir())]
atexit.register(end)
"""
# The boxes of docs/geometry.md under the very crops of a loader: Albumentations keeps the same ones, in the same places.
VISIBLE = """
import albumentations, numpy, shardpack
kept = dropped = 0
loader = shardpack.load("detection", batch=8, size=(128, 96), scale=(0.1, 1), flip=0.5, fields=("image", "json"),
                        decode_fields={"json": shardpack.Coco(min_visible=0.3)})
for batch in (batch for _ in range(5) for batch in loader):
  for i, source in enumerate(batch.json()):
    x, y, width, height = batch.crops[i].tolist()
    steps = [albumentations.Crop(x, y, x + width, y + height), albumentations.Resize(96, 128), *[albumentations.HorizontalFlip(p=1)] * int(batch.flips[i])]
    boxes = [each["bbox"] for each in source["annotations"]]
    transform = albumentations.Compose(steps, bbox_params=albumentations.BboxParams(
        "coco", label_fields=["numbers"], min_visibility=0.3, min_width=1, min_height=1))
    made = transform(image=numpy.zeros((160, 200, 3), numpy.uint8), bboxes=boxes, numbers=list(range(len(boxes))))
    rows = batch.objects.of(i)
    assert [int(number) for number in made["numbers"]] == batch.objects.keep[rows].tolist(), (batch.crops[i], boxes, made["numbers"])
    expected = numpy.array(made["bboxes"]).reshape(-1, 4)
    expected[:, 2:] += expected[:, :2]
    numpy.testing.assert_allclose(batch.objects.boxes[rows], expected, atol=0.01)
    kept, dropped = kept + len(expected), dropped + len(boxes) - len(expected)
assert kept > 100 and dropped > 50, (kept, dropped)
"""
READ = """
import shardpack
for sample in shardpack.Dataset("OUT"):
  look(sample.image, sample.label)
"""


def check(program, module, pythons, results):
  with tempfile.TemporaryDirectory(prefix="shardpack-migrating-") as work:
    work = pathlib.Path(work)
    example_shards.write_photos(work / "photos")
    for path in (work / "photos").rglob("*"):
      if path.is_file() and path.suffix != ".jpg":
        path.unlink()
    (work / "given").mkdir()
    (work / "given" / "sitecustomize.py").write_text(GIVEN)
    environment = {**os.environ, "PYTHONPATH": f"{work / 'given'}:{module}", "SHARDPACK_PACK": str(program), "PYTHONDONTWRITEBYTECODE": "1",
                   "BEHIND": json.dumps([environments.packages(pythons["torch"])]), "TMPDIR": str(work)}
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "geometry.md").read_text(), re.DOTALL | re.MULTILINE)
    made, trouble = run(pythons["torch"], blocks[0] + next(block for block in blocks if '"scenes"' in block), work, environment)
    results.add(("migrating", "torch", "", "docs/geometry.md", ""), trouble)
    delivered = {}
    for pair, side, name, code in BLOCK.findall((ROOT / "docs" / "migrating.md").read_text()):
      delivered[pair, side], trouble = run(pythons[name], code, work, environment)
      if not trouble:
        trouble = trouble_with(pair, side, delivered, work)
      for out in WRITTEN.findall(code) if not trouble else ():
        there, trouble = run(pythons["torch"], READ.replace("OUT", out), work, environment)
        trouble = trouble or (None if there["seen"] == photos(work) else f"{out} has other samples than photos")
      results.add(("migrating", name, "", f"{pair}, {side}", ""), trouble)
    results.add(("migrating", "augmenters", "", "boxes that are visible", ""), run(pythons["augmenters"], VISIBLE, work, environment)[1])


def run(python, code, work, environment):
  """(what the block has delivered, trouble)"""
  (work / "block.py").write_text(code)
  done = subprocess.run([python, "block.py"], cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=300)
  lines = [line for line in done.stdout.splitlines() if line.startswith("DELIVERED ")]
  if done.returncode or len(lines) != 1:
    return None, f"exit code {done.returncode}: {done.stderr.strip()[-600:]}"
  return json.loads(lines[0][len("DELIVERED "):]), None


def photos(work):
  return sorted([hashlib.sha256(path.read_bytes()).hexdigest(), label] for label, folder in enumerate(sorted((work / "photos").iterdir()))
                for path in folder.iterdir())


def trouble_with(pair, side, delivered, work):
  """What is wrong with this side, by itself and beside the other one."""
  mine, other = delivered[pair, side], delivered.get((pair, "before"))
  if side == "before" or other is None:
    other = None
  if other is not None and mine["seen"] != other["seen"]:
    return f"{len(mine['seen'])} images that are not the {len(other['seen'])} of before"
  for kind in ("batches", "objects", "pixels"):
    if other is not None and any(mine[kind]) != any(other[kind]):
      return f"only one side delivers {kind}"
  images, found, wrong = mine["objects"]
  if images and (images != SCENES or found < SCENES or wrong > found / 10 or other is not None and abs(found / other["objects"][1] - 1) > BOX_SHARE):
    return f"{wrong} of {found} boxes of {images} images have no object inside; before: {other and other['objects']}"
  images, common, either, unknown = mine["pixels"]
  if images and (images != SCENES or common / either < 0.9 or not unknown):
    return f"label maps of {images} images agree with them by {common / either:.2f}, {unknown} labels are 255"
  if not mine["batches"]:
    return None
  mixed = pair.endswith("-mix")
  labels = sorted(label for batch in mine["batches"] for label in batch[4])
  if not mixed and labels != sorted(label for _, label in photos(work)):
    return f"trained on the labels {labels}"
  if mixed and any(abs(sum(shares) - count) > 1e-3 or len(shares) != 3 for _, _, _, count, shares in mine["batches"]):
    return f"shares of classes: {[batch[4] for batch in mine['batches']]}"
  if not mixed and any(count != len(batch_labels) for _, _, _, count, batch_labels in mine["batches"]):
    return "a batch with other numbers of images and of labels"
  if other is not None:
    kinds = [{(dtype, tuple(shape)) for dtype, shape, _, _, _ in each["batches"]} for each in (mine, other)]
    if kinds[0] != kinds[1]:
      return f"images are {kinds[0]}, before they were {kinds[1]}"
    sizes = [sorted(count for *_, count, _ in each["batches"]) for each in (mine, other)]
    if sum(sizes[0]) != sum(sizes[1]):
      return f"batches of {sizes[0]} images, before they were of {sizes[1]}"
    means = [sum(mean * count for _, _, mean, count, _ in each["batches"]) / sum(sizes[0]) for each in (mine, other)]
    if abs(means[0] - means[1]) > MEAN_DISTANCE:
      return f"pixels with a mean of {means[0]:.1f}, before it was {means[1]:.1f}"
  return None
