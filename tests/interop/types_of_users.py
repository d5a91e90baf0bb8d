"""What mypy --strict says of the types that users get (types_check.py). It is not run."""

from __future__ import annotations

from typing import Optional

import numpy
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


def samples(dataset: shardpack.Dataset) -> None:
  assert_type(dataset[3], shardpack.Sample)
  assert_type(dataset[numpy.int64(3)], shardpack.Sample)
  assert_type(dataset[3:], shardpack.Dataset)
  assert_type(dataset[[1, 2]], shardpack.Dataset)
  assert_type(dataset[dataset.labels], shardpack.Dataset)
  for sample in dataset:
    assert_type(sample, shardpack.Sample)
