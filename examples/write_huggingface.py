"""A Hugging Face dataset with an image column as a dataset of any format: encoded images as they are, ClassLabels by name.

  PYTHONPATH=bazel-bin/python/site python3 examples/write_huggingface.py FOLDER OUT [FORMAT]

FOLDER is what `dataset.save_to_disk` wrote; `datasets.load_dataset("cifar10", split="train")` is as good.
"""

import sys

import datasets
from shardpack.adapters import hf

folder, out = sys.argv[1:3]
source = datasets.load_from_disk(folder)
image = next(name for name, feature in source.features.items() if isinstance(feature, datasets.Image))
label = next((name for name, feature in source.features.items() if isinstance(feature, datasets.ClassLabel)),
             "label" if "label" in source.features else None)
form = sys.argv[3] if len(sys.argv) > 3 else "webdataset"
if form == "lmdb":  # holds images and labels alone
  source = source.select_columns([name for name in (image, label) if name is not None])
print(hf.write(source, out, image=image, label=label, format=form, progress=sys.stderr.isatty()))
