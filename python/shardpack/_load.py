"""load: the batches of a dataset, in one call."""

# pylint: disable=protected-access,redefined-builtin

from __future__ import annotations

import re
import warnings
from operator import index
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence, Union, overload

from ._augment import Augment, Mix
from ._dataset import Dataset
from ._decode import Decode
from ._device import Device
from ._errors import OptionError, nearest
from ._fields import FieldDecodes
from ._loader import Loader
from ._options import choice, dtype_name, flag, whole
from ._order import Order
from ._ranks import Share, check_no_worker, share_of

if TYPE_CHECKING:
  import numpy.typing
  from torch import Tensor as _TensorOfTorch
  from typing_extensions import Unpack

  from ._device_loader import DeviceLoader
  from ._load_types import DeviceLoaderOf, Dtype, LoaderOf, LoadOptions, MostOptions, Size, SomeDevice, Source

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_SIZE = r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?"
_SHUFFLES = {True: "shuffle", False: "sequential", "block": "block_shuffle"}
# What the arguments of torch's DataLoader, and of torchvision's datasets, are here.
_OF_TORCH = {
    "num_workers": "the loader has threads and no worker processes: threads=",
    "prefetch_factor": "batches are read ahead as far as memory= allows: prefetch_batches=",
    "persistent_workers": "the loader has threads and no worker processes: leave it out",
    "multiprocessing_context": "the loader has threads and no worker processes: leave it out",
    "worker_init_fn": "the loader has threads and no worker processes: leave it out",
    "pin_memory": "a loader with device='cuda' has page-locked memory: device=",
    "pin_memory_device": "a loader with device='cuda' has page-locked memory: device=",
    "transform": "images are decoded to size=, with crop=, flip= and augment=",
    "transforms": "images are decoded to size=, with crop=, flip= and augment=",
    "target_transform": "batch.labels are int64: change them in the training loop",
    "normalize": "with dtype='float32': mean= and std=",
    "sampler": "shuffle=, weights= and rank= with world_size= say which samples come",
    "batch_sampler": "shuffle=, weights= and rank= with world_size= say which samples come",
    "batch_size": "did you mean 'batch'?",
    "collate_fn": "batches are arrays already, made by the library's threads: leave it out",
    "generator": "the order depends on seed=",
}


@overload
def load(path: Source, *, size: Size, device: None = None, to: Optional[Literal["numpy"]] = None,
         **options: Unpack[MostOptions]) -> LoaderOf[numpy.typing.NDArray[Any]]:
  ...


@overload
def load(path: Source, *, size: Size, device: None = None, to: Literal["torch"], **options: Unpack[MostOptions]) -> LoaderOf[_TensorOfTorch]:
  ...


@overload
def load(path: Source, *, size: Size, device: SomeDevice, to: Literal["numpy"],
         **options: Unpack[MostOptions]) -> DeviceLoaderOf[numpy.typing.NDArray[Any]]:
  ...


@overload
def load(path: Source, *, size: Size, device: SomeDevice, to: Literal["torch"], **options: Unpack[MostOptions]) -> DeviceLoaderOf[_TensorOfTorch]:
  ...


@overload
def load(path: Source, *, device: None = None, **options: Unpack[LoadOptions]) -> Loader:
  ...


@overload
def load(path: Source, *, device: SomeDevice, **options: Unpack[LoadOptions]) -> DeviceLoader:
  ...


def load(path: Source, *, split: Optional[str] = None, batch: Optional[int] = None, global_batch: Optional[int] = None,
         size: Union[int, tuple[int, int], None] = None, epochs: int = 1, shuffle: Union[bool, str] = True, seed: int = 0,
         rank: Union[int, str] = "auto", world_size: Union[int, str] = "auto", drop_last: bool = False, pad_last: bool = False,
         crop: str = "random_resized", scale: Optional[Sequence[float]] = None, ratio: Optional[Sequence[float]] = None,
         shortest_side: Optional[int] = None, flip: float = 0.0, filter: str = "bilinear", channels: int = 3,
         dtype: Dtype = "uint8", layout: str = "nhwc", mean: Optional[Sequence[float]] = None,
         std: Optional[Sequence[float]] = None, augment: Union[Augment, str, None] = None, views: int = 1,
         mix: Optional[Mix] = None, fields: Sequence[str] = ("image",),
         decode_fields: Optional[Mapping[str, FieldDecodes]] = None, device: Any = None, channels_last: bool = False,
         decode_on: str = "host", to: Optional[str] = None, weights: Any = None, epoch_samples: int = 0, cursor: Any = None,
         resume_on_iter: bool = False, bad_samples: str = "fail", max_bad_samples: int = 100, verify: bool = True,
         threads: int = 0, io_threads: int = 32, prefetch_batches: int = 0, memory: Union[int, str] = "1GiB",
         augment_seed: Optional[int] = None, other_augment: bool = False, fast: bool = False, map_shards: bool = True, **unknown: Any) -> Any:
  """Batches of a dataset, read ahead by threads: a Loader, or with device= a DeviceLoader. Each `for` is an epoch.

  path: the folder that `pack` made, several as a list, or a Dataset. split: of that split alone.
  batch: samples of this process's batch; or global_batch: of all processes together. One of them is needed. rank, world_size: this
    process's share; 'auto' is what torch.distributed or jax.distributed say where they are initialised, else torchrun (RANK,
    WORLD_SIZE), srun (SLURM_*) or mpirun (OMPI_*), else one process.
  size: images are decoded to size x size, or (width, height), in pixels: uint8 or dtype, [n, h, w, 3] or with layout='nchw'
    [n, 3, h, w]. None: batches have the encoded bytes. crop: 'random_resized' (scale, ratio), 'center' (of shortest_side, by
    default 256 for 224) or 'resize'. flip: how probable a mirrored image is. mean, std: of numbers from 0 to 1, one a channel.
    dtype: 'uint8', 'float32', 'float16', with device= 'bfloat16'; or torch.float32, numpy.float32, jax.numpy.float32.
  augment: operations on the pixels: an Augment, or its text such as 'rand_augment(2, 9)'. views: versions of each image. mix: a Mix; then
    the labels of `images, labels = batch` are batch.soft_labels.
  fields: what is read beside the image: ['image', 'json']. decode_fields: what moves with its crop:
    {'mask.png': 'labels'}, {'json': 'coco'}, {'right.jpg': 'image'}; see Loader.
  shuffle: True (global and exact, new in each epoch, from seed), False, or 'block' for slow media. The same order, crops and flips
    on any number of processes, and after a resume.
  drop_last: an incomplete last step is left out; otherwise its batches are shorter. pad_last: they keep their padding instead
    (label -1, pixels 0, batch.valid false).
  epochs: how many are planned: threads read ahead over their ends (0: no end). A `for` after the last one begins one more.
  weights: {'cat': 2.0} (samples of other classes count 1), 'balanced' (all classes equally often), or a number for each sample:
    exact counts in every epoch of epoch_samples samples (0: as many as there are).
  device: 'cuda:0', 'cuda', 'cpu', 'auto' or a Device: batches are copied there ahead, normalised and cast there. channels_last:
    with layout='nchw', that shape with nhwc's strides. decode_on: 'host'; 'device' for its JPEG engines; or 'auto': by whichever of
    these, nvJPEG's hybrid decoder and the CPU decodes fastest in the first batches (then runs do not repeat bit for bit).
  to: what images and labels are: 'numpy', 'torch', 'jax', 'tf', without a copy where the library allows it; ModuleNotFoundError
    where it is not installed. The default is 'numpy', and with device= tensors for any library that supports DLPack.
  cursor: where to go on: loader.cursor or loader.state_dict() of an earlier run. resume_on_iter: a `for` after a `break` goes on
    with the epoch instead of beginning the next one.
  bad_samples: 'fail', or 'substitute' for at most max_bad_samples. memory: for batches read ahead, bytes or text such as '1GiB'.
  threads, io_threads, prefetch_batches, verify, map_shards, augment_seed, other_augment, filter, channels, fast: as of Loader and Decode.

  Raises TypeError for an unknown argument, OptionError for values that do not fit, NotFoundError (also FileNotFoundError) where
  there is no dataset, CursorError for a cursor of another dataset or order.

  >>> for images, labels in shardpack.load('shards', split='train', batch=16, size=64, flip=0.5):
  ...   print(images.shape, images.dtype, labels.shape)
  (16, 64, 64, 3) uint8 (16,)
  (16, 64, 64, 3) uint8 (16,)
  (16, 64, 64, 3) uint8 (16,)
  """
  if unknown:
    raise TypeError(_unknown(next(iter(unknown))))
  share = share_of(rank, world_size)
  if rank == world_size == "auto":
    check_no_worker(share)
  dataset = _dataset(path, split, map_shards)
  tail = "drop" if flag(drop_last, "drop_last") else "pad"
  if drop_last and flag(pad_last, "pad_last"):
    raise OptionError("drop_last leaves the last step out, so pad_last has nothing to pad: give one of them")
  steps = _global_batch(batch, global_batch, share)
  order = _order(dataset, {"global_batch": steps, "mode": _mode(shuffle), "seed": seed, "tail": tail}, weights, epoch_samples)
  order._of_load = True
  _warn_of_empty(order, share, flag(pad_last, "pad_last"))
  target = None if device is None else device if isinstance(device, Device) else Device(device)
  looks = {"dtype": dtype_name(dtype), "layout": layout, "mean": mean, "std": std}
  crops = {"crop": crop, "scale": scale, "ratio": ratio, "shortest_side": shortest_side}
  others = {"flip": flip, "filter": filter, "channels": channels, "fast": fast, "augment": augment, "views": views}
  if size is None:
    _refuse_without_size({**crops, **others, **looks})
  _warn_of_chance(size, shuffle, {**crops, "flip": flip, "augment": augment})
  decode = None if size is None else _decode(size, crops, {**others, **({} if target else looks)})
  if target is not None and decode is None:
    raise OptionError("device needs size=, to which images are decoded: encoded images stay in host memory")
  on_device = choice(decode_on, "decode_on", {"host": False, "device": True, "auto": True})
  if target is None and (on_device or flag(channels_last, "channels_last")):
    raise OptionError("decode_on and channels_last need a device")
  loader = Loader(dataset, order, rank=share.rank, world_size=share.world_size, fields=fields, decode=None if on_device else decode,
                  decode_fields=decode_fields, mix=mix, cursor=cursor, verify=verify, threads=threads, io_threads=io_threads,
                  prefetch_batches=prefetch_batches, memory_bytes=_bytes_of(memory), epochs=epochs,
                  augment_seed=seed if augment_seed is None else augment_seed, other_augment=other_augment, bad_samples=bad_samples,
                  max_bad_samples=max_bad_samples, device=target, map_shards=map_shards, resume_on_iter=resume_on_iter,
                  cut=not pad_last, to=(to or "numpy") if target is None else "numpy")
  if target is None:
    return loader
  from ._device_loader import DeviceLoader as OnDevice  # pylint: disable=import-outside-toplevel
  given: dict[str, Any] = {**looks, "channels_last": channels_last} if decode is not None else {}
  if on_device and decode_on == "auto":
    given["decode_by"] = "auto"
  return OnDevice(loader, decode=decode if on_device else None, to=to, **given)


def _unknown(name: str) -> str:
  import inspect  # pylint: disable=import-outside-toplevel
  known = [each for each in inspect.signature(load).parameters if each not in ("path", "unknown")]
  return f"load() has no argument {name!r}" + (f"; {_OF_TORCH[name]}" if name in _OF_TORCH else nearest(name, known))


def _dataset(path: Any, split: Optional[str], map_shards: bool) -> Dataset:
  if isinstance(path, Dataset):
    return path if split is None else path.split(split)
  dataset = Dataset(path, map_shards=map_shards)
  if split is not None:
    return dataset.split(split)
  if len(dataset.splits) > 1:
    warnings.warn(
        f"all splits of the dataset are loaded together: {', '.join(dataset.splits)}; split={next(iter(dataset.splits))!r} loads "
        "one, and load(Dataset(path)) all of them without this warning", RuntimeWarning, stacklevel=3)
  return dataset


def _global_batch(batch: Optional[int], global_batch: Optional[int], share: Share) -> int:
  if (batch is None) == (global_batch is None):
    raise OptionError("load() needs batch=, the samples of this process's batch, or global_batch=, those of all processes"
                      if batch is None else "batch and global_batch say the same: give one of them")
  for name, value in (("batch", batch), ("global_batch", global_batch)):
    if isinstance(value, bool):
      raise OptionError(f"{name} must be a number of samples, not {value}")
  if batch is not None:
    return int(whole(batch, "batch", 32, least=1)) * share.world_size
  all_of_them = int(whole(global_batch, "global_batch", 32, least=1))
  if all_of_them % share.world_size:
    raise OptionError(f"global_batch={all_of_them} is not divisible by the world size {share.world_size}")
  return all_of_them


def _mode(shuffle: Any) -> str:
  try:
    return _SHUFFLES[shuffle if isinstance(shuffle, str) else flag(shuffle, "shuffle")]
  except (KeyError, OptionError):
    raise OptionError(f"shuffle must be True, False or 'block', not {shuffle!r}") from None


def _order(dataset: Dataset, options: dict[str, Any], weights: Any, epoch_samples: int) -> Order:
  if weights is None:
    return Order(len(dataset), epoch_samples=epoch_samples, **options)
  from ._weights import order_of  # pylint: disable=import-outside-toplevel
  return order_of(weights, dataset.labels, dataset.classes, len(dataset), whole(epoch_samples, "epoch_samples"), **options)


def _warn_of_empty(order: Order, share: Share, padded: bool) -> None:
  """A loss that is a mean over no images is not a number, on one process, and after an all-reduce on all."""
  left = order.samples % order.global_batch
  if left and not padded and left <= order.global_batch // share.world_size * (share.world_size - 1):
    warnings.warn(
        f"the last step of an epoch has {left} samples for {share.world_size} processes, of which some get an empty batch: "
        "drop_last=True leaves that step out, pad_last=True pads its batches", RuntimeWarning, stacklevel=3)


def _warn_of_chance(size: Any, shuffle: Any, given: Mapping[str, Any]) -> None:
  """Who evaluates takes samples in order, and forgets that crops are random by default."""
  if size is not None and shuffle is False and not _not_default(given):
    warnings.warn("samples are in order (shuffle=False), but their crops are random: crop='center' or 'resize' is for evaluation; "
                  "scale=(0.08, 1.0) says that random crops are meant", RuntimeWarning, stacklevel=3)


def _refuse_without_size(given: Mapping[str, Any]) -> None:
  without = _not_default(given)
  if without:
    raise OptionError(f"{' and '.join(without)} {'needs' if len(without) == 1 else 'need'} size=, to which images are decoded")


def _not_default(given: Mapping[str, Any]) -> list[str]:
  """The names of load()'s arguments that differ from their defaults."""
  import inspect  # pylint: disable=import-outside-toplevel
  known = inspect.signature(load).parameters
  return [name for name, value in given.items() if not _same(value, known[name].default)]


def _same(value: Any, default: Any) -> bool:
  return value is None if default is None else bool(value == default)


def _decode(size: Any, crops: Mapping[str, Any], options: Mapping[str, Any]) -> Decode:
  width, height = _pair(size)
  given = {name: value for name, value in crops.items() if name == "crop" or value is not None}
  if given["crop"] == "center":
    given.setdefault("shortest_side", round(max(width, height) * 256 / 224))
  return Decode(width, height, **given, **options)


def _pair(size: Any) -> tuple[int, int]:
  """Of a number, or of two."""
  sides = [size, size] if hasattr(size, "__index__") and not getattr(size, "shape", ()) else size
  try:
    width, height = [index(side) for side in sides if not isinstance(side, (bool, str))]
  except (TypeError, ValueError):
    raise OptionError(f"size must be a number of pixels or (width, height), not {size!r}") from None
  return width, height


def _bytes_of(memory: Union[int, str]) -> int:
  if not isinstance(memory, str):
    return int(whole(memory, "memory", least=1))
  match = re.fullmatch(_SIZE, memory.strip(), re.IGNORECASE)
  if not match or match[3] and not match[2]:
    raise OptionError(f"memory must be a number of bytes, or text such as '1GiB' or '500MB', not {memory!r}")
  unit = _UNITS[match[2].lower()]
  return int(float(match[1]) * (1024**list(_UNITS.values()).index(unit) if match[3] else unit))
