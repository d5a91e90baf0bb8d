"""Batches of bytes with tf.data from TFRecord shards, in order or through a shuffle buffer (see measure.py)."""

import operator
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402

import measure  # noqa: E402

SHUFFLE_BUFFER = 10_000
FEATURES = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}


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
    # One conversion a batch; a tf.function that looks at it inside TensorFlow takes longer to call.
    images = batch["image/encoded"].numpy()
    if not all(map(operator.itemgetter(0), images)):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), batch["image/class/label"].numpy().sum()

  def check(self, batch):
    return zip(batch["image/encoded"].numpy(), batch["image/class/label"].numpy())


measure.main(tf.__version__, {"records": Records})
