"""Tensor: memory of a batch for any library that supports DLPack (https://dmlc.github.io/dlpack/latest/python_spec.html)."""

import ctypes
import sys

from . import _c
from ._library import call, library

_CPU, _CUDA = 1, 2  # DLPack's numbers
# Name of the capsule, and where the managed tensor has its deleter: DLManagedTensor, DLManagedTensorVersioned.
_LEGACY, _VERSIONED = (b"dltensor", 56), (b"dltensor_versioned", 16)

_python = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _python))
_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

# Without the global lock no count of references proves that no other thread has the capsule.
_COUNTS_ARE_PROOF = "t" not in getattr(sys, "abiflags", "")


class _Export:
  """A capsule and its content, which is deleted here unless a consumer takes it, and renames the capsule thereby.

  A destructor of the capsule would have to be a callback of ctypes, which must not run while an exception is on its way.
  On free-threaded builds, what no consumer takes stays until the process ends.
  """

  __slots__ = ("capsule", "_managed", "_name", "_deleter")

  def __init__(self, managed, kind):
    self._name, place = kind
    self._managed = managed
    self._deleter = _Deleter(ctypes.c_void_p.from_address(managed + place).value)
    self.capsule = _new_capsule(managed, self._name, None)

  def over(self):
    """False while somebody else has the capsule and may still take its content."""
    # In this order: a capsule that nobody else has cannot be taken any more, so that its name then says whether it was.
    alone = _COUNTS_ARE_PROOF and _references(self) <= _ALONE
    if not _has_name(self.capsule, self._name):
      return True
    if not alone:
      return False
    self._deleter(self._managed)
    return True


def _references(export):
  return sys.getrefcount(export.capsule)


class _Probe:
  __slots__ = ("capsule",)


_probe = _Probe()
_probe.capsule = object()
_ALONE = _references(_probe)  # of what nobody else has

_exports = set()  # those that may not be over


def drop_untaken():
  """Before there are more exports, and before a loader waits for memory."""
  for export in list(_exports):
    try:
      _exports.remove(export)
    except KeyError:  # another thread looks at it
      continue
    if not export.over():
      _exports.add(export)


class Tensor:
  """Memory of a batch, for torch.from_dlpack and its like. Keeps the batch alive.

  __dlpack__ makes the consumer's stream wait for the batch. The memory is reused once all tensors of the batch are gone and
  the work then enqueued on the stream of the last __dlpack__ is done.
  """

  def __init__(self, batch, what, shape, place):
    self._batch, self._what, self._place = batch, what, place
    self.shape = shape

  def __dlpack_device__(self):
    return self._place

  def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if copy:
      raise BufferError("a batch is not copied; copy what is made of it")
    if dl_device is not None and tuple(dl_device) != self._place:
      raise BufferError("a batch does not move to another device")
    if self._place[0] == _CPU:
      stream = None
    elif stream is None:
      stream = 1  # the legacy default stream; the runtime's own handles have the same numbers
    elif stream == -1:  # the consumer does its own synchronization
      raise BufferError("a stream is needed: the batch may still be on its way")
    drop_untaken()
    call(library.batch_wait_on, self._batch, stream)
    versioned = max_version is not None and max_version[0] >= 1
    managed = ctypes.c_void_p()
    call(library.batch_dlpack, self._batch, self._what, versioned, ctypes.byref(managed))
    export = _Export(managed.value, _VERSIONED if versioned else _LEGACY)
    capsule = export.capsule  # so that no other thread takes it for left
    _exports.add(export)
    return capsule


def pixels_of(batch, view, shape):
  return None if view.pixels is None else Tensor(batch, _c.PIXELS, shape, _place(view))


def labels_of(batch, view):
  there = view.labels if view.device_kind == _c.HOST else view.device_labels
  return None if there is None else Tensor(batch, _c.LABELS, (view.slots,), _place(view))


def _place(view):
  return (_CPU, 0) if view.device_kind == _c.HOST else (_CUDA, view.device_number)
