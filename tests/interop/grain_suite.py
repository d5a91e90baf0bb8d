"""Grain's own tests, which its wheel brings, with shardpack's source in place of theirs.

usage: grain_suite.py data_loader | data_sources | source       in a folder with the dataset `numbered`, whose samples have their
                                                                 numbers in the field txt
"""

import importlib
import os
import sys

import grain
import shardpack
from absl.testing import absltest
from shardpack.adapters.grain import Source

# Absolute: Grain's workers open it too.
DATASET = os.path.abspath(os.environ.get("NUMBERED", "numbered"))
TESTS = {
    "data_loader": ("grain._src.python.data_loader_test", {"RangeDataSource": "Numbers"}),
    "data_sources": ("grain._src.python.data_sources_test", {"data_sources.RangeDataSource": "Numbers"}),
    "source": ("grain._src.python.dataset.transformations.source_test",
               {"_MyRandomAccessDataSource": "Given", "_MySupportsBatchedReadRandomAccessDataSource": "Given"}),
}


class Given(Source):
  """The numbers that it is given: those that samples have in their field txt."""

  def __init__(self, data):
    super().__init__(shardpack.Dataset(DATASET).select(list(data)), ("txt",))

  def __getitems__(self, record_keys):
    return [int(sample["txt"]) for sample in super().__getitems__(record_keys)]


class Numbers(Given):
  """In place of Grain's RangeDataSource."""

  def __init__(self, start, stop, step):
    self._text = f"RangeDataSource(start={start}, stop={stop}, step={step})"
    super().__init__(range(start, stop, step))

  def __repr__(self):
    return self._text


def main():
  name, replaced = TESTS[sys.argv.pop(1)]
  tests = importlib.import_module(name)
  this = importlib.import_module("grain_suite")  # as workers know it, and not __main__
  for path, ours in replaced.items():
    owner = tests
    *folders, last = path.split(".")
    for folder in folders:
      owner = getattr(owner, folder)
    if not hasattr(owner, last):
      raise SystemExit(f"{name} has no {path} any more")
    setattr(owner, last, getattr(this, ours))
  sys.argv.append("--test_srcdir=" + os.path.join(os.path.dirname(grain.__file__), "_src", "python"))
  absltest.main(module=tests)


if __name__ == "__main__":
  main()
