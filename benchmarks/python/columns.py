"""Times Dataset.labels of 1.28 million samples: a dataset just opened, and again; says whether it is a copy.

usage: columns.py DATASET...       prints a JSON line for each
"""

import json
import sys
import time

import numpy  # noqa: F401  its import is not ours to time  pylint: disable=unused-import
import shardpack


def seconds(work):
  begin = time.perf_counter()
  value = work()
  return time.perf_counter() - begin, value


for path in sys.argv[1:]:
  opening, dataset = seconds(lambda path=path: shardpack.Dataset(path))
  first, labels = seconds(lambda dataset=dataset: dataset.labels)
  again, same = seconds(lambda dataset=dataset: dataset.labels)
  total, value = seconds(labels.sum)
  print(json.dumps({"samples": len(dataset), "open_ms": opening * 1e3, "first_ms": first * 1e3, "again_ms": again * 1e3,
                    "sum_ms": total * 1e3, "sum": int(value), "copy": bool(labels.flags.owndata),
                    "one_array": same.__array_interface__["data"] == labels.__array_interface__["data"]}))
