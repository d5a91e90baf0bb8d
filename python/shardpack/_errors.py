"""The exceptions: each is an Error and the built-in one that callers expect."""

import ctypes


class Error(Exception):
  """What the library reports.

  `code` is its name, such as "DATA_LOSS". `path`, `shard`, `key`, `field`, `record`, `offset` and `id` say where, and are None
  where that is not known: `record` counts in the shard, `offset` is in bytes, `id` counts in the dataset.
  """

  code = path = shard = key = field = record = offset = id = None


class OptionError(Error, ValueError):
  """An argument that is wrong, or does not fit the others."""


class StateError(Error, ValueError):
  """Not now: the loader was opened before a fork, or has been taken by another one."""


class UnsupportedError(Error, ValueError):
  """What this build, format or machine cannot do."""


class NotFoundError(Error, FileNotFoundError):
  """A file, split or field that is not there."""


class OutOfRangeError(Error, IndexError):
  """A number past the end."""


class DataLossError(Error, OSError):
  """Bytes that are damaged, missing or not those that were packed."""


class NoMemoryError(Error, MemoryError):
  """Memory, page-locked memory or threads that are not to be had."""


class DeniedError(Error, PermissionError):
  """Permissions."""


class CancelledError(Error, RuntimeError):
  """The loader was stopped."""


class SystemCallError(Error, OSError):
  """Any other error of the system; `errno` is its number."""


class DeviceError(Error, RuntimeError):
  """A device that is lost or cannot be used."""


class InternalError(Error, RuntimeError):
  """A defect of the library."""


class ExistsError(Error, FileExistsError):
  """What would be written is there already."""


class NoAnswerError(Error, TimeoutError):
  """A device or consumer did not answer in time."""


_OF_CODE = {
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


def of(code, info):
  """The exception for a code's name and a shardpack_error_info."""
  error = _OF_CODE.get(code, InternalError)(_text(info.message))
  error.code = code
  for name in ("path", "shard", "key", "field"):
    text = _text(getattr(info, name))
    if text:
      setattr(error, name, text)
  for name in ("record", "offset", "id"):
    number = getattr(info, name)
    if number >= 0:
      setattr(error, name, number)
  if info.system_errno and isinstance(error, OSError):
    error.errno = info.system_errno
  return error


def as_device_error(error):
  """The same as a DeviceError, whatever kept the device from being used."""
  made = DeviceError(*error.args)
  made.__dict__.update(error.__dict__)
  return made


def _text(text):
  return ctypes.string_at(text.data, text.size).decode("utf-8", "surrogateescape") if text.size else ""
