"""Batches of samples on their way from a Writer to the library."""

from __future__ import annotations

import ctypes
import threading
from array import array
from typing import Any

from . import _c
from ._aside import Aside
from ._errors import ExistsError, OptionError
from ._jobs import in_python
from ._library import Handle, call, library
from ._options import c_text, names
from ._text import decoded

_NONE = (1 << 64) - 1  # the length of what a sample does not have
_FIRST_FIELD = 3  # the values of a sample are key, label, image and the fields


class Sending:
  """A batch that is the Writer's until it has gone to the library: what interrupts the Writer neither loses it nor sends it twice.

  `values`: of each sample key, label, image, and a field for each name. `flush`: whether the library then makes safe what it has.
  """

  def __init__(self, handle: Handle, names: tuple[str, ...], values: list[bytes | None], flush: bool):
    self.values = values
    self._handle, self._names, self._flush = handle, names, flush
    self._lock = threading.Lock()
    self._done = False
    self._refused: dict[bytes, OptionError] = {}
    self._aside: Aside | None = None

  def start(self) -> None:
    """Beside this thread."""
    if self._aside is None:
      self._aside = Aside(self.run)

  def result(self) -> dict[bytes, OptionError]:
    """Waits for its end: the samples that were refused, by their keys; the others have been added."""
    self.start()
    refused: dict[bytes, OptionError] = self._aside.result()  # type: ignore[union-attr]
    return refused

  @property
  def under_way(self) -> bool:
    return self._aside is not None and not self._aside.wait(0)

  def run(self) -> dict[bytes, OptionError]:
    """In this thread. A second call does nothing: a signal may come between the start of the thread and the note of it."""
    with self._lock:
      if not self._done:
        self._refused = self._added_many()
        if self._flush:
          call(library.writer_flush, self._handle)
        self._done = True
      return self._refused

  def _added_many(self) -> dict[bytes, OptionError]:
    lengths = array("Q", [_NONE if value is None else len(value) for value in self.values])
    values = b"".join(value for value in self.values if value is not None)
    samples = _c.samples(ctypes.sizeof(_c.samples))
    samples.count = len(lengths) // (_FIRST_FIELD + len(self._names))
    samples.fields = names(self._names, "fields")
    samples.field_count = len(self._names)
    samples.bytes, samples.byte_count = ctypes.cast(ctypes.c_char_p(values), ctypes.c_void_p), len(values)
    samples.lengths = lengths.buffer_info()[0]
    try:
      call(library.writer_add_many, self._handle, ctypes.byref(samples))
    except (OptionError, ExistsError):  # it names the first sample alone
      return self._refused_ones()
    return {}

  def _refused_ones(self) -> dict[bytes, OptionError]:
    """Those that are refused once more; the others are there already."""
    refused: dict[bytes, OptionError] = {}
    stride = _FIRST_FIELD + len(self._names)
    for first in range(0, len(self.values), stride):
      key, label, image, *fields = self.values[first:first + stride]
      given = {name: value for name, value in zip(self._names, fields) if value is not None}
      try:
        add_one(self._handle, key, label, image, given)  # type: ignore[arg-type]
      except ExistsError:
        pass
      except OptionError as error:
        error.key = decoded(key)  # type: ignore[arg-type]
        refused[key] = error  # type: ignore[index]
    return refused


def add_one(handle: Handle, key: bytes, label: bytes | None, image: bytes, fields: dict[str, bytes]) -> None:
  named = {"image": image, **fields}
  given = (_c.field * len(named))()
  for field, (each, value) in zip(given, named.items()):
    field.name, field.data, field.bytes = c_text(each, "the name of a field"), ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p), len(value)
  try:
    call(library.writer_add, handle, key, len(key), label or None, given, len(named))
  except OptionError as error:
    if b"--" not in key:  # which the message may have
      error.args = (in_python(str(error)),)
    raise
