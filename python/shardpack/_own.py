"""Operations of the user: their names, and the addresses of those that are C functions."""

# pylint: disable=protected-access

from __future__ import annotations

import ctypes
import numbers
import re
from typing import Any

from ._errors import OptionError

_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__  # of all functions of ctypes
_SIGNATURE = ("int32_t (void *self, uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels, uint64_t stride_bytes, "
              "const uint64_t *sample, uint64_t random, char *error)")
_KINDS = ("int32", "pointer", "pointer", "int32", "int32", "int32", "int64", "pointer", "int64", "pointer")  # the result first
_LEAST = 4096  # nothing is mapped on the first page


def word(name: object, example: str) -> str:
  """A name that can stand in a plan. example: how one is given."""
  if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name, re.ASCII):
    raise OptionError(f"name must be a word of at most 64 letters, digits and _, as in {example}, not {name!r}")
  return name


def address_of(function: Any) -> int:
  """Of a shardpack_op_run: a function of ctypes with its signature, a numba.cfunc, a c_void_p, or the address itself."""
  if isinstance(function, _FUNCTION):
    _check_signature(function)
    return _checked(ctypes.cast(function, ctypes.c_void_p).value, function)
  if isinstance(function, ctypes.c_void_p):
    return _checked(function.value, function)
  of_numba = getattr(function, "address", None)
  if of_numba is not None and not isinstance(function, type):
    try:
      typed = function.ctypes
    except (AttributeError, TypeError, NotImplementedError):  # not every type of numba's is one of ctypes'
      typed = None
    if typed is not None:
      _check_signature(typed)
    return _checked(of_numba, function)
  if callable(function):
    raise OptionError(f"function must be a C function, and {function!r} is one of Python's: give it to Augment.batch, which calls it once "
                      f"for every batch, or make it a C function with numba.cfunc or ctypes.CFUNCTYPE: {_SIGNATURE}")
  return _checked(function, function)


def _checked(address: Any, given: object) -> int:
  if isinstance(address, bool) or not isinstance(address, numbers.Integral) or not _LEAST <= int(address) < 1 << 64:
    raise OptionError(f"function must be a function of ctypes, a numba.cfunc or the address of a C function, not {given!r}")
  return int(address)


def _check_signature(function: Any) -> None:
  if function.argtypes is None:
    raise OptionError(f"function must have restype and argtypes, those of {_SIGNATURE}; argtypes of {function!r} are not set")
  types = [function.restype, *function.argtypes]
  if tuple(map(_kind, types)) != _KINDS:
    names = [getattr(each, "__name__", str(each)) for each in types]
    raise OptionError(f"function must be {_SIGNATURE}, not {names[0]} ({', '.join(names[1:])})")


def _kind(of: Any) -> str:
  if isinstance(of, type):
    if issubclass(of, (ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p)):
      return "pointer"
    if issubclass(of, ctypes._SimpleCData) and getattr(of, "_type_", "") in tuple("iIlLqQ"):
      return f"int{8 * ctypes.sizeof(of)}"
  return "another"
