"""Packs class folders with py-lmdb into one environment: an encoded Caffe Datum a sample, ascending keys, append.

Prints the seconds from listing to closing, without the start of Python and the imports.
usage: py_lmdb_writer.py SRC OUT
"""

import os
import sys
import time

import lmdb

MAP_BYTES = 1 << 40
COMMIT_SAMPLES = 10_000


def varint(number):
  out = bytearray()
  while number > 127:
    out.append(number & 127 | 128)
    number >>= 7
  out.append(number)
  return bytes(out)


def main():
  source, out = sys.argv[1:]
  begin = time.perf_counter()
  # Durability is not what is compared: neither syncs.
  with lmdb.open(os.path.join(out, "train.lmdb"), map_size=MAP_BYTES, sync=False, lock=False) as environment:
    transaction, number = environment.begin(write=True), 0
    for label, name in enumerate(sorted(entry.name for entry in os.scandir(source) if entry.is_dir())):
      for entry in os.scandir(os.path.join(source, name)):
        with open(entry.path, "rb") as file:
          image = file.read()
        datum = b"".join((b"\x22", varint(len(image)), image, b"\x28", varint(label), b"\x38\x01"))
        transaction.put(f"{number:08d}_{name}/{entry.name}".encode(), datum, append=True)
        number += 1
        if number % COMMIT_SAMPLES == 0:
          transaction.commit()
          transaction = environment.begin(write=True)
    transaction.commit()
  print(time.perf_counter() - begin)


main()
