"""Where a Dataset comes from, so that another process can open it again.

A source is JSON: ["open", path, map_shards], ["join", [source, ...]] or ["split", source, name].
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, List, Optional

from ._errors import NotFoundError, OptionError

if TYPE_CHECKING:
  from ._dataset import Dataset

Source = List[Any]


def of_path(path: bytes, map_shards: bool) -> Source:
  """Absolute, for processes that run in another folder."""
  return ["open", os.fsdecode(os.path.abspath(path)), map_shards]


def maps_shards(source: Source) -> bool:
  """Of a join, all must want it."""
  if source[0] == "join":
    return all(map(maps_shards, source[1]))
  return bool(source[2]) if source[0] == "open" else maps_shards(source[1])


def text(source: Source) -> str:
  import json  # pylint: disable=import-outside-toplevel
  return json.dumps(source)


def opened(source: str, identity: str) -> Dataset:
  """The dataset, which must still be the one that it was. identity: its beginning is enough."""
  import json  # pylint: disable=import-outside-toplevel
  parts = json.loads(source)
  dataset = _open(parts)
  if not dataset.identity.startswith(identity):
    raise OptionError(f"{describe(parts)} is not what it was when this was pickled: then it was {identity}, and now it is "
                      f"{dataset.identity}")
  return dataset


opened_once = functools.lru_cache(maxsize=16)(opened)


def unpickled(source: str, identity: str, ids: Optional[Any]) -> Dataset:
  """What pickle calls."""
  dataset = opened(source, identity)
  return dataset if ids is None else dataset._of_ids(ids)  # pylint: disable=protected-access


def describe(source: Source) -> str:
  kind = source[0]
  if kind == "open":
    return str(source[1])
  if kind == "join":
    return "the join of " + ", ".join(describe(part) for part in source[1])
  return f"the split {source[2]!r} of {describe(source[1])}"


def _open(source: Source) -> Dataset:
  from ._dataset import Dataset  # pylint: disable=import-outside-toplevel
  kind = source[0]
  if kind == "join":
    return Dataset.join([_open(part) for part in source[1]])
  if kind == "split":
    return _open(source[1]).split(source[2])
  try:
    return Dataset(source[1], map_shards=source[2])
  except NotFoundError as error:
    import socket  # pylint: disable=import-outside-toplevel
    absent = NotFoundError(f"{source[1]}, which a pickled dataset names, is not on this machine ({socket.gethostname()}): {error}")
    absent.__dict__.update(error.__dict__)
    raise absent from None
