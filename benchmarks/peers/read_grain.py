"""Batches of bytes with Grain over an ArrayRecord file, globally shuffled, in reading threads (see measure.py)."""

import importlib.metadata
import random

import grain

import measure


class Batches:

  def __init__(self, options):
    path, = measure.shards(options.dataset, ".array_record")
    self.options, self.source = options, grain.sources.ArrayRecordDataSource(path)

  def batches(self, epoch):
    # Numbers are shuffled and batched, then read a batch at a time: a source read by single records is 7 times slower.
    dataset = grain.MapDataset.range(len(self.source))
    if self.options.order == "random":
      dataset = dataset.shuffle(seed=epoch)
    dataset = dataset.batch(self.options.batch, batch_fn=list).map(self.source.__getitems__)
    return dataset.to_iter_dataset(grain.ReadOptions(num_threads=self.options.threads, prefetch_buffer_size=16))

  def consume(self, images):
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), None

  def check(self, images):
    return ((image, None) for image in images)


class BatchSource(Batches):
  """A source whose records are batches: Grain's own work for each record, which is more than that of reading, is for a batch."""

  def __len__(self):
    return -(-len(self.source) // self.options.batch)

  def __getitem__(self, number):
    return self.source.__getitems__(self.numbers[number * self.options.batch:][:self.options.batch])

  def batches(self, epoch):
    self.numbers = list(range(len(self.source)))
    if self.options.order == "random":
      random.Random(epoch).shuffle(self.numbers)
    return grain.MapDataset.source(self).to_iter_dataset(grain.ReadOptions(num_threads=self.options.threads, prefetch_buffer_size=16))


measure.main(importlib.metadata.version("grain"), {"batches": Batches, "batch_source": BatchSource})
