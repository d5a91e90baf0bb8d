"""Table: the columns of a dataset by name, for NumPy and for Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, KeysView, List, Tuple

from . import _columns
from ._columns import Array
from ._errors import nearest
from ._memory import import_numpy

if TYPE_CHECKING:
  import pandas
  from ._dataset import Dataset


class Table:
  """The columns of a dataset, by name, as a dict has them: read-only arrays [n], each made when it is first asked for. dict(table) makes
  them all.

  id uint64, key str, path str, label int64 (-1: none), class_name str (None: none), split str (None: none), width and height uint32
  (pixels as stored; 0: unknown), size uint64 (bytes of the image), hash uint64 (XXH3-64 of the image), shard uint32.

  Has the protocol of Arrow's C stream: pyarrow.table(table), polars.DataFrame(table), and DuckDB by the name of its variable. There,
  class_name and split are dictionaries, missing ones are null, and keys or paths are binary if some are not UTF-8. The columns of
  whole shards that need no change are views of their indexes. to_pandas() makes a pandas.DataFrame.

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
      if name not in _MAKERS:
        raise KeyError(f"the table has no column {name!r}, but {', '.join(_MAKERS)}{nearest(str(name), _MAKERS)}")
      self._made[name] = _MAKERS[name](self._dataset)
    return self._made[name]

  def __iter__(self) -> Iterator[str]:
    return iter(_MAKERS)

  def __len__(self) -> int:
    return len(_MAKERS)

  def __contains__(self, name: object) -> bool:
    return name in _MAKERS

  def get(self, name: str, default: Any = None) -> Any:
    """A column; `default` if there is none of this name.

    >>> table = shardpack.Dataset("shards").table()
    >>> len(table.get("label")), table.get("colour")
    (60, None)
    """
    return self[name] if name in self else default

  # Not a Mapping: Polars would take that column by column, and leave Arrow's stream aside.
  def keys(self) -> KeysView[str]:
    """The names of the columns.

    >>> "label" in shardpack.Dataset("shards").table().keys()
    True
    """
    return _MAKERS.keys()

  def values(self) -> List[Any]:
    """The columns, arrays [n].

    >>> {len(column) for column in shardpack.Dataset("shards").table().values()}
    {60}
    """
    return [self[name] for name in self]

  def items(self) -> List[Tuple[str, Any]]:
    """(name, column) of each.

    >>> {name: column.dtype for name, column in shardpack.Dataset("shards").table().items()}["width"]
    dtype('uint32')
    """
    return [(name, self[name]) for name in self]

  def to_pandas(self) -> pandas.DataFrame:
    """A pandas.DataFrame of all columns, which are copied. ImportError without pandas.

    >>> frame = shardpack.Dataset("shards").table().to_pandas()        # doctest: +SKIP
    >>> frame.groupby("class_name")["width"].mean()                    # doctest: +SKIP
    """
    import pandas  # pylint: disable=import-outside-toplevel
    return pandas.DataFrame(dict(self.items()))

  # pandas would make one column of the names of all, and NumPy an array of them.
  def __array__(self, *_: Any, **__: Any) -> Any:
    raise TypeError("a Table is no array: table.to_pandas() makes a pandas.DataFrame of it, and table[\"label\"] is an array")

  def __reduce__(self) -> Any:
    return Table, (self._dataset,)

  def __repr__(self) -> str:
    return f"<Table of {len(self._dataset)} rows: {', '.join(self)}>"

  def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
    """A PyCapsule "arrow_array_stream". A requested schema is not looked at: the consumer casts."""
    del requested_schema
    from ._arrow_table import stream_of  # pylint: disable=import-outside-toplevel
    return stream_of(self._dataset)


def _names_of(names: List[Any], numbers: Array) -> Array:
  """Python's strings for numbers, None for -1."""
  numpy = import_numpy()
  table = numpy.empty(len(names) + 1, object)
  table[:len(names)] = names
  return _columns.frozen(table[numpy.where((numbers >= 0) & (numbers < len(names)), numbers, len(names))])


def split_names(dataset: Dataset) -> List[str]:
  return sorted({shard.split for shard in dataset._columns.shards if shard.split is not None})


def split_numbers(dataset: Dataset) -> Array:
  """Of each shard the number of its split, -1 for none."""
  numpy, names = import_numpy(), split_names(dataset)
  return numpy.array([-1 if shard.split is None else names.index(shard.split) for shard in dataset._columns.shards], numpy.int64)


def _splits(dataset: Dataset) -> Array:
  return _names_of(split_names(dataset), split_numbers(dataset)[dataset.shard_ids])


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
