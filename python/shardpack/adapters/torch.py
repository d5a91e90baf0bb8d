"""PyTorch: arrays of batches as its tensors, and loaders as its datasets."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Optional

import torch
import torch.utils.data
import torch.utils.dlpack

from .._batches import Batches


def _of_array(array: Any) -> Any:
  """A torch.Tensor in the same memory, which it keeps."""
  return torch.utils.dlpack.from_dlpack(array)


class Iterable(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
  """A loader for torch's DataLoader, or StatefulDataLoader, where a framework insists on one: with batch_size=None and
  num_workers=0, because the loader has batches and threads already. Items are (images, labels) as tensors, with
  mix= (images, soft labels), or what transform(batch) returns.

  Raises RuntimeError in a worker process: num_workers=0 is needed.

  >>> import torch
  >>> import shardpack.adapters.torch
  >>> loader = shardpack.load('shards', split='train', batch=16, size=64, flip=0.5)
  >>> for images, labels in torch.utils.data.DataLoader(shardpack.adapters.torch.Iterable(loader), batch_size=None):
  ...   print(tuple(images.shape), images.dtype, tuple(labels.shape))
  (16, 64, 64, 3) torch.uint8 (16,)
  (16, 64, 64, 3) torch.uint8 (16,)
  (16, 64, 64, 3) torch.uint8 (16,)
  """

  def __init__(self, loader: Batches, transform: Optional[Callable[[Any], Any]] = None) -> None:
    self.loader, self._transform = loader, transform

  def __len__(self) -> int:
    return len(self.loader)

  def __iter__(self) -> Iterator[Any]:
    if torch.utils.data.get_worker_info() is not None:
      raise RuntimeError("a shardpack loader has threads of its own: give DataLoader num_workers=0")
    return map(self._transform or _pair_of, iter(self.loader))

  def set_epoch(self, epoch: int) -> None:
    """As of the loader."""
    self.loader.set_epoch(epoch)

  def state_dict(self) -> dict[str, Any]:
    """As of the loader."""
    return self.loader.state_dict()

  def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
    """As of the loader."""
    self.loader.load_state_dict(state_dict, strict)


def _pair_of(batch: Any) -> tuple[Any, Any]:
  """What the batch unpacks to, as tensors."""
  images, labels = batch
  return _tensor(images), _tensor(labels)


def _tensor(value: Any) -> Any:
  """Encoded images stay a list."""
  return value if isinstance(value, (torch.Tensor, list)) else _of_array(value)
