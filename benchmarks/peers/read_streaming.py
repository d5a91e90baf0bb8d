"""Samples with MosaicML Streaming from local MDS shards by number, in random order (see measure.py).

TORCH_PACKAGES names the folder of packages that has torch.
"""

import os
import sys

sys.path.append(os.environ["TORCH_PACKAGES"])

import numpy  # noqa: E402
import streaming  # noqa: E402

import measure  # noqa: E402


class Samples:

  def __init__(self, options):
    self.options = options
    self.dataset = streaming.StreamingDataset(local=options.dataset, batch_size=options.batch)
    self.random = numpy.random.default_rng(0)

  def batches(self, _):
    # Its random access: its own loop over an epoch, with the threads that download, takes 3 times the processor's time.
    order = numpy.arange(len(self.dataset))
    if self.options.order == "random":
      order = self.random.permutation(order)
    for i in range(0, len(order), self.options.batch):
      yield [self.dataset[number] for number in order[i:i + self.options.batch].tolist()]

  def consume(self, batch):
    images = [sample["image"] for sample in batch]
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), sum(sample["label"] for sample in batch)

  def check(self, batch):
    return ((sample["image"], sample["label"]) for sample in batch)


measure.main(streaming.__version__, {"samples": Samples})
