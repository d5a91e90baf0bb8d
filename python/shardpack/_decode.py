"""Decode: what becomes of an image."""

# pylint: disable=redefined-builtin

from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence, Union

from . import _c
from ._augment import Augment, given_plan
from ._errors import OptionError
from ._library import call, library
from ._options import CROPS, DTYPES, FILTERS, LAYOUTS, Dtype, choice, dtype_name, flag, normalising, real, whole, within

_DTYPES = {name: number for name, number in DTYPES.items() if name != "bfloat16"}
_MOST_VIEWS = 64  # of the library's loader
_SCALE, _RATIO, _SHORTEST_SIDE = (0.08, 1.0), (3 / 4, 4 / 3), 256


class Decode:
  """Decoding to arrays of one size: crop, antialiased resize, flip, type.

  crop: 'random_resized' (scale: share of the area, by default 0.08 to 1; ratio: width / height, 3/4 to 4/3), 'center' (of shortest_side,
  256) or 'resize'. flip: how probable it is that an image is mirrored. mean, std: of numbers from 0 to 1, for dtype 'float32' and 'float16'.
  dtype: 'uint8', 'float32' or 'float16', or one of torch, NumPy or JAX.
  filter: 'bilinear', 'box', 'bicubic' or 'lanczos', antialiased. channels: 1 or 3. layout: 'nhwc' or 'nchw'. fast: a little faster
  and less exact JPEG decoding. augment: an Augment, or its text, applied after the flip. views: versions of each image, each with
  a crop, flip and operations of its own: pixels are then [views, n, ...]. Raises OptionError for what cannot be, and for an option without effect.

  >>> decode = shardpack.Decode(64, 48, crop='center', shortest_side=72, dtype='float32', layout='nchw')
  >>> dataset = shardpack.Dataset('shards')
  >>> next(shardpack.Loader(dataset, shardpack.Order(len(dataset), 20), decode=decode)).pixels.shape
  (20, 3, 48, 64)
  """

  def __init__(self, width: int = 224, height: int = 224, *, crop: str = "random_resized", scale: Optional[Sequence[float]] = None,
               ratio: Optional[Sequence[float]] = None, shortest_side: Optional[int] = None, flip: float = 0.0,
               filter: str = "bilinear", channels: int = 3, dtype: Dtype = "uint8", layout: str = "nhwc",
               mean: Optional[Sequence[float]] = None, std: Optional[Sequence[float]] = None, fast: bool = False, augment: Union[Augment, str, None] = None,
               views: int = 1) -> None:
    dtype = dtype_name(dtype)
    self._given = {name: value for name, value in locals().items() if name != "self"}
    if dtype == "bfloat16":
      raise OptionError("NumPy has no bfloat16; a DeviceLoader casts to it")
    kind, channels = choice(dtype, "dtype", _DTYPES), whole(channels, "channels", 8, least=1)
    means, stds = normalising(dtype, mean, std, channels)
    self._options = _c.decode(
        size=ctypes.sizeof(_c.decode),
        width=whole(width, "width", 32, least=1),
        height=whole(height, "height", 32, least=1),
        crop=choice(crop, "crop", CROPS),
        filter=choice(filter, "filter", FILTERS),
        shortest_side=_SHORTEST_SIDE if shortest_side is None else whole(shortest_side, "shortest_side", 32, least=1),
        channels=channels,
        flip_probability=within(flip, "flip", 0, 1, "a probability, from 0 to 1"),
        type=kind,
        layout=choice(layout, "layout", LAYOUTS),
        mean=means,
        std=stds,
        fast=flag(fast, "fast"))
    self._options.min_scale, self._options.max_scale = _range(_SCALE if scale is None else scale, "scale")
    self._augment = given_plan(augment)
    self._views = whole(views, "views", least=1, most=_MOST_VIEWS)
    self._options.min_ratio, self._options.max_ratio = _range(_RATIO if ratio is None else ratio, "ratio")
    _without_effect(crop, "random_resized", scale=scale, ratio=ratio)
    _without_effect(crop, "center", shortest_side=shortest_side)
    call(library.decode_check, self._options)  # which knows how they fit each other

  def __repr__(self) -> str:
    options = [f"{name}={self._given[name]!r}" for name, default in (Decode.__init__.__kwdefaults__ or {}).items()
               if str(self._given[name]) != str(default)]  # arrays too
    return f"Decode({', '.join([str(self._given['width']), str(self._given['height']), *options])})"

  def _refuse_off_host(self) -> None:
    """Where a device crops."""
    if self._augment is not None or self._views > 1:
      raise OptionError("a resident set does not augment, and has no views: give the Decode to a DeviceLoader (decode_on='device' of load), "
                        "which augments, or to a Loader, which does both")

  def _augment_of_device(self) -> Optional[bytes]:
    """The plan, where a device decodes."""
    if self._views > 1 or (self._augment is not None and (self._augment._own or self._augment._functions)):
      raise OptionError("views and operations of your own are of a Loader's own decoding, on the host: give the Decode to the Loader")
    return None if self._augment is None else str(self._augment).encode()

  def _split(self) -> tuple[Decode, dict[str, Any]]:
    """What the host does of it, and the options of a DeviceLoader that does the rest."""
    rest = {name: self._given[name] for name in ("dtype", "layout", "mean", "std")}
    return Decode(**{name: value for name, value in self._given.items() if name not in rest}), rest


def _without_effect(crop: str, needed: str, **options: Any) -> None:
  """Refuses what was given, be it the default: who gives it means another crop."""
  for name, value in options.items():
    if crop != needed and value is not None:
      raise OptionError(f"{name} needs crop='{needed}'")


def _range(values: Sequence[float], what: str) -> tuple[float, float]:
  try:
    low, high = (real(value, what) for value in values)
  except (TypeError, ValueError):
    raise OptionError(f"{what} must be two numbers, from and to, not {values!r}") from None
  if not 0 < low <= high:
    raise OptionError(f"{what} must be a range of numbers above 0, not from {low} to {high}")
  return low, high
