"""Reads WebDataset shards with Hugging Face datasets (jobs on stdin, see protocol.py).
usage: read_huggingface.py files|folder      folder: as a user opens a dataset's folder, with whatever lies in it
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"

import datasets  # noqa: E402

import protocol  # noqa: E402


def read(job):
  if sys.argv[1] == "folder":
    for data in datasets.load_dataset(job["root"], streaming=True).values():
      yield from samples(data)
  else:
    yield from samples(
        datasets.load_dataset("webdataset", data_files={"train": job["shards"]}, split="train", streaming=True))


def samples(data):
  name = next(name for name, feature in data.features.items() if isinstance(feature, datasets.Image))
  # Images are compared as bytes.
  for sample in data.cast_column(name, datasets.Image(decode=False)):
    yield protocol.sample(sample["__key__"], sample[name]["bytes"], sample["cls"])


protocol.serve(datasets.__version__, read)
