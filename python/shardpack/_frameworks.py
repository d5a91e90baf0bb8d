"""Arrays of the frameworks, of NumPy's and of tensors. A framework is imported by its adapter, on use."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Optional

from ._options import choice

FRAMEWORKS = {"numpy": None, "torch": "torch", "jax": "jax", "tf": "tf"}  # and the module of adapters/


def framework_of(to: Any, what: str = "to") -> Any:
  """The word, once its framework is there: ModuleNotFoundError where it is not installed."""
  module = choice(to, what, FRAMEWORKS)
  if module is not None:
    try:
      _adapter(module)
    except ModuleNotFoundError as error:
      raise ModuleNotFoundError(f"{what}={to!r} needs the package {error.name}, which is not installed", name=error.name) from None
  return to


def _adapter(module: str) -> ModuleType:
  return importlib.import_module(f".adapters.{module}", __package__)


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
  return _adapter(module)._of_array(array)
