"""NumPy and PyTorch take batches by DLPack: right values without a copy, both forms, and the batch released by the last.

usage: dlpack_interop.py LIBRARY
"""

import ctypes
import gc
import sys

import numpy as np

try:
  import torch
except ImportError:
  torch = None

lib = ctypes.CDLL(sys.argv[1])
for name in ("ShardpackVersioned", "ShardpackLegacy", "ShardpackData"):
  getattr(lib, name).restype = ctypes.c_void_p
lib.ShardpackLabel.restype = ctypes.c_int64
lib.ShardpackDelete.argtypes = [ctypes.c_void_p, ctypes.c_int]

new = ctypes.pythonapi.PyCapsule_New
new.restype = ctypes.py_object
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
is_valid = ctypes.pythonapi.PyCapsule_IsValid
is_valid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype = ctypes.c_void_p
get.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


# A capsule that was not taken deletes its tensor; one that was taken has another name.
@DESTRUCTOR
def destroy(capsule):
  for versioned, name in ((1, b"dltensor_versioned"), (0, b"dltensor")):
    if is_valid(capsule, name):
      lib.ShardpackDelete(get(capsule, name), versioned)


class Exporter:
  taken = []

  def __init__(self, labels):
    self.labels = labels

  def __dlpack_device__(self):
    return (1, 0)

  def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    versioned = max_version is not None and max_version[0] >= 1
    Exporter.taken.append(versioned)
    if versioned:
      return new(lib.ShardpackVersioned(self.labels), b"dltensor_versioned", destroy)
    return new(lib.ShardpackLegacy(self.labels), b"dltensor", destroy)


class LegacyExporter(Exporter):

  def __dlpack__(self, stream=None):
    return Exporter.__dlpack__(self)


def check(from_dlpack, name, types):
  seen = set()
  for code, dtype in types:
    for nchw in (0, 1):
      assert lib.ShardpackOpen(code, nchw) == 0
      assert lib.ShardpackNext() == 0
      for kind in (Exporter, LegacyExporter):
        pixels, labels = from_dlpack(kind(0)), from_dlpack(kind(1))
        assert tuple(pixels.shape) == ((8, 3, 16, 20) if nchw else (8, 16, 20, 3)), pixels.shape
        assert str(pixels.dtype).endswith(dtype), pixels.dtype
        assert [int(x) for x in labels] == [lib.ShardpackLabel(i) for i in range(8)]
        address = pixels.data_ptr() if name == "torch" else pixels.ctypes.data
        assert address == lib.ShardpackData(0), "copied"
        bytes_of_one = {0: 1, 1: 4, 2: 2, 3: 2}[code]
        raw = ctypes.string_at(lib.ShardpackData(0), 8 * 16 * 20 * 3 * bytes_of_one)
        if code == 0:
          got = pixels.numpy().tobytes() if name == "torch" else pixels.tobytes()
          assert got == raw
        elif code == 1:
          assert 0 <= float(pixels.min()) <= float(pixels.max()) <= 1
          assert np.array_equal(np.asarray(pixels).ravel(), np.frombuffer(raw, np.float32))
        elif name == "torch":
          assert 0 <= float(pixels.float().min()) <= float(pixels.float().max()) <= 1
        seen.add(Exporter.taken[-1])
        del pixels, labels
  # A tensor keeps its batch: the buffers run out, and come back with the last tensor.
  assert lib.ShardpackOpen(0, 0) == 0
  kept = []
  while lib.ShardpackNext() == 0:
    kept.append(from_dlpack(Exporter(0)))
    lib.ShardpackDrop()
    assert len(kept) < 20
  assert len(kept) == 4, len(kept)
  first = bytes(np.asarray(kept[0]).tobytes())
  del kept[1:]
  gc.collect()
  for _ in range(10):
    assert lib.ShardpackNext() == 0
  assert np.asarray(kept[0]).tobytes() == first, "a batch in use was written again"
  # Not taken by anybody.
  lib.ShardpackNext()
  Exporter(0).__dlpack__(max_version=(1, 0))
  Exporter(0).__dlpack__()
  del kept
  gc.collect()
  print(f"{name}: versioned {True in seen}, legacy {False in seen}")
  return seen


forms = check(np.from_dlpack, f"numpy {np.__version__}", [(0, "uint8"), (1, "float32"), (2, "float16")])
assert False in forms
if torch is None:
  print("torch is not there: not tried")
else:
  forms = check(torch.from_dlpack, "torch", [(0, "uint8"), (1, "float32"), (2, "float16"), (3, "bfloat16")])
  assert forms == {True, False}, forms
  print("torch", torch.__version__)
lib.ShardpackClose()
