"""Python's arguments as members of the structs of options."""

from __future__ import annotations

import ctypes
import os
from operator import index
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Sequence

from . import _c
from ._errors import OptionError
from ._text import encoded

if TYPE_CHECKING:
  from ._load_types import Dtype as Dtype
else:
  Dtype = Any  # for typing.get_type_hints, where NumPy need not be there


def choice(value: Any, what: str, numbers: Mapping[str, Any]) -> Any:
  """The number of a word."""
  if not isinstance(value, str) or value not in numbers:
    raise OptionError(f"{what} must be one of " + ", ".join(f"'{name}'" for name in numbers) + f", not {value!r}")
  return numbers[value]


def dtype_name(dtype: Any) -> Any:
  """'float32' of torch's, NumPy's, JAX's and TensorFlow's, without importing one of them; None of None."""
  if dtype is None or isinstance(dtype, str):
    return dtype
  name = None
  if isinstance(dtype, type):  # numpy.float32, or jax.numpy.float32, which has a dtype; that of numpy.ndarray is of its instances
    scalar = any((base.__module__, base.__name__) == ("numpy", "generic") for base in dtype.__mro__)
    name = dtype.__name__ if scalar else getattr(getattr(dtype, "dtype", None), "name", None)
  elif type(dtype).__module__ == "torch":
    name = str(dtype).rpartition(".")[2]
  elif getattr(dtype, "isnative", True):
    name = getattr(dtype, "name", None)
  if not isinstance(name, str):
    raise OptionError(f"dtype must be a name, such as 'float32', or a dtype of torch, NumPy or JAX, not {dtype!r}")
  return name


def whole(value: Any, what: str, bits: int = 64, least: int = 0, most: Optional[int] = None) -> int:
  """A number that an unsigned integer of so many bits holds; ctypes would cut a larger one, and many a 0 is a default in C."""
  number, most = _index(value, what), (1 << bits) - 1 if most is None else most
  if not least <= number <= most:
    raise OptionError(f"{what} must be a number from {least} to {most}, not {number}")
  return number


def _index(value: Any, what: str) -> int:
  try:
    return index(value)
  except TypeError:
    raise OptionError(f"{what} must be a whole number, not {value!r}") from None


def slot_of(slot: Any, slots: int, what: str) -> int:
  """The number of a slot; negative ones count from the end."""
  try:
    return range(slots)[index(slot)]
  except IndexError:
    there = f"but those from 0 to {slots - 1}" if slots else "which is empty"
    raise IndexError(f"{what} has no slot {slot}, {there}") from None


def rebuilt(kind: Callable[..., Any], given: Mapping[str, Any]) -> Any:
  """For __reduce__ of what holds structs, which point into memory: made anew of the same arguments."""
  return kind(**given)


def signed(value: Any, what: str) -> int:
  number = _index(value, what)
  if not -1 << 31 <= number < 1 << 31:
    raise OptionError(f"{what} cannot be {number}")
  return number


def real(value: Any, what: str) -> float:
  try:
    return float(0 + value)  # which text and a bool's "no" are not
  except (OverflowError, RuntimeError, TypeError, ValueError):  # of an array with several
    raise OptionError(f"{what} must be a number, not {value!r}") from None


def within(value: Any, what: str, low: float, high: float, wanted: str) -> float:
  """A number from `low` to `high`, which `wanted` says in words."""
  number = real(value, what)
  if not low <= number <= high:
    raise OptionError(f"{what} must be {wanted}, not {value!r}")
  return number


def flag(value: Any, what: str) -> bool:
  """Any other value, such as 'no', would be one of the two as well."""
  try:
    known = value in (False, True)
  except (RuntimeError, ValueError):  # an array with several
    known = False
  if not known:
    raise OptionError(f"{what} must be True or False, not {value!r}")
  return bool(value)


def of_type(value: Any, of: Any, what: str) -> Any:
  """The value: the library has no way to tell one object from another."""
  if not isinstance(value, of):
    names_of = of.__name__ if isinstance(of, type) else " or ".join(each.__name__ for each in of)
    raise TypeError(f"{what} must be of type {names_of}, not {type(value).__name__}")
  return value


def normalising(dtype: Any, mean: Optional[Sequence[float]], std: Optional[Sequence[float]], channels: int = 3) -> tuple[Any, Any]:
  """mean and std of (number - mean) / std, for each channel one; None: those that change nothing."""
  given = mean is not None or std is not None
  mean, std = (_numbers(default if value is None else value, what, channels) for value, what, default in
               ((mean, "mean", (0.0, 0.0, 0.0)), (std, "std", (1.0, 1.0, 1.0))))
  if given and (dtype or "uint8") == "uint8":
    raise OptionError("mean and std need another dtype than 'uint8', such as 'float32'")
  means, stds = _threes(mean, "mean", channels), _threes(std, "std", channels)
  if 0 in tuple(stds):  # would count as 1
    raise OptionError("std must be a finite number above 0, not 0")
  if any(number > 1 for number in means):
    raise OptionError(f"mean and std must be numbers from 0 to 1, not {mean}: means of bytes must be divided by 255")
  return means, stds


def _numbers(values: Any, what: str, count: int) -> tuple[float, ...]:
  try:
    return tuple(real(value, what) for value in values)
  except TypeError as error:
    if isinstance(error, OptionError):
      raise
    raise OptionError(f"{what} must be {count} numbers, one per channel, not {values!r}") from None


def _threes(values: tuple[float, ...], what: str, channels: int) -> Any:
  numbers = values * 3 if len(values) == channels == 1 else values
  if len(numbers) != 3:
    raise OptionError(f"{what} must be three numbers, one per channel, not {values}")
  if channels == 1 and len(set(numbers)) > 1:
    raise OptionError(f"{what} must be one number, or three equal ones, for images of one channel, not {values}")
  array = (ctypes.c_float * 3)(*numbers)
  if not all(abs(number) < float("inf") for number in array):
    raise OptionError(f"{what} must be three finite numbers, not {numbers}")
  return array


def c_text(value: Any, what: str) -> bytes:
  """Text for a `char*`."""
  return _terminated(encoded(value, what), what)


def c_path(value: Any, what: str) -> bytes:
  """A path for a `char*`."""
  return _terminated(os.fsencode(value), what)


def _terminated(text: bytes, what: str) -> bytes:
  """It would end at a zero byte."""
  if b"\0" in text:
    raise OptionError(f"{what} must not contain a zero byte")
  return text


def cursor_text(cursor: str | bytes | None) -> bytes | None:
  """With the white space that a file may have added."""
  return None if cursor is None else c_text(of_type(cursor, (str, bytes), "cursor").strip(), "cursor")


def names(values: Iterable[Any], what: str) -> Any:
  """An array of `char*`."""
  if isinstance(values, (str, bytes)):
    raise OptionError(f"{what} must be a list of names, not a single name")
  texts = [c_text(value, what) for value in values]
  return (ctypes.c_char_p * len(texts))(*texts)


DTYPES = {"uint8": _c.U8, "float32": _c.F32, "float16": _c.F16, "bfloat16": _c.BF16}
LAYOUTS = {"nhwc": _c.NHWC, "nchw": _c.NCHW}
FILTERS = {"box": _c.BOX, "bilinear": _c.BILINEAR, "bicubic": _c.BICUBIC, "lanczos": _c.LANCZOS}
CROPS = {"random_resized": _c.RANDOM_RESIZED, "center": _c.CENTER, "resize": _c.RESIZE}
