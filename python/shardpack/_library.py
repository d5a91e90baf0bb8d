"""Finds libshardpack.so.0 and calls it: `library.order_steps(handle)`, and `call(...)` for what can fail.

The library is the one in lib/ beside this file, else $SHARDPACK_LIBRARY, else the one that the system's loader finds.
"""

from __future__ import annotations

import ctypes
import os
from operator import attrgetter
from types import MethodType
from typing import Any, Callable

from . import _c, _errors, _text

SONAME = "libshardpack.so.0"
INTERFACE = b"SHARDPACK_0"  # the version of its symbols
WAIT_MS = 100  # at once, for the library: what Ctrl-C may have to wait


def _open() -> tuple[str, ctypes.CDLL]:
  own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", SONAME)
  path = own if os.path.exists(own) else os.environ.get("SHARDPACK_LIBRARY") or SONAME
  try:
    return path, ctypes.CDLL(path)
  except OSError as error:
    raise ImportError(f"the library of shardpack cannot be loaded: {error}\nIt is looked for in this order: {own}; "
                      f"the file that SHARDPACK_LIBRARY names; {SONAME} where the system's loader looks") from None


def _check(path: str, opened: ctypes.CDLL) -> None:
  """Throughout an interface libraries only grow, so newer ones are good, and older ones are not."""
  of_version = ctypes.CDLL(None).dlvsym  # of glibc
  of_version.restype, of_version.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
  if not of_version(opened._handle, b"shardpack_version", INTERFACE):
    raise ImportError(f"{path} does not have the interface {INTERFACE.decode()}, which this package (version {_c.VERSION}) is made "
                      "for: it is another library, or one that is too new")
  opened.shardpack_version.restype = ctypes.c_char_p
  version = opened.shardpack_version().decode()
  if _numbers(version) < _numbers(_c.VERSION):
    raise ImportError(f"{path} has version {version}, which is too old for this package (version {_c.VERSION})")


def _numbers(version: str) -> list[int]:
  return [int(part) for part in version.split("-")[0].split(".")]


class _Library:
  """The functions, without the prefix of their names, bound as they are needed."""

  def __init__(self) -> None:
    self.path, self._opened = _open()
    _check(self.path, self._opened)

  def __getattr__(self, name: str) -> Any:
    if name not in _c.FUNCTIONS:
      raise AttributeError(name)
    try:
      function = self._opened["shardpack_" + name]
    except AttributeError:
      raise _errors.UnsupportedError(f"{self.path} has no shardpack_{name}") from None
    result, arguments = _c.FUNCTIONS[name]
    function.restype, function.argtypes = result, arguments  # type: ignore[assignment]
    setattr(self, name, function)
    return function


library = _Library()


class Handle:
  """A reference to an object of the library, which is released with it. Functions take it as their argument.

  It is made empty and filled by the function that makes the object, so that nothing is lost between the two when the handler
  of a signal raises an exception.
  """

  __slots__ = ("_as_parameter_", "_release")

  # The function is kept, because the names of a module are gone when the interpreter ends. It accepts NULL.
  def __init__(self, release: Callable[..., object]) -> None:
    self._as_parameter_ = ctypes.c_void_p()
    self._release = MethodType(release, self._as_parameter_)

  # Called without a line of Python, so that no signal is handled there: what its handler raises would be lost.
  __del__: Any = property(attrgetter("_release"))

  def __bool__(self) -> bool:
    return bool(self._as_parameter_)

  def __reduce__(self) -> Any:
    raise TypeError("objects of shardpack are not pickled: open the dataset and its loader in each process, by path and cursor")

  def abandon(self) -> None:
    """Leaves the object to the end of the process."""
    self._as_parameter_.value = None

  def release(self) -> None:
    """At once, even if somebody still refers to it."""
    self._release()
    self.abandon()

  @property
  def to_fill(self) -> Any:
    return ctypes.byref(self._as_parameter_)

  @property
  def pointer(self) -> int | None:
    return self._as_parameter_.value


def made(release: Callable[..., object], function: Any, *arguments: Any) -> Handle:
  """Handle of what `function(*arguments, result, error)` makes."""
  handle = Handle(release)
  call(function, *arguments, handle.to_fill)
  return handle


def call(function: Any, *arguments: Any) -> int:
  """Returns the code of a success. Raises errors."""
  error = ctypes.c_void_p()
  code: int = function(*arguments, ctypes.byref(error))
  if code >= _c.INVALID:
    raise _errors.of_function(function.__name__, _taken(code, error))
  return code


def waited(function: Any, handle: Handle, *results: Any) -> int:
  """The same for `function(handle, wait_ms, *results, error)`, until it is done. Python answers signals between the waits."""
  while True:
    code = call(function, handle, WAIT_MS, *results)
    if code != _c.WAIT:
      return code


def _taken(code: int, error: ctypes.c_void_p) -> _errors.Error:
  try:
    info = _c.error_info(ctypes.sizeof(_c.error_info))
    library.error_info_of(error, ctypes.byref(info))
    return _errors.of(library.code_name(code).decode(), info)
  finally:
    library.error_free(error)


def text_of(text: Any) -> str:
  """Text of a shardpack_text."""
  return _text.decoded(ctypes.string_at(text.data, text.size))


def text_made(function: Any, *arguments: Any) -> str:
  """Text that the function makes of its arguments, which is freed."""
  text = ctypes.c_char_p()
  call(function, *arguments, ctypes.byref(text))
  try:
    return _text.decoded(text.value or b"")
  finally:
    library.text_free(text)
