"""What the tests of Writers have in common: images, and what a packed dataset holds."""

import io
import os
import pathlib
import tempfile

import numpy
import PIL.Image

import shardpack

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
os.environ["SHARDPACK_PACK"] = os.path.abspath("cli/pack")


def image(n, format="PNG"):  # pylint: disable=redefined-builtin
  """A small one that no other number has."""
  out = io.BytesIO()
  PIL.Image.fromarray(pixels(n)).save(out, format)
  return out.getvalue()


def pixels(n):
  return numpy.random.default_rng(n).integers(0, 256, (5, 4, 3), numpy.uint8)


def samples(count):
  """(key, image, label, caption or None)"""
  return [(f"set/{n * 7919 % count:05}", image(n), "cat" if n % 3 else "dog", f"number {n}" if n % 4 else None) for n in range(count)]


def held(path):
  """{key: (class, {field: bytes})}"""
  dataset = shardpack.Dataset(path)
  found = {}
  for n in range(len(dataset)):
    sample = dataset[n]
    found[sample["key"]] = (dataset.classes[sample["label"]] if sample["label"] >= 0 else None, sample["fields"])
  assert len(found) == len(dataset)
  return found


def expected(of):
  return {key: (label, {"image": data, **({"txt": text.encode()} if text else {})}) for key, data, label, text in of}
