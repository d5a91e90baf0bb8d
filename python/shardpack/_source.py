"""Where a Dataset comes from, so that another process can open it again.

A source is JSON: ["open", path], ["join", [source, ...]] or ["split", source, name].
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, List, Optional

from ._errors import NotFoundError, OptionError

if TYPE_CHECKING:
  from ._dataset import Dataset

Source = List[Any]


def of_path(path: bytes) -> Source:
  """Absolute, for processes that run in another folder."""
  return ["open", os.fsdecode(os.path.abspath(path))]


def text(source: Source) -> str:
  import json  # pylint: disable=import-outside-toplevel
  return json.dumps(source)


def opened(source: str, identity: str, map_shards: bool = True) -> Dataset:
  """The dataset, which must still be the one that it was. identity: its beginning is enough."""
  import json  # pylint: disable=import-outside-toplevel
  parts = json.loads(source)
  dataset = _open(parts, map_shards)
  if not dataset.identity.startswith(identity):
    raise OptionError(f"{describe(parts)} is not what it was when this was pickled: then it was {identity}, and now it is "
                      f"{dataset.identity}")
  return dataset


opened_once = functools.lru_cache(maxsize=16)(opened)


def unpickled(source: str, identity: str, ids: Optional[Any], map_shards: bool = True) -> Dataset:
  """What pickle calls."""
  dataset = opened(source, identity, map_shards)
  return dataset if ids is None else dataset._of_ids(ids)  # pylint: disable=protected-access


def describe(source: Source) -> str:
  kind = source[0]
  if kind == "open":
    return str(source[1])
  if kind == "join":
    return "the join of " + ", ".join(describe(part) for part in source[1])
  return f"the split {source[2]!r} of {describe(source[1])}"


def _open(source: Source, map_shards: bool) -> Dataset:
  from ._dataset import Dataset  # pylint: disable=import-outside-toplevel
  kind = source[0]
  if kind == "join":
    return Dataset.join([_open(part, map_shards) for part in source[1]])
  if kind == "split":
    return _open(source[1], map_shards).split(source[2])
  try:
    return Dataset(source[1], map_shards=map_shards)
  except NotFoundError as error:
    import socket  # pylint: disable=import-outside-toplevel
    absent = NotFoundError(f"{source[1]}, which a pickled dataset names, is not on this machine ({socket.gethostname()}): {error}")
    absent.__dict__.update(error.__dict__)
    raise absent from None
