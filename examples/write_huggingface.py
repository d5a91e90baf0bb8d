"""A Hugging Face dataset with an image column as a dataset of any format: encoded images as they are, ClassLabels by name.

  PYTHONPATH=bazel-bin/python/site python3 examples/write_huggingface.py FOLDER OUT [FORMAT]

FOLDER is what `dataset.save_to_disk` wrote; `datasets.load_dataset("cifar10", split="train")` is as good.
"""

import argparse
import sys

import datasets
from shardpack.adapters import hf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", metavar="FOLDER")
parser.add_argument("out", metavar="OUT")
parser.add_argument("format", metavar="FORMAT", nargs="?", default="webdataset")
given = parser.parse_args()

source = datasets.load_from_disk(given.folder)
image = next(name for name, feature in source.features.items() if isinstance(feature, datasets.Image))
label = next((name for name, feature in source.features.items() if isinstance(feature, datasets.ClassLabel)),
             "label" if "label" in source.features else None)
if given.format == "lmdb":  # holds images and labels alone
  source = source.select_columns([name for name in (image, label) if name is not None])
print(hf.write(source, given.out, image=image, label=label, format=given.format, progress=sys.stderr.isatty()))
