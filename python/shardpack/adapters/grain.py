"""Datasets for Grain: a RandomAccessDataSource of samples, and one of batches.

  import grain
  from shardpack.adapters.grain import Batches, Source
  dataset = grain.MapDataset.source(Source(shardpack.Dataset("shards"))).shuffle(seed=7).map(decode).batch(256)
  dataset = grain.MapDataset.source(Batches(shardpack.Dataset("shards"), batch=256, seed=7)).map(decode_batch)
"""

from __future__ import annotations

import functools
from operator import index
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, SupportsIndex, Tuple

import numpy
import shardpack

if TYPE_CHECKING:
  from shardpack import Dataset

__all__ = ["Batches", "Source"]


class Source:
  """A Dataset as a data source of Grain: random access to dicts of bytes.

  source[7] is {"image": bytes, "label": int}, with an entry for each of `fields`; a field that a sample lacks is not there. It is
  read and verified in whatever process asks; Grain's workers open the dataset again, by path and identity. Many samples at once
  (__getitems__) are one call of the library.

  Its repr, which Grain's checkpoints keep and compare, is of what was packed, and not of where it is.

  >>> import shardpack
  >>> from shardpack.adapters.grain import Source
  >>> source = Source(shardpack.Dataset("shards").split("train"), fields=("image", "txt"))
  >>> len(source), sorted(source[0])
  (48, ['image', 'label', 'txt'])
  """

  def __init__(self, dataset: Dataset, fields: Sequence[str] = ("image",)) -> None:
    self._dataset, self._fields = _checked(dataset, fields)

  def __len__(self) -> int:
    return len(self._dataset)

  def __getitem__(self, record_key: SupportsIndex) -> Dict[str, Any]:
    return self.__getitems__((record_key,))[0]

  def __getitems__(self, record_keys: Sequence[SupportsIndex]) -> List[Dict[str, Any]]:
    """As many dicts, in this order."""
    return self._dataset._read_dicts([index(key) for key in record_keys], self._fields)  # pylint: disable=protected-access

  def _getitems(self, indices: Sequence[int]) -> List[Dict[str, Any]]:
    """Grain's SupportsBatchedReadRandomAccessDataSource."""
    return self.__getitems__(indices)

  def __repr__(self) -> str:
    return f"shardpack.adapters.grain.Source({self._dataset.identity}, samples={len(self)}, fields={self._fields!r})"


class Batches:
  """Batches of a Dataset in the order of a Loader, as a data source of Grain: a record is a whole batch, read with one call.

  Grain spends some microseconds of Python on every record of a pipeline, more than it takes to read a small image. Here these are
  spent on a batch. batches[3] is {"image": [bytes, ...], "label": int64 [n]}, with a list for each of `fields`: None where a sample lacks
  it. The samples of an epoch are shuffled globally, each comes once, and the next epoch's come in another order: those of
  shardpack.Order(len(dataset), batch, seed=seed). len() is the number of batches of all `epochs`; the last of an epoch is smaller unless
  drop_last=True. Shard it among hosts as any source: MapDataset.source(batches)[host::hosts]. More shuffling is neither needed nor wrong.

  Its repr, which Grain's checkpoints keep and compare, is of what was packed, and not of where it is.

  >>> import grain
  >>> from shardpack.adapters.grain import Batches
  >>> batches = Batches(shardpack.Dataset("shards").split("train"), batch=20, seed=7, epochs=2)
  >>> for batch in grain.MapDataset.source(batches).to_iter_dataset():
  ...   print(len(batch["image"]), batch["label"].shape, batch["label"].dtype)
  20 (20,) int64
  20 (20,) int64
  8 (8,) int64
  20 (20,) int64
  20 (20,) int64
  8 (8,) int64
  """

  def __init__(self, dataset: Dataset, batch: int, *, fields: Sequence[str] = ("image",), seed: int = 0, shuffle: bool = True, epochs: int = 1,
               drop_last: bool = False) -> None:
    self._dataset, self._fields = _checked(dataset, fields)
    self._how: Dict[str, Any] = {"batch": index(batch), "seed": index(seed), "shuffle": bool(shuffle), "epochs": index(epochs), "drop_last": bool(drop_last)}
    if epochs < 1:
      raise shardpack.OptionError(f"epochs must be at least 1, not {epochs}")
    self._order = shardpack.Order(len(dataset), batch, seed=seed, mode="shuffle" if shuffle else "sequential",
                                  tail="drop" if drop_last else "pad")

  def __len__(self) -> int:
    return self._order.steps * int(self._how["epochs"])

  def __getitem__(self, record_key: SupportsIndex) -> Dict[str, Any]:
    number = index(record_key)
    if not 0 <= number < len(self):
      raise IndexError(f"batch {number} of {len(self)}")
    ids = self._order.ids(*divmod(number, self._order.steps))
    labels, fields = self._dataset._read_lists(ids[ids != shardpack.PADDING_ID].tolist(), self._fields)  # pylint: disable=protected-access
    return {**fields, "label": numpy.array(labels, numpy.int64)}

  def __reduce__(self) -> Any:
    return functools.partial(Batches, fields=self._fields, **self._how), (self._dataset,)

  def __repr__(self) -> str:
    how = ", ".join(f"{name}={value}" for name, value in self._how.items())
    return f"shardpack.adapters.grain.Batches({self._dataset.identity}, {how}, fields={self._fields!r})"


def _checked(dataset: Any, fields: Any) -> Tuple[Dataset, Tuple[str, ...]]:
  if not isinstance(dataset, shardpack.Dataset):
    raise TypeError(f"dataset must be a shardpack.Dataset, not {type(dataset).__name__}")
  if isinstance(fields, (str, bytes)):
    raise TypeError("fields must be a list of names, not a single name")
  return dataset, tuple(fields)
