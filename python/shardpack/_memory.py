"""The library's memory as NumPy arrays, without a copy."""

import ctypes

# Never larger than what is read of it: an array of ctypes has its length in its type, and one type is enough.
_Anywhere = ctypes.c_ubyte * (1 << 62)


_numpy = None  # what is needed of it, once it is


def _import_numpy():
  global _numpy  # pylint: disable=global-statement
  import numpy  # pylint: disable=import-outside-toplevel
  _numpy = numpy.frombuffer, numpy.dtype("uint8")
  return _numpy


class Memory:
  """Views of memory, by address, that keep its owner alive.

  They are slices of a memoryview, whose exporter holds the owner: that is cheaper than a call of ctypes. They can be written to,
  because the memory belongs to who has the batch.
  """

  __slots__ = ("_all",)

  def __init__(self, owner):
    exporter = _Anywhere.from_address(0)
    exporter.owner = owner
    self._all = memoryview(exporter).cast("B")

  def uint8(self, address, size):
    """The bytes as a NumPy array."""
    frombuffer, dtype = _numpy or _import_numpy()
    return frombuffer(self._all[address:address + size], dtype)

  def array(self, address, dtype, shape):
    """A NumPy array without gaps."""
    import numpy  # pylint: disable=import-outside-toplevel
    dtype = numpy.dtype(dtype)
    count = 1
    for length in shape:
      count *= length
    return numpy.frombuffer(self._all[address:address + count * dtype.itemsize], dtype).reshape(shape)


def numbers_of(values):
  """(address, count, what keeps them) of anything that NumPy takes for an array of numbers."""
  import numpy  # pylint: disable=import-outside-toplevel
  array = numpy.ascontiguousarray(values, dtype=numpy.uint64).ravel()
  return array.ctypes.data, array.size, array
