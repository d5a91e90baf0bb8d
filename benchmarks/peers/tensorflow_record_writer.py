"""Packs class folders with TensorFlow's TFRecordWriter, one tf.train.Example a sample.

Features: "all" are those that pack writes, "two" only image and label. Width, height and channels come from the JPEG's
header, read here with a few lines of Python, because decoding the image only for that would be slower.
Prints the seconds from listing to closing, without the start of Python and the imports.
usage: tensorflow_record_writer.py all|two SRC OUT
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402  pylint: disable=wrong-import-position

SHARD_BYTES = 256_000_000
COLORSPACES = {1: b"GRAY", 3: b"RGB", 4: b"CMYK"}


def jpeg_size(data):
  """(height, width, channels) from the frame header."""
  at = 2
  while True:
    marker, length = data[at + 1], data[at + 2] << 8 | data[at + 3]
    if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
      return data[at + 5] << 8 | data[at + 6], data[at + 7] << 8 | data[at + 8], data[at + 9]
    at += 2 + length


def text(value):
  return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def number(value):
  return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def two_features(image, label):
  return {"image/encoded": text(image), "image/class/label": number(label)}


def all_features(image, label, class_name, path):
  height, width, channels = jpeg_size(image)
  return {
      "image/channels": number(channels),
      "image/class/label": number(label),
      "image/class/text": text(class_name),
      "image/colorspace": text(COLORSPACES[channels]),
      "image/encoded": text(image),
      "image/filename": text(path),
      "image/format": text(b"jpeg"),
      "image/height": number(height),
      "image/width": number(width),
  }


def main():
  features, source, out = sys.argv[1:]
  begin = time.perf_counter()
  shard, written, writer = 0, SHARD_BYTES, None
  for label, name in enumerate(sorted(entry.name for entry in os.scandir(source) if entry.is_dir())):
    for entry in os.scandir(os.path.join(source, name)):
      with open(entry.path, "rb") as file:
        image = file.read()
      if features == "two":
        feature = two_features(image, label)
      else:
        feature = all_features(image, label, name.encode(), f"{name}/{entry.name}".encode())
      record = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
      if written + len(record) > SHARD_BYTES:
        if writer:
          writer.close()
        writer, written = tf.io.TFRecordWriter(os.path.join(out, f"train-{shard:05d}.tfrecord")), 0
        shard += 1
      writer.write(record)
      written += len(record) + 16
  writer.close()
  print(time.perf_counter() - begin)


main()
