"""Arrow's C data and stream interface by ctypes (https://arrow.apache.org/docs/format/CStreamInterface.html).

What a consumer takes, it may keep for as long as it likes, and release on any thread and at any moment: while an exception is on its
way, and when the interpreter is gone. A function of Python could not be called then, so the releases are the library's, which set a
flag. What belongs to a struct is in `_kept` until its flag is seen, with the next export.
"""

from __future__ import annotations

import ctypes
from errno import EINTR, EIO
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from . import _columns
from ._capsules import Exports, is_ours_alone, new_capsule
from ._columns import Array, Texts
from ._library import library
from ._memory import import_numpy
from ._text import encoded

_NULLABLE = 2


class _Schema(ctypes.Structure):
  pass


class _Array(ctypes.Structure):
  pass


_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
                    ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p), ("dictionary", ctypes.POINTER(_Schema)),
                    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]
_Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p), ("children", ctypes.c_void_p),
                   ("dictionary", ctypes.POINTER(_Array)), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class _Stream(ctypes.Structure):
  _fields_ = [("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p), ("get_last_error", ctypes.c_void_p),
              ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class Field(NamedTuple):
  """A column's name and type."""

  name: str
  format: str
  nullable: bool = False
  dictionary: Optional[Any] = None  # the Field of the values


class Column(NamedTuple):
  """Some rows of a column."""

  length: int
  buffers: List[Optional[Array]]  # None: no row is null
  nulls: int = 0
  dictionary: Optional[Any] = None  # the Column of the values


# ---- columns

def numbers(values: Array) -> Column:
  """Without a copy unless they have gaps."""
  return Column(len(values), [None, import_numpy().ascontiguousarray(values)])


def texts(ends: Array, data: Array) -> Column:
  return Column(len(ends), [None, _columns.offsets_of(ends), data])


def chosen(values: Array, names: Column) -> Column:
  """Numbers of names, null where there is no such name."""
  numpy = import_numpy()
  valid = (values >= 0) & (values < names.length)
  nulls = int(len(values) - numpy.count_nonzero(valid))
  bits = numpy.packbits(valid, bitorder="little") if nulls else None
  return Column(len(values), [bits, numpy.where(valid, values, 0).astype(numpy.int32)], nulls, names)


def _joined(names: List[str]) -> Texts:
  numpy = import_numpy()
  each = [encoded(name) for name in names]
  ends = numpy.cumsum([len(name) for name in each], dtype=numpy.uint64)
  return ends, numpy.frombuffer(b"".join(each) or b"\0", numpy.uint8)


def names_column(names: List[str]) -> Column:
  return texts(*_joined(names))


def names_field(names: List[str]) -> Field:
  return Field("", text_format([_joined(names)]))


def text_format(parts: List[Texts]) -> str:
  """Text with 64-bit offsets; binary if a row is not UTF-8."""
  return "U" if all(map(_are_utf8, parts)) else "Z"


def _are_utf8(rows: Texts) -> bool:
  ends, data = rows
  try:
    str(data.data, "utf-8")
  except UnicodeDecodeError:
    return False
  begins = ends[ends < len(data)].astype("int64")
  return not ((data[begins] & 0xC0) == 0x80).any()  # that would be in the middle of a character


# ---- structs


def _for_ever(what: Any) -> Any:
  """Not freed at the end of the interpreter, which consumers may outlive."""
  ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))
  return what


class _Flags:
  """Memory for flags: uint64 that are 1 once a struct is released. It stays, and is used again."""

  _COUNT = 512

  def __init__(self) -> None:
    self._free: List[int] = []

  def take(self) -> int:
    """The address of a flag that is 0."""
    try:
      address = self._free.pop()
    except IndexError:
      first = ctypes.addressof(_for_ever((ctypes.c_uint64 * self._COUNT)()))
      self._free += range(first + 8, first + 8 * self._COUNT, 8)
      address = first
    ctypes.c_uint64.from_address(address).value = 0
    return address

  def give_back(self, address: int) -> None:
    self._free.append(address)


_flags = _Flags()
_kept: Dict[int, Any] = _for_ever({})  # by the address of its flag, what a struct refers to


def _keep(*what: Any) -> int:
  flag = _flags.take()
  _kept[flag] = what
  return flag


def drop_released() -> None:
  """Frees what consumers have released."""
  for flag in list(_kept):
    if ctypes.c_uint64.from_address(flag).value and _kept.pop(flag, None) is not None:  # None: another thread has done it
      _flags.give_back(flag)


def _fill_schema(schema: Any, field: Field, children: List[Field]) -> None:
  name, kind = field.name.encode(), field.format.encode()
  parts = [_Schema() for _ in children]
  for part, child in zip(parts, children):
    _fill_schema(part, child, [])
  pointers = (ctypes.c_void_p * len(parts))(*(ctypes.addressof(part) for part in parts))
  schema.format, schema.name, schema.metadata = kind, name, None
  schema.flags = _NULLABLE if field.nullable else 0
  schema.n_children, schema.children = len(parts), ctypes.addressof(pointers) if parts else None
  values = None
  schema.dictionary = None  # the memory is the consumer's, with anything in it
  if field.dictionary is not None:
    values = _Schema()
    _fill_schema(values, field.dictionary, [])
    schema.dictionary = ctypes.pointer(values)
  schema.private_data = _keep(name, kind, parts, pointers, values)
  schema.release = _address_of(library.arrow_release_schema)


def _fill_array(array: Any, column: Column, children: List[Column]) -> None:
  parts = [_Array() for _ in children]
  for part, child in zip(parts, children):
    _fill_array(part, child, [])
  pointers = (ctypes.c_void_p * len(parts))(*(ctypes.addressof(part) for part in parts))
  addresses = (None if buffer is None else buffer.ctypes.data for buffer in column.buffers)
  buffers = (ctypes.c_void_p * len(column.buffers))(*addresses)
  array.length, array.null_count, array.offset = column.length, column.nulls, 0
  array.n_buffers, array.buffers = len(column.buffers), ctypes.addressof(buffers)
  array.n_children, array.children = len(parts), ctypes.addressof(pointers) if parts else None
  values = None
  array.dictionary = None
  if column.dictionary is not None:
    values = _Array()
    _fill_array(values, column.dictionary, [])
    array.dictionary = ctypes.pointer(values)
  array.private_data = _keep(column.buffers, buffers, parts, pointers, values)
  array.release = _address_of(library.arrow_release_array)


class _State:
  """Of a stream that is being read."""

  def __init__(self, fields: List[Field], batches: Iterator[List[Column]]) -> None:
    self.fields, self.batches = fields, batches
    self.error: Any = None

  def failed(self, error: BaseException) -> int:
    self.error = ctypes.create_string_buffer(f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").replace(b"\0", b"\\0"))
    return EINTR if isinstance(error, KeyboardInterrupt) else EIO


def _state_of(stream: int) -> _State:
  return _kept[_Stream.from_address(stream).private_data][0]  # type: ignore[no-any-return]


def _get_schema(stream: int, schema: int) -> int:
  state = _state_of(stream)
  try:
    _fill_schema(_Schema.from_address(schema), Field("", "+s"), state.fields)
    return 0
  except BaseException as error:  # pylint: disable=broad-except
    return state.failed(error)


def _get_next(stream: int, array: int) -> int:
  state = _state_of(stream)
  try:
    columns = next(state.batches, None)
    if columns is None:
      _Array.from_address(array).release = None
    else:
      _fill_array(_Array.from_address(array), Column(columns[0].length, [None]), columns)
    return 0
  except BaseException as error:  # pylint: disable=broad-except
    return state.failed(error)


def _get_last_error(stream: int) -> Optional[int]:
  error = _state_of(stream).error
  return None if error is None else ctypes.addressof(error)


def _address_of(function: Any) -> int:
  return ctypes.cast(function, ctypes.c_void_p).value or 0


def _c_function(function: Any, result: Any, *arguments: Any) -> int:
  """The address of a function of Python for C, which stays: nobody knows how long it is called. Consumers call these while they import."""
  return _address_of(_for_ever(ctypes.CFUNCTYPE(result, *arguments)(function)))


_GET_SCHEMA = _c_function(_get_schema, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_GET_NEXT = _c_function(_get_next, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_GET_LAST_ERROR = _c_function(_get_last_error, ctypes.c_void_p, ctypes.c_void_p)

# ---- capsules

_NAME = b"arrow_array_stream"


class _Export:
  """A capsule and its stream, which is released here unless a consumer has done so. A destructor of the capsule would have to be a
  function of Python. On free-threaded builds, what no consumer takes stays until the thread that has made it comes here again."""

  __slots__ = ("capsule", "_stream")

  def __init__(self, stream: _Stream) -> None:
    self._stream = stream
    self.capsule = new_capsule(ctypes.addressof(stream), _NAME, None)

  def over(self) -> bool:
    """False while somebody has the capsule."""
    if not is_ours_alone(self):
      return False
    if self._stream.release:
      library.arrow_release_stream(ctypes.addressof(self._stream))
    return True


_exports = _for_ever(Exports())


def stream(fields: List[Field], batches: Iterator[List[Column]]) -> Any:
  """A capsule with a stream of a table's batches."""
  _exports.drop_untaken()
  drop_released()
  kept = _keep(_State(fields, batches))
  export = _Export(_Stream(_GET_SCHEMA, _GET_NEXT, _GET_LAST_ERROR, _address_of(library.arrow_release_stream), kept))
  capsule = export.capsule  # so that no other thread takes it for left
  _exports.add(export)
  return capsule
