"""Reads LMDB shards of the raw layout with torchvision's LSUN (jobs on stdin, see protocol.py)."""

import os
import tempfile

import torchvision
from torchvision.datasets import lsun

import protocol


class Undecoded:
  """Stands in for PIL's Image there: images are compared as bytes."""

  @staticmethod
  def open(buffer):
    return Undecoded(buffer.getvalue())

  def __init__(self, data):
    self.data = data

  def convert(self, _):
    return self


lsun.Image = Undecoded


def read(job):
  for shard in job["shards"]:
    # It keeps its keys in the current folder, in a file named after the letters of the path alone.
    with tempfile.TemporaryDirectory() as folder:
      os.chdir(folder)
      dataset = lsun.LSUNClass(shard)
      for i in range(len(dataset)):
        yield protocol.sample(dataset.keys[i].decode(), dataset[i][0].data, -1)
      os.chdir("/")


protocol.serve(torchvision.__version__, read)
