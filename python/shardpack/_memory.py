"""The library's memory as NumPy arrays, without a copy.

A batch costs a few calls of the library, and a slot none: views are made from an address and a length, without asking for them.
"""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

from ._errors import OptionError

# Never larger than what is read of it: an array of ctypes has its length in its type, and one type is enough.
_Anywhere = ctypes.c_ubyte * (1 << 62)


_numpy: Any = None  # what is needed of it, once it is


def import_numpy() -> Any:
  """NumPy, which only arrays need."""
  try:
    import numpy  # pylint: disable=import-outside-toplevel
  except ModuleNotFoundError as error:
    if error.name != "numpy":
      raise
    raise ModuleNotFoundError("shardpack needs NumPy for arrays: pip install numpy, or Debian's package python3-numpy",
                              name="numpy") from None
  return numpy


def _import_for_bytes() -> Any:
  global _numpy  # pylint: disable=global-statement
  numpy = import_numpy()
  _numpy = numpy.frombuffer, numpy.dtype("uint8")
  return _numpy


class Memory:
  """Views of memory, by address, that keep its owner alive.

  They are slices of a memoryview, whose exporter holds the owner: that is cheaper than a call of ctypes. They can be written to,
  because the memory belongs to who has the batch.
  """

  __slots__ = ("_all",)

  def __init__(self, owner: object) -> None:
    exporter = _Anywhere.from_address(0)
    exporter.owner = owner  # type: ignore[attr-defined]
    self._all = memoryview(exporter).cast("B")

  def uint8(self, address: int, size: int) -> Any:
    """The bytes as a NumPy array."""
    frombuffer, dtype = _numpy or _import_for_bytes()
    return frombuffer(self._all[address:address + size], dtype)

  def view(self, address: int, size: int) -> memoryview:
    return self._all[address:address + size]

  def bytes(self, address: int, size: int) -> bytes:
    """A copy."""
    return bytes(self._all[address:address + size])

  def array(self, address: int, dtype: Any, shape: Sequence[int]) -> Any:
    """A NumPy array without gaps."""
    numpy = import_numpy()
    dtype = numpy.dtype(dtype)
    count = 1
    for length in shape:
      count *= length
    return numpy.frombuffer(self._all[address:address + count * dtype.itemsize], dtype).reshape(shape)

  def read_only(self, address: int, dtype: Any, count: int) -> Any:
    """A row that nobody can write to, as the memory may be a file's."""
    numpy = import_numpy()
    dtype = numpy.dtype(dtype)
    if count == 0:
      return numpy.frombuffer(b"", dtype)
    return numpy.frombuffer(self._all[address:address + count * dtype.itemsize].toreadonly(), dtype)


def row_of(values: Any, what: str, wanted: str = "a row of numbers", dtype: Any = None) -> Any:
  """NumPy's array of an argument: of anything that it takes, with __array__ or as numbers, and of what has only __dlpack__."""
  numpy = import_numpy()
  try:
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
      values = numpy.from_dlpack(values)
    return numpy.asarray(values, dtype)
  except (BufferError, RuntimeError, TypeError, ValueError) as error:  # as of a tensor on a device
    text = repr(values)
    why = f": {error}" if hasattr(values, "__array__") or hasattr(values, "__dlpack__") else ""
    raise OptionError(f"{what} must be {wanted}, not {text if len(text) <= 100 else text[:100] + '...'}{why}") from None


def ids_of(values: Any, what: str) -> tuple[int, int, Any]:
  """(address, count, what keeps them) of anything that NumPy takes for a row of whole numbers. Nothing is rounded."""
  numpy = import_numpy()
  array = row_of(values, what, "a row of ids")
  if array.ndim != 1:
    raise OptionError(f"{what} must be a row of ids, such as a list, not {'one value' if array.ndim == 0 else 'several rows'}")
  if array.dtype.kind == "b":
    raise OptionError(f"{what} must be a row of ids, not of True and False: numpy.flatnonzero(mask) has those of a mask")
  if array.size > 0 and array.dtype.kind not in "iu":
    raise OptionError(f"{what} must be a row of whole numbers, not of {array.dtype}")
  if array.dtype.kind == "i" and array.size > 0 and array.min() < 0:
    raise OptionError(f"{what} has an id {array.min()}; ids begin with 0")
  array = numpy.ascontiguousarray(array, dtype=numpy.uint64)
  return array.ctypes.data, array.size, array
