"""Reads WebDataset shards with the webdataset library, decoding the label as it does (jobs on stdin, see protocol.py)."""

import webdataset

import protocol


def read(job):
  dataset = webdataset.WebDataset(job["shards"], shardshuffle=False, empty_check=False)
  # Only the label is decoded: images are compared as bytes.
  for sample in dataset.decode(only=["cls"]):
    image = next(value for name, value in sample.items() if not name.startswith("__") and name not in ("cls", "json"))
    yield protocol.sample(sample["__key__"], image, sample["cls"])


protocol.serve(webdataset.__version__, read)
