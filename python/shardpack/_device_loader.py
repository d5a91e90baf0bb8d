"""DeviceLoader and ResidentLoader: batches on a device."""

# pylint: disable=protected-access,redefined-builtin

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from . import _c, _resume
from ._batch import BatchFacts, Look
from ._batches import Batches
from ._dataset import Dataset
from ._decode import Decode
from ._device import Device
from ._errors import OptionError, StateError, UnsupportedError
from ._frameworks import converted, framework_of
from ._library import Handle, call, library, made, text_made, waited
from ._loader import Loader, cursor_at
from ._options import DTYPES, FILTERS, LAYOUTS, Dtype, choice, cursor_text, dtype_name, flag, normalising, of_type, signed, whole
from ._order import Order
from ._targets import Form, target_of
from ._tensor import drop_untaken, labels_of, pixels_of

_CHANNELS_FIRST = (0, 3, 1, 2)
_DECODE_BY = {
    "device": _c.DECODE_BY_DEVICE,
    "auto": _c.DECODE_BY_AUTO,
    "hybrid": _c.DECODE_BY_HYBRID,
    "cpu": _c.DECODE_BY_CPU,
}


class DeviceBatch(BatchFacts):
  """The samples of one step, on the device: `images, labels = batch`. pixels and labels are tensors for torch.from_dlpack; the
  batch's memory is reused when all of them are gone, or after release(). Raises StateError for tensors after that.

  >>> batch = next(shardpack.load('shards', batch=20, size=32, layout='nchw', device='cpu'))
  >>> batch.pixels.shape, batch.labels.shape
  ((20, 3, 32, 32), (20,))
  >>> batch.release()

  On the CPU it also has the fields that were read: bytes(), view(), text() and json().
  """

  @property
  def pixels(self) -> Any:
    """A Tensor [n, channels, height, width], or [n, height, width, channels] with layout='nhwc'; None where nothing is decoded.

    >>> next(shardpack.load('shards', batch=20, size=32, layout='nchw', device='cpu')).pixels
    <Tensor of pixels, 20x3x32x32, on cpu>
    """
    self._check()
    axes = _CHANNELS_FIRST if self._look.channels_last and self._view.layout == _c.NHWC else None
    return pixels_of(self._handle, self._view, self._pixel_shape, axes)

  @property
  def images(self) -> Any:
    """pixels as an array of the library that `to` names; without one the Tensor.

    >>> batch = next(shardpack.load('shards', batch=20, size=32, device='cpu', to='numpy'))
    >>> batch.images.shape, batch.images.dtype
    ((20, 32, 32, 3), dtype('uint8'))
    """
    return converted(self.pixels, self._look.to)

  @property
  def labels(self) -> Any:
    """int64 [n]; -1 where there is none, and for padding. Of next_into and next_step a copy in host memory, on a GPU too.

    >>> next(shardpack.load('shards', batch=20, size=32, device='cpu')).labels
    <Tensor of labels, 20, on cpu>
    """
    self._check()
    labels = labels_of(self._handle, self._view, len(self))
    if labels is None:
      labels = self._copy("labels", "int64", (len(self),))
    return converted(labels, self._look.to)

  def synchronize(self) -> None:
    """Waits until the batch is there, for use on any stream; Ctrl-C ends the wait. Then end with release(stream): no other call
    knows where it was used.

    >>> import numpy
    >>> batch = next(shardpack.load('shards', batch=20, size=32, device='cpu'))
    >>> batch.synchronize()
    >>> bool(numpy.from_dlpack(batch.pixels).any())
    True
    """
    self._check()
    waited(library.batch_synchronize, self._handle)

  def release(self, stream: Optional[int] = None) -> None:
    """Gives the memory back now: it is used until what runs on the stream (a cudaStream_t as a number, such as
    torch.cuda.current_stream().cuda_stream; None: the default stream) by now is done. Tensors of the batch must not be used any
    more; images and labels raise a StateError.

    >>> batch = next(shardpack.load('shards', batch=20, size=32, device='cpu'))
    >>> batch.release()
    >>> try:
    ...   batch.images
    ... except shardpack.StateError as error:
    ...   print(error)
    the batch was released
    """
    call(library.batch_release_on, self._handle, stream)
    self._given_back[0] = True

  def to(self, framework: str) -> DeviceBatch:
    """The same batch, whose images and labels are of 'numpy' (on the CPU), 'torch', 'jax' or 'tf'. release() of one is release() of both.

    >>> images, labels = next(shardpack.load('shards', batch=20, size=32, device='cpu')).to('numpy')
    """
    self._check()
    return super().to(framework)

  def _of_field(self, field: str) -> Any:
    self._check()
    if self._view.device_kind != _c.HOST:
      raise UnsupportedError("the bytes of fields are on the GPU: read them in a loader without device=")
    return super()._of_field(field)

  def _check(self) -> None:
    if self._given_back[0]:
      raise StateError("the batch was released")


class BatchesOnDevice(Batches):
  """A loader that cannot go back, so it notes where it was, and is opened again to go elsewhere."""

  _batch_type = DeviceBatch
  _fields: Sequence[str] = ("image",)

  def _ask(self, handle: Handle, came: Handle) -> int:
    self._note_place(handle)
    self._into = None
    return super()._ask(handle, came)

  def _note_place(self, handle: Handle) -> None:
    """Before a batch comes."""
    drop_untaken()
    self._before = text_made(library.loader_cursor, handle)

  def _cursor_of_came(self) -> str:
    return str(self._before)

  def _seek(self, epoch: int, step: int) -> bool:
    return False

  def _cursor_there(self, order: Order, epochs: int, place: Optional[tuple[int, int]], cursor: Optional[str] = None) -> str:
    return cursor_at(self._dataset, order, fields=self._fields, epochs=epochs, place=place, cursor=cursor, other_augment=True)

  @property
  def _form(self) -> Form:
    """Of its batches."""
    raise NotImplementedError

  def _open(self) -> Handle:
    if self._later is not None:
      with self._lock():
        self._go_on()
    return super()._open()

  def _go_on(self) -> None:
    """Opens the loader that is to come. After an interrupt, or an error, the next call does."""
    later = self._later
    if later is not None:  # no other thread has done it
      self._end_handle()  # two would need twice the memory of the device
      handle = later()
      self.__dict__.update(_handle=handle, _later=None)

  def _replace(self, order: Order, epochs: int, place: Optional[tuple[int, int]], cursor: Optional[str] = None,
               rest: Optional[_resume.Rest] = None) -> None:
    if self._later is None:
      self._open()
    self._cursor_there(order, epochs, place, cursor)  # which is refused before the loader that is there is closed
    self._set(epochs, rest, _later=lambda: self._opened(order, epochs, place, cursor))
    self._open()

  def next_into(self, images: Any, labels: Any = None, stream: Optional[int] = None) -> Optional[DeviceBatch]:
    """Copies the next batch into arrays of the caller, which a CUDA graph may use at their fixed addresses: on the stream (a
    cudaStream_t as a number), after what is enqueued there. images and labels are contiguous arrays on the device, of torch or any
    library with __cuda_array_interface__ or __array_interface__: of the loader's dtype and layout, of exactly a batch with its padding;
    labels int64 [n]. Returns the batch, which has ids and labels of the host but no pixels; None at the end of an epoch. Raises
    OptionError for arrays that do not fit, whose memory it leaves alone. After an interrupt the same arrays get the same batch.

    >>> import numpy
    >>> loader = shardpack.load('shards', batch=20, size=32, layout='nchw', device='cpu')
    >>> images, labels = numpy.zeros((20, 3, 32, 32), 'uint8'), numpy.zeros(20, 'int64')
    >>> batch = loader.next_into(images, labels)
    >>> batch.step, bool(images.any())
    (0, True)
    """
    target = target_of(images, labels, self._form)
    return self._next_without_pixels((target.pixels, target.labels, stream),
                                     lambda handle, came: waited(library.loader_next_into, handle, target, stream, came.to_fill))

  def _next_without_pixels(self, into: tuple[Any, ...], ask: Callable[[Handle, Handle], int]) -> Optional[DeviceBatch]:
    """The next batch, as `ask` puts it into memory of the caller; None at the end of an epoch. After an interrupt it comes again, for
    the same memory."""
    came = before = None
    try:
      with self._mine():
        handle, came, before = self._open(), self._came, self._under_way
        if came and self._into != into:
          raise StateError("a batch that an interrupt held back comes first: " + (
              "take it with next()" if self._into is None else "it is in other arrays, or for another stream; give those again"))
        if not came:
          self._note_place(handle)
          self._into, self._held = into, False
          if ask(handle, came) == _c.END:
            if self._under_way:
              self._end(self._under_way[0])
            return None
        batch = DeviceBatch(came, self._look)
        self._give(batch)
        return batch
    except BaseException:
      self._hold_back(came, before)
      raise


class DeviceLoader(BatchesOnDevice):
  """The batches of a Loader (opened with device=...), copied to the device ahead of the consumer. With dtype they are resized,
  normalised and cast there; the Loader then decodes to uint8 in nhwc. With decode, of a Loader without one, the images are decoded
  for the device: by its JPEG engines or nvJPEG where there are, else by threads. It takes the Loader over. layout: with either, 'nchw'
  by default.

  decode_by, with decode: 'device' (engines what they take, nvJPEG's hybrid decoder or the CPU the rest), 'hybrid' or 'cpu'; or 'auto':
  each of these decodes three of the first batches (nvJPEG's also with the parts that random crops need, the CPU at the scale that is
  needed), then the fastest all others, and stats()['decode_choice'] says which and why.
  The Decode's augment is applied where it is decoded: what a device cannot do (stats()['why_fallback'] names it, with a warning) the
  CPU does, with all decoding. A cursor knows that plan: with another one it is an error, unless the Loader has other_augment.
  share_decoding: threads of the CPU take images of the engines, so that both finish together. With 'auto' and with share_decoding runs
  no longer repeat bit for bit: decoders differ by a few levels (the CPU of 'auto' by more), and which one takes an image depends on time.
  decode_regions: of random crops nvJPEG decodes only what they take, once a trial has shown the pixels of whole images; with 'auto' in
  any case. stats()['decoded_by_region'] counts them, and 'why_whole_images' says why not.
  channels_last: images are shown as [n, channels, height, width] but lie in memory as nhwc, as torch.channels_last.
  to: what images and labels are: 'torch', 'jax', 'tf' ('numpy' on the CPU), or None for Tensors. Going elsewhere (seek, set_epoch,
  load_state_dict, a `for` after a `break`) opens the loader again. Raises DeviceError for a device that is lost.

  >>> loader = shardpack.load('shards', batch=20, size=32).to('cpu', dtype='float32', layout='nchw', mean=(0.5, 0.5, 0.5))
  >>> loader.device, len(loader), next(loader).images.shape
  (<Device cpu>, 3, (20, 3, 32, 32))
  """

  def __init__(self, loader: Loader, *, decode: Optional[Decode] = None, dtype: Optional[Dtype] = None, layout: Optional[str] = None,
               mean: Optional[Sequence[float]] = None, std: Optional[Sequence[float]] = None, width: int = 0, height: int = 0,
               filter: Optional[str] = None, prefetch_batches: int = 2, channels_last: bool = False, decode_by: str = "device",
               share_decoding: bool = False, decode_regions: bool = False, to: Optional[str] = None) -> None:
    device = of_type(loader, Loader, "loader")._device
    dtype = dtype_name(dtype)
    if device is None:
      raise OptionError("the Loader needs device=...: its memory is not pinned")
    if decode is not None and filter is not None:
      raise OptionError("give filter to the Decode, not to the DeviceLoader")
    if decode is not None:
      of_type(decode, Decode, "decode")
    elif decode_by != "device" or share_decoding or decode_regions:
      raise OptionError("decode_by, share_decoding and decode_regions need decode")
    elif dtype is None and (width or height or filter is not None or layout is not None and not channels_last):
      raise OptionError("width, height, filter and layout need a dtype, such as 'uint8'")
    if flag(channels_last, "channels_last") and layout not in (None, "nchw"):
      raise OptionError("channels_last needs layout='nchw', whose shape it keeps")
    preprocess = dtype is not None or decode is not None
    if to is not None:
      framework_of(to)
    means, stds = normalising(dtype, mean, std)
    self._options = _c.device_options(
        size=ctypes.sizeof(_c.device_options),
        prefetch_batches=whole(prefetch_batches, "prefetch_batches", 32, least=1),
        preprocess=preprocess,
        type=choice(dtype or "uint8", "dtype", DTYPES),
        layout=choice("nhwc" if channels_last or not preprocess else layout or "nchw", "layout", LAYOUTS),
        width=whole(width, "width", 32),
        height=whole(height, "height", 32),
        filter=choice(filter or "bilinear", "filter", FILTERS),
        mean=means,
        std=stds,
        decode_by=choice(decode_by, "decode_by", _DECODE_BY),
        share_decoding=flag(share_decoding, "share_decoding"),
        decode_regions=flag(decode_regions, "decode_regions"))
    if decode is not None:
      self._options.decode = ctypes.pointer(_for_device(decode))
      self._options.filter = decode._options.filter
      self._options.augment = decode._augment_of_device()
    unreachable = [name for name in loader._given["fields"] if name != "image"] if device.kind == "cuda" else []
    if unreachable:
      raise OptionError(f"a batch on a GPU has images, labels and ids, and Python cannot read its field {unreachable[0]!r}: leave it out of fields=, "
                        "and take it from dataset.__getitems__(batch.indices), or from a loader without device=")
    if loader._functions:
      raise OptionError("functions of batches change pixels in host memory: use the batches of the Loader")
    self._loader, self._decode, self._before = loader, decode, ""
    self._fields = loader._given["fields"]
    self._device: Device = device
    taken = loader._take()
    try:
      handle = self._over(taken)
    except BaseException as refused:
      loader._give_back(taken)
      if isinstance(refused, OptionError) and decode is not None:
        _check_augment(loader, decode)
      raise
    super().__init__(handle, loader._dataset, loader._order, loader._rank, loader._world_size, loader._epochs,
                     loader._look._replace(to=to, channels_last=channels_last), loader._resume_on_iter)
    self._rest, self._bad, self._other_augment = loader._rest, loader._bad, loader._other_augment
    waited(library.loader_opened, handle)
    if loader._resumed and not self._other_augment:  # also where the library saw no cursor, but the place
      _resume.check_augment(loader._resumed, self._cursor(), self._augmentation())
    stats = self.stats()
    if stats["fallbacks"]:
      import warnings  # pylint: disable=import-outside-toplevel
      warnings.warn(f"the CPU does what the device cannot: {stats['why_fallback']}", RuntimeWarning, stacklevel=2)

  def _over(self, taken: Handle) -> Handle:
    handle: Handle = made(library.loader_release, library.loader_to_device, taken, self._device._handle, self._options)
    return handle

  def _opened(self, order: Order, epochs: int, place: Optional[tuple[int, int]], cursor: Optional[str] = None) -> Handle:
    handle = self._over(self._loader._opened(order, epochs, place, cursor))
    waited(library.loader_opened, handle)
    return handle

  @property
  def _form(self) -> Form:
    decode = self._decode or self._loader._decode
    slots, own = self._order.global_batch // self._world_size, self._options
    if decode is None:
      return Form(self._device, slots, 0, 0, 0, 0, 0)
    of_host = decode._options
    look = own if own.preprocess else of_host
    return Form(self._device, slots, own.height or of_host.height, own.width or of_host.width, of_host.channels, look.type, look.layout)

  @property
  def device(self) -> Device:
    """Where the batches are; device.why_not says why 'auto' is the CPU."""
    return self._device

  @property
  def pinned(self) -> bool:
    """Whether the Loader's memory is page-locked."""
    return bool(self.stats()["pinned"])

  @property
  def decoded_by(self) -> dict[str, int]:
    """With decode: images so far, by the GPU's JPEG engines, by nvJPEG's hybrid decoder and by the CPU."""
    by: dict[str, int] = self.stats()["decoded_by"]
    return by

  def stats(self) -> dict[str, Any]:
    """A dict. fallbacks counts what the GPU was to do and the CPU does, why_fallback says why of the first one.

    >>> loader = shardpack.load('shards', batch=20, size=32, device='cpu')
    >>> batches = list(loader)
    >>> loader.stats()['batches'], loader.stats()['fallbacks']
    (3, 0)
    """
    return super().stats()

  def __iter__(self) -> Iterator[DeviceBatch]:
    epoch: Iterator[DeviceBatch] = super().__iter__()
    return epoch

  def __next__(self) -> DeviceBatch:
    batch: DeviceBatch = super().__next__()
    return batch


class ResidentLoader(BatchesOnDevice):
  """Batches of a dataset that fits on the device: decoded once to width x height, then gathered there. decode: a Decode whose
  random or central crop every batch takes of them, with its channels and filter. Going elsewhere (seek, set_epoch, load_state_dict)
  decodes it again. Within a CUDA graph, see enqueue_step. Raises NoMemoryError for a dataset that does not fit.

  >>> dataset = shardpack.Dataset('shards')
  >>> order = shardpack.Order(len(dataset), 20, seed=7)
  >>> loader = shardpack.ResidentLoader(dataset, order, shardpack.Device('cpu'), 32, 32, dtype='uint8', epochs=1)
  >>> [batch.images.shape for batch in loader]
  [(20, 3, 32, 32), (20, 3, 32, 32), (20, 3, 32, 32)]
  """

  def __init__(self, dataset: Dataset, order: Order, device: Device, width: int, height: int, *,
               decode: Optional[Decode] = None, rank: int = 0, world_size: int = 1, dtype: Dtype = "float16", layout: str = "nchw",
               mean: Optional[Sequence[float]] = None, std: Optional[Sequence[float]] = None, epochs: int = 0,
               augment_seed: int = 0, cursor: Union[str, bytes, None] = None, threads: int = 0,
               to: Optional[str] = None) -> None:
    of_type(dataset, Dataset, "dataset")
    of_type(order, Order, "order")
    of_type(device, Device, "device")
    if decode is not None:
      of_type(decode, Decode, "decode")
    if to is not None:
      framework_of(to)
    dtype = dtype_name(dtype)
    means, stds = normalising(dtype, mean, std)
    self._options = _c.resident_options(
        size=ctypes.sizeof(_c.resident_options),
        width=whole(width, "width", 32),
        height=whole(height, "height", 32),
        type=choice(dtype, "dtype", DTYPES),
        layout=choice(layout, "layout", LAYOUTS),
        mean=means,
        std=stds,
        augment_seed=whole(augment_seed, "augment_seed"),
        epochs=whole(epochs, "epochs"),
        rank=whole(rank, "rank", 32),
        world_size=whole(world_size, "world_size", 32, least=1),
        threads=signed(threads, "threads"))
    if decode is not None:
      decode._refuse_off_host()
      self._options.crop = ctypes.pointer(_for_device(decode))
      self._options.channels, self._options.filter = decode._options.channels, decode._options.filter
    self._dataset, self._device, self._decode, self._before = dataset, device, decode, ""
    handle = self._made_at(order, cursor_text(cursor))
    super().__init__(handle, dataset, order, rank, world_size, epochs, Look(dataset, to))
    waited(library.loader_opened, handle)

  @property
  def _form(self) -> Form:
    own = self._options
    crop = own if self._decode is None else self._decode._options
    return Form(self._device, self._order.global_batch // self._world_size, crop.height, crop.width, own.channels or 3, own.type, own.layout)

  def enqueue_step(self, images: Any, labels: Any = None, stream: Optional[int] = None) -> None:
    """Enqueues one launch on the stream (a cudaStream_t as a number), which may capture a CUDA graph: each time it runs, it puts the
    step that next_step named last into images and labels; before the first one zeros, and labels of -1. They are arrays as those of
    next_into: contiguous, of the loader's dtype and layout ([n, channels, height, width], or [n, height, width, channels] with 'nhwc'),
    of exactly a batch with its padding; labels int64 [n]. Call it any number of times.

    The arrays must be kept as long as the launch may run, and the loader may be neither closed nor moved elsewhere (seek, set_epoch,
    load_state_dict; a `for` or iter() after a part of an epoch) before that: its memory is then another, so capture again. Raises
    OptionError for arrays that do not fit.

      images = torch.empty(n, 3, 32, 32, dtype=torch.float16, device='cuda')
      labels = torch.empty(n, dtype=torch.int64, device='cuda')
      graph = torch.cuda.CUDAGraph()
      with torch.cuda.graph(graph):
        loader.enqueue_step(images, labels, torch.cuda.current_stream().cuda_stream)
        train(images, labels)
      while (batch := loader.next_step(torch.cuda.current_stream().cuda_stream)) is not None:  # an epoch
        graph.replay()

    Without a graph, and on the CPU, it is called after each next_step:

    >>> import numpy
    >>> dataset = shardpack.Dataset('shards')
    >>> loader = shardpack.ResidentLoader(dataset, shardpack.Order(len(dataset), 20), shardpack.Device('cpu'), 32, 32, dtype='uint8')
    >>> images, labels = numpy.zeros((20, 3, 32, 32), 'uint8'), numpy.zeros(20, 'int64')
    >>> batch = loader.next_step()
    >>> loader.enqueue_step(images, labels)
    >>> batch.step, bool(images.any())
    (0, True)
    """
    target = target_of(images, labels, self._form)
    with self._mine():
      call(library.loader_enqueue_step, self._open(), target, stream)

  def next_step(self, stream: Optional[int] = None) -> Optional[DeviceBatch]:
    """Names the next step for the launches of enqueue_step that come after, on the stream where they run (the one that replays the
    graph, always the same). Returns the batch, which has ids but no pixels; None at the end of an epoch. Instead of next(), `for` and
    next_into: a loader does one or the other, else it raises a StateError. After an interrupt the same step comes again. Raises
    OptionError for another stream.

    >>> dataset = shardpack.Dataset('shards')
    >>> loader = shardpack.ResidentLoader(dataset, shardpack.Order(len(dataset), 20), shardpack.Device('cpu'), 32, 32)
    >>> batch = loader.next_step()
    >>> batch.step, batch.ids.tolist() == loader.ids(0, 0).tolist()
    (0, True)
    """
    return self._next_without_pixels((None, None, stream),
                                     lambda handle, came: waited(library.loader_next_step, handle, stream, came.to_fill))

  def _made_at(self, order: Order, cursor: Optional[bytes]) -> Handle:
    self._options.cursor = cursor

    handle: Handle = made(library.loader_release, library.resident_open, self._dataset._handle, order._handle, self._device._handle,
                          self._options)
    return handle

  def _opened(self, order: Order, epochs: int, place: Optional[tuple[int, int]], cursor: Optional[str] = None) -> Handle:
    self._options.epochs = epochs
    handle = self._made_at(order, (cursor or self._cursor_there(order, epochs, place)).encode())
    waited(library.loader_opened, handle)
    return handle


def move_to_device(loader: Loader, device: Any, options: dict[str, Any]) -> DeviceLoader:
  """For Loader.to: the same loader in page-locked memory, and a DeviceLoader of it."""
  target = device if isinstance(device, Device) else Device(device)
  decode = loader._decode
  if decode is not None:
    decode, moved = decode._split()
    options = {**moved, **options}
  on_host = loader._again(decode, target)
  loader._keep_bad_samples()
  on_host._bad = loader._bad
  on_device = DeviceLoader(on_host, **options)
  loader._let_go()  # now that nothing can be refused
  return on_device


def _check_augment(loader: Loader, decode: Decode) -> None:
  """CursorError, where the loader goes on from a run that augmented otherwise: a loader on the host knows the plan's digest."""
  if loader._resumed and not loader._other_augment:
    with Loader(loader._dataset, loader._order, decode=decode, threads=1, io_threads=1, prefetch_batches=1) as host:
      _resume.check_augment(loader._resumed, host.cursor, host._augmentation())


def _for_device(decode: Decode) -> Any:
  options = decode._options
  if options.type != _c.U8 or options.layout != _c.NHWC:
    raise OptionError("give dtype, layout, mean and std to the loader on the device, not to its Decode")
  if options.fast:
    raise OptionError("fast applies only to a Loader's own decoding")
  return options
