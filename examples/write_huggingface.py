"""A Hugging Face dataset with an image column as a dataset of any format: encoded images as they are, ClassLabels by name.

  PYTHONPATH=bazel-bin/python/site python3 examples/write_huggingface.py FOLDER OUT [FORMAT]

FOLDER is what `dataset.save_to_disk` wrote; `datasets.load_dataset("cifar10", split="train")` is as good.
"""

import sys

import datasets
import shardpack

folder, out = sys.argv[1:3]
source = datasets.load_from_disk(folder)
image = next(name for name, feature in source.features.items() if isinstance(feature, datasets.Image))
label = next((name for name, feature in source.features.items() if isinstance(feature, datasets.ClassLabel)), None)
others = [name for name in source.column_names if name not in (image, label)]
form = sys.argv[3] if len(sys.argv) > 3 else "webdataset"
if form == "lmdb":  # holds images and labels alone
  others = []
# Bytes instead of decoded images: nothing is re-encoded.
source = source.cast_column(image, datasets.Image(decode=False))
with shardpack.Writer(out, format=form, progress=sys.stderr.isatty()) as writer:
  for n, row in enumerate(source):
    key = f"{n:08}"
    if key not in writer:
      name = None if label is None or row[label] is None else source.features[label].int2str(row[label])
      data = row[image]["bytes"] or open(row[image]["path"], "rb").read()
      writer.add(key, data, name, **{other: row[other] for other in others})
print(writer.result)
