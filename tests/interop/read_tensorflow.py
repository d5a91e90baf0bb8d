"""Reads TFRecord shards with TensorFlow, which also checks their checksums (jobs on stdin, see protocol.py)."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402

import protocol  # noqa: E402

# Fixed length without a default: a sample that lacks one of them is an error.
FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/filename": tf.io.FixedLenFeature([], tf.string),
    "image/format": tf.io.FixedLenFeature([], tf.string),
    "image/colorspace": tf.io.FixedLenFeature([], tf.string),
    "image/class/text": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    "image/height": tf.io.FixedLenFeature([], tf.int64),
    "image/width": tf.io.FixedLenFeature([], tf.int64),
    "image/channels": tf.io.FixedLenFeature([], tf.int64),
}


def read(job):
  records = tf.data.TFRecordDataset(job["shards"])
  for batch in records.batch(64).map(lambda batch: tf.io.parse_example(batch, FEATURES)).as_numpy_iterator():
    for name, image, label in zip(batch["image/filename"], batch["image/encoded"], batch["image/class/label"]):
      yield protocol.sample(name.decode(), image, int(label))


protocol.serve(tf.__version__, read)
