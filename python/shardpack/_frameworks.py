"""Arrays of the frameworks, of NumPy's and of tensors. A framework is imported by its adapter, on use."""

from __future__ import annotations

import importlib
from typing import Any, Optional

FRAMEWORKS = {"numpy": None, "torch": "torch", "jax": "jax", "tf": "tf"}  # and the module of adapters/


def converted(array: Any, to: Optional[str]) -> Any:
  """A NumPy array, or a Tensor, as an array of that library, in the same memory where the library allows it. None: as it is."""
  if array is None or to is None:
    return array
  module = FRAMEWORKS[to]
  if module is None:
    if hasattr(array, "dtype"):
      return array
    from ._memory import import_numpy  # pylint: disable=import-outside-toplevel
    return import_numpy().from_dlpack(array)
  return importlib.import_module(f".adapters.{module}", __package__)._of_array(array)
