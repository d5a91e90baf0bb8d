"""Tensor: memory of a batch for any library that supports DLPack (https://dmlc.github.io/dlpack/latest/python_spec.html)."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _c
from ._capsules import Exports, is_ours_alone, new_capsule
from ._errors import OptionError
from ._library import call, library

_CPU, _CUDA = 1, 2  # DLPack's numbers
# Name of the capsule, and where the managed tensor has its deleter and its shape, which its strides follow: DLManagedTensor,
# DLManagedTensorVersioned.
_LEGACY, _VERSIONED = (b"dltensor", 56, 24), (b"dltensor_versioned", 16, 56)

_python = ctypes.pythonapi
_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Export:
  """A capsule and its content, which is deleted here unless a consumer takes it, and renames the capsule thereby.

  A destructor of the capsule would have to be a callback of ctypes, which must not run while an exception is on its way.
  On free-threaded builds, what no consumer takes stays until the thread that has made it comes here again; with CPython 3.13,
  until the process ends.
  """

  __slots__ = ("capsule", "_managed", "_name", "_deleter")

  def __init__(self, managed: int, kind: tuple[bytes, int, int]) -> None:
    self._name, place, _ = kind
    self._managed = managed
    self._deleter = _Deleter(ctypes.c_void_p.from_address(managed + place).value or 0)
    self.capsule = new_capsule(managed, self._name, None)

  def over(self) -> bool:
    """False while somebody else has the capsule and may still take its content."""
    # In this order: a capsule that nobody else has cannot be taken any more, so that its name then says whether it was.
    alone = is_ours_alone(self)
    if not _has_name(self.capsule, self._name):
      return True
    if not alone:
      return False
    self._deleter(self._managed)
    return True


_exports = Exports()


def drop_untaken() -> None:
  """Before there are more exports, and before a loader waits for memory."""
  _exports.drop_untaken()


class Tensor:
  """Memory of a batch, for torch.from_dlpack and its like. Keeps the batch alive.

  __dlpack__ makes the consumer's stream wait for the batch, and refuses the stream -1: nothing would tell when its work is done.
  The memory is reused once all tensors of the batch are gone and
  the work then enqueued on the stream of the last __dlpack__ is done. Exports versions 0 and 1 of DLPack.

  shape: as it is in memory, without what is cut off at the end. axes: the order in which the axes are shown; then strides say
  where they are.

  >>> import numpy
  >>> batch = next(shardpack.load('shards', batch=20, size=32, device='cpu'))
  >>> numpy.from_dlpack(batch.images).dtype
  dtype('uint8')
  """

  def __init__(self, batch: Any, what: int, shape: tuple[int, ...], place: tuple[int, int],
               axes: Optional[tuple[int, ...]] = None) -> None:
    self._batch, self._what, self._place = batch, what, place
    self._axes = axes or tuple(range(len(shape)))
    self._length = shape[0]
    self.shape: tuple[int, ...] = tuple(shape[axis] for axis in self._axes)

  def __repr__(self) -> str:
    what = {_c.PIXELS: "pixels", _c.LABELS: "labels"}.get(self._what, "numbers")
    return f"<Tensor of {what}, {'x'.join(map(str, self.shape))}, on {_name_of(self._place)}>"

  def __array__(self, *_arguments: Any, **_options: Any) -> Any:
    """Raises OptionError. Without it NumPy would make an array of this one object."""
    raise OptionError("a Tensor is memory of a device: give it to from_dlpack of numpy, torch or another library, or load with to='numpy' or 'torch'")

  def __dlpack_device__(self) -> tuple[int, int]:
    return self._place

  def __dlpack__(self, *, stream: Optional[int] = None, max_version: Optional[tuple[int, int]] = None,
                 dl_device: Optional[tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
    if copy:
      raise BufferError("a batch is not copied; copy what is made of it")
    if dl_device is not None and tuple(dl_device) != self._place:
      raise BufferError("a batch does not move to another device")
    if self._place[0] == _CPU:
      stream = None
    elif stream is None:
      stream = 1  # the legacy default stream; the runtime's own handles have the same numbers
    elif stream == -1:
      raise BufferError("a batch is for a stream, which tells when its memory is free: name one, or the default stream")
    drop_untaken()
    call(library.batch_wait_on, self._batch, stream)
    versioned = max_version is not None and max_version[0] >= 1
    managed, kind = ctypes.c_void_p(), _VERSIONED if versioned else _LEGACY
    call(library.batch_dlpack, self._batch, self._what, versioned, ctypes.byref(managed))
    assert managed.value is not None
    self._show(managed.value + kind[2])
    export = _Export(managed.value, kind)
    capsule = export.capsule  # so that no other thread takes it for left
    _exports.add(export)
    return capsule

  def _show(self, address: int) -> None:
    """The shape that this tensor has, in an export that nobody else has yet."""
    numbers = ctypes.c_int64 * len(self._axes)
    shape, strides = (numbers.from_address(pointer) for pointer in (ctypes.c_void_p * 2).from_address(address) if pointer)
    shape[0] = self._length
    for row in (shape, strides):
      row[:] = [row[axis] for axis in self._axes]


def pixels_of(batch: Any, view: Any, shape: tuple[int, ...], axes: Optional[tuple[int, ...]] = None) -> Optional[Tensor]:
  return None if view.pixels is None else Tensor(batch, _c.PIXELS, shape, _place(view), axes)


def labels_of(batch: Any, view: Any, count: int) -> Optional[Tensor]:
  return None if view.device_labels is None else Tensor(batch, _c.LABELS, (count,), _place(view))


def place_name(view: Any) -> str:
  """Of the device that a batch is on, as torch calls it."""
  return _name_of(_place(view))


def _name_of(place: tuple[int, int]) -> str:
  return "cpu" if place[0] == _CPU else f"cuda:{place[1]}"


def _place(view: Any) -> tuple[int, int]:
  return (_CPU, 0) if view.device_kind == _c.HOST else (_CUDA, view.device_number)
