"""Reads WebDataset shards with Hugging Face datasets (jobs on stdin, see protocol.py)."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"

import datasets  # noqa: E402

import protocol  # noqa: E402


def read(job):
  data = datasets.load_dataset("webdataset", data_files={"train": job["shards"]}, split="train", streaming=True)
  name = next(name for name, feature in data.features.items() if isinstance(feature, datasets.Image))
  # Images are compared as bytes.
  for sample in data.cast_column(name, datasets.Image(decode=False)):
    yield protocol.sample(sample["__key__"], sample[name]["bytes"], sample["cls"])


protocol.serve(datasets.__version__, read)
