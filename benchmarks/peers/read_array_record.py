"""Batches of bytes with ArrayRecord's reader, many numbers a call, from groups of one record (see measure.py)."""

import importlib.metadata

from array_record.python import array_record_module
import numpy

import measure


class Records:

  def __init__(self, options):
    self.options = options
    path, = measure.shards(options.dataset, ".array_record")
    # Its documentation: no read-ahead for random access.
    self.reader = array_record_module.ArrayRecordReader(
        path, options="readahead_buffer_size:0" if options.order == "random" else "")
    self.random = numpy.random.default_rng(0)

  def batches(self, _):
    samples = self.reader.num_records()
    if self.options.order == "random":
      order = self.random.permutation(samples)
      return (self.reader.read(order[i:i + self.options.batch].tolist()) for i in range(0, samples, self.options.batch))
    return (self.reader.read(i, min(i + self.options.batch, samples)) for i in range(0, samples, self.options.batch))

  def consume(self, images):
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), None

  def check(self, images):
    return ((image, None) for image in images)


measure.main(importlib.metadata.version("array_record"), {"records": Records})
