"""Packs class folders with ArrayRecord's writer: the image's bytes a record, uncompressed, in groups of one.

usage: array_record_writer.py SRC OUT
"""

import os
import sys

from array_record.python import array_record_module

import measure

source, out = sys.argv[1:]
# Images are compressed already, and its documentation wants groups of one for random access.
writer = array_record_module.ArrayRecordWriter(os.path.join(out, "train.array_record"), "group_size:1,uncompressed")
for _, path in measure.class_files(source):
  with open(path, "rb") as file:
    writer.write(file.read())
writer.close()
