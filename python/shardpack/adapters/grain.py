"""Datasets for Grain: a RandomAccessDataSource.

  import grain
  from shardpack.adapters.grain import Source
  dataset = grain.MapDataset.source(Source(shardpack.Dataset("shards"))).shuffle(seed=7).map(decode).batch(256)
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, SupportsIndex

import shardpack

if TYPE_CHECKING:
  from shardpack import Dataset

__all__ = ["Source"]


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
    if not isinstance(dataset, shardpack.Dataset):
      raise TypeError(f"dataset is a shardpack.Dataset, and not {type(dataset).__name__}")
    if isinstance(fields, (str, bytes)):
      raise TypeError("fields is a list of names, and not one name")
    self._dataset, self._fields = dataset, tuple(fields)

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
