"""What a Writer is given: checked, and as bytes."""

from __future__ import annotations

import os
from operator import index
from typing import Any, Iterable, Mapping

from . import _arguments
from ._arguments import Path
from ._encode import ENCODINGS
from ._errors import OptionError, UnsupportedError
from ._text import decoded, encoded

IMAGE = "image"
_MOST_KEY_BYTES, _MOST_LABEL_BYTES = 4096, 255
_MOST_LABEL = 999_999
_MOST_SHOWN = 200


def absolute(path: Path, what: str) -> bytes:
  """The working folder may be another one by the time of the finish."""
  return os.path.join(os.getcwdb(), _arguments.path(path, what))


def key(value: object) -> bytes:
  if not isinstance(value, (str, bytes)):
    raise OptionError(f"key must be text, not {type(value).__name__}")
  text = encoded(value, "key")
  if not 0 < len(text) <= _MOST_KEY_BYTES or b"\0" in text:
    raise OptionError(f"key must have 1 to {_MOST_KEY_BYTES} bytes, none of them zero: {value[:100]!r}")
  return text


def shown_key(value: object) -> str:
  """For messages; also for values that are not keys."""
  try:
    return shown(key(value))
  except OptionError:
    return repr(value[:100] if isinstance(value, (str, bytes)) else value)[:_MOST_SHOWN]


def column(value: object, name: str) -> None:
  if isinstance(value, (str, bytes, bytearray)):
    raise OptionError(f"{name} must be a column, with an entry for each sample, not {type(value).__name__}")


def label(value: object) -> bytes:
  if hasattr(value, "__index__") and not isinstance(value, bool):
    if index(value) < 0:
      raise OptionError(f"label must be a number of at least 0, or None, not {value}")
    if index(value) > _MOST_LABEL:
      raise OptionError(f"label must be a number of at most {_MOST_LABEL}, not {value}: give the name of a class as text")
    value = str(index(value))
  if not isinstance(value, (str, bytes)):
    raise OptionError(f"label must be the name of a class, such as 'cat', or a number, not {type(value).__name__}")
  text = encoded(value, "label")
  if not 0 < len(text) <= _MOST_LABEL_BYTES or b"\0" in text:
    raise OptionError(f"label must have 1 to {_MOST_LABEL_BYTES} bytes, none of them zero; None means no label")
  return text


def pixels_encoding(encode: str | None) -> str | None:
  encode = _spelled(encode)
  if encode not in (None, "jpeg", "png"):
    raise OptionError(f"encode must be 'jpeg' or 'png', not {encode!r}")
  return encode


def _spelled(encoding: Any) -> Any:
  """pack says jpg for jpeg."""
  return "jpeg" if encoding == "jpg" else encoding


def order(value: str) -> None:
  """The library's finish sorts by key: that is what makes the bytes the same for any number of workers."""
  if value == "arrival":
    raise UnsupportedError("order=\"arrival\" is not supported: samples are packed in the order of their keys")
  if value != "key":
    raise OptionError(f"order must be 'key', not {value!r}")


def quality(value: int) -> int:
  if not isinstance(value, int) or not 1 <= value <= 100:
    raise OptionError(f"quality must be a number from 1 to 100, not {value!r}")
  return value


def declared(fields: Iterable[str] | Mapping[str, str] | None) -> tuple[dict[str, str], frozenset[str] | None]:
  """The encodings that were given, and the names of the fields that samples have besides the image."""
  if fields is None:
    return {}, None
  if isinstance(fields, (str, bytes)):
    raise OptionError("fields must be a list of names, not a single name")
  encodings = {name: _spelled(encoding) for name, encoding in fields.items()} if isinstance(fields, Mapping) else {}
  for name, encoding in encodings.items():
    if encoding not in (*ENCODINGS, None):
      raise OptionError(f"fields: the encoding of {name} must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
  return encodings, frozenset(fields) - {IMAGE}


def shown(text: bytes) -> str:
  return decoded(text).encode("utf-8", "replace").decode()


def is_number(label_given: object, text: bytes) -> bool | None:
  """Of what kind a label is; None: "7" goes with numbers and with names."""
  if not isinstance(label_given, (str, bytes)):
    return True
  return None if text.isdigit() and text == b"%d" % int(text) else False


def mixed_kinds(number: bytes, name: bytes, where: str) -> OptionError:
  """Next to a name, numbers would be names too, and be renumbered."""
  return OptionError(f"label must be a number in all samples or a name in all: {decoded(name)!r} is a name and {decoded(number)} a number, "
                     f"which would be a name too, and numbered in the order of their names{where}")
