"""Python's keywords as the words of a command of `pack`."""

from __future__ import annotations

import numbers
import os
from typing import Any, Iterable, Mapping, Union

from ._errors import OptionError, nearest
from ._flags import FLAGS

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def words(verb: str, flags: Mapping[str, Any], without: Iterable[str] = ()) -> list[bytes]:
  """"--shard-size=512MB" of `shard_size="512MB"`. Refuses what the command does not have, and the flags `without`."""
  known = {name: kind for name, kind in FLAGS[verb].items() if name not in without}
  typed: list[bytes] = []
  for keyword, value in flags.items():
    name = keyword.rstrip("_").replace("_", "-")  # from_
    if value is None:
      continue
    if name not in known and "no-" + name in known:
      typed += _switch("no-" + name, not _flag(keyword, value), False)
    elif name not in known:
      names = [each.replace("-", "_") for each in known]
      raise OptionError(f"pack {verb} has no flag '{keyword}'{nearest(keyword, names)}")
    elif known[name] in ("switch", "negatable"):
      typed += _switch(name, _flag(keyword, value), known[name] == "negatable")
    elif known[name] == "optional" and isinstance(value, bool):
      typed += _switch(name, value, False)
    else:
      typed += [f"--{name}=".encode() + text for text in _values(keyword, value, known[name])]
  return typed


def paths(values: Any, what: str) -> list[bytes]:
  """One path, or several."""
  if isinstance(values, (str, bytes, os.PathLike)):
    values = [values]
  elif not isinstance(values, Iterable):
    raise OptionError(f"{what} must be a path or a list of paths, not {type(values).__name__}")
  found = [path(value, what) for value in values]
  if not found:
    raise OptionError(f"{what} must not be an empty list")
  return found


def path(value: Any, what: str) -> bytes:
  if not isinstance(value, (str, bytes, os.PathLike)):
    raise OptionError(f"{what} must be a path, not {type(value).__name__}")
  encoded = os.fsencode(value)
  if not encoded or b"\0" in encoded:
    raise OptionError(f"{what} must not be empty" if not encoded else f"{what} must not contain a zero byte")
  return encoded


def _flag(keyword: str, value: Any) -> bool:
  if not isinstance(value, bool):
    raise OptionError(f"{keyword} must be True or False, not {value!r}")
  return value


def _switch(name: str, on: bool, negatable: bool) -> list[bytes]:
  if on:
    return [f"--{name}".encode()]
  return [f"--no-{name}".encode()] if negatable else []


def _values(keyword: str, value: Any, kind: str) -> list[bytes]:
  if isinstance(value, Mapping):
    return [b",".join(_text(keyword, name) + b"=" + _text(keyword, each) for name, each in value.items())]
  if isinstance(value, (list, tuple, set, frozenset)):
    texts = [_text(keyword, each) for each in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if kind == "repeated":
      return texts
    return [(b"x" if kind == "size" else b",").join(texts)]
  return [_text(keyword, value)]


def _text(keyword: str, value: Any) -> bytes:
  if isinstance(value, (str, bytes, os.PathLike)):
    text = os.fsencode(value)
  elif hasattr(value, "__index__") and not isinstance(value, bool):  # NumPy's integers too
    text = str(value.__index__()).encode()
  elif isinstance(value, numbers.Real) and not isinstance(value, bool):  # NumPy's too, of which repr() tells the type
    text = (str(value) if hasattr(value, "dtype") else repr(float(value))).encode()
  else:
    raise OptionError(f"{keyword} must be a str, a number, a path or a list of these, not {value!r}")
  if b"\0" in text:
    raise OptionError(f"{keyword} must not contain a zero byte")
  return text
