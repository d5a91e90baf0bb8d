"""Encoded images with torch's DataLoader over torchvision's ImageFolder (see ../peers/measure.py)."""

import pathlib

import torch
import torchvision

import measure


def read(path):
  return pathlib.Path(path).read_bytes()


def taken(samples):
  return [image for image, _ in samples], [label for _, label in samples]


def counted(samples):
  """See read_shardpack.py."""
  if not all(image[0] for image, _ in samples):
    raise SystemExit("not a JPEG")
  return len(samples), sum(len(image) for image, _ in samples), sum(label for _, label in samples)


class Bytes:

  collate = staticmethod(taken)

  def __init__(self, options):
    dataset = torchvision.datasets.ImageFolder(options.dataset, loader=read)
    self.loader = torch.utils.data.DataLoader(dataset, options.batch, shuffle=True, num_workers=options.threads, persistent_workers=True,
                                              prefetch_factor=4, collate_fn=self.collate)

  def batches(self, _):
    return self.loader

  def consume(self, batch):
    images, labels = batch
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), sum(labels)


class Counted(Bytes):

  collate = staticmethod(counted)

  def consume(self, batch):
    return batch


measure.main(f"{torchvision.__version__} with torch {torch.__version__}", {"bytes": Bytes, "counted": Counted})
