"""Reads TFRecord shards with vahidk's tfrecord, through our index where there is one (jobs on stdin, see protocol.py)."""

import importlib.metadata

import tfrecord

import protocol

FEATURES = {"image/encoded": "byte", "image/filename": "byte", "image/class/label": "int"}
# With an index and no part given it begins at a random record; in parts it uses the index and reads each record once.
PARTS = 3


def read(job):
  for number, shard in enumerate(job["shards"]):
    index = job["indexes"][number] if job["indexes"] else None
    with open(index or "/dev/null", encoding="ascii") as lines:
      records = sum(1 for _ in lines)
    if records == 1:
      index = None  # it takes the one line for a table of one column
    parts = [(part, PARTS) for part in range(PARTS)] if index and records >= PARTS else [None]
    for part in parts:
      for example in tfrecord.tfrecord_loader(shard, index, FEATURES, shard=part):
        yield protocol.sample(bytes(example["image/filename"]).decode(), bytes(example["image/encoded"]),
                              int(example["image/class/label"][0]))


protocol.serve(importlib.metadata.version("tfrecord"), read)
