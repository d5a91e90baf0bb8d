"""Arrays with h5py: a slice a sample in random order, or one of many samples in file order (see measure.py)."""

import h5py
import numpy

import measure


class Slices:

  def __init__(self, options):
    self.options = options
    path, = measure.shards(options.dataset, ".h5")
    self.file = h5py.File(path)
    self.data, self.offsets = self.file["images/data"], self.file["images/offsets"][:].astype(numpy.int64)
    self.labels = self.file["labels"][:]
    self.random = numpy.random.default_rng(0)

  def batches(self, _):
    numbers = numpy.arange(len(self.labels))
    in_order = self.options.order == "sequential"
    order = numbers if in_order else self.random.permutation(numbers)
    for i in range(0, len(order), self.options.batch):
      samples = order[i:i + self.options.batch]
      begins, ends = self.offsets[samples], self.offsets[samples + 1]
      if in_order:
        # One read, and a view of it a sample.
        block = self.data[begins[0]:ends[-1]]
        bounds = (self.offsets[samples[0]:samples[-1] + 2] - begins[0]).tolist()
        images = [block[begin:end] for begin, end in zip(bounds, bounds[1:])]
      else:
        images = [self.data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist())]
      yield images, self.labels[samples]

  def consume(self, batch):
    images, labels = batch
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), labels.sum()

  def check(self, batch):
    return ((image.tobytes(), label) for image, label in zip(*batch))


measure.main(h5py.__version__, {"slices": Slices})
