"""Python's arguments as members of the structs of options."""

import ctypes
import os
from operator import index

from . import _c
from ._errors import OptionError


def choice(value, what, numbers):
  """The number of a word."""
  if value not in numbers:
    raise OptionError(f"{what} is one of " + ", ".join(f"'{name}'" for name in numbers))
  return numbers[value]


def whole(value, what, bits=64, least=0):
  """A number that an unsigned integer of so many bits holds; ctypes would cut a larger one, and many a 0 is a default in C."""
  number = index(value)
  if not least <= number < 1 << bits:
    raise OptionError(f"{what} is a number from {least} to {(1 << bits) - 1}, and not {number}")
  return number


def signed(value, what):
  number = index(value)
  if not -1 << 31 <= number < 1 << 31:
    raise OptionError(f"{what} cannot be {number}")
  return number


def threes(values, what):
  """For each channel a number."""
  numbers = tuple(values)
  if len(numbers) != 3:
    raise OptionError(f"{what} is three numbers, one a channel")
  return (ctypes.c_float * 3)(*numbers)


def c_text(value, what):
  """Text for a `char*`, which would end at a zero byte."""
  encoded = os.fsencode(value)
  if b"\0" in encoded:
    raise OptionError(f"{what} has a zero byte")
  return encoded


def cursor_text(cursor):
  return None if cursor is None else c_text(cursor, "cursor")


def names(values, what):
  """An array of `char*`."""
  if isinstance(values, (str, bytes)):
    raise OptionError(f"{what} is a list of names, and not one name")
  encoded = [c_text(value, what) for value in values]
  return (ctypes.c_char_p * len(encoded))(*encoded)


DTYPES = {"uint8": _c.U8, "float32": _c.F32, "float16": _c.F16, "bfloat16": _c.BF16}
LAYOUTS = {"nhwc": _c.NHWC, "nchw": _c.NCHW}
FILTERS = {"box": _c.BOX, "bilinear": _c.BILINEAR, "bicubic": _c.BICUBIC, "lanczos": _c.LANCZOS}
CROPS = {"random_resized": _c.RANDOM_RESIZED, "center": _c.CENTER, "resize": _c.RESIZE}
