"""Memory of the caller, for a batch."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional

from . import _c
from ._device import Device
from ._errors import OptionError

_CUDA = (2, 13)  # DLPack's numbers: memory of the device, managed memory
_DTYPES = {
    _c.U8: ("uint8",),
    _c.F32: ("float32",),
    _c.F16: ("float16",),
    _c.BF16: ("bfloat16", "uint16"),  # the second in libraries that lack the first
}
_BYTES = {"uint8": 1, "float32": 4, "float16": 2, "bfloat16": 2, "uint16": 2, "int64": 8}
_OF_TYPESTR = {"u1": "uint8", "u2": "uint16", "f2": "float16", "f4": "float32", "i8": "int64"}


class Form(NamedTuple):
  """What the batches of a loader are in memory."""

  device: Device
  slots: int
  height: int  # 0: there are no pixels, which the library refuses
  width: int
  channels: int
  type: int
  layout: int


class _Array(NamedTuple):
  """What an array of any library says about itself."""

  address: int
  shape: tuple[int, ...]
  strides: Optional[tuple[int, ...]]  # in bytes; None: without gaps
  dtype: str
  read_only: bool
  kind: str  # "cuda" or "cpu"
  number: Optional[int]  # of a GPU, where that is known


def target_of(images: Any, labels: Any, form: Form) -> Any:
  """A shardpack_target of arrays of torch, CuPy, Numba, NumPy and their like."""
  pixels = _described(images, "images", form.device)
  target = _c.target(size=ctypes.sizeof(_c.target), pixels=pixels.address)
  if form.height:
    target.pixel_bytes = _check_pixels(pixels, form)
  if labels is not None:
    row = _described(labels, "labels", form.device)
    if row.dtype != "int64":
      raise OptionError(f"labels must be int64, not {row.dtype}")
    if row.shape != (form.slots,) or not _is_dense(row, (0,)):
      raise OptionError(f"labels must be contiguous, of the shape [{form.slots}], not {list(row.shape)}")
    target.labels, target.label_bytes = row.address, 8 * form.slots
  return target


def _check_pixels(pixels: _Array, form: Form) -> int:
  """Its bytes."""
  if pixels.dtype not in _DTYPES[form.type]:
    raise OptionError(f"images must be {_DTYPES[form.type][0]}, as those of the loader, not {pixels.dtype}")
  rows, planes = (form.slots, form.height, form.width, form.channels), (form.slots, form.channels, form.height, form.width)
  if form.layout == _c.NHWC:
    good = pixels.shape == rows and _is_dense(pixels, (0, 1, 2, 3)) or pixels.shape == planes and _is_dense(pixels, (0, 2, 3, 1))
    wanted = f"{list(rows)}, or as torch.channels_last {list(planes)}, because the loader's layout in memory is nhwc"
  else:
    good = pixels.shape == planes and _is_dense(pixels, (0, 1, 2, 3))
    wanted = f"{list(planes)}, because the loader's layout in memory is nchw"
  if not good:
    strides = "" if pixels.strides is None else f" with strides of {list(pixels.strides)} bytes"
    raise OptionError(f"images must be contiguous, of the shape {wanted}; they are {list(pixels.shape)}{strides}")
  return form.slots * form.height * form.width * form.channels * _BYTES[pixels.dtype]


def _is_dense(array: _Array, axes: tuple[int, ...]) -> bool:
  """Whether its items lie one after the other, those of the last of the axes first."""
  if array.strides is None:
    return axes == tuple(range(len(axes)))
  step = _BYTES[array.dtype]
  for axis in reversed(axes):
    if array.shape[axis] != 1 and array.strides[axis] != step:
      return False
    step *= array.shape[axis]
  return True


def _described(array: Any, what: str, device: Device) -> _Array:
  found = _of_torch(array) if hasattr(array, "data_ptr") else _of_interface(array, what)
  if found.read_only:
    raise OptionError(f"{what} must be writable")
  if found.kind != device.kind or found.number not in (None, device.number):
    place = found.kind if found.number is None else f"{found.kind}:{found.number}"
    raise OptionError(f"{what} must be where the loader's batches are, on {device!r}, not on {place}")
  return found


def _of_torch(tensor: Any) -> _Array:
  size = int(tensor.element_size())
  return _Array(address=int(tensor.data_ptr()), shape=tuple(tensor.shape), strides=tuple(size * stride for stride in tensor.stride()),
                dtype=str(tensor.dtype).rpartition(".")[2], read_only=False, kind=tensor.device.type,
                number=tensor.device.index if tensor.device.type == "cuda" else None)


def _of_interface(array: Any, what: str) -> _Array:
  on_device = getattr(array, "__cuda_array_interface__", None)
  interface = on_device or getattr(array, "__array_interface__", None)
  if interface is None:
    raise OptionError(f"{what} must be a torch tensor, or an array with __cuda_array_interface__ or __array_interface__, not {type(array).__name__}")
  (address, read_only), typestr, strides = interface["data"], interface["typestr"], interface.get("strides")
  dtype = _OF_TYPESTR.get(typestr[1:]) if typestr[0] != ">" else None
  return _Array(address=int(address), shape=tuple(interface["shape"]), strides=None if strides is None else tuple(strides),
                dtype=dtype or str(getattr(array, "dtype", typestr)), read_only=bool(read_only),
                kind="cuda" if on_device else "cpu", number=_number_of(array) if on_device else None)


def _number_of(array: Any) -> Optional[int]:
  """Of the GPU that has an array, which its interface does not tell."""
  try:
    kind, number = array.__dlpack_device__()
  except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
    return None
  return int(number) if kind in _CUDA else None
