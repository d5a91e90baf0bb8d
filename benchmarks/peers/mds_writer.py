"""Packs class folders with MosaicML Streaming's MDSWriter: image and label, shards of its default size.

TORCH_PACKAGES names the folder of packages that has torch. usage: mds_writer.py SRC OUT
"""

import os
import sys

sys.path.append(os.environ["TORCH_PACKAGES"])

import streaming  # noqa: E402

import measure  # noqa: E402

source, out = sys.argv[1:]
with streaming.MDSWriter(out=out, columns={"image": "bytes", "label": "int"}) as writer:
  for label, path in measure.class_files(source):
    with open(path, "rb") as file:
      writer.write({"image": file.read(), "label": label})
