"""torchdata: a loader as a node of its graphs. StatefulDataLoader takes a Dataset, or adapters.torch.Iterable."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from torchdata.nodes import BaseNode

from .._batches import Batches
from .torch import _pair_of


class Node(BaseNode):  # type: ignore[misc,unused-ignore]
  """A loader as a BaseNode: items are (images, labels) as tensors, with mix= (images, soft
  labels), or what transform(batch) returns. An epoch ends the node; reset
  begins the next one, or goes on from a state.

  >>> import torchdata.nodes
  >>> import shardpack.adapters.torchdata
  >>> node = shardpack.adapters.torchdata.Node(shardpack.load('shards', split='train', batch=16, size=64))
  >>> [tuple(images.shape) for images, labels in torchdata.nodes.Loader(node)]
  [(16, 64, 64, 3), (16, 64, 64, 3), (16, 64, 64, 3)]
  """

  _KEY = "loader"

  def __init__(self, loader: Batches, transform: Optional[Callable[[Any], Any]] = None) -> None:
    super().__init__()
    self.loader, self._transform = loader, transform or _pair_of
    self._batches: Any = None

  def reset(self, initial_state: Optional[Mapping[str, Any]] = None) -> None:
    """Begins the next epoch; with a state of get_state() goes on there."""
    super().reset(initial_state)
    if initial_state is not None:
      self.loader.load_state_dict(initial_state[self._KEY])
    self._batches = iter(self.loader)

  def next(self) -> Any:
    """The next item; StopIteration at the end of an epoch."""
    return self._transform(next(self._batches))

  def get_state(self) -> dict[str, Any]:
    """For reset."""
    return {self._KEY: self.loader.state_dict()}
