"""Batches of bytes with NVIDIA DALI's readers on the CPU: WebDataset and TFRecord, with their indexes (see measure.py)."""

import numpy
import nvidia.dali as dali
import nvidia.dali.tfrecord as dali_tfrecord
from nvidia.dali import fn

import measure

SHUFFLE_BUFFER = 10_000
FEATURES = {
    "image/encoded": dali_tfrecord.FixedLenFeature((), dali_tfrecord.string, ""),
    "image/class/label": dali_tfrecord.FixedLenFeature([1], dali_tfrecord.int64, -1),
}


def reader_options(options):
  shuffle = options.order == "random"
  return {"name": "reader", "random_shuffle": shuffle, "initial_fill": SHUFFLE_BUFFER if shuffle else 1}


class Reader:

  def __init__(self, options):
    pipe = dali.Pipeline(batch_size=options.batch, num_threads=options.threads, device_id=None, prefetch_queue_depth=2)
    with pipe:
      images, labels = self.read(options)
      # A copy puts the images of a batch side by side, so that one array shows them all: an operation more on each
      # image (a slice, a pad), or .at(i) in Python, takes two to six times the time of the copy.
      pipe.set_outputs(fn.copy(images), images.shape(), labels)
    pipe.build()
    self.pipe, self.samples = pipe, pipe.reader_meta("reader")["epoch_size"]
    # The reader goes round for ever, with batches across the end of an epoch.
    if self.samples % options.batch:
      raise SystemExit(f"{self.samples} samples make no whole batches of {options.batch}")

  def batches(self, _):
    for _ in range(0, self.samples, self.pipe.max_batch_size):
      yield self.pipe.run()

  def consume(self, outputs):
    images, lengths, _ = outputs
    lengths = lengths.as_array()[:, 0]
    ends = numpy.cumsum(lengths)
    if not numpy.asarray(images.as_reshaped_tensor((int(ends[-1]),)))[ends - lengths].all():
      raise SystemExit("not a JPEG")
    return len(lengths), ends[-1], None

  def check(self, outputs):
    return ((outputs[0].at(i).tobytes(), self.label(outputs[2].at(i))) for i in range(len(outputs[0])))


class WebDataset(Reader):

  def read(self, options):
    shards = measure.shards(options.dataset, ".tar")
    return fn.readers.webdataset(paths=shards, index_paths=[shard[:-len("tar")] + "idx" for shard in shards],
                                 ext=["jpg", "cls"], missing_component_behavior="error", **reader_options(options))

  def label(self, value):
    return int(value.tobytes())


class TFRecord(Reader):

  def read(self, options):
    shards = measure.shards(options.dataset, ".tfrecord")
    features = fn.readers.tfrecord(path=shards, index_path=[shard + ".idx" for shard in shards], features=FEATURES,
                                   **reader_options(options))
    return features["image/encoded"], features["image/class/label"]

  def label(self, value):
    return int(value[0])


measure.main(dali.__version__, {"webdataset": WebDataset, "tfrecord": TFRecord})
