"""Batches of bytes with tf.data from TFRecord shards, in order or through a shuffle buffer (see measure.py)."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402

import measure  # noqa: E402

SHUFFLE_BUFFER = 10_000
FEATURES = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}


@tf.function
def look(images, labels):
  """All inside TensorFlow: a loop over bytes objects in Python is slower."""
  first = tf.strings.unicode_decode(tf.strings.substr(images, 0, 1), "ISO-8859-1").flat_values
  return tf.size(first), tf.reduce_sum(tf.strings.length(images)), tf.reduce_sum(labels), tf.reduce_min(first)


class Records:

  def __init__(self, options):
    shards = tf.data.Dataset.from_tensor_slices(measure.shards(options.dataset, ".tfrecord"))
    shuffle = options.order == "random"
    if shuffle:
      records = shards.shuffle(len(shards)).interleave(tf.data.TFRecordDataset, cycle_length=len(shards), block_length=16,
                                                       num_parallel_calls=options.threads, deterministic=False)
      records = records.shuffle(SHUFFLE_BUFFER)
    else:
      records = tf.data.TFRecordDataset(shards, buffer_size=1 << 20)
    records = records.batch(options.batch).map(lambda batch: tf.io.parse_example(batch, FEATURES),
                                               num_parallel_calls=options.threads, deterministic=not shuffle)
    limits = tf.data.Options()
    limits.threading.private_threadpool_size = options.threads
    self.records = records.prefetch(tf.data.AUTOTUNE).with_options(limits)

  def batches(self, _):
    return self.records

  def consume(self, batch):
    samples, total, labels, first = look(batch["image/encoded"], batch["image/class/label"])
    if not int(first):
      raise SystemExit("not a JPEG")
    return int(samples), int(total), int(labels)

  def check(self, batch):
    return zip(batch["image/encoded"].numpy(), batch["image/class/label"].numpy())


measure.main(tf.__version__, {"records": Records})
