"""Shardpack in the words of other frameworks: each module imports its own, and only when it is first used."""

import typing as _typing
from importlib import import_module as _import_module

_MODULES = ("grain", "hf", "jax", "lightning", "tf", "torch", "torchdata", "transformers")

if not _typing.TYPE_CHECKING:  # or they would take every name for one of ours

  def __getattr__(name: str) -> object:
    if name not in _MODULES:
      raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module("." + name, __name__)
