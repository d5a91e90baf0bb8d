"""Capsules that are exported, and whether one is left, so that nobody can take its content any more."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))

# Without the global lock no count of references proves that no other thread has the capsule. From CPython 3.14 on there is a
# function that does, of what the calling thread has made.
_COUNTS_ARE_PROOF = "t" not in getattr(sys, "abiflags", "")
_UNIQUE = "PyUnstable_Object_IsUniquelyReferenced"
_is_unique = (ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)((_UNIQUE, ctypes.pythonapi))
              if hasattr(ctypes.pythonapi, _UNIQUE) else None)


def is_ours_alone(export: Any) -> bool:
  """Whether nobody else has `export.capsule`; False where that cannot be told: on free-threaded builds in another thread than the
  one that has made it, and with CPython 3.13 in every thread."""
  if _COUNTS_ARE_PROOF:
    return _references(export) <= _ALONE
  # By its address: an argument would be one more reference.
  return _is_unique is not None and _is_unique(id(export.capsule)) != 0


def _references(export: Any) -> int:
  return sys.getrefcount(export.capsule)


class _Probe:
  __slots__ = ("capsule",)
  capsule: object


_probe = _Probe()
_probe.capsule = object()
_ALONE = _references(_probe)  # of what nobody else has


class Exports(set[Any]):
  """Those that may not be over: each has a `capsule`, and `over()`, which frees what nobody can take any more."""

  def drop_untaken(self) -> None:
    for export in list(self):
      try:
        self.remove(export)
      except KeyError:  # another thread looks at it
        continue
      if not export.over():
        self.add(export)
