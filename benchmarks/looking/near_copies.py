"""Recall and precision of `pack dups --near` beside the pHash of imagededup, on images and copies of them.

  python3 -m venv venv && venv/bin/pip install imagehash imagededup
  ./bazelw build //cli:pack && venv/bin/python benchmarks/looking/near_copies.py FOLDER [--pack FILE] [--copied 500] [--distance 6]

FOLDER holds images (of CIFAR, say). Of some of them, the same in each run, copies are made by Pillow: JPEG at qualities 50 and 30,
half and twice the size, brighter, with noise, gray, as PNG. Both tools then group all images by pairs within the distance;
a copy is recalled if it is in the group of its original. Precise is a pair of a group that is an image and its copy, or two copies of it; pairs of
FOLDER's own images are counted apart, because some of them do look alike. imagededup needs torch only for its networks; without it, this runs nevertheless.
"""

import argparse
import collections
import importlib.abc
import importlib.machinery
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import types


class _AnyType(type):
  def __getattr__(cls, name):
    return _Any


class _Any(metaclass=_AnyType):
  def __init__(self, *_, **__):
    pass

  def __getattr__(self, name):
    return _Any


class _NoNetworks(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  """torch and torchvision, empty, where they are not installed."""

  def find_spec(self, name, path=None, target=None):
    if name.partition(".")[0] in ("torch", "torchvision"):
      return importlib.machinery.ModuleSpec(name, self, is_package=True)
    return None

  def create_module(self, spec):
    class Empty(types.ModuleType):
      def __getattr__(self, name):
        if name.startswith("__"):
          raise AttributeError(name)
        return _Any
    return Empty(spec.name)

  def exec_module(self, module):
    pass


def copies(image):
  """(name, extension, options of save, image)"""
  import numpy
  from PIL import Image, ImageEnhance
  width, height = image.size
  noise = numpy.random.default_rng(1).normal(0, 4, (height, width, 3))
  noisy = Image.fromarray(numpy.clip(numpy.asarray(image) + noise, 0, 255).astype("uint8"))
  yield "q50", "jpg", {"quality": 50}, image
  yield "q30", "jpg", {"quality": 30}, image
  yield "half", "jpg", {"quality": 90}, image.resize((max(1, width // 2), max(1, height // 2)), Image.LANCZOS)
  yield "twice", "jpg", {"quality": 90}, image.resize((2 * width, 2 * height), Image.BICUBIC)
  yield "bright", "jpg", {"quality": 90}, ImageEnhance.Brightness(image).enhance(1.2)
  yield "noise", "jpg", {"quality": 90}, noisy
  yield "gray", "jpg", {"quality": 90}, image.convert("L")
  yield "png", "png", {}, image


def make(source, folder, copied):
  from PIL import Image
  paths = sorted(path for path in source.rglob("*") if path.is_file())
  chosen = set(random.Random(0).sample(range(len(paths)), min(copied, len(paths))))
  for n, path in enumerate(paths):
    (folder / f"{n:06}-own{path.suffix.lower()}").symlink_to(path.resolve())
    if n in chosen:
      for name, extension, options, image in copies(Image.open(path).convert("RGB")):
        image.save(folder / f"{n:06}-{name}.{extension}", **options)
  return len(paths), len(chosen)


def groups_of(pairs):
  parents = {}
  def find(name):
    parents.setdefault(name, name)
    while parents[name] != name:
      parents[name] = parents[parents[name]]
      name = parents[name]
    return name
  for a, b in pairs:
    parents[find(a)] = find(b)
  groups = collections.defaultdict(list)
  for name in list(parents):
    groups[find(name)].append(name)
  return list(groups.values())


def shardpack(pack, folder, distance, scratch):
  subprocess.run([pack, folder, "-o", scratch / "out", "--label-from", "none", "--follow", "-q"], check=True, stdout=subprocess.DEVNULL)
  begin = time.monotonic()
  found = json.loads(subprocess.run([pack, "dups", scratch / "out", "--near", "--distance", str(distance), "--json", "-q"], check=True,
                                    capture_output=True).stdout)
  seconds = time.monotonic() - begin
  print(f"shardpack: {found['hashed']:,} hashed, {found['flat']} flat, {found['undecodable']['count']} undecodable")
  return [[sample["path"].split(".")[0] for sample in group["samples"]] for group in found["near"] + found["exact"]], seconds


def imagededup(folder, distance):
  sys.meta_path.append(_NoNetworks())
  from imagededup.methods import PHash
  begin = time.monotonic()
  method = PHash(verbose=False)
  found = method.find_duplicates(encoding_map=method.encode_images(image_dir=str(folder)), max_distance_threshold=distance)
  seconds = time.monotonic() - begin
  return groups_of((a.split(".")[0], b.split(".")[0]) for a, others in found.items() for b in others), seconds


def say(tool, groups, seconds, chosen):
  number = lambda name: name.partition("-")[0]
  recalled, pairs, wrong, own = collections.Counter(), 0, 0, 0
  for group in groups:
    originals = {number(name) for name in group if name.endswith("-own")}
    for name in group:
      if not name.endswith("-own") and number(name) in originals:
        recalled[name.partition("-")[2]] += 1
    for a, b in itertools.combinations(group, 2):
      if a.endswith("-own") and b.endswith("-own"):
        own += 1
        continue
      pairs += 1
      wrong += number(a) != number(b)
  kinds = sorted(recalled)
  total = sum(recalled.values()) / (8 * chosen)
  print(f"{tool}: recall {total:.4f} ({', '.join(f'{kind} {recalled[kind] / chosen:.3f}' for kind in kinds)}), "
        f"precision {1 - wrong / max(1, pairs):.4f} of {pairs:,} pairs, {own} pairs of own images, {seconds:.1f} s")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--pack", default="bazel-bin/cli/pack")
  parser.add_argument("--copied", type=int, default=500)
  parser.add_argument("--distance", type=int, default=6)
  options = parser.parse_args()
  with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    (scratch / "images").mkdir()
    count, chosen = make(options.folder, scratch / "images", options.copied)
    print(f"{count:,} images, 8 copies of each of {chosen}")
    say("shardpack", *shardpack(options.pack, scratch / "images", options.distance, scratch), chosen)
    say("imagededup", *imagededup(scratch / "images", options.distance), chosen)


if __name__ == "__main__":
  main()
