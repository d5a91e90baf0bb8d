"""The exceptions: each is an Error and the built-in one that callers expect."""

from __future__ import annotations

import ctypes
import os
from errno import EDQUOT, ENOSPC
from typing import Any, Iterable, Mapping, Sequence, TypeVar


class Error(Exception):
  """What the library reports. It can be pickled, with all of its attributes.

  `code` is its name, such as "DATA_LOSS". `path`, `shard`, `key`, `field`, `record`, `offset` and `id` say where, and are None
  where that is not known: `record` counts in the shard, `offset` is in bytes, `id` counts in the dataset. Those that are an
  OSError have path as `filename` too, and `errno` and `strerror` where the system said why.

  >>> try:
  ...   shardpack.Dataset("shards")[1000]
  ... except shardpack.Error as error:
  ...   print(type(error).__name__, error.code)
  OutOfRangeError OUT_OF_RANGE
  """

  code: str | None = None
  path: str | None = None
  shard: str | None = None
  key: str | None = None
  field: str | None = None
  record: int | None = None
  offset: int | None = None
  id: int | None = None

  def __str__(self) -> str:
    """What happened: an OSError with an errno and a filename would say these instead."""
    return str(self.args[0]) if len(self.args) == 1 else super().__str__()

  # Those of the built-in classes know nothing of what was set later.
  def __reduce__(self) -> tuple[Any, ...]:
    return _again, (type(self), self.args, self.__dict__, *_of_system(self))


_E = TypeVar("_E", bound=Error)


def _of_system(error: Error) -> tuple[int | None, str | None]:
  return (error.errno, error.filename) if isinstance(error, OSError) else (None, None)


def _again(kind: type[_E], arguments: tuple[Any, ...], attributes: Mapping[str, Any], errno: int | None,
           filename: str | None = None) -> _E:
  error = kind(*arguments)
  error.__dict__.update(attributes)
  if isinstance(error, OSError):
    if errno is not None:
      error.errno, error.strerror = errno, os.strerror(errno)
    if filename is not None:
      error.filename = filename
  return error


class OptionError(Error, ValueError, TypeError):
  """An argument that is wrong, or does not fit the others."""


class CursorError(OptionError):
  """A cursor of another dataset or order. `differences` names what differs: (what, what it was, what it is) of each.

  >>> state = shardpack.load("shards", split="train", batch=8, seed=1).state_dict()
  >>> try:
  ...   shardpack.load("shards", split="train", batch=8, seed=2, cursor=state)
  ... except shardpack.CursorError as error:
  ...   print(error.differences)
  (('seed', '1', '2'),)
  """

  differences: Sequence[tuple[str, Any, Any]] = ()


class StateError(Error, ValueError):
  """Not now: the loader was opened before a fork, or has been taken by another one."""


class UnsupportedError(Error, ValueError):
  """What this build, format or machine cannot do."""


class NotFoundError(Error, FileNotFoundError):
  """A file, split or field that is not there."""


class NotADatasetError(NotFoundError, OptionError):
  """A path where there is no dataset."""


class OutOfRangeError(Error, IndexError):
  """A number past the end."""


class DataLossError(Error, OSError):
  """Bytes that are damaged, missing or not those that were packed."""


class NoMemoryError(Error, MemoryError):
  """Memory, page-locked memory or threads that are not to be had."""


class DeniedError(Error, PermissionError):
  """Permissions."""


class CancelledError(Error, RuntimeError):
  """The loader was stopped, or the job cancelled: the same job goes on with what it has finished."""


class ExistsError(Error, FileExistsError):
  """What would be written is there already."""


class PackError(Error, RuntimeError):
  """A job that failed. Its message has what `pack` said. PackUsageError, PackNotFoundError and PackExistsError are PackErrors too.

  `exit_code` is that of `pack` (docs/cli.md: 2 usage, 4 damage, 5 conflict, 6 I/O; 128 + N: signal N ended it), `command` the
  words that it was started with, `stderr` all that it wrote (both without the list of keys, a temporary file, of a selection that
  is converted), `report` what it reported, a dict, or None.

  >>> try:
  ...   shardpack.pack("photos", "shards", seed=3)   # where another dataset is
  ... except shardpack.PackError as error:
  ...   print(type(error).__name__, error.exit_code, error.command[:2])
  PackExistsError 5 ('pack', 'build')
  """

  exit_code: int = -1
  command: Sequence[str] = ()
  stderr: str = ""
  report: Mapping[str, Any] | None = None


class PackUsageError(PackError, OptionError):
  """A job whose flags or inputs `pack` refused (exit code 2)."""


class PackNotFoundError(PackError, NotFoundError):
  """A job of a path where nothing is (exit code 2); `path` is that."""


class PackExistsError(PackError, ExistsError):
  """A job whose output is there already, or of another run (exit code 5); `path` is that."""


class SystemCallError(Error, OSError):
  """Any other error of the system; `errno` is its number: ENOSPC or EDQUOT where a disk is full."""


class DeviceError(Error, RuntimeError):
  """A device that is lost or cannot be used."""


class InternalError(Error, RuntimeError):
  """A defect of the library."""


class NoAnswerError(Error, TimeoutError):
  """A device or consumer did not answer in time."""


DISK_FULL = (ENOSPC, EDQUOT)

_OF_CODE: dict[str, type[Error]] = {
    "INVALID": OptionError,
    "NOT_FOUND": NotFoundError,
    "OUT_OF_RANGE": OutOfRangeError,
    "DATA_LOSS": DataLossError,
    "NO_MEMORY": NoMemoryError,
    "DENIED": DeniedError,
    "CANCELLED": CancelledError,
    "UNSUPPORTED": UnsupportedError,
    "STATE": StateError,
    "IO": SystemCallError,
    "UNAVAILABLE": DeviceError,
    "EXISTS": ExistsError,
    "TIMEOUT": NoAnswerError,
}


def of(code: str, info: Any) -> Error:
  """The exception for a code's name and a shardpack_error_info."""
  if code == "NO_MEMORY" and info.system_errno in DISK_FULL:  # C has one code for all that has run out
    code = "IO"
  attributes: dict[str, Any] = {"code": code}
  for name in ("path", "shard", "key", "field"):
    text = _text(getattr(info, name))
    if text:
      attributes[name] = text
  for name in ("record", "offset", "id"):
    number = getattr(info, name)
    if number >= 0:
      attributes[name] = number
  return _again(_OF_CODE.get(code, InternalError), (_text(info.message),), attributes, info.system_errno or None, attributes.get("path"))


def made_error(kind: type[_E], message: str, attributes: Mapping[str, Any]) -> _E:
  """With its path as filename too."""
  return _again(kind, (message,), attributes, None, attributes.get("path"))


def of_function(name: str, error: Error) -> Error:
  """Another exception where the function says more than its code."""
  if name == "shardpack_dataset_open" and error.code in ("NOT_FOUND", "INVALID"):
    return _again(NotADatasetError, error.args, error.__dict__, *_of_system(error))
  return error


def nearest(name: str, known: Iterable[str]) -> str:
  """"; did you mean 'batch'?", or nothing."""
  import difflib  # pylint: disable=import-outside-toplevel
  close = difflib.get_close_matches(name, list(known), 1)
  return f"; did you mean {close[0]!r}?" if close else ""


def as_device_error(error: Error) -> DeviceError:
  """The same as a DeviceError, whatever kept the device from being used."""
  made = DeviceError(*error.args)
  made.__dict__.update(error.__dict__)
  return made


def _text(text: Any) -> str:
  return ctypes.string_at(text.data, text.size).decode("utf-8", "surrogateescape") if text.size else ""
