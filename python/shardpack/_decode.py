"""Decode: what becomes of an image."""

import ctypes

from . import _c
from ._errors import OptionError
from ._options import CROPS, DTYPES, FILTERS, LAYOUTS, choice, threes, whole


class Decode:
  """Decoding to arrays of one size: crop, antialiased resize, flip, type.

  crop: 'random_resized' (scale: share of the area; ratio: width / height), 'center' (of shortest_side) or 'resize'.
  flip: how probable it is that an image is mirrored. mean, std: of numbers from 0 to 1, for dtype 'float32' and 'float16'.
  """

  def __init__(self, width=224, height=224, *, crop="random_resized", scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), shortest_side=256,
               flip=0.0, filter="bilinear", channels=3, dtype="uint8", layout="nhwc",  # pylint: disable=redefined-builtin
               mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), fast=False):
    if dtype == "bfloat16":
      raise OptionError("NumPy has no bfloat16; a DeviceLoader casts to it")
    self._options = _c.decode(
        size=ctypes.sizeof(_c.decode),
        width=whole(width, "width", 32, least=1),
        height=whole(height, "height", 32, least=1),
        crop=choice(crop, "crop", CROPS),
        filter=choice(filter, "filter", FILTERS),
        shortest_side=whole(shortest_side, "shortest_side", 32, least=1),
        channels=whole(channels, "channels", 8, least=1),
        flip_probability=flip,
        type=choice(dtype, "dtype", DTYPES),
        layout=choice(layout, "layout", LAYOUTS),
        mean=threes(mean, "mean"),
        std=threes(std, "std"),
        fast=bool(fast))
    self._options.min_scale, self._options.max_scale = _range(scale, "scale")
    self._options.min_ratio, self._options.max_ratio = _range(ratio, "ratio")


def _range(values, what):
  low, high = values
  if not 0 < low <= high:
    raise OptionError(f"{what} is a range of numbers above 0, and not from {low} to {high}")
  return low, high
