"""JAX: a global array over eight (virtual) devices has the bytes of the batch, and batches are arrays.

  XLA_FLAGS=--xla_force_host_platform_device_count=8 python use_jax.py SHARDS
"""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # pylint: disable=wrong-import-position
import numpy  # pylint: disable=wrong-import-position
import shardpack  # pylint: disable=wrong-import-position
import shardpack.adapters.jax  # pylint: disable=wrong-import-position


def load(shards, **options):
  return shardpack.load(shards, **{"batch": 16, "size": 32, "flip": 0.5, **options})


def check_arguments(shards):
  """JAX's dtypes, and its arrays as weights."""
  for dtype in (jax.numpy.float32, jax.numpy.dtype("float32")):
    assert next(load(shards, dtype=dtype, to="jax")).images.dtype == jax.numpy.float32
  assert next(load(shards, dtype=jax.numpy.bfloat16, device="cpu", to="jax")).images.dtype == jax.numpy.bfloat16
  weights = jax.numpy.arange(60)
  assert load(shards, weights=weights).ids(0, 0).tolist() == load(shards, weights=weights.tolist()).ids(0, 0).tolist()


def check_global_array(shards):
  assert len(jax.devices()) == 8
  for axes, spec in (((8,), ("data",)), ((4, 2), ("data",)), ((4, 2), ("data", None, "model"))):
    mesh = jax.sharding.Mesh(numpy.array(jax.devices()).reshape(axes), ("data", "model")[:len(axes)])
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
    expected = load(shards, drop_last=True)
    loader = load(shards, drop_last=True)
    for _ in range(2):
      for (images, labels), batch in zip(shardpack.adapters.jax.global_array(loader, sharding), expected, strict=True):
        assert images.sharding == sharding and len(images.addressable_shards) == 8
        for shard in images.addressable_shards:
          assert numpy.asarray(shard.data).tobytes() == batch.pixels[shard.index].tobytes()
        assert numpy.asarray(images).tobytes() == batch.pixels.tobytes()
        assert numpy.asarray(labels).tolist() == batch.labels.tolist()
  mix = {"drop_last": True, "mix": shardpack.Mix(mixup=0.5, classes=3)}
  for spec in (("data",), ("data", None, "model")):
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
    for (_, labels), batch in zip(shardpack.adapters.jax.global_array(load(shards, **mix), sharding), load(shards, **mix), strict=True):
      assert (labels.shape, numpy.asarray(labels).tolist()) == ((16, 3), batch.soft_labels.tolist())
  for options, what in (({"rank": 1, "world_size": 2, "drop_last": True}, "rank 1 of 2"), ({"size": None, "flip": 0.0}, "size="),
                        ({"views": 2}, "views=1"), ({"device": "cpu"}, "without device=")):
    try:
      shardpack.adapters.jax.global_array(load(shards, **options), sharding)  # at once
    except shardpack.OptionError as error:
      assert what in str(error), error
    else:
      raise AssertionError(f"{options} went unnoticed")
  for options, what in (({}, "drop_last=True"),):
    try:
      list(shardpack.adapters.jax.global_array(load(shards, **options), sharding))
    except shardpack.OptionError as error:
      assert what in str(error), error
    else:
      raise AssertionError(f"{options} went unnoticed")


def check_arrays(shards):
  kept = []
  for batch in load(shards, to="jax"):
    images, labels = batch
    assert (images.dtype, str(labels.dtype)) == (numpy.uint8, "int32")  # as JAX is set
    kept.append((images, batch.pixels.copy(), labels, batch.to("numpy").labels))
  del batch, images
  for images, pixels, labels, expected in kept:
    numpy.testing.assert_array_equal(numpy.asarray(images), pixels)
    assert labels.tolist() == expected.tolist()
  scaled = jax.jit(lambda images: images.astype("float32").mean())(kept[0][0])
  numpy.testing.assert_allclose(scaled, kept[0][1].mean(), rtol=1e-5)


if __name__ == "__main__":
  check_arguments(sys.argv[1])
  check_global_array(sys.argv[1])
  check_arrays(sys.argv[1])
