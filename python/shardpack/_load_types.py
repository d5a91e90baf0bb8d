"""The keywords of load() for type checkers, and what it returns. Imported by them alone."""

from __future__ import annotations

from typing import Any, Generic, Iterator, Literal, Mapping, Optional, Protocol, Sequence, TypedDict, TypeVar, Union

import numpy

from ._arguments import Path
from ._augment import Augment, Mix
from ._batch import Batch
from ._dataset import Dataset
from ._device import Device
from ._device_loader import DeviceBatch, DeviceLoader
from ._fields import FieldDecodes
from ._loader import Loader

Source = Union[Path, Sequence[Union[Path, Dataset]], Dataset]


class DeviceOfTorch(Protocol):
  """torch.device."""

  @property
  def type(self) -> str:
    ...

  @property
  def index(self) -> Optional[int]:
    ...


class DtypeOfTorch(Protocol):
  """torch.dtype."""

  @property
  def is_floating_point(self) -> bool:
    ...

  @property
  def itemsize(self) -> int:
    ...


Dtype = Union[str, type, "numpy.dtype[Any]", DtypeOfTorch]
Size = Union[int, tuple[int, int]]
SomeDevice = Union[str, int, Device, DeviceOfTorch]


Array = TypeVar("Array")
OneBatch = TypeVar("OneBatch")


class ArraysOf(Generic[Array]):
  """Of a batch that is decoded: arrays of a known library."""

  @property
  def images(self) -> Array:
    raise NotImplementedError

  @property
  def labels(self) -> Array:
    raise NotImplementedError

  def __iter__(self) -> Iterator[Array]:
    raise NotImplementedError


class BatchesOf(Generic[OneBatch]):
  """Of a loader: its batches."""

  def __iter__(self) -> Iterator[OneBatch]:
    raise NotImplementedError

  def __next__(self) -> OneBatch:
    raise NotImplementedError


class BatchOf(ArraysOf[Array], Batch):
  """A Batch with such arrays."""


class LoaderOf(BatchesOf[BatchOf[Array]], Loader):
  """The Loader of these."""


class DeviceBatchOf(ArraysOf[Array], DeviceBatch):
  """The same on a device."""


class DeviceLoaderOf(BatchesOf[DeviceBatchOf[Array]], DeviceLoader):
  """The DeviceLoader of these."""


class MostOptions(TypedDict, total=False):
  """Those that do not decide what load() returns."""

  split: Optional[str]
  batch: Optional[int]
  global_batch: Optional[int]
  epochs: int
  shuffle: Union[bool, Literal["block"]]
  seed: int
  rank: Union[int, Literal["auto"]]
  world_size: Union[int, Literal["auto"]]
  drop_last: bool
  pad_last: bool
  crop: Literal["random_resized", "center", "resize"]
  scale: Optional[Sequence[float]]
  ratio: Optional[Sequence[float]]
  shortest_side: Optional[int]
  flip: float
  filter: Literal["bilinear", "box", "bicubic", "lanczos"]
  channels: int
  dtype: Union[Literal["uint8", "float32", "float16", "bfloat16"], type, "numpy.dtype[Any]", DtypeOfTorch]
  layout: Literal["nhwc", "nchw"]
  mean: Optional[Sequence[float]]
  std: Optional[Sequence[float]]
  augment: Union[Augment, str, None]
  views: int
  mix: Optional[Mix]
  fields: Sequence[str]
  decode_fields: Optional[Mapping[str, FieldDecodes]]
  channels_last: bool
  decode_on: Literal["host", "device", "auto"]
  weights: Any
  epoch_samples: int
  cursor: Union[str, bytes, Mapping[str, Any], None]
  resume_on_iter: bool
  bad_samples: Literal["fail", "substitute"]
  max_bad_samples: int
  verify: bool
  threads: int
  io_threads: int
  prefetch_batches: int
  memory: Union[int, str]
  augment_seed: Optional[int]
  other_augment: bool
  fast: bool
  map_shards: bool


class LoadOptions(MostOptions, total=False):
  """And those that decide what batches have."""

  size: Union[int, tuple[int, int], None]
  to: Optional[Literal["numpy", "torch", "jax", "tf"]]
