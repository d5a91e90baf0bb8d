"""TensorFlow: a loader as a tf.data.Dataset of a known length, and batches as tensors.

  python use_tensorflow.py SHARDS
"""

import sys

import numpy
import shardpack
import shardpack.adapters.tf
import tensorflow


def load(shards, **options):
  return shardpack.load(shards, **{"batch": 16, "size": (32, 24), "flip": 0.5, **options})


def check_dataset(shards):
  for options in ({}, {"dtype": "float32", "layout": "nchw"}, {"drop_last": True}):
    expected = load(shards, **options)
    dataset = shardpack.adapters.tf.dataset(load(shards, **options)).prefetch(2)
    assert dataset.cardinality().numpy() == len(expected) == (3 if "drop_last" in options else 4)
    for _ in range(2):  # assert_cardinality raises at the end of an epoch that has another length
      for (images, labels), batch in zip(dataset, expected, strict=True):
        numpy.testing.assert_array_equal(images.numpy(), batch.pixels)
        assert labels.numpy().tolist() == batch.labels.tolist()
  try:
    shardpack.adapters.tf.dataset(shardpack.load(shards, batch=16))
  except shardpack.OptionError as error:
    assert "size=" in str(error)
  else:
    raise AssertionError("encoded images have no shape")


def check_model(shards):
  """tf.data's own batches train a model's function."""
  dataset = shardpack.adapters.tf.dataset(load(shards, dtype="float32", drop_last=True))
  weights = tensorflow.Variable(tensorflow.zeros((24 * 32 * 3, 3)))

  @tensorflow.function
  def loss_of(images, labels):
    scores = tensorflow.reshape(images, (16, -1)) @ weights
    return tensorflow.reduce_mean(tensorflow.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))

  assert [float(loss_of(*batch)) for batch in dataset] == [float(numpy.log(numpy.float32(3)))] * 3


def check_tensors(shards):
  for batch in load(shards, to="tf"):
    images, labels = batch
    numpy.testing.assert_array_equal(images.numpy(), batch.pixels)
    assert (labels.numpy().tolist(), labels.dtype) == (batch.to("numpy").labels.tolist(), tensorflow.int64)
  kept, expected = images, batch.pixels.copy()
  del batch, images
  numpy.testing.assert_array_equal(kept.numpy(), expected)


if __name__ == "__main__":
  for check in (check_dataset, check_model, check_tensors):
    check(sys.argv[1])
