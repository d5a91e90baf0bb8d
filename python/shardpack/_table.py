"""Table: the columns of a dataset by name, for NumPy and for Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, KeysView, List, Tuple

from . import _arrow, _c, _columns
from ._columns import Array
from ._memory import import_numpy

if TYPE_CHECKING:
  from ._dataset import Dataset

_ROWS = 1 << 16  # of a selection at once


class Table:
  """The columns of a dataset, by name, as a dict has them: read-only arrays [n], each made when it is first asked for. dict(table) makes
  them all.

  id uint64, key str, path str, label int64 (-1: none), class_name str (None: none), split str (None: none), width and height uint32
  (pixels as stored; 0: unknown), size uint64 (bytes of the image), hash uint64 (XXH3-64 of the image), shard uint32.

  Has the protocol of Arrow's C stream: pyarrow.table(table), polars.DataFrame(table), and DuckDB by the name of its variable. There,
  class_name and split are dictionaries, missing ones are null, and keys or paths are binary if some are not UTF-8. The columns of
  whole shards that need no change are views of their indexes.

  >>> import shardpack
  >>> table = shardpack.Dataset("shards").table()
  >>> table["label"].dtype, len(table["key"])
  (dtype('int64'), 60)
  """

  def __init__(self, dataset: Dataset) -> None:
    self._dataset = dataset
    self._made: Dict[str, Any] = {}

  def __getitem__(self, name: str) -> Any:
    """A column. KeyError if there is none of this name."""
    if name not in self._made:
      self._made[name] = _MAKERS[name](self._dataset)
    return self._made[name]

  def __iter__(self) -> Iterator[str]:
    return iter(_MAKERS)

  def __len__(self) -> int:
    return len(_MAKERS)

  def __contains__(self, name: object) -> bool:
    return name in _MAKERS

  # Not a Mapping: Polars would take that column by column, and leave Arrow's stream aside.
  def keys(self) -> KeysView[str]:
    """The names of the columns."""
    return _MAKERS.keys()

  def values(self) -> List[Any]:
    """The columns, arrays [n]."""
    return [self[name] for name in self]

  def items(self) -> List[Tuple[str, Any]]:
    """(name, column) of each."""
    return [(name, self[name]) for name in self]

  def __reduce__(self) -> Any:
    return Table, (self._dataset,)

  def __repr__(self) -> str:
    return f"<Table of {len(self._dataset)} rows: {', '.join(self)}>"

  def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
    """A PyCapsule "arrow_array_stream". A requested schema is not looked at: the consumer casts."""
    del requested_schema
    return _arrow.stream(_schema(self._dataset), _batches(self._dataset))


def _names_of(names: List[Any], numbers: Array) -> Array:
  """Python's strings for numbers, None for -1."""
  numpy = import_numpy()
  table = numpy.empty(len(names) + 1, object)
  table[:len(names)] = names
  return _columns.frozen(table[numpy.where((numbers >= 0) & (numbers < len(names)), numbers, len(names))])


def _split_names(dataset: Dataset) -> List[str]:
  return sorted({shard.split for shard in dataset._columns.shards if shard.split is not None})


def _split_numbers(dataset: Dataset) -> Array:
  """Of each shard the number of its split, -1 for none."""
  numpy, names = import_numpy(), _split_names(dataset)
  return numpy.array([-1 if shard.split is None else names.index(shard.split) for shard in dataset._columns.shards], numpy.int64)


def _splits(dataset: Dataset) -> Array:
  return _names_of(_split_names(dataset), _split_numbers(dataset)[dataset.shard_ids])


_MAKERS: Dict[str, Callable[[Dataset], Any]] = {
    "id": lambda dataset: _columns.frozen(import_numpy().arange(len(dataset), dtype="uint64")),
    "key": lambda dataset: dataset.keys,
    "path": lambda dataset: dataset.paths,
    "label": lambda dataset: dataset.labels,
    "class_name": lambda dataset: _names_of(dataset.classes, dataset.labels),
    "split": _splits,
    "width": lambda dataset: dataset.widths,
    "height": lambda dataset: dataset.heights,
    "size": lambda dataset: dataset.sizes,
    "hash": lambda dataset: dataset.hashes,
    "shard": lambda dataset: dataset.shard_ids,
}


def _schema(dataset: Dataset) -> List[_arrow.Field]:
  columns = dataset._columns
  names = _arrow.names_field(dataset.classes), _arrow.names_field(_split_names(dataset))
  field = _arrow.Field
  return [
      field("id", "L"),
      field("key", _arrow.text_format(columns.text_parts(_columns.KEY))),
      field("path", _arrow.text_format(columns.text_parts(_columns.PATH))),
      field("label", "l"),
      field("class_name", "i", nullable=True, dictionary=names[0]),
      field("split", "i", nullable=True, dictionary=names[1]),
      field("width", "I"),
      field("height", "I"),
      field("size", "L"),
      field("hash", "L"),
      field("shard", "I"),
  ]


def _batches(dataset: Dataset) -> Iterator[List[_arrow.Column]]:
  """Of whole shards one each, else of some rows."""
  classes, splits = _arrow.names_column(dataset.classes), _arrow.names_column(_split_names(dataset))
  if dataset._ids is None:
    for shard in range(len(dataset._columns.shards)):
      if dataset._columns.shards[shard].records:
        yield _of_shard(dataset, shard, classes, splits)
    return
  for first in range(0, len(dataset), _ROWS):
    yield _of_rows(dataset, first, min(first + _ROWS, len(dataset)), classes, splits)


def _of_shard(dataset: Dataset, shard: int, classes: _arrow.Column, splits: _arrow.Column) -> List[_arrow.Column]:
  numpy, columns = import_numpy(), dataset._columns
  first, count = columns.shards[shard].first_id, columns.shards[shard].records
  texts = [columns.text_part(shard, kind) for kind in (_columns.KEY, _columns.PATH)]
  images = columns.of_shard(shard, _c.COLUMN_IMAGE)
  return _row(first, texts, columns.of_shard(shard, _c.COLUMN_LABEL), numpy.full(count, _split_numbers(dataset)[shard]), images["width"],
              images["height"], columns.of_shard(shard, _c.COLUMN_BYTES, "image"), columns.of_shard(shard, _c.COLUMN_HASH, "image"),
              numpy.full(count, shard, numpy.uint32), classes, splits)


def _of_rows(dataset: Dataset, first: int, end: int, classes: _arrow.Column, splits: _arrow.Column) -> List[_arrow.Column]:
  assert dataset._ids is not None
  texts = [_columns.taken_texts(dataset._columns.texts(kind), dataset._ids[first:end]) for kind in (_columns.KEY, _columns.PATH)]
  rows = slice(first, end)
  shards = dataset.shard_ids[rows]
  return _row(first, texts, dataset.labels[rows], _split_numbers(dataset)[shards], dataset.widths[rows], dataset.heights[rows],
              dataset.sizes[rows], dataset.hashes[rows], shards, classes, splits)


def _row(first: int, texts: List[Any], labels: Array, split_numbers: Array, widths: Array, heights: Array, sizes: Array, hashes: Array,
         shards: Array, classes: _arrow.Column, splits: _arrow.Column) -> List[_arrow.Column]:
  """In the order of the schema."""
  numpy, count = import_numpy(), len(labels)
  return [
      _arrow.numbers(numpy.arange(first, first + count, dtype=numpy.uint64)),
      *(_arrow.texts(*text) for text in texts),
      _arrow.numbers(labels),
      _arrow.chosen(labels, classes),
      _arrow.chosen(split_numbers, splits),
      *(_arrow.numbers(values) for values in (widths, heights, sizes, hashes, shards)),
  ]
