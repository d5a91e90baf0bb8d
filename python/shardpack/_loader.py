"""Loader: batches, read ahead by the library's threads."""

# pylint: disable=protected-access

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

from . import _c, _resume
from ._batch import Batch, Look
from ._augment import Mix, own_array
from ._batches import Batches
from ._dataset import Dataset
from ._decode import Decode
from ._device import Device
from ._errors import CursorError, Error, OptionError
from ._fields import DecodeFields, FieldDecodes
from ._frameworks import framework_of
from ._library import Handle, call, library, made
from ._options import c_text, choice, cursor_text, flag, names, of_type, signed, whole
from ._order import Order
from ._text import decoded

if TYPE_CHECKING:
  from ._device_loader import DeviceLoader

_BAD_SAMPLES = {"fail": _c.BAD_FAIL, "substitute": _c.BAD_SUBSTITUTE}


class Loader(Batches):
  """Batches, read ahead by threads. An iteration is an epoch; the next one goes on with the next epoch. Open it after a fork, not
  before. shardpack.load makes one in a line.

  rank, world_size: this process's share of each global batch. fields: what is read; with a Decode the image becomes pixels.
  cursor: where to go on, of another loader's `cursor`. threads: for work on the CPU (0: this process's share of the cores); io_threads:
  reads at once that wait for the disk. memory_bytes: for batches read ahead. epochs: after so many there are no batches (0: no
  limit). bad_samples: 'fail', or 'substitute' for at most max_bad_samples.
  decode_fields: what moves with the image's crop and flip: {'mask.png': 'labels'} (or a Labels, 'nearest' for masks of 8 bits),
  {'json': 'coco'} (or a Coco), {'right.jpg': 'image'} (or a Paired). device: a Device, for whose DeviceLoader batches are read into
  page-locked memory.
  mix: a Mix, for batch.soft_labels. augment_seed: of all that is random about pixels. other_augment: a cursor of a run with
  another augmentation is not an error.
  map_shards: small samples are copied from mappings of the shards in the page cache, which is several times faster. Installs a
  handler of SIGBUS, which passes on what is not its own; False leaves signals alone.
  resume_on_iter: whether a `for` after a `break` goes on with the epoch. cut: whether padding is cut off the last batch. to: what
  images and labels of a batch are: 'numpy', 'torch', 'jax' or 'tf'.

  >>> dataset = shardpack.Dataset('shards')
  >>> loader = shardpack.Loader(dataset, shardpack.Order(len(dataset), 20, seed=7), decode=shardpack.Decode(64, 64))
  >>> next(loader).pixels.shape, len(loader)
  ((20, 64, 64, 3), 3)
  """

  _batch_type = Batch

  def __init__(self, dataset: Dataset, order: Order, *, rank: int = 0, world_size: int = 1, fields: Sequence[str] = ("image",),
               decode: Optional[Decode] = None, decode_fields: Optional[Mapping[str, FieldDecodes]] = None, mix: Optional[Mix] = None,
               cursor: Union[str, bytes, Mapping[str, Any], None] = None, verify: bool = True, threads: int = 0,
               io_threads: int = 32, prefetch_batches: int = 0, memory_bytes: int = 1 << 30, epochs: int = 0,
               augment_seed: int = 0, other_augment: bool = False, bad_samples: str = "fail", max_bad_samples: int = 100,
               device: Optional[Device] = None,
               map_shards: bool = True, resume_on_iter: bool = True, cut: bool = False, to: str = "numpy") -> None:
    others = ("self", "dataset", "order", "cursor", "epochs", "__class__")
    self._given = {name: value for name, value in locals().items() if name not in (*others, "others")}
    if not isinstance(fields, (str, bytes)):
      self._given["fields"] = fields = tuple(fields)  # an iterator has them once
    of_type(dataset, Dataset, "dataset")
    of_type(order, Order, "order")
    if decode is not None:
      of_type(decode, Decode, "decode")
    if device is not None:
      of_type(device, Device, "device")
    wanted, more = names(fields, "fields"), DecodeFields(decode_fields)
    if decode_fields and decode is None:
      raise OptionError("decode_fields needs a Decode, whose crop and flip they share")
    self._options = _c.loader_options(
        size=ctypes.sizeof(_c.loader_options),
        rank=whole(rank, "rank", 32),
        world_size=whole(world_size, "world_size", 32, least=1),
        fields=wanted,
        field_count=len(wanted),
        decode=None if decode is None else ctypes.pointer(decode._options),
        augment_seed=whole(augment_seed, "augment_seed"),
        memory_bytes=whole(memory_bytes, "memory_bytes", least=1),
        max_bad_samples=whole(max_bad_samples, "max_bad_samples"),
        bad_samples=choice(bad_samples, "bad_samples", _BAD_SAMPLES),
        threads=signed(threads, "threads"),
        io_threads=signed(io_threads, "io_threads") or -1,
        prefetch_batches=whole(prefetch_batches, "prefetch_batches", 32),
        no_verify=not flag(verify, "verify"),
        map_shards=flag(map_shards, "map_shards"),
        device=None if device is None else device._handle.pointer)
    if more.masks:
      self._options.decode_fields, self._options.decode_field_count = names(more.masks, "decode_fields"), len(more.masks)
    if more.count:
      self._options.field_decodes, self._options.field_decode_count = more.array, more.count
    self._more = more  # the options point into it
    if mix is not None:
      self._options.mix = ctypes.pointer(of_type(mix, Mix, "mix")._options)
    self._mix, warps = mix, False
    if decode is not None:
      self._options.views = decode._views
      if decode._augment is not None:
        plan = decode._augment
        self._options.augment, warps = plan._text, plan.moves_pixels
        self._own = own_array(plan)  # the options point into it
        self._options.own_operations, self._options.own_operation_count = self._own, len(self._own)
        self._functions, self._seed = plan._functions, augment_seed
        if plan._functions and ((decode._options.type, decode._options.layout) != (_c.U8, _c.NHWC) or decode._views > 1):
          raise OptionError("functions of batches need dtype='uint8', layout='nhwc' and one view")
    self._options.other_augment = self._other_augment = flag(other_augment, "other_augment")
    if max_bad_samples == 0:  # which would be the default's sign
      self._options.bad_samples = _c.BAD_FAIL
    self._dataset, self._decode, self._device = dataset, decode, device  # the options point into them
    framework_of(to)
    look = Look(dataset, to, flag(cut, "cut"), tuple(more.maps), warps=warps)
    state, given = (cursor, None) if isinstance(cursor, Mapping) else (None, cursor_text(cursor))
    text = None if given is None else decoded(given)
    self._augments_later = device is not None and decode is None
    try:
      handle = self._opened(order, whole(epochs, "epochs"), None, text)
    except OptionError as refused:
      # What decides the augmentation, where the library compares that.
      same = {} if self._other_augment or self._augments_later else {"decode": decode, "mix": mix, "rank": rank, "world_size": world_size}
      raise _why_refused(refused, text, dataset, order, same) from None
    super().__init__(handle, dataset, order, rank, world_size, epochs, look, flag(resume_on_iter, "resume_on_iter"))
    epoch, step = self._place()
    if self._limit(epoch) != self._epochs and step > 0:
      self._move(epoch, step)
    if state is not None:
      self.load_state_dict(state)
    elif text is not None:
      self._resumed = _resume.read(text)

  def _opened(self, order: Order, epochs: int, place: Optional[tuple[int, int]], cursor: Optional[str] = None) -> Handle:
    self._options.cursor, self._options.epochs = None if cursor is None else c_text(cursor, "cursor"), epochs
    handle: Handle = made(library.loader_release, library.loader_open, self._dataset._handle, order._handle, self._options)
    if place and place != (0, 0):
      call(library.loader_seek, handle, *place)
    return handle

  def _cursor_of_came(self) -> str:
    # For the library that batch has been delivered.
    batch = self._made(self._came)
    call(library.loader_seek, self._open(), batch.epoch, batch.step)
    self._came = Handle(library.batch_release)
    return self._cursor()

  def __iter__(self) -> Iterator[Batch]:
    epoch: Iterator[Batch] = super().__iter__()
    return epoch

  def __next__(self) -> Batch:
    batch: Batch = super().__next__()
    return batch

  def to(self, device: Any, **options: Any) -> DeviceLoader:
    """A DeviceLoader of the same batches from here on, which takes this loader over. device: as of Device. options: those of
    DeviceLoader; a Decode that normalises or casts leaves that to the device.

    >>> loader = shardpack.load('shards', batch=20, size=32, layout='nchw').to('cpu')
    >>> next(loader).images.shape
    (20, 3, 32, 32)
    """
    from ._device_loader import move_to_device  # pylint: disable=import-outside-toplevel
    return move_to_device(self, device, options)

  def _again(self, decode: Optional[Decode], device: Device) -> Loader:
    """The same from here on, for a device."""
    return Loader(self._dataset, self._order, epochs=self._epochs, cursor=self.state_dict() if self._rest else self.cursor,
                  **{**self._given, "decode": decode, "device": device, "to": "numpy"})

  def _take(self) -> Handle:
    """The handle, for a DeviceLoader."""
    if self._came:  # an interrupt held it back
      self._cursor_of_came()
    handle, self._handle = self._open(), None
    self._why_closed = "a DeviceLoader has taken this loader"
    return handle

  def _give_back(self, handle: Handle) -> None:
    """From a DeviceLoader that could not be made. If the library has taken the loader all the same, it says so from now on."""
    self._handle = handle


def check_shape(loader: Any, what: str) -> Loader:
  """The loader, if its batches can be arrays of one shape in host memory. what: wants them."""
  if not isinstance(loader, Loader):
    raise OptionError(f"{what} needs batches in host memory, of load() without device=, not a {type(loader).__name__}")
  if loader._decode is None:
    raise OptionError(f"{what} needs batches of one shape: load with size=")
  if loader._decode._views > 1:
    raise OptionError(f"{what} gets one view of each image: load with views=1")
  return loader


def cursor_at(dataset: Dataset, order: Order, **options: Any) -> str:
  """The cursor at the beginning, or where `place` or `cursor` is, which the library judges: by a small loader."""
  place: Optional[tuple[int, int]] = options.pop("place", None)
  with Loader(dataset, order, threads=1, io_threads=1, prefetch_batches=1, map_shards=False, **options) as small:
    if place is not None:
      small.seek(*place)
    return small.cursor


def _why_refused(refused: OptionError, text: Optional[str], dataset: Dataset, order: Order, same: Mapping[str, Any]) -> Exception:
  """A CursorError where it is the cursor that does not fit: the library opens the loader without it. same: the options that decide
  the augmentation; none: any may be resumed."""
  if text is None:
    return refused
  try:
    saved, own = _resume.read(text), cursor_at(dataset, order, **same)
    now = _resume.read(own)
    _resume.check_dataset(saved, now.dataset)
  except CursorError as error:
    return error
  except Error:
    return refused
  return _resume.of_refused(refused, saved, own, order, now.augment if same else saved.augment)
