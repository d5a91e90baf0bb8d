"""Order: which sample stands where in an epoch."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Sequence

from . import _c
from ._errors import OptionError
from ._library import call, library, made
from ._memory import ids_of, import_numpy
from ._options import choice, real, rebuilt, whole

if TYPE_CHECKING:
  import numpy.typing

PADDING_ID = _c.PADDING_ID

_MODES = {"sequential": _c.SEQUENTIAL, "shuffle": _c.SHUFFLE, "block_shuffle": _c.BLOCK_SHUFFLE}
_TAILS = {"drop": _c.TAIL_DROP, "pad": _c.TAIL_PAD}


class Order:
  """Which sample stands where in an epoch: a pure function of seed and epoch.

  samples: of the dataset. global_batch: samples of a step, over all ranks. mode: 'shuffle' (global and exact, new in each epoch),
  'sequential' or 'block_shuffle' (keeps reads close together: blocks of block_samples, shuffled among window_blocks). tail: what
  becomes of an incomplete last step, 'drop' or 'pad'. subset: ids that stand for the samples; numpy.flatnonzero makes them of a
  mask. mixture: (first_id, samples, weight) of each dataset of a join, or of each part of the subset; it needs epoch_samples.

  Raises OptionError for what cannot be. Can be used by several threads, and after a fork.

  >>> order = shardpack.Order(samples=60, global_batch=8, seed=7)
  >>> order.steps, order.samples
  (7, 56)
  >>> order.ids(epoch=0, step=0).dtype
  dtype('uint64')
  """

  _of_load = False  # whether the arguments of load() made it, by which a message then names what differs

  def __init__(self, samples: int, global_batch: int, *, mode: str = "shuffle", seed: int = 0, tail: str = "drop",
               block_samples: int = 256, window_blocks: int = 64, subset: Any = None,
               mixture: Sequence[tuple[int, int, float]] = (), epoch_samples: int = 0) -> None:
    if hasattr(samples, "__len__") and not hasattr(samples, "__index__"):
      raise OptionError(f"samples must be a whole number, such as len(dataset), not {samples!r}")
    mixture = list(mixture)
    self._given: dict[str, Any] = {
        "samples": samples, "global_batch": global_batch, "mode": mode, "seed": seed, "tail": tail, "block_samples": block_samples,
        "window_blocks": window_blocks, "subset": subset, "mixture": mixture, "epoch_samples": epoch_samples}
    options = _c.order_options(
        size=ctypes.sizeof(_c.order_options),
        seed=whole(seed, "seed"),
        global_batch=whole(global_batch, "global_batch", 32, least=1),
        mode=choice(mode, "mode", _MODES),
        tail=choice(tail, "tail", _TAILS),
        block_samples=whole(block_samples, "block_samples", 32, least=1),
        window_blocks=whole(window_blocks, "window_blocks", 32, least=1),
        epoch_samples=whole(epoch_samples, "epoch_samples"))
    if subset is not None:
      address, options.subset_count, self._given["subset"] = ids_of(subset, "subset")
      options.subset = address
    parts = [_part(part) for part in mixture]
    if parts:
      options.mixture, options.mixture_count = (_c.mixture_part * len(parts))(*parts), len(parts)
    self._handle = made(library.order_release, library.order_make, whole(samples, "samples"), options)
    self._global_batch = options.global_batch

  def _with(self, **changes: Any) -> Order:
    """The same in all else."""
    order = Order(**{**self._given, **changes})
    order._of_load = self._of_load
    return order

  @property
  def steps(self) -> int:
    """Of an epoch, at least 1."""
    return int(library.order_steps(self._handle))

  @property
  def samples(self) -> int:
    """Of an epoch, without padding."""
    return int(library.order_samples(self._handle))

  @property
  def global_batch(self) -> int:
    """Slots of a step, over all ranks."""
    return int(self._global_batch)

  def ids(self, epoch: int, step: int) -> numpy.typing.NDArray[numpy.uint64]:
    """The samples of a global batch, uint64 [global_batch]; PADDING_ID where there is none. Rank r of n has the r-th of n equal
    parts. Raises OutOfRangeError for a step that an epoch does not have.

    >>> shardpack.Order(samples=60, global_batch=8, mode='sequential').ids(epoch=0, step=1)
    array([ 8,  9, 10, 11, 12, 13, 14, 15], dtype=uint64)
    """
    ids: numpy.typing.NDArray[numpy.uint64] = self._slots(epoch, step, 0, self._global_batch)
    return ids

  def _slots(self, epoch: int, step: int, first: int, count: int) -> Any:
    numpy = import_numpy()
    ids = (ctypes.c_uint64 * count)()
    call(library.order_ids, self._handle, whole(epoch, "epoch"), whole(step, "step"), first, ids, count)
    return numpy.frombuffer(ids, numpy.uint64)

  def _ids_after(self, epoch: int, seen: int) -> Any:
    """Those of an epoch from its sample number `seen` on, without padding."""
    numpy = import_numpy()
    first = seen // self._global_batch
    steps = [self.ids(epoch, step) for step in range(first, self.steps)]
    ids = numpy.concatenate(steps) if steps else numpy.zeros(0, numpy.uint64)
    return ids[seen - first * self._global_batch:self.samples - first * self._global_batch]

  def explain(self) -> str:
    """One line with exactly what determines the order: equal lines, equal ids.

    >>> shardpack.Order(samples=60, global_batch=8, seed=7).explain()
    'shardpack-order-1 mode=shuffle seed=7 samples=60 global_batch=8 tail=drop epoch_samples=0 steps=7'
    """
    return str(library.order_explain(self._handle).decode())

  def __repr__(self) -> str:
    return f"<Order {self.explain()}>"

  def __reduce__(self) -> tuple[Any, ...]:
    return rebuilt, (type(self), self._given)


def _part(part: Sequence[Any]) -> Any:
  try:
    first, samples, weight = part
  except (TypeError, ValueError):
    raise OptionError(f"mixture must have (first_id, samples, weight) of each part, not {part!r}") from None
  return _c.mixture_part(whole(first, "first_id"), whole(samples, "samples"), real(weight, "weight"))
