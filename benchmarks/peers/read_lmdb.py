"""Views with py-lmdb, get() with buffers=True, in random or in key order, from one environment of raw images (see measure.py)."""

import operator

import lmdb
import numpy

import measure


class Views:

  def __init__(self, options):
    self.options = options
    path, = measure.shards(options.dataset, ".lmdb")
    self.environment = lmdb.open(path, readonly=True, lock=False)
    self.transaction = self.environment.begin(buffers=True)
    self.keys = numpy.array([bytes(key) for key in self.transaction.cursor().iternext(values=False)], object)
    self.random = numpy.random.default_rng(0)

  def batches(self, _):
    keys = self.random.permutation(self.keys) if self.options.order == "random" else self.keys
    return (keys[i:i + self.options.batch].tolist() for i in range(0, len(keys), self.options.batch))

  def consume(self, keys):
    # map() keeps the loop out of the interpreter, which doubles the rate.
    views = list(map(self.transaction.get, keys))
    if not all(map(operator.itemgetter(0), views)):  # a JPEG begins with 0xFF
      raise SystemExit("not a JPEG")
    return len(views), sum(map(len, views)), None

  def check(self, keys):
    return ((bytes(self.transaction.get(key)), None) for key in keys)


measure.main(lmdb.__version__, {"views": Views})
