"""What mypy --strict says of the types that users get (types_check.py). It is not run."""

from __future__ import annotations

from typing import Any, Optional

import numpy
import numpy.typing
import shardpack
import torch
from typing_extensions import assert_type


def loaders(path: str, device: Optional[str]) -> None:
  assert_type(shardpack.load(path, batch=8), shardpack.Loader)
  assert_type(shardpack.load(path, batch=8, device=None), shardpack.Loader)
  for some in ("cpu", torch.device("cpu"), shardpack.Device("cpu")):
    shardpack.load(path, batch=8, device=some).device
  assert_type(shardpack.load(path, batch=8, device=3), shardpack.DeviceLoader)
  shardpack.load(path, batch=8, device=device).device  # type: ignore[union-attr]
  with shardpack.load(path, batch=8) as loader, shardpack.load(path, batch=8, device="cpu") as on_device:
    assert_type(loader, shardpack.Loader)
    assert_type(on_device, shardpack.DeviceLoader)
    assert_type(next(loader).to("torch"), shardpack.Batch)
    assert_type(next(on_device).text(), "list[Optional[str]]")


def arrays(path: str) -> None:
  """`to` says of what library the arrays of a batch are, where images are decoded."""
  for images, labels in shardpack.load(path, batch=8, size=64, to="torch"):
    assert_type(images, torch.Tensor)
    assert_type(labels, torch.Tensor)
  assert_type(next(shardpack.load(path, batch=8, size=(64, 48), to="torch", flip=0.5)).images, torch.Tensor)
  assert_type(next(shardpack.load(path, batch=8, size=64)).images, "numpy.typing.NDArray[Any]")
  assert_type(next(shardpack.load(path, batch=8, size=64, to="numpy")).labels, "numpy.typing.NDArray[Any]")
  for on_device in shardpack.load(path, batch=8, size=64, device="cuda", to="torch"):
    assert_type(on_device.images, torch.Tensor)
  assert_type(next(shardpack.load(path, batch=8, size=64, device="cpu", to="numpy")).images, "numpy.typing.NDArray[Any]")
  assert_type(next(shardpack.load(path, batch=8, size=64, to="jax")).images, Any)
  assert_type(next(shardpack.load(path, batch=8)).images, Any)  # bytes
  loader: shardpack.Loader = shardpack.load(path, batch=8, size=64, to="torch")
  batch: shardpack.Batch = next(loader)
  batch.text()
  for dtype in (torch.float32, numpy.float32, numpy.dtype("float32")):
    shardpack.load(path, batch=8, size=64, dtype=dtype)
    shardpack.Decode(64, 64, dtype=dtype)


def samples(dataset: shardpack.Dataset) -> None:
  assert_type(dataset[3], shardpack.Sample)
  assert_type(dataset[numpy.int64(3)], shardpack.Sample)
  assert_type(dataset[3:], shardpack.Dataset)
  assert_type(dataset[[1, 2]], shardpack.Dataset)
  assert_type(dataset[dataset.labels], shardpack.Dataset)
  for sample in dataset:
    assert_type(sample, shardpack.Sample)
