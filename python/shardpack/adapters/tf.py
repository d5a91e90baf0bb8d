"""TensorFlow: arrays of batches as its tensors, and loaders as a tf.data.Dataset."""

# pylint: disable=protected-access

from __future__ import annotations

from typing import Any, Iterator

import tensorflow  # type: ignore[import-untyped,unused-ignore]

from .._loader import Loader, check_shape


def _of_array(array: Any) -> Any:
  """A tf.Tensor: in the same memory where TensorFlow takes it, which keeps it."""
  return tensorflow.experimental.dlpack.from_dlpack(array.__dlpack__())


def dataset(loader: Loader) -> Any:
  """A tf.data.Dataset of (images, labels); each iteration of it is an epoch of the loader, or what is left of one after a resume,
  so that tf.data does not know how many batches come: len(loader) says it. The loader decodes, to host memory, one view; with mix=
  labels are float32 [n, classes]. Raises OptionError for other loaders.

  tf.data copies the batches. Where training goes on is in loader.state_dict(), which counts what prefetch() has asked for as
  delivered; tf.data's own checkpoints do not hold it.

  >>> import shardpack.adapters.tf
  >>> loader = shardpack.load('shards', split='train', batch=16, size=64)
  >>> for images, labels in shardpack.adapters.tf.dataset(loader).prefetch(2):
  ...   print(images.shape, labels.shape)
  (16, 64, 64, 3) (16,)
  (16, 64, 64, 3) (16,)
  (16, 64, 64, 3) (16,)
  """
  decode, mix = check_shape(loader, "tf.data")._decode, loader._mix
  assert decode is not None
  given = decode._given
  shape = (given["height"], given["width"], given["channels"])
  shape = (shape[2], *shape[:2]) if given["layout"] == "nchw" else shape

  def batches() -> Iterator[Any]:
    for batch in loader:
      yield tuple(batch.to("numpy"))

  labels = tensorflow.TensorSpec((None,), "int64") if mix is None else tensorflow.TensorSpec((None, mix._given["classes"]), "float32")
  signature = (tensorflow.TensorSpec((None, *shape), given["dtype"]), labels)
  return tensorflow.data.Dataset.from_generator(batches, output_signature=signature)
