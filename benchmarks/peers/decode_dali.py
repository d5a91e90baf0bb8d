"""Training pixels with NVIDIA DALI on the CPU from WebDataset shards (see measure.py)."""

import numpy
import nvidia.dali as dali
from nvidia.dali import fn
from nvidia.dali import types
from nvidia.dali.auto_aug import rand_augment

import measure


@dali.pipeline_def
def pipeline(shards, samples):
  images, labels = fn.readers.webdataset(
      name="reader", paths=shards, index_paths=[shard[:-len("tar")] + "idx" for shard in shards], ext=["jpg", "cls"],
      missing_component_behavior="error", random_shuffle=True, initial_fill=samples)
  images = fn.decoders.image_random_crop(images, output_type=types.RGB, random_area=[0.08, 1.0],
                                         random_aspect_ratio=[3 / 4, 4 / 3])
  images = fn.resize(images, size=[224, 224], interp_type=types.INTERP_LINEAR)
  return fn.flip(images, horizontal=fn.random.coin_flip()), fn.pad(labels)


@dali.pipeline_def(enable_conditionals=True)
def augmented(shards, samples):
  images, labels = fn.readers.webdataset(
      name="reader", paths=shards, index_paths=[shard[:-len("tar")] + "idx" for shard in shards], ext=["jpg", "cls"],
      missing_component_behavior="error", random_shuffle=True, initial_fill=samples)
  images = fn.decoders.image_random_crop(images, output_type=types.RGB, random_area=[0.08, 1.0],
                                         random_aspect_ratio=[3 / 4, 4 / 3])
  images = fn.flip(fn.resize(images, size=[224, 224], interp_type=types.INTERP_LINEAR), horizontal=fn.random.coin_flip())
  factor = lambda: fn.random.uniform(range=[0.6, 1.4])
  images = fn.color_twist(images, brightness=factor(), contrast=factor(), saturation=factor(), hue=fn.random.uniform(range=[-36.0, 36.0]))
  return rand_augment.rand_augment(images, n=2, m=9, shape=[224, 224]), fn.pad(labels)


class Pixels:

  make = staticmethod(pipeline)

  def __init__(self, options):
    self.pipe = self.make(measure.shards(options.dataset, ".tar"), 1000, batch_size=options.batch,
                         num_threads=options.threads, device_id=None, prefetch_queue_depth=2)
    self.pipe.build()
    self.samples = self.pipe.reader_meta("reader")["epoch_size"]
    self.left_over = 0

  def batches(self, _):
    # The reader goes round for ever, its batches across the end of the epoch: an epoch is the batches that begin in it.
    left = self.samples - self.left_over
    while left > 0:
      outputs = self.pipe.run()
      left -= len(outputs[0])
      yield outputs
    self.left_over = -left

  def consume(self, outputs):
    samples, total, mean = measure.look_at_pixels(numpy.asarray(outputs[0].as_tensor()))
    return samples, total, None, mean


class Augmented(Pixels):

  make = staticmethod(augmented)


measure.main(dali.__version__, {"pixels": Pixels, "augmented": Augmented})
