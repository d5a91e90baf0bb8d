"""The columns of a dataset as a stream of Arrow."""

# pylint: disable=protected-access

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List

from . import _arrow, _c, _columns
from ._columns import Array
from ._memory import import_numpy
from ._table import split_names, split_numbers

if TYPE_CHECKING:
  from ._dataset import Dataset

_ROWS = 1 << 16  # of a selection at once


def stream_of(dataset: Dataset) -> Any:
  """A capsule with a stream of the columns that a Table has."""
  return _arrow.stream(_schema(dataset), _batches(dataset))


def _schema(dataset: Dataset) -> List[_arrow.Field]:
  columns = dataset._columns
  names = _arrow.names_field(dataset.classes), _arrow.names_field(split_names(dataset))
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
  classes, splits = _arrow.names_column(dataset.classes), _arrow.names_column(split_names(dataset))
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
  return _row(first, texts, columns.of_shard(shard, _c.COLUMN_LABEL), numpy.full(count, split_numbers(dataset)[shard]), images["width"],
              images["height"], columns.of_shard(shard, _c.COLUMN_BYTES, "image"), columns.of_shard(shard, _c.COLUMN_HASH, "image"),
              numpy.full(count, shard, numpy.uint32), classes, splits)


def _of_rows(dataset: Dataset, first: int, end: int, classes: _arrow.Column, splits: _arrow.Column) -> List[_arrow.Column]:
  assert dataset._ids is not None
  texts = [_columns.taken_texts(dataset._columns.texts(kind), dataset._ids[first:end]) for kind in (_columns.KEY, _columns.PATH)]
  rows = slice(first, end)
  shards = dataset.shard_ids[rows]
  return _row(first, texts, dataset.labels[rows], split_numbers(dataset)[shards], dataset.widths[rows], dataset.heights[rows],
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
