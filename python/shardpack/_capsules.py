"""Whether a capsule that was exported is left, so that nobody can take its content any more."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

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
