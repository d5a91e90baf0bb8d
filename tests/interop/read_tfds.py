"""Reads the folder of the tfds layout with TensorFlow Datasets (jobs on stdin, see protocol.py)."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow_datasets as tfds  # noqa: E402

import protocol  # noqa: E402


def read(job):
  builder = tfds.builder_from_directory(job["root"])
  for split in builder.info.splits:
    data = builder.as_dataset(split=split, decoders={"image": tfds.decode.SkipDecoding()})
    for sample in data.as_numpy_iterator():
      yield protocol.sample(None, sample["image"], int(sample["label"]))


protocol.serve(tfds.__version__, read)
