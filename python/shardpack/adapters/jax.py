"""JAX: arrays of batches as its arrays, and global arrays of all processes."""

# pylint: disable=protected-access

from __future__ import annotations

from typing import Any, Iterator

import jax
import numpy

from .._errors import OptionError
from .._loader import Loader, check_shape


def _of_array(array: Any) -> Any:
  """A jax.Array: in the same memory where JAX takes it, which keeps it; 64-bit numbers as JAX is set to have them."""
  if isinstance(array, numpy.ndarray) and array.dtype == numpy.int64:
    return jax.numpy.asarray(array)
  return jax.dlpack.from_dlpack(array)


def global_array(loader: Loader, sharding: Any) -> Iterator[tuple[Any, Any]]:
  """An epoch of a loader in host memory as (images, labels), each one jax.Array of the global batch, sharded along its first axis.

  The loader decodes one view of each image; with mix= labels are float32 [n, classes]. Each process gives its own part: with
  several, call jax.distributed.initialize() before load(), and let the devices of a process hold consecutive parts. Batches must be
  whole: drop_last=True or pad_last=True. Raises OptionError otherwise.

  >>> import jax
  >>> import shardpack.adapters.jax
  >>> mesh = jax.make_mesh((1,), ('data',), devices=jax.devices()[:1])
  >>> sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('data'))
  >>> loader = shardpack.load('shards', global_batch=16, size=64, drop_last=True)
  >>> [images.shape for images, labels in shardpack.adapters.jax.global_array(loader, sharding)]
  [(16, 64, 64, 3), (16, 64, 64, 3), (16, 64, 64, 3)]
  """
  check_shape(loader, "global_array")
  if (loader._rank, loader._world_size) != (jax.process_index(), jax.process_count()):
    raise OptionError(
        f"the loader has rank {loader._rank} of {loader._world_size}, and JAX {jax.process_index()} of {jax.process_count()}")
  return _epoch(loader, sharding)


def _epoch(loader: Loader, sharding: Any) -> Iterator[tuple[Any, Any]]:
  whole = loader._order.global_batch // loader._world_size
  for batch in loader:
    if len(batch) != whole:
      raise OptionError(f"a batch of {len(batch)} samples instead of {whole}: load with drop_last=True or pad_last=True")
    pixels, labels = batch.to("numpy")
    yield _placed(sharding, pixels), _placed(_along_first(sharding), labels)


def _placed(sharding: Any, array: Any) -> Any:
  # The devices may still read a batch's memory when it is used again.
  return jax.block_until_ready(jax.make_array_from_process_local_data(sharding, array))


def _along_first(sharding: Any) -> Any:
  """For labels, which have one axis, or soft ones, of which each row is on one device."""
  if isinstance(sharding, jax.sharding.NamedSharding):
    return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec(*sharding.spec[:1]))
  return sharding
