"""What a Writer is given: checked, and as bytes."""

from __future__ import annotations

import os
from collections.abc import KeysView, Set
from operator import index
from typing import Any, Iterable, Mapping, Sequence

from . import _arguments
from ._arguments import Path
from ._encode import ENCODINGS
from ._errors import OptionError, UnsupportedError, nearest
from ._text import decoded, encoded

IMAGE = "image"
_MOST_KEY_BYTES, _MOST_LABEL_BYTES = 4096, 255
_MOST_LABEL = 999_999
_MOST_SHOWN, _MOST_LISTED = 200, 10
# What others call a label. Not "cls", a field of WebDataset of its own.
_OTHER_LABELS = {"target", "targets", "y", "ys", "category", "categoryid", "categories", "class", "classes", "classname", "classid", "classidx",
                 "classindex", "classlabel", "label", "labels", "labelid", "groundtruth"}


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
  """For messages: shortened, and without what a terminal would obey; also for values that are not keys."""
  try:
    text = shown(key(value))
    if len(text) > _MOST_SHOWN:
      text = text[:_MOST_SHOWN] + "..."
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
  except OptionError:
    return repr(value[:100] if isinstance(value, (str, bytes)) else value)[:_MOST_SHOWN]


def column(value: Any, name: str) -> Sequence[Any]:
  if isinstance(value, (str, bytes, bytearray)):
    raise OptionError(f"{name} must be a column, with an entry for each sample, not {type(value).__name__}")
  if hasattr(value, "__len__"):
    return value  # type: ignore[no-any-return]
  try:
    return list(value)
  except TypeError:
    raise OptionError(f"{name} must be a column, with an entry for each sample, not {type(value).__name__}") from None


def classes(names: Iterable[str] | Mapping[str, int] | None) -> list[bytes]:
  """Those that were given; none: numbered in the order of their names."""
  if names is None:
    return []
  if isinstance(names, (str, bytes, os.PathLike)) or not isinstance(names, Iterable):
    raise OptionError(f"classes must be a list of names, in the order of their labels, not {type(names).__name__}")
  if isinstance(names, Set) and not isinstance(names, KeysView):
    raise OptionError(f"classes must be a list of names, in the order of their labels: a {type(names).__name__} has no order")
  if isinstance(names, Mapping):
    names = _by_number(names)
  found = []
  for name in names:
    if not isinstance(name, (str, bytes)):
      raise OptionError(f"classes must be a list of names, and {name!r} is none")
    found.append(label(name))
  if not found:
    raise OptionError("classes must not be an empty list; None: they are numbered in the order of their names")
  seen: set[bytes] = set()
  for each in found:
    if each in seen:
      raise OptionError(f"classes has {decoded(each)!r} twice")
    seen.add(each)
  return found


def _by_number(numbers: Mapping[str, Any]) -> list[str]:
  """The names in the order of the numbers that a dict gives them."""
  if not all(hasattr(number, "__index__") and not isinstance(number, bool) for number in numbers.values()):
    raise OptionError("classes must be a list of names, or a dict of the number of each name")
  if sorted(map(index, numbers.values())) != [*range(len(numbers))]:
    raise OptionError(f"classes must number its {len(numbers)} names from 0 to {len(numbers) - 1}, each once, as the labels are; a list of "
                      "names numbers them by their order")
  return sorted(numbers, key=lambda name: index(numbers[name]))


def label_of(value: object, names: Sequence[bytes]) -> bytes:
  """A label among classes that were given: a name, or its number."""
  text = label(value)
  if isinstance(value, (str, bytes)):
    if text in names:
      return text
    raise OptionError(f"label {decoded(text)!r} is not among the {len(names)} classes of the Writer"
                      + (nearest(decoded(text), map(decoded, names)) or f": {_listed(names)}"))
  number = int(text)
  if number >= len(names):
    raise OptionError(f"label {number} is not among the {len(names)} classes of the Writer: it has 0 to {len(names) - 1}, {_listed(names)}")
  return names[number]


def _listed(names: Sequence[bytes]) -> str:
  return ", ".join(repr(decoded(name)) for name in names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")


def label(value: object) -> bytes:
  if getattr(value, "ndim", 0) != 0:
    raise OptionError(f"label must be the name of a class or a number, not an array of {getattr(value, 'ndim')} dimensions: of a one-hot "
                      "label give the number, int(label.argmax())")
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


def quality(value: Any) -> int:
  if isinstance(value, bool) or not hasattr(value, "__index__") or not 1 <= index(value) <= 100:
    raise OptionError(f"quality must be a number from 1 to 100, not {value!r}")
  return index(value)


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


def like_a_label(name: str) -> str | None:
  """What a field of that name may have been meant as where a sample has no label; None: a field."""
  if name.lower().replace("_", "").replace("-", "") in _OTHER_LABELS:
    return "the sample has no label: the class of a sample is label= of add(), and labels= of add_many()"
  return None


def like_an_argument(name: str) -> str | None:
  """What a field of that name would be instead of what was meant, which is said here; None: nothing."""
  import difflib  # pylint: disable=import-outside-toplevel
  if name == "split":
    return "splits come from Writer(split=\"train=0.9,val=0.1\"), or from a Writer for each"
  if name in ("class", "classes", "class_name", "class_id", "labels"):
    return "the class of a sample is label= of add(), and labels= of add_many()"
  if name == "images":
    return "the image of a sample is image= of add(), and images= of add_many()"
  close = difflib.get_close_matches(name, ("label", "labels"), 1, 0.8) or difflib.get_close_matches(name, ("encode", "quality"), 1, 0.85)
  return f"did you mean {close[0]!r}?" if close else None


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
