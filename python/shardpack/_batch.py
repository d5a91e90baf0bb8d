"""Batch: the samples of a step, in host memory."""

import ctypes

from . import _c
from ._errors import NotFoundError
from ._library import call, library
from ._memory import Memory
from ._options import c_text

_VIEW_BYTES = ctypes.sizeof(_c.batch_view)
_STATES = ("ok", "padding", "substituted")  # by number
_DTYPES = {_c.U8: "uint8", _c.F32: "float32", _c.F16: "float16"}


class BatchFacts:
  """What batches in host memory and on a device have."""

  def __init__(self, handle):
    self._handle = handle
    self._memory = Memory(handle)
    self._view = _c.batch_view(_VIEW_BYTES)
    call(library.batch_view_of, handle, self._view)

  def __len__(self):
    return self._view.slots

  @property
  def epoch(self):
    return self._view.epoch

  @property
  def step(self):
    return self._view.step

  @property
  def ids(self):
    """uint64 [n], a copy; PADDING_ID where there is no sample."""
    return self._memory.array(self._view.ids, "uint64", (len(self),)).copy()

  @property
  def status(self):
    """Of each slot: 'ok', 'padding' or 'substituted'; 'unknown' for what only a newer package has a word for."""
    return [_STATES[state] if state < len(_STATES) else "unknown" for state in ctypes.string_at(self._view.states, len(self))]

  @property
  def _pixel_shape(self):
    view = self._view
    if view.layout == _c.NCHW:
      return view.slots, view.channels, view.height, view.width
    return view.slots, view.height, view.width, view.channels


class Batch(BatchFacts):
  """The samples of one step. pixels and bytes() are views of the loader's memory: each keeps the whole batch until it is gone.
  What is kept cannot be reused, so copy what you want to keep for long."""

  def __init__(self, handle):
    super().__init__(handle)
    self._spans = {}  # of the fields that were asked for

  @property
  def labels(self):
    """int64 [n], a copy; -1 where there is none, and for padding."""
    return self._memory.array(self._view.labels, "int64", (len(self),)).copy()

  @property
  def pixels(self):
    """With a Decode: an array of its type and layout; else None."""
    if self._view.pixels is None:
      return None
    return self._memory.array(self._view.pixels, _DTYPES[self._view.type], self._pixel_shape)

  def bytes(self, slot, field="image"):
    """The encoded bytes of a field, as uint8; None where the sample has none."""
    spans = self._spans.get(field) or self._spans_of(field)
    address, size = spans[slot]
    return self._memory.uint8(address, size) if address else None

  def _spans_of(self, field):
    """[(address, bytes)] of all slots: one call of the library for a batch, and not one for a slot."""
    spans = (_c.span * len(self))()
    try:
      call(library.batch_spans, self._handle, c_text(field, "field"), spans, len(self))
    except NotFoundError:
      raise KeyError(field) from None
    numbers = memoryview(spans).cast("B").cast("N").tolist()
    self._spans[field] = list(zip(numbers[::2], numbers[1::2]))
    return self._spans[field]
