"""Order: which sample stands where in an epoch."""

import ctypes

from . import _c
from ._library import call, library, made
from ._memory import ids_of, import_numpy
from ._options import choice, whole

PADDING_ID = _c.PADDING_ID

_MODES = {"sequential": _c.SEQUENTIAL, "shuffle": _c.SHUFFLE, "block_shuffle": _c.BLOCK_SHUFFLE}
_TAILS = {"drop": _c.TAIL_DROP, "pad": _c.TAIL_PAD}


class Order:
  """Which sample stands where in an epoch: a pure function of seed and epoch.

  subset: ids that stand for the samples; numpy.flatnonzero makes them of a mask. mixture: (first_id, samples, weight) of each dataset of a join.
  """

  def __init__(self, samples, global_batch, *, mode="shuffle", seed=0, tail="drop", block_samples=256, window_blocks=64,
               subset=None, mixture=(), epoch_samples=0):
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
      address, options.subset_count, kept = ids_of(subset, "subset")
      options.subset = address
    parts = [_c.mixture_part(whole(first, "first_id"), whole(count, "samples"), weight) for first, count, weight in mixture]
    if parts:
      options.mixture, options.mixture_count = (_c.mixture_part * len(parts))(*parts), len(parts)
    self._handle = made(library.order_release, library.order_make, whole(samples, "samples"), options)
    self._global_batch = options.global_batch

  @property
  def steps(self):
    """Of an epoch."""
    return library.order_steps(self._handle)

  @property
  def samples(self):
    """Of an epoch, without padding."""
    return library.order_samples(self._handle)

  def ids(self, epoch, step):
    """The samples of a global batch; PADDING_ID where there is none."""
    numpy = import_numpy()
    ids = (ctypes.c_uint64 * self._global_batch)()
    call(library.order_ids, self._handle, whole(epoch, "epoch"), whole(step, "step"), 0, ids, self._global_batch)
    return numpy.frombuffer(ids, numpy.uint64)

  def __repr__(self):
    return f"<Order {library.order_explain(self._handle).decode()}>"
