"""Memory of the caller, for a batch."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _c
from ._errors import OptionError


def target_of(images: Any, labels: Any) -> Any:
  """A shardpack_target of arrays of torch, CuPy, Numba, NumPy and their like."""
  address, size = _memory_of(images, "images")
  target = _c.target(size=ctypes.sizeof(_c.target), pixels=address, pixel_bytes=size)
  if labels is not None:
    target.labels, _ = _memory_of(labels, "labels")
    if "int64" not in str(labels.dtype):
      raise OptionError(f"labels must be int64, not {labels.dtype}")
  return target


def _memory_of(array: Any, what: str) -> tuple[int, int]:
  """(address, bytes)."""
  if hasattr(array, "data_ptr"):  # torch
    dense = array.is_contiguous() or array.dim() == 4 and array.permute(0, 2, 3, 1).is_contiguous()
    address, size = array.data_ptr(), array.numel() * array.element_size()
  else:
    interface = getattr(array, "__cuda_array_interface__", None) or getattr(array, "__array_interface__", None)
    if interface is None:
      raise OptionError(f"{what} must be a torch tensor, or an array with __cuda_array_interface__, not {type(array).__name__}")
    dense, address, size = interface.get("strides") is None, interface["data"][0], array.nbytes
  if not dense:
    raise OptionError(f"the memory of {what} must be contiguous")
  return int(address), int(size)
