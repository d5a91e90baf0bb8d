"""The keywords of load() for type checkers. Imported by them alone."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Protocol, Sequence, TypedDict, Union

from ._arguments import Path
from ._augment import Augment, Mix
from ._dataset import Dataset
from ._device import Device
from ._fields import FieldDecodes

Source = Union[Path, Sequence[Union[Path, Dataset]], Dataset]


class DeviceOfTorch(Protocol):
  """torch.device."""

  @property
  def type(self) -> str:
    ...

  @property
  def index(self) -> Optional[int]:
    ...


SomeDevice = Union[str, int, Device, DeviceOfTorch]


class LoadOptions(TypedDict, total=False):
  """Those that do not decide what load() returns."""

  split: Optional[str]
  batch: Optional[int]
  global_batch: Optional[int]
  size: Union[int, tuple[int, int], None]
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
  dtype: Literal["uint8", "float32", "float16", "bfloat16"]
  layout: Literal["nhwc", "nchw"]
  mean: Sequence[float]
  std: Sequence[float]
  augment: Union[Augment, str, None]
  views: int
  mix: Optional[Mix]
  fields: Sequence[str]
  decode_fields: Optional[Mapping[str, FieldDecodes]]
  channels_last: bool
  decode_on: Literal["host", "device", "auto"]
  to: Optional[Literal["numpy", "torch", "jax", "tf"]]
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
