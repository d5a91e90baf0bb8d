"""Reads WebDataset shards at random with wids, through our index of it (jobs on stdin, see protocol.py)."""

import importlib.metadata
import pathlib
import tempfile

import wids

import protocol


def read(job):
  with tempfile.TemporaryDirectory() as cache:
    # It copies the shards into its cache, by name alone.
    for index in sorted(pathlib.Path(job["root"]).glob("*.json")):
      if '"wids-shard-index-v1"' not in index.read_text():
        continue
      dataset = wids.ShardListDataset(str(index), transformations=[], cache_dir=cache, keep=True)
      for i in reversed(range(len(dataset))):
        sample = dataset[i]
        image = next(value for name, value in sample.items()
                     if not name.startswith("__") and name not in (".cls", ".json"))
        yield protocol.sample(sample["__key__"], image.read(), int(sample[".cls"].read()))


protocol.serve(importlib.metadata.version("wids"), read)
