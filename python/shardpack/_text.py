"""Text of datasets: keys, and the names of classes, splits and fields. In the library they are bytes, by custom UTF-8, in any locale;
paths are the file system's, os.fsencode.
"""

from __future__ import annotations

from ._errors import OptionError


def decoded(text: bytes) -> str:
  """Bytes that are not UTF-8 come back with `encoded`."""
  return text.decode("utf-8", "surrogateescape")


def encoded(text: str | bytes, what: str = "text") -> bytes:
  """The same of what is bytes already."""
  if isinstance(text, bytes):
    return text
  if not isinstance(text, str):
    raise TypeError(f"{what} must be str or bytes, not {type(text).__name__}")
  try:
    return text.encode("utf-8", "surrogateescape")
  except UnicodeEncodeError:
    raise OptionError(f"{what} is text that UTF-8 cannot hold: {text[:100]!r}") from None
