"""Loader: batches, read ahead by the library's threads."""

import ctypes
import os
from _thread import allocate_lock

from . import _c
from ._batch import Batch
from ._errors import StateError
from ._library import Handle, call, library, made, text_from, waited
from ._options import choice, cursor_text, names, signed, whole

_BAD_SAMPLES = {"fail": _c.BAD_FAIL, "substitute": _c.BAD_SUBSTITUTE}
_END_MS = 2000


# The functions come as arguments, because the names of a module are gone when the interpreter ends.
def end_loader(pointer, close=library.loader_close, release=library.loader_release, write=os.write):
  """Ends a loader. One whose reads hang is left behind with its threads: a release would wait once more."""
  if pointer and close(pointer, _END_MS, None) == _c.WAIT:
    write(2, b"shardpack: a read does not end; its thread is left to the end of the process\n")
  else:
    release(pointer)


class Batches:
  """What all loaders have. One thread at a time gets a batch."""

  _batch = Batch

  def __init__(self, handle):
    self._handle = handle
    self._one_at_a_time = allocate_lock()
    # Filled when the handler of a signal raised just as a batch came: then that is the next one.
    self._came = Handle(library.batch_release)

  def _open(self):
    """The loader's handle, while nobody has taken it."""
    return self._handle

  def __iter__(self):
    return self

  def __next__(self):
    handle = self._open()
    with self._one_at_a_time:
      came = self._came
      if not came and self._ask(handle, came) == _c.END:
        raise StopIteration
      batch = self._batch(came)
      self._came = Handle(library.batch_release)
    return batch

  def _ask(self, handle, came):
    return waited(library.loader_next, handle, came.to_fill)

  @property
  def cursor(self):
    """Text for a checkpoint: a loader opened with it goes on with the next batch, at any world size that divides the global
    batch."""
    return self._cursor_of_came() if self._came else text_from(library.loader_cursor, self._open())

  @property
  def epoch(self):
    """Of the batch that comes next."""
    if self._came:
      return self._batch(self._came).epoch
    epoch, step = ctypes.c_uint64(), ctypes.c_uint64()
    call(library.loader_position, self._open(), ctypes.byref(epoch), ctypes.byref(step))
    return epoch.value

  def explain(self):
    """A few lines for people; the first names the bottleneck."""
    return text_from(library.loader_explain, self._open())

  def stats_json(self):
    """What every stage did."""
    return text_from(library.loader_stats_json, self._open())

  def take_bad_samples(self):
    """The samples that others stood in for since the last call: a dict with epoch, step, id and why for each."""
    import json  # pylint: disable=import-outside-toplevel
    return json.loads(text_from(library.loader_take_bad_samples_json, self._open()))

  def stop(self):
    """Ends all work; a waiting thread gets a CancelledError. Batches stay valid."""
    library.loader_stop(self._open())


class Loader(Batches):
  """Batches, read ahead by threads. An iteration is an epoch; the next one goes on with the next epoch. Open it after a fork, not
  before.

  device: a Device, for whose DeviceLoader batches are read into page-locked memory.
  """

  def __init__(self, dataset, order, *, rank=0, world_size=1, fields=("image",), decode=None, cursor=None, verify=True, threads=0,
               io_threads=32, prefetch_batches=0, memory_bytes=1 << 30, epochs=0, augment_seed=0, bad_samples="fail",
               max_bad_samples=100, device=None):
    wanted = names(fields, "fields")
    options = _c.loader_options(
        size=ctypes.sizeof(_c.loader_options),
        rank=whole(rank, "rank", 32),
        world_size=whole(world_size, "world_size", 32, least=1),
        cursor=cursor_text(cursor),
        fields=wanted,
        field_count=len(wanted),
        decode=None if decode is None else ctypes.pointer(decode._options),  # pylint: disable=protected-access
        augment_seed=whole(augment_seed, "augment_seed"),
        epochs=whole(epochs, "epochs"),
        memory_bytes=whole(memory_bytes, "memory_bytes", least=1),
        max_bad_samples=whole(max_bad_samples, "max_bad_samples"),
        bad_samples=choice(bad_samples, "bad_samples", _BAD_SAMPLES),
        threads=signed(threads, "threads"),
        io_threads=signed(io_threads, "io_threads") or -1,
        prefetch_batches=whole(prefetch_batches, "prefetch_batches", 32),
        no_verify=not verify,
        map_shards=True,
        device=None if device is None else device._handle.pointer)  # pylint: disable=protected-access
    if max_bad_samples == 0:  # which would be the default's sign
      options.bad_samples = _c.BAD_FAIL
    super().__init__(made(end_loader, library.loader_open, dataset._handle, order._handle, options))  # pylint: disable=protected-access
    self._device = device

  def _open(self):
    if self._handle is None:
      raise StateError("a DeviceLoader has taken this loader")
    return self._handle

  def _cursor_of_came(self):
    # For the library that batch has been delivered.
    with self._one_at_a_time:
      batch = Batch(self._came)
      call(library.loader_seek, self._open(), batch.epoch, batch.step)
      self._came = Handle(library.batch_release)
    return self.cursor

  def _take(self):
    """The handle, for a DeviceLoader."""
    handle, self._handle = self._open(), None
    return handle
