"""TensorFlow: a loader as a tf.data.Dataset, also from within an epoch, and batches as tensors.

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
    assert len(expected) == (3 if "drop_last" in options else 4)
    for _ in range(2):
      for (images, labels), batch in zip(dataset, expected, strict=True):
        numpy.testing.assert_array_equal(images.numpy(), batch.pixels)
        assert labels.numpy().tolist() == batch.labels.tolist()
  for wrong, why in (({"size": None, "flip": 0.0}, "size="), ({"views": 2}, "views=1"), ({"device": "cpu"}, "without device=")):
    try:
      shardpack.adapters.tf.dataset(load(shards, **wrong))
    except shardpack.OptionError as error:
      assert why in str(error), error
    else:
      raise AssertionError(f"{wrong}: batches have no such shape")


def check_mix(shards):
  """Mixed images come with mixed labels."""
  mix = {"mix": shardpack.Mix(mixup=0.5, classes=3)}
  for (_, labels), batch in zip(shardpack.adapters.tf.dataset(load(shards, **mix)), load(shards, **mix), strict=True):
    assert (labels.dtype, labels.numpy().tolist()) == (tensorflow.float32, batch.soft_labels.tolist())


def check_resume(shards):
  """What is left of the epoch, and then whole ones."""
  whole = load(shards)
  expected = [batch.labels.tolist() for _ in range(2) for batch in whole]
  interrupted = load(shards)
  next(interrupted)
  resumed = load(shards, cursor=interrupted.state_dict())
  sought = load(shards)
  sought.seek(0, 1)
  other = load(shards, batch=8)
  other.load_state_dict(interrupted.state_dict(), strict=False)
  for loader in (resumed, sought, other):
    dataset = shardpack.adapters.tf.dataset(loader)
    found = [[labels.numpy().tolist() for _, labels in dataset] for _ in range(2)]
    assert [len(sum(epoch, [])) for epoch in found] == [44, 60], found
    assert loader is other or sum(found, []) == expected[1:], (found, expected)


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
  for check in (check_dataset, check_mix, check_resume, check_model, check_tensors):
    check(sys.argv[1])
