"""Every pair of old and new code in docs/migrating.md runs, on the same generated photos: both sides deliver the same samples.

check(program, module, pythons, results): `module` is the folder in which the package is. `pythons`: name -> Python.

A block says what it is in the mark before it: `<!-- run: PAIR, before|after, ENVIRONMENT -->`. It runs in a process of its own, all of
them in one folder, in the order of the page. What it gives to train() or look(), or has written, is compared.
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

BLOCK = re.compile(r"<!-- run: ([\w-]+), (before|after), (\w+) -->\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WRITTEN = re.compile(r'shardpack\.Writer\("([\w-]+)"')
# How far the means of the pixels may lie apart: random crops of few images, so this finds another range or order of values alone.
MEAN_DISTANCE = 40
# What the page takes for granted, in every process, and at the end what was delivered.
GIVEN = """
import atexit, builtins, hashlib, json, multiprocessing, os, pathlib, sys
sys.path += json.loads(os.environ["BEHIND"])
batches, seen = [], []
def train(images, labels):
  batches.append((str(images.dtype), list(images.shape[1:]), float(images.numpy().mean()), len(images), [int(label) for label in labels]))
def look(image, label):
  seen.append([hashlib.sha256(image).hexdigest(), int(label)])
def end():
  if multiprocessing.parent_process() is None:
    print("DELIVERED " + json.dumps({"batches": batches, "seen": sorted(seen)}))
builtins.train, builtins.look = train, look
builtins.samples = [(f"{path.parent.name}/{path.stem}", path.read_bytes(), label)
                    for label, folder in enumerate(sorted(pathlib.Path("photos").iterdir())) for path in sorted(folder.iterdir())]
atexit.register(end)
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
    delivered = {}
    for pair, side, name, code in BLOCK.findall((ROOT / "docs" / "migrating.md").read_text()):
      delivered[pair, side], trouble = run(pythons[name], code, work, environment)
      if not trouble:
        trouble = trouble_with(pair, side, delivered, work)
      for out in WRITTEN.findall(code) if not trouble else ():
        there, trouble = run(pythons["torch"], READ.replace("OUT", out), work, environment)
        trouble = trouble or (None if there["seen"] == photos(work) else f"{out} has other samples than photos")
      results.add(("migrating", name, "", f"{pair}, {side}", ""), trouble)


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
  if other is not None and bool(mine["batches"]) != bool(other["batches"]):
    return "only one side trains"
  if not mine["batches"]:
    return None
  labels = sorted(label for batch in mine["batches"] for label in batch[4])
  if labels != sorted(label for _, label in photos(work)):
    return f"trained on the labels {labels}"
  if any(count != len(batch_labels) for _, _, _, count, batch_labels in mine["batches"]):
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
