"""Columns of a dataset, one row a sample: views of its shards' indexes, or these joined."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _c
from ._errors import Error, NotFoundError
from ._library import Handle, call, library, text_of
from ._memory import Memory, import_numpy
from ._text import decoded, encoded

Array = Any  # NumPy's, which need not be there
Texts = Tuple[Array, Array]  # ends, bytes: a text begins where the one before it ends

KEY = (_c.COLUMN_KEY_ENDS, _c.COLUMN_KEY_TEXT)
PATH = (_c.COLUMN_PATH_ENDS, _c.COLUMN_PATH_TEXT)
# Fewer are verified before a thread has started.
_SAMPLES_FOR_THREADS = 100_000
_DTYPES = {"q": "<i8", "Q": "<u8", "B": "u1"}
_IMAGE = {"names": ["width", "height", "orientation"], "formats": ["<u4", "<u4", "u1"], "offsets": [0, 4, 12], "itemsize": 16}


class ShardInfo:
  """What a manifest says about a shard."""

  __slots__ = ("name", "split", "first_id", "records")

  def __init__(self, handle: Handle, shard: int) -> None:
    info = _c.shard_info(ctypes.sizeof(_c.shard_info))
    call(library.dataset_shard, handle, shard, info)
    self.name: str = text_of(info.name)
    self.split: Optional[str] = text_of(info.split) or None
    self.first_id: int = info.first_id
    self.records: int = info.records


class Columns:
  """Of whole shards; a selection takes its rows of them."""

  def __init__(self, handle: Handle, shards: int) -> None:
    self._handle, self._memory, self._count = handle, Memory(handle), shards
    self._views: Dict[Tuple[int, int], Any] = {}  # those of the indexes that were needed
    self._joined: Dict[Any, Any] = {}

  @functools.cached_property
  def shards(self) -> List[ShardInfo]:
    return [ShardInfo(self._handle, shard) for shard in range(self._count)]

  def view(self, shard: int, column: int, field: Optional[str] = None) -> Any:
    """_c.column of a shard's index, which is verified with the first one."""
    if field is None and (shard, column) in self._views:
      return self._views[shard, column]
    view = _c.column()
    call(library.dataset_column, self._handle, shard, column, None if field is None else encoded(field, "field"), view)
    if field is None:
      self._views[shard, column] = view
    return view

  def _verify(self) -> None:
    """Looks at all indexes once, with as many threads as may run: the library verifies each with the first look, outside of the
    interpreter's lock. Damage is an error when it is read."""
    waiting = [shard for shard in range(self._count) if (shard, _c.COLUMN_LABEL) not in self._views]
    threads = min(len(os.sched_getaffinity(0)), len(waiting))
    if threads < 2 or sum(self.shards[shard].records for shard in waiting) < _SAMPLES_FOR_THREADS:
      return
    def verify(first: int) -> None:
      for shard in waiting[first::threads]:
        try:
          self.view(shard, _c.COLUMN_LABEL)
        except Error:
          pass
    started = []
    for first in range(1, threads):
      thread = threading.Thread(target=verify, args=(first,), daemon=True)
      try:
        thread.start()
      except RuntimeError:  # no further thread is allowed
        break
      started.append(thread)
    verify(0)
    for thread in started:
      thread.join()

  def text(self, shard: int, record: int, kind: Tuple[int, int]) -> str:
    """A record's key or path, without NumPy."""
    at = self.view(shard, kind[0]).data + 8 * record
    end = ctypes.c_uint64.from_address(at).value
    begin = ctypes.c_uint64.from_address(at - 8).value if record > 0 else 0
    return decoded(ctypes.string_at(self.view(shard, kind[1]).data + begin, end - begin))

  def image(self, shard: int, record: int) -> Any:
    """_c.image of a record."""
    column = self.view(shard, _c.COLUMN_IMAGE)
    return _c.image.from_address(column.data + record * column.item_bytes)

  def of_shard(self, shard: int, column: int, field: Optional[str] = None) -> Array:
    """A view of the index; for a field that no record of the shard has, zeros."""
    try:
      view = self.view(shard, column, field)
    except NotFoundError as error:
      if field is None or error.field != field:  # it is the index that is not there
        raise
      numpy = import_numpy()
      return numpy.zeros(self.shards[shard].records, "<u8")
    dtype = _IMAGE if column == _c.COLUMN_IMAGE else _DTYPES[view.type.decode()]
    return self._memory.read_only(view.data, dtype, view.count)

  def joined(self, column: int, field: Optional[str] = None) -> Array:
    """Of one shard a view of the index; of several a copy, which is kept."""
    return self.kept((column, field), lambda: self._join([self.of_shard(shard, column, field) for shard in range(len(self.shards))], column))

  @staticmethod
  def _join(parts: List[Array], column: int) -> Array:
    numpy = import_numpy()
    if len(parts) == 1:
      return parts[0]
    if not parts:
      return frozen(numpy.empty(0, _IMAGE if column == _c.COLUMN_IMAGE else "<u8"))
    return frozen(numpy.concatenate(parts))

  def image_part(self, name: str) -> Array:
    """"width" or "height": of one shard a view with gaps."""
    def make() -> Array:
      numpy = import_numpy()
      parts = [self.of_shard(shard, _c.COLUMN_IMAGE)[name] for shard in range(len(self.shards))]
      return parts[0] if len(parts) == 1 else frozen(numpy.concatenate(parts or [numpy.empty(0, "<u4")]))
    return self.kept(name, make)

  def shard_ids(self) -> Array:
    def make() -> Array:
      numpy = import_numpy()
      return frozen(numpy.repeat(numpy.arange(len(self.shards), dtype=numpy.uint32), [shard.records for shard in self.shards]))
    return self.kept("shard_ids", make)

  def text_part(self, shard: int, kind: Tuple[int, int]) -> Texts:
    return self.of_shard(shard, kind[0]), self.of_shard(shard, kind[1])

  def text_parts(self, kind: Tuple[int, int]) -> List[Texts]:
    """A shard each."""
    return [self.text_part(shard, kind) for shard in range(len(self.shards))]

  def texts(self, kind: Tuple[int, int]) -> Texts:
    """The keys or paths of all samples."""
    def make() -> Texts:
      numpy = import_numpy()
      parts = self.text_parts(kind)
      if len(parts) == 1:
        return parts[0]
      starts = numpy.cumsum([0] + [text.size for _, text in parts], dtype=numpy.uint64)
      ends = [end + start for (end, _), start in zip(parts, starts)]
      return (numpy.concatenate(ends or [numpy.empty(0, "<u8")]), numpy.concatenate([text for _, text in parts] or [numpy.empty(0, "u1")]))
    return self.kept(kind, make)  # type: ignore[no-any-return]

  def kept(self, name: Any, make: Callable[[], Any]) -> Any:
    """Of two threads that make it, both results are good."""
    if name not in self._joined:
      self._verify()
      self._joined[name] = make()
    return self._joined[name]


def frozen(array: Array) -> Array:
  array.flags.writeable = False
  return array


def offsets_of(ends: Array) -> Array:
  """int64 [n + 1]: where each text begins, and the last one ends."""
  numpy = import_numpy()
  offsets = numpy.empty(len(ends) + 1, numpy.int64)
  offsets[0] = 0
  offsets[1:] = ends
  return offsets


def taken_texts(texts: Texts, ids: Array) -> Texts:
  """Those of some rows."""
  numpy = import_numpy()
  offsets = offsets_of(texts[0])
  begins = offsets[ids]
  sizes = offsets[ids + numpy.uint64(1)] - begins
  ends = numpy.cumsum(sizes)
  # Of each byte its place in the text: that in the result, moved by what its row is moved by.
  places = numpy.arange(ends[-1] if len(ends) else 0) + numpy.repeat(begins - (ends - sizes), sizes)
  return ends.astype(numpy.uint64), texts[1][places]


def strings(texts: Texts) -> Array:
  """Python's strings, as an array of objects. Bytes that are not UTF-8 come back with .encode("utf-8", "surrogateescape")."""
  numpy = import_numpy()
  offsets, data = offsets_of(texts[0]).tolist(), texts[1].tobytes()
  array = numpy.empty(len(texts[0]), object)
  if data.isascii():
    text = data.decode()
    array[:] = [text[begin:end] for begin, end in zip(offsets, offsets[1:])]
  else:
    array[:] = [decoded(data[begin:end]) for begin, end in zip(offsets, offsets[1:])]
  return frozen(array)
