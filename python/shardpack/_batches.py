"""Batches: what all loaders have."""

# pylint: disable=protected-access

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from _thread import RLock
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, TypeVar
from weakref import ref

from . import _c, _resume
from ._batch import BatchFacts, Look
from ._dataset import Dataset
from ._errors import Error, OptionError, StateError
from ._library import WAIT_MS, Handle, call, library, text_made, waited
from ._memory import import_numpy
from ._options import whole
from ._order import PADDING_ID, Order

if TYPE_CHECKING:
  import numpy.typing

_END_MS = 2000
_LAST_EPOCH = (1 << 64) - 1
_CLOSED = "the loader is closed"
_HANGS = b"shardpack: a read does not end; its thread is left to the end of the process\n"


class Epoch:
  """What iter(loader) gives: the batches from there to the end of an epoch, and none after that. Several threads may share it.

  Once another `for`, or iter(loader), has begun the next epoch, it raises StateError: its own batches would be lost unseen. With
  resume_on_iter=True all of a loader's iterators go on together.
  """

  __slots__ = ("_loader", "_number", "_over")

  def __init__(self, loader: Batches, number: int) -> None:
    self._loader, self._number, self._over = loader, number, False

  def __iter__(self) -> Epoch:
    return self

  def __next__(self) -> Any:
    return self._loader._next_of(self)


_L = TypeVar("_L", bound="Batches")


class Batches:
  """What all loaders have. One thread at a time gets a batch.

  An iteration (`for batch in loader`) is an epoch. With resume_on_iter=False each begins an epoch: after a `break`, the next one.
  With resume_on_iter=True it goes on where the loader is, with the rest of the epoch after a `break`.
  """

  _batch_type: type[BatchFacts] = BatchFacts
  _functions: tuple[Callable[[Any, Any], object], ...] = ()  # Augment.batch
  _seed = 0  # of augmentation
  _other_augment = False  # whether it goes on from a run that augmented in another way
  _augments_later = False  # on a device, whose loader then checks that
  _resumed: Optional[_resume.Saved] = None  # and from where
  _later: Optional[Callable[[], Handle]] = None  # opens a loader on a device again, which is closed before that
  _into: Optional[tuple[Any, ...]] = None  # memory of the caller that has the batch that an interrupt held back

  def __init__(self, handle: Handle, dataset: Dataset, order: Order, rank: int, world_size: int, epochs: int, look: Look,
               resume_on_iter: bool = True) -> None:
    self._handle: Optional[Handle] = handle
    self._why_closed = _CLOSED
    self._dataset, self._order, self._look = dataset, order, look
    self._rank, self._world_size = rank, world_size
    self._epochs = epochs  # of the library's loader: 0 for no limit
    self._resume_on_iter = resume_on_iter
    self._rest: Optional[_resume.Rest] = None
    self._under_way: Optional[tuple[int, int]] = None  # place of the last batch, until its epoch ends
    self._bad: list[dict[str, Any]] = []
    # One that handlers of signals can take, which run where they have interrupted the thread that has it.
    self._one_at_a_time, self._process = RLock(), os.getpid()
    self._is_mine: Callable[[], bool] = getattr(self._one_at_a_time, "_is_owned")  # by this thread
    self._iterations = 0
    # Filled when the handler of a signal raised just as a batch came: then that is the next one. Only with the lock is it known
    # that it is not being filled, or taken. Without _held it is empty, but for a thread that has the lock.
    self._came, self._held = Handle(library.batch_release), False
    _all_loaders.add(ref(self, _all_loaders.discard))

  def _mine(self) -> RLock:
    """The lock, for what changes the loader: not a handler of a signal, in the middle of that."""
    lock = self._lock()
    if self._is_mine():
      raise StateError("a signal's handler asks for a batch, and has interrupted its thread in the middle of that")
    return lock

  def _lock(self) -> RLock:
    """In a forked child it may be held for ever."""
    if self._process != os.getpid():
      raise StateError("the loader was opened in another process: threads do not survive a fork; open it after")
    return self._one_at_a_time

  def _open(self) -> Handle:
    """The loader's handle, while nobody has taken it."""
    if self._handle is None:
      raise StateError(self._why_closed)
    return self._handle

  def __iter__(self) -> Any:
    if self._resume_on_iter:
      return Epoch(self, 0)
    try:
      with self._mine():
        self._begin()
        self._iterations += 1
        return Epoch(self, self._iterations)
    except BaseException:
      self._held = True
      raise

  def _begin(self) -> None:
    """An epoch, unless the place where one is to begin or go on is set already."""
    if self._under_way is not None:
      epoch, step = self._under_way
      if step + 1 == self._steps_under_way and not self._came and self._ask(self._open(), self._came) == _c.END:
        self._end(epoch)
      else:
        self._move(epoch + 1, 0)
    epoch, step = self._place()
    if self._epochs and epoch >= self._epochs:
      self._move(epoch, step)

  @property
  def _steps_under_way(self) -> int:
    return (self._rest.order if self._rest else self._order).steps

  def __next__(self) -> Any:
    return self._next_of(None)

  def _next_of(self, iterator: Optional[Epoch]) -> Any:
    """None: asked without one."""
    before = self._under_way
    try:
      batch = self._next(iterator)
    except Error:
      _stay_at_exit()
      raise
    if self._functions:
      try:
        self._apply(batch)
      except BaseException:  # also an interrupt: the batch comes again, with its pixels as they were
        with self._lock():
          if self._under_way == (batch.epoch, batch.step) and not self._came and self._seek(batch.epoch, batch.step):
            self._under_way = before
        raise
    return batch

  def _apply(self, batch: Any) -> None:
    numpy, pixels = import_numpy(), batch.pixels
    identities = numpy.empty((len(pixels), 3), numpy.uint64)
    identities[:, 0], identities[:, 1], identities[:, 2] = self._seed, batch.epoch, batch.ids
    for function in self._functions:
      if function(pixels, identities) is not None:
        raise OptionError("a function of batches changes the pixels in place: what it returns would be lost")

  def _next(self, iterator: Optional[Epoch]) -> Any:
    came = before = None
    try:
      with self._mine():
        before = self._under_way
        if iterator is not None:
          if iterator._over:
            raise StopIteration
          if iterator._number != self._iterations:
            raise StateError("another loop over this loader, or iter(), has begun the next epoch since this loop began: a loader is in "
                             "one place at a time; open a second one, or ask for next(loader)")
        handle = self._open()
        while True:
          came = self._came
          if came and self._into is not None:
            raise StateError("a batch that an interrupt held back comes first: it is in the arrays that next_into got; call it with them again")
          if not came and self._ask(handle, came) == _c.END:
            if self._under_way:
              self._end(self._under_way[0])
            if iterator is not None:
              iterator._over = True
            raise StopIteration
          batch = self._made(came)
          if self._came is came:  # else cursor, asked for by a signal's handler, has made the library go back before this batch
            self._give(batch)
            return batch
    except BaseException:
      self._hold_back(came, before)
      raise

  def _give(self, batch: BatchFacts) -> None:
    """Notes that this one is out."""
    place, empty = (batch.epoch, batch.step), Handle(library.batch_release)
    self._under_way, self._came = place, empty

  def _hold_back(self, came: Optional[Handle], before: Optional[tuple[int, int]]) -> None:
    """The batch of a call that an interrupt ended, if only on its way out: it comes next, unless another thread has gone on meanwhile."""
    self._held = True
    if came:
      with self._lock():
        batch = self._made(came)
        if not self._came and self._under_way == (batch.epoch, batch.step):
          self._under_way, self._came = before, came

  def _made(self, handle: Handle) -> Any:
    return self._batch_type(handle, self._look)

  def _ask(self, handle: Handle, came: Handle) -> int:
    self._held = False
    return int(waited(library.loader_next, handle, came.to_fill))

  def _end(self, epoch: int) -> None:
    """Of an epoch: the library goes on with the next one by itself, unless it began in another order."""
    self._under_way = None
    if self._rest:
      self._move(epoch + 1, 0)

  # ---------------------------------------------------------------------------------------------- where the loader is

  def __reduce__(self) -> Any:
    raise TypeError(f"a {type(self).__name__} is not pickled: make it in the process that uses it, from a path and a state_dict(); in "
                    "torch's DataLoader use shardpack.adapters.torch with num_workers=0")

  def __len__(self) -> int:
    """Steps of an epoch; of what is left of one that began with another global batch, the steps that are left."""
    return self._steps_under_way

  @property
  def cursor(self) -> str:
    """Text for a checkpoint: a loader opened with it goes on with the next batch, at any world size that divides the global
    batch. In the rest of an epoch that began with another global batch there is none, but state_dict().

    >>> loader = shardpack.load('shards', batch=20)
    >>> batch = next(loader)
    >>> next(shardpack.load('shards', batch=20, cursor=loader.cursor)).step
    1
    """
    if self._rest:
      raise StateError("this epoch began with another global batch, which a cursor cannot tell: take state_dict()")
    cursor: str = self._now(self._cursor_of_came, self._cursor)
    return cursor

  @property
  def epoch(self) -> int:
    """Of the batch that comes next."""
    return self._place()[0]

  @property
  def step(self) -> int:
    """Of the batch that comes next."""
    return self._place()[1]

  def _place(self) -> tuple[int, int]:
    def of_came() -> tuple[int, int]:
      batch = self._made(self._came)
      return batch.epoch, batch.step
    place: tuple[int, int] = self._now(of_came, self._place_of_library)
    return place

  def _now(self, of_came: Callable[[], Any], of_library: Callable[[], Any]) -> Any:
    """While another thread gets a batch, that is the thread's, and the next one is what the library says."""
    if self._held or self._is_mine():
      with self._lock():
        if self._came:
          return of_came()
    return of_library()

  def _cursor(self) -> str:
    return str(text_made(library.loader_cursor, self._open()))

  def _cursor_of_came(self) -> str:
    raise NotImplementedError

  def _place_of_library(self) -> tuple[int, int]:
    epoch, step = ctypes.c_uint64(), ctypes.c_uint64()
    call(library.loader_position, self._open(), ctypes.byref(epoch), ctypes.byref(step))
    return epoch.value, step.value

  def seek(self, epoch: int, step: int = 0) -> None:
    """The next batch is that of this step. Takes the same time wherever it is; what was read ahead is dropped. Raises OptionError
    for a step that an epoch does not have.

    >>> loader = shardpack.load('shards', batch=20)
    >>> loader.seek(epoch=3, step=1)
    >>> [(batch.epoch, batch.step) for batch in loader]
    [(3, 1), (3, 2)]
    """
    epoch, step = whole(epoch, "epoch"), whole(step, "step")
    if step > self._order.steps:
      raise OptionError(f"step must be at most {self._order.steps}, the steps of an epoch, not {step}")
    with self._mine():
      self._move(epoch, step)

  def set_epoch(self, epoch: int) -> None:
    """The next batch is the first of this epoch, as with torch's samplers. Nothing changes if the loader is in this epoch and has
    given no batch of it since it was opened, or since load_state_dict or seek: so it does no harm after a resume.

    >>> loader = shardpack.load('shards', batch=20)
    >>> loader.set_epoch(2)
    >>> next(loader).epoch
    2
    """
    epoch = whole(epoch, "epoch")
    with self._mine():
      if self._under_way is not None or self._place()[0] != epoch:
        self._move(epoch, 0)

  def state_dict(self) -> dict[str, Any]:
    """For a checkpoint, of text and numbers alone: {'cursor': text, 'version': 1, 'order': text}, 'augmentation' where there is one, and
    in the rest of an epoch that began with another global batch also 'rest'. The next batch is the first that load_state_dict brings.

    >>> loader = shardpack.load('shards', batch=20)
    >>> batch = next(loader)
    >>> sorted(loader.state_dict())
    ['cursor', 'order', 'version']
    """
    rest = self._rest
    return _resume.state("" if rest else self.cursor, self._order, rest, self._place(), self._augmentation())

  def _augmentation(self) -> str:
    return str(self.stats().get("augmentation", ""))

  def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
    """Goes on where state_dict() was called, at any rank and world size. With strict=False also where the global batch was
    another one: the samples of the epoch that were not delivered come first, each once, with the same crops. Raises a CursorError
    with `differences` where the dataset or the order is another one; the loader then stays where it was.

    >>> loader = shardpack.load('shards', batch=20)
    >>> batch = next(loader)
    >>> other = shardpack.load('shards', batch=8)
    >>> other.load_state_dict(loader.state_dict(), strict=False)
    >>> [len(batch) for batch in other]
    [8, 8, 8, 8, 8]
    """
    saved = _resume.read(state_dict)
    _resume.check_dataset(saved, self._dataset.identity.partition(":")[2])
    _resume.check_order(saved, self._order, strict)
    place = _resume.where(saved, self._order)
    if self._augments_later:
      self._resumed = saved
    elif not self._other_augment:
      _resume.check_augment(saved, self._cursor(), self._augmentation())
    with self._mine():
      if isinstance(place, _resume.Rest):
        epochs = max(self._epochs, place.epoch + 1) if self._epochs else 0
        self._replace(place.order, epochs, (place.epoch, 0), None, place)
      elif saved.before or saved.order != self._order.explain() and saved.order is not None:
        self._move(*place)
      else:  # the library checks the text
        try:
          self._replace(self._order, self._limit(saved.epoch), None, saved.cursor)
        except OptionError as refused:
          from ._loader import cursor_at  # pylint: disable=import-outside-toplevel
          raise _resume.of_refused(refused, saved, cursor_at(self._dataset, self._order), self._order, saved.augment) from None  # which fits

  def _limit(self, epoch: int) -> int:
    """So that there is such an epoch, where each `for` begins one."""
    return self._epochs if self._resume_on_iter or not self._epochs else max(self._epochs, min(epoch + 1, _LAST_EPOCH))

  def _move(self, epoch: int, step: int) -> None:
    epochs = self._limit(epoch)
    if self._rest is None and epochs == self._epochs and self._seek(epoch, step):
      self._came, self._under_way = Handle(library.batch_release), None
    else:
      self._replace(self._order, epochs, (epoch, step))

  def _seek(self, epoch: int, step: int) -> bool:
    """False where the library has to open another loader for that."""
    call(library.loader_seek, self._open(), epoch, step)
    return True

  def _replace(self, order: Order, epochs: int, place: Optional[tuple[int, int]], cursor: Optional[str] = None,
               rest: Optional[_resume.Rest] = None) -> None:
    """By a loader that goes on there. After an error nothing has changed."""
    self._open()
    self._keep_bad_samples()
    self._set(epochs, rest, _handle=self._opened(order, epochs, place, cursor))

  def _set(self, epochs: int, rest: Optional[_resume.Rest], **others: Any) -> None:
    came = Handle(library.batch_release)
    # One call in C, so that no handler of a signal raises between them.
    self.__dict__.update(_epochs=epochs, _rest=rest, _came=came, _under_way=None, **others)

  def _opened(self, order: Order, epochs: int, place: Optional[tuple[int, int]], cursor: Optional[str] = None) -> Handle:
    """A loader with the same options, at this place or cursor."""
    raise NotImplementedError

  # ---------------------------------------------------------------------------------------------- what it does

  def ids(self, epoch: int, step: int) -> numpy.typing.NDArray[numpy.uint64]:
    """uint64 [n]: the samples of this process's batch of a step, without reading them.

    >>> shardpack.load('shards', batch=8, shuffle=False).ids(epoch=0, step=1)
    array([ 8,  9, 10, 11, 12, 13, 14, 15], dtype=uint64)
    """
    rest = self._rest
    order = rest.order if rest and rest.epoch == epoch else self._order
    share = order.global_batch // self._world_size
    ids: numpy.typing.NDArray[numpy.uint64] = order._slots(epoch, step, self._rank * share, share)
    return ids[ids != PADDING_ID] if self._look.cut else ids

  def __repr__(self) -> str:
    try:
      return "<{} at epoch {}, step {}>".format(type(self).__name__, *self._place())
    except Error as error:
      return f"<{type(self).__name__}: {error}>"

  def explain(self) -> str:
    """A few lines for people; the first names the bottleneck.

    >>> loader = shardpack.load('shards', batch=20)
    >>> batches = list(loader)
    >>> len(loader.explain().splitlines()) > 1
    True
    """
    return str(text_made(library.loader_explain, self._open()))

  def stats_json(self) -> str:
    """What every stage did, since the loader was opened or went to another place, as the text of a JSON object.

    >>> shardpack.load('shards', batch=20).stats_json()[:1]
    '{'
    """
    return str(text_made(library.loader_stats_json, self._open()))

  def stats(self) -> dict[str, Any]:
    """The same as a dict: batches, samples, bytes, and the nanoseconds of each stage.

    >>> loader = shardpack.load('shards', batch=20)
    >>> batches = list(loader)
    >>> loader.stats()['samples']
    60
    """
    import json  # pylint: disable=import-outside-toplevel
    content: dict[str, Any] = json.loads(self.stats_json())
    return content

  def take_bad_samples(self) -> list[dict[str, Any]]:
    """The samples that others stood in for since the last call: a dict with epoch, step, id and why for each. After close() those
    that were not taken before.

    >>> loader = shardpack.load('shards', batch=20)
    >>> batches = list(loader)
    >>> loader.take_bad_samples()
    []
    """
    self._keep_bad_samples()
    taken, self._bad = self._bad, []
    return taken

  def bad_samples(self) -> list[dict[str, Any]]:
    """All of them so far: those that take_bad_samples() has not taken.

    >>> with shardpack.load('shards', batch=20, bad_samples='substitute') as loader:
    ...   batches = list(loader)
    ...   loader.bad_samples()
    []
    """
    self._keep_bad_samples()
    return list(self._bad)

  def _keep_bad_samples(self) -> None:
    """Those that the library has, which forgets them with the handle."""
    import json  # pylint: disable=import-outside-toplevel
    if self._handle is not None:
      self._bad = [*self._bad, *json.loads(text_made(library.loader_take_bad_samples_json, self._handle))]
    elif self._why_closed != _CLOSED:
      raise StateError(self._why_closed)

  def stop(self) -> None:
    """Ends all work; a waiting thread gets a CancelledError. Batches stay valid. Any thread.

    >>> loader = shardpack.load('shards', batch=20)
    >>> loader.stop()
    >>> try:
    ...   batch = next(loader)
    ... except shardpack.CancelledError:
    ...   print('stopped')
    stopped
    """
    library.loader_stop(self._open())

  def close(self) -> None:
    """Ends the loader's threads and gives its memory back. Batches and their arrays stay valid. A read that hangs is left to its
    thread after two seconds. Nothing to do for a loader that is closed or taken. `with` does it at its end.

    >>> with shardpack.load('shards', batch=20) as loader:
    ...   batch = next(loader)
    >>> loader
    <Loader: the loader is closed>
    """
    self._later = None
    self._end_handle()

  def _end_handle(self) -> None:
    handle = self._handle
    if not handle:
      return
    library.loader_stop(handle)
    with suppress(Error):  # after a fork
      self._keep_bad_samples()
    ended = False
    for _ in range(_END_MS // WAIT_MS):  # in Python, so that signals are answered; after an exception it can be closed again
      ended = ended or call(library.loader_close, handle, WAIT_MS) != _c.WAIT
    self._let_go()
    if not ended:
      handle.abandon()
      os.write(2, _HANGS)

  def _let_go(self) -> None:
    """Closes it without a wait in which signals are answered."""
    self._handle, self._came = None, Handle(library.batch_release)

  def __enter__(self: _L) -> _L:
    return self

  def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
    self.close()


_all_loaders: set[ref[Batches]] = set()  # no WeakSet, which is lines of Python where a loader ends
_process = os.getpid()
_ending = False


@atexit.register
def _close_all() -> None:
  """While the interpreter is whole: threads that still copied to a GPU would do so while CUDA ends."""
  global _ending  # pylint: disable=global-statement
  if os.getpid() != _process:  # they are the parent's
    return
  _ending = True
  loaders = [loader for each in list(_all_loaders) if (loader := each()) is not None]
  for loader in loaders:
    if loader._handle is not None and loader._later is None:
      with suppress(Error):
        loader.stop()  # all of them first: each close() may wait
  for loader in loaders:
    with suppress(Error):
      loader.close()


def _stay_at_exit() -> None:
  """Threads that the interpreter does not wait for end silently with it, and not by an error of a loader that was closed then."""
  if _ending and threading.current_thread() is not threading.main_thread():
    threading.Event().wait()
