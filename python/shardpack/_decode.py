"""Decode: what becomes of an image."""

import ctypes

from . import _c
from ._errors import OptionError
from ._options import CROPS, DTYPES, FILTERS, LAYOUTS, choice, flag, normalising, whole

_DTYPES = {name: number for name, number in DTYPES.items() if name != "bfloat16"}
_SCALE, _RATIO, _SHORTEST_SIDE = (0.08, 1.0), (3 / 4, 4 / 3), 256


class Decode:
  """Decoding to arrays of one size: crop, antialiased resize, flip, type.

  crop: 'random_resized' (scale: share of the area; ratio: width / height), 'center' (of shortest_side) or 'resize'.
  flip: how probable it is that an image is mirrored. mean, std: of numbers from 0 to 1, for dtype 'float32' and 'float16'.
  """

  def __init__(self, width=224, height=224, *, crop="random_resized", scale=_SCALE, ratio=_RATIO, shortest_side=_SHORTEST_SIDE,
               flip=0.0, filter="bilinear", channels=3, dtype="uint8", layout="nhwc",  # pylint: disable=redefined-builtin
               mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), fast=False):
    if dtype == "bfloat16":
      raise OptionError("NumPy has no bfloat16; a DeviceLoader casts to it")
    kind, channels = choice(dtype, "dtype", _DTYPES), whole(channels, "channels", 8, least=1)
    means, stds = normalising(dtype, mean, std, channels)
    _without_effect(crop, "random_resized", scale=(scale, _SCALE), ratio=(ratio, _RATIO))
    _without_effect(crop, "center", shortest_side=(shortest_side, _SHORTEST_SIDE))
    self._options = _c.decode(
        size=ctypes.sizeof(_c.decode),
        width=whole(width, "width", 32, least=1),
        height=whole(height, "height", 32, least=1),
        crop=choice(crop, "crop", CROPS),
        filter=choice(filter, "filter", FILTERS),
        shortest_side=whole(shortest_side, "shortest_side", 32, least=1),
        channels=channels,
        flip_probability=flip,
        type=kind,
        layout=choice(layout, "layout", LAYOUTS),
        mean=means,
        std=stds,
        fast=flag(fast, "fast"))
    self._options.min_scale, self._options.max_scale = _range(scale, "scale")
    self._options.min_ratio, self._options.max_ratio = _range(ratio, "ratio")


def _without_effect(crop, needed, **options):
  for name, (value, default) in options.items():
    if crop != needed and (tuple(value) if isinstance(default, tuple) else value) != default:
      raise OptionError(f"{name} needs crop='{needed}'")


def _range(values, what):
  low, high = values
  if not 0 < low <= high:
    raise OptionError(f"{what} is a range of numbers above 0, and not from {low} to {high}")
  return low, high
