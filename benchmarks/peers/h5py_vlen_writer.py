"""Packs class folders with h5py: a dataset of byte sequences of their own lengths, and one of labels.

Prints the seconds from listing to closing, without the start of Python and the imports.
usage: h5py_vlen_writer.py SRC OUT
"""

import os
import sys
import time

import h5py
import numpy

source, out = sys.argv[1:]
begin = time.perf_counter()
files = [(label, entry.path)
         for label, name in enumerate(sorted(entry.name for entry in os.scandir(source) if entry.is_dir()))
         for entry in os.scandir(os.path.join(source, name))]
with h5py.File(os.path.join(out, "train.h5"), "w") as file:
  images = file.create_dataset("images", (len(files),), h5py.vlen_dtype(numpy.uint8))
  for i, (_, path) in enumerate(files):
    images[i] = numpy.fromfile(path, numpy.uint8)
  file["labels"] = numpy.array([label for label, _ in files])
print(time.perf_counter() - begin)
