"""Writes TFRecord shards with TensorFlow's own writer and Example (jobs on stdin, see protocol.py)."""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402

import protocol  # noqa: E402


def example(name, image, label):
  return tf.train.Example(features=tf.train.Features(feature={
      "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
      "image/filename": tf.train.Feature(bytes_list=tf.train.BytesList(value=[name.encode()])),
      "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
  }))


def write(job):
  samples, records = job["samples"], job["records"]
  for begin in range(0, len(samples), records):
    path = pathlib.Path(job["root"]) / f"part-{begin // records:05d}.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
      for name, image, label in samples[begin:begin + records]:
        writer.write(example(name, pathlib.Path(image).read_bytes(), label).SerializeToString())


protocol.serve_writer(tf.__version__, write)
