"""Which samples of a dataset: by number, by mask, by condition, at random.

A selection is a C dataset of its own, with ids of the whole one.
"""

from __future__ import annotations

from array import array
from operator import index
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence

from ._columns import Array
from ._errors import NotFoundError, OptionError, OutOfRangeError, UnsupportedError, nearest
from ._memory import import_numpy, row_of
from ._options import whole

if TYPE_CHECKING:
  from ._dataset import Dataset
  from ._table import Table

_LIMITS = {f"{end}_{column}": (end, column) for column in ("width", "height", "size") for end in ("min", "max")}
_KEYWORDS = ("label", "split", *_LIMITS)


def place(dataset: Dataset, number: Any) -> int:
  """The number of a sample; negative ones count from the end."""
  if isinstance(number, bool) or str(getattr(number, "dtype", "")).endswith("bool"):
    raise TypeError("a sample must be asked for by its number, not by True or False")
  wanted, count = index(number), len(dataset)
  if -count <= wanted < count:
    return wanted if wanted >= 0 else wanted + count
  raise _past_the_end(wanted, count)


def places(dataset: Dataset, numbers: Iterable[Any]) -> array[int]:
  """The same of several, as uint64."""
  wanted = list(numbers)
  if {*map(type, wanted)} == {int} and min(wanted) >= 0 and max(wanted) < len(dataset):  # as of samplers
    return array("Q", wanted)
  return array("Q", [place(dataset, number) for number in wanted])


def _past_the_end(wanted: int, count: int) -> OutOfRangeError:
  error = OutOfRangeError(f"the dataset has no sample {wanted}, but those from 0 to {count - 1}" if count else "the dataset has no samples")
  error.__dict__.update(code="OUT_OF_RANGE", id=wanted)
  return error


def base_ids(dataset: Dataset, which: Any) -> Array:
  """Of a slice, a mask or a row of ids of the dataset: those of its base."""
  numpy = import_numpy()
  if isinstance(which, slice):
    ids = numpy.arange(*which.indices(len(dataset)), dtype=numpy.int64)
  else:
    ids = _numbers(dataset, which)
  ids = ids.astype(numpy.uint64)
  return ids if dataset._ids is None else dataset._ids[ids]


def _numbers(dataset: Dataset, which: Any) -> Array:
  numpy = import_numpy()
  if isinstance(which, (str, bytes)):
    raise TypeError(f"a sample is asked for by its number; dataset.get({which!r}) is the one with that key")
  if isinstance(which, (list, tuple)) and len(kinds := {*map(type, which)}) > 1 and not kinds.isdisjoint((bool, numpy.bool_)):
    raise TypeError("a row has True or False among numbers: a mask has nothing else, and a row of numbers none of them")
  array = row_of(which, "samples", "asked for by a number, a slice, a mask or a row of numbers")
  if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iub"):
    raise TypeError("samples must be asked for by a number, a slice, a mask or a row of numbers, not by "
                    + (type(which).__name__ if array.ndim != 1 else f"a row of {array.dtype}"))
  count = len(dataset)
  if array.dtype.kind == "b":
    return numpy.flatnonzero(_mask(array, count, "the mask"))
  if array.size == 0:
    return numpy.empty(0, numpy.int64)
  low, high = int(array.min()), int(array.max())
  if len(array) == count > 2 and 0 <= low <= high <= 1:  # which ids hardly ever are
    raise OptionError(f"a row of {count} zeros and ones, one for each sample, would choose samples 0 and 1 alone: a mask must be bool: "
                      "mask.astype(bool), or mask.bool() of a tensor")
  if low < -count or high >= count:
    raise _past_the_end(low if low < -count else high, count)
  if low >= 0:
    return array
  array = array.astype(numpy.int64)
  return numpy.where(array < 0, array + count, array)


def _mask(values: Any, count: int, what: str) -> Array:
  array = row_of(values, what, "a row of True and False")
  if array.dtype.kind != "b" or array.ndim != 1:
    raise OptionError(f"{what} must be a row of True and False, not {'of ' + str(array.dtype) if array.ndim == 1 else type(values).__name__}")
  if len(array) != count:
    raise OptionError(f"{what} has {len(array)} entries, but the dataset has {count} samples")
  return array


def matching(dataset: Dataset, condition: Optional[Callable[[Table], Any]], conditions: Dict[str, Any]) -> Array:
  """For Dataset.where."""
  numpy = import_numpy()
  if condition is not None and not callable(condition):
    raise TypeError(f"condition must be a function of the table, not {type(condition).__name__}; dataset[mask] takes a mask")
  chosen = numpy.ones(len(dataset), bool)
  for name, value in conditions.items():
    chosen &= _fulfils(dataset, name, value)
  if condition is not None:
    chosen &= _mask(condition(dataset.table()), len(dataset), "what the condition returns")
  return base_ids(dataset, chosen)


def _fulfils(dataset: Dataset, name: str, value: Any) -> Array:
  numpy = import_numpy()
  if name == "label":
    return numpy.isin(dataset.labels, [_label(dataset, one) for one in _each(value)])
  if name == "split":
    return numpy.isin(dataset.shard_ids, _shards_of(dataset, _each(value)))
  if name not in _LIMITS:
    raise TypeError(f"where() has no condition {name!r}" + nearest(name, _KEYWORDS) + "; it has " + ", ".join(_KEYWORDS))
  end, column = _LIMITS[name]
  values, limit = getattr(dataset, column + "s"), whole(value, name)
  if column != "size" and len(values) and not values.any():
    raise UnsupportedError(f"the {column}s of the images are not known: shards of other programs were opened without an index; `pack index` "
                           "makes a dataset of them that has one")
  return values >= limit if end == "min" else values <= limit


def _each(value: Any) -> Sequence[Any]:
  if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
    return [value]
  return list(value)


def _label(dataset: Dataset, value: Any) -> int:
  classes = dataset.classes
  if isinstance(value, str):
    if value not in classes:
      raise OptionError(f"the dataset has no class {value!r}" + (nearest(value, classes) or (
          f"; it has {', '.join(classes[:10])}{', ...' if len(classes) > 10 else ''}" if classes else ": its labels have no names")))
    return classes.index(value)
  try:
    if isinstance(value, (bool, import_numpy().bool_)):
      raise TypeError
    number = index(value)
  except TypeError:
    raise OptionError(f"label must be a class's name, a label's number or a list of these, not {value!r}") from None
  if classes and not -1 <= number < len(classes):
    raise OptionError(f"the dataset has no label {number}, but those from 0 to {len(classes) - 1}, and -1 for none")
  return number


def _shards_of(dataset: Dataset, names: Sequence[Any]) -> List[int]:
  shards = dataset._columns.shards
  there = sorted({shard.split for shard in shards if shard.split is not None})
  for name in names:
    if name not in there:
      error = NotFoundError(f"the dataset has no split {name!r}" + nearest(str(name), there)
                            + (f"; its splits are {', '.join(there)}" if there else "; it has none"))
      error.__dict__["code"] = "NOT_FOUND"
      raise error
  return [number for number, shard in enumerate(shards) if shard.split in names]


def drawn(dataset: Dataset, n: int, seed: int) -> Array:
  """The beginning of the order that a loader has in its first epoch with this seed."""
  from ._order import Order  # pylint: disable=import-outside-toplevel
  numpy = import_numpy()
  count = whole(n, "n", 32)
  if count > len(dataset):
    raise OptionError(f"n is {count}, but the dataset has {len(dataset)} samples")
  ids = Order(len(dataset), count, seed=seed).ids(0, 0) if count else numpy.empty(0, numpy.uint64)
  return base_ids(dataset, ids)


def shard_counts(dataset: Dataset) -> List[int]:
  """How many samples it has in each shard."""
  shards = dataset._columns.shards
  if dataset._ids is None:
    return [shard.records for shard in shards]
  return import_numpy().bincount(dataset.shard_ids, minlength=len(shards)).tolist()  # type: ignore[no-any-return]


def joined_ids(parts: Sequence[Dataset]) -> Array:
  """Of datasets of which some are selections: the ids of their samples in the join of their bases."""
  numpy = import_numpy()
  rows, first = [], 0
  for part in parts:
    ids = numpy.arange(len(part), dtype=numpy.uint64) if part._ids is None else part._ids
    rows.append(ids + numpy.uint64(first))
    first += len(part._base)
  return numpy.concatenate(rows)


def check_classes(parts: Sequence[Dataset]) -> None:
  """A label is a number, so it means the same only where the classes are the same, in the same order."""
  from ._source import describe  # pylint: disable=import-outside-toplevel
  for part in parts[1:]:
    first, other = parts[0].classes, part.classes
    if first == other:
      continue
    here, there = describe(parts[0]._source), describe(part._source)
    if sorted(first) == sorted(other):
      n = next(n for n, (a, b) in enumerate(zip(first, other)) if a != b)
      what = f"has the same classes as {here} in another order: label {n} is {other[n]!r} there and {first[n]!r} here"
    else:
      only = [f"{name!r} is only in {where}" for names, others, where in ((first, other, here), (other, first, there))
              for name in names if name not in set(others)][:4]
      what = f"has other classes than {here}: " + "; ".join(only)
    raise OptionError(f"{there} {what}. A label would mean two things; pack both with the same list of classes: pack --classes FILE")
