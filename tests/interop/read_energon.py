"""Reads WebDataset shards with Energon, by key and by number, through our indexes (jobs on stdin, see protocol.py)."""

import importlib.metadata
import json
import pathlib

from megatron.energon.cache.file_store import WebdatasetFileStore
from megatron.energon.epathlib import EPath
from megatron.energon.flavors.webdataset.itar_reader import ShardInfosITarReader
from megatron.energon.flavors.webdataset.metadata import get_dataset_info
from megatron.energon.flavors.webdataset.structs import ShardInfo

import protocol

IMAGES = ("jpg", "png", "webp", "gif", "bmp", "tif")


def read(job):
  root = EPath(str(pathlib.Path(job["root"]).resolve()))
  store = WebdatasetFileStore(root)  # .nv-meta/index.sqlite
  shards = [ShardInfo(name=name, path=root / name, count=count)
            for name, count in get_dataset_info(root)["shard_counts"].items()]
  reader = ShardInfosITarReader(root, shards, part_filter=None, itar_cache_size=5)  # <shard>.tar.idx
  for i in range(len(reader)):
    sample = reader[i]
    image = next(name for name in sample if name in IMAGES)
    key = sample["__key__"]
    by_key, _ = store[f"{key}.{image}"]
    if by_key != sample[image]:
      raise ValueError(f"{key}: other bytes by key than by number")
    yield protocol.sample(key, sample[image], int(sample["cls"]))


protocol.serve(importlib.metadata.version("megatron-energon"), read)
