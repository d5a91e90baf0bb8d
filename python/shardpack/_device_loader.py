"""DeviceLoader and ResidentLoader: batches on a device."""

import ctypes

from . import _c
from ._batch import BatchFacts
from ._dataset import Dataset
from ._decode import Decode
from ._device import Device
from ._errors import OptionError
from ._library import library, made, text_from, waited
from ._loader import Batches, Loader, end_loader
from ._options import DTYPES, FILTERS, LAYOUTS, choice, cursor_text, normalising, of_type, signed, whole
from ._order import Order
from ._tensor import drop_untaken, labels_of, pixels_of


class DeviceBatch(BatchFacts):
  """The samples of one step, on the device. pixels and labels are tensors for torch.from_dlpack; the batch's memory is reused
  when all of them are gone."""

  @property
  def pixels(self):
    """None where the Loader does not decode."""
    return pixels_of(self._handle, self._view, self._pixel_shape)

  @property
  def labels(self):
    """int64; -1 where there is none, and for padding."""
    return labels_of(self._handle, self._view)


class BatchesOnDevice(Batches):
  """A loader that cannot go back, so it notes where it was."""

  _batch = DeviceBatch

  def _ask(self, handle, came):
    drop_untaken()
    self._before = text_from(library.loader_cursor, handle)
    return super()._ask(handle, came)

  def _cursor_of_came(self):
    return self._before


class DeviceLoader(BatchesOnDevice):
  """The batches of a Loader (opened with device=...), copied to the device ahead of the consumer. With dtype they are resized,
  normalised and cast there; the Loader then decodes to uint8 in nhwc. With decode, of a Loader without one, the images are decoded
  for the device: by its JPEG engines or nvJPEG where there are, else by threads. It takes the Loader over."""

  def __init__(self, loader, *, decode=None, dtype=None, layout="nchw", mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), width=0, height=0,
               filter=None, prefetch_batches=2):  # pylint: disable=redefined-builtin
    device = of_type(loader, Loader, "loader")._device  # pylint: disable=protected-access
    if device is None:
      raise OptionError("the Loader needs device=...: its memory is not pinned")
    if decode is not None and filter is not None:
      raise OptionError("filter is Decode's where there is one")
    if decode is not None:
      of_type(decode, Decode, "decode")
    elif dtype is None and (width or height or filter is not None):
      raise OptionError("width, height and filter need a dtype, such as 'uint8'")
    means, stds = normalising(dtype, mean, std)
    options = _c.device_options(
        size=ctypes.sizeof(_c.device_options),
        prefetch_batches=whole(prefetch_batches, "prefetch_batches", 32, least=1),
        preprocess=dtype is not None or decode is not None,
        type=choice(dtype or "uint8", "dtype", DTYPES),
        layout=choice(layout, "layout", LAYOUTS),
        width=whole(width, "width", 32),
        height=whole(height, "height", 32),
        filter=choice(filter or "bilinear", "filter", FILTERS),
        mean=means,
        std=stds)
    if decode is not None:
      options.decode, options.filter = ctypes.pointer(_for_device(decode)), decode._options.filter  # pylint: disable=protected-access
    taken = loader._take()  # pylint: disable=protected-access
    self._before = None
    try:
      handle = made(end_loader, library.loader_to_device, taken, device._handle, options)  # pylint: disable=protected-access
    except BaseException:
      loader._give_back(taken)  # pylint: disable=protected-access
      raise
    super().__init__(handle)
    waited(library.loader_opened, self._handle)
    stats = self.stats()
    if stats["fallbacks"]:
      import warnings  # pylint: disable=import-outside-toplevel
      warnings.warn(f"the CPU does what the device cannot: {stats['why_fallback']}", RuntimeWarning, stacklevel=2)

  @property
  def pinned(self):
    """Whether the Loader's memory is page-locked."""
    return self.stats()["pinned"]

  @property
  def decoded_by(self):
    """With decode: images so far, by the GPU's JPEG engines, by nvJPEG's hybrid decoder and by the CPU."""
    return self.stats()["decoded_by"]

  def stats(self):
    """A dict. fallbacks counts what the GPU was to do and the CPU does, why_fallback says why of the first one."""
    import json  # pylint: disable=import-outside-toplevel
    return json.loads(self.stats_json())


class ResidentLoader(BatchesOnDevice):
  """Batches of a dataset that fits on the device: decoded once to width x height, then gathered there. decode: a Decode whose random
  or central crop every batch takes of them."""

  def __init__(self, dataset, order, device, width, height, *, decode=None, rank=0, world_size=1, dtype="float16", layout="nchw",
               mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), epochs=0, augment_seed=0, cursor=None, threads=0):
    of_type(dataset, Dataset, "dataset")
    of_type(order, Order, "order")
    of_type(device, Device, "device")
    if decode is not None:
      of_type(decode, Decode, "decode")
    means, stds = normalising(dtype, mean, std)
    options = _c.resident_options(
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
        cursor=cursor_text(cursor),
        threads=signed(threads, "threads"))
    if decode is not None:
      options.crop = ctypes.pointer(decode._options)  # pylint: disable=protected-access
    # pylint: disable=protected-access
    super().__init__(made(end_loader, library.resident_open, dataset._handle, order._handle, device._handle, options))
    waited(library.loader_opened, self._handle)


def _for_device(decode):
  options = decode._options  # pylint: disable=protected-access
  if options.type != _c.U8 or options.layout != _c.NHWC:
    raise OptionError("dtype, layout, mean and std are the DeviceLoader's, not Decode's")
  if options.fast:
    raise OptionError("fast is of the Loader's own decoding")
  return options
