"""Loader: batches, read ahead by the library's threads."""

import ctypes
import os
from _thread import RLock

from . import _c
from ._batch import Batch
from ._dataset import Dataset
from ._decode import Decode
from ._device import Device
from ._errors import Error, StateError
from ._library import Handle, call, library, made, text_from, waited
from ._options import choice, cursor_text, flag, names, of_type, signed, whole
from ._order import Order

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
    # One that handlers of signals can take, which run where they have interrupted the thread that has it.
    self._one_at_a_time = RLock()
    self._busy = False
    # Filled when the handler of a signal raised just as a batch came: then that is the next one. Only with the lock is it known
    # that it is not being filled, or taken.
    self._came = Handle(library.batch_release)

  def _open(self):
    """The loader's handle, while nobody has taken it."""
    return self._handle

  def __iter__(self):
    return self

  def __next__(self):
    handle = self._open()
    with self._one_at_a_time:
      if self._busy:
        raise StateError("a signal's handler asks for a batch, and has interrupted its thread in the middle of that")
      self._busy = True
      try:
        while True:
          came = self._came
          if not came and self._ask(handle, came) == _c.END:
            raise StopIteration
          batch, empty = self._batch(came), Handle(library.batch_release)
          if self._came is came:  # else cursor, asked for by a signal's handler, has made the library go back before this batch
            self._came = empty
            return batch
      finally:
        self._busy = False

  def _ask(self, handle, came):
    return waited(library.loader_next, handle, came.to_fill)

  @property
  def cursor(self):
    """Text for a checkpoint: a loader opened with it goes on with the next batch, at any world size that divides the global
    batch."""
    return self._now(self._cursor_of_came, self._cursor)

  @property
  def epoch(self):
    """Of the batch that comes next."""
    return self._place()[0]

  def _place(self):
    def of_came():
      batch = self._batch(self._came)
      return batch.epoch, batch.step
    return self._now(of_came, self._place_of_library)

  def _now(self, of_came, of_library):
    """While another thread gets a batch, that is the thread's, and the next one is what the library says."""
    if not self._one_at_a_time.acquire(False):
      return of_library()
    try:
      return of_came() if self._came else of_library()
    finally:
      self._one_at_a_time.release()

  def _cursor(self):
    return text_from(library.loader_cursor, self._open())

  def _place_of_library(self):
    epoch, step = ctypes.c_uint64(), ctypes.c_uint64()
    call(library.loader_position, self._open(), ctypes.byref(epoch), ctypes.byref(step))
    return epoch.value, step.value

  def __repr__(self):
    try:
      return "<{} at epoch {}, step {}>".format(type(self).__name__, *self._place())
    except Error as error:
      return f"<{type(self).__name__}: {error}>"

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
  map_shards: small samples are copied from mappings of the shards in the page cache, which is several times faster. Installs a
  handler of SIGBUS, which passes on what is not its own; False leaves signals alone.
  """

  def __init__(self, dataset, order, *, rank=0, world_size=1, fields=("image",), decode=None, cursor=None, verify=True, threads=0,
               io_threads=32, prefetch_batches=0, memory_bytes=1 << 30, epochs=0, augment_seed=0, bad_samples="fail",
               max_bad_samples=100, device=None, map_shards=True):
    of_type(dataset, Dataset, "dataset")
    of_type(order, Order, "order")
    if decode is not None:
      of_type(decode, Decode, "decode")
    if device is not None:
      of_type(device, Device, "device")
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
        no_verify=not flag(verify, "verify"),
        map_shards=flag(map_shards, "map_shards"),
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
    batch = Batch(self._came)
    call(library.loader_seek, self._open(), batch.epoch, batch.step)
    self._came = Handle(library.batch_release)
    return self._cursor()

  def _take(self):
    """The handle, for a DeviceLoader."""
    handle, self._handle = self._open(), None
    return handle

  def _give_back(self, handle):
    """From a DeviceLoader that could not be made. If the library has taken the loader all the same, it says so from now on."""
    self._handle = handle
