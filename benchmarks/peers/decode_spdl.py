"""Training pixels with SPDL's pipeline over class folders, FFmpeg decoding, cropping and resizing (see measure.py)."""

import importlib.metadata
import math
import random

import spdl.io
import spdl.pipeline

import measure


def random_window(width, height):
  """(width, height, x, y) of RandomResizedCrop, whose fall-back is the largest window in the middle."""
  for _ in range(10):
    area, ratio = width * height * random.uniform(0.08, 1), math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
    w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
    if 0 < w <= width and 0 < h <= height:
      return w, h, random.randint(0, width - w), random.randint(0, height - h)
  side = min(width, height)
  return side, side, (width - side) // 2, (height - side) // 2


def load(sample):
  label, path = sample
  packets = spdl.io.demux_image(path)
  w, h, x, y = random_window(packets.width, packets.height)
  flip = ",hflip" if random.random() < 0.5 else ""
  return label, spdl.io.decode_packets(
      packets, filter_desc=f"crop={w}:{h}:{x}:{y}:exact=1,scale=224:224:flags=bilinear{flip},format=pix_fmts=rgb24")


def join(samples):
  labels, frames = zip(*samples)
  return labels, spdl.io.to_numpy(spdl.io.convert_frames(list(frames)))


class Pixels:

  def __init__(self, options):
    self.options, self.files = options, measure.class_files(options.dataset)

  def batches(self, epoch):
    # A pipeline is one epoch; its threads are made again.
    files = random.Random(epoch).sample(self.files, len(self.files))
    builder = spdl.pipeline.PipelineBuilder().add_source(files).pipe(load, concurrency=self.options.threads)
    builder = builder.aggregate(self.options.batch).pipe(join).add_sink(4)
    pipeline = builder.build(num_threads=self.options.threads)
    with pipeline.auto_stop():
      yield from pipeline

  def consume(self, batch):
    labels, images = batch
    samples, total, mean = measure.look_at_pixels(images)
    return samples, total, sum(labels), mean


measure.main(importlib.metadata.version("spdl-io"), {"pixels": Pixels})
