"""Writes LMDB environments with py-lmdb: Caffe's Datum, or images alone (jobs on stdin, see protocol.py)."""

import pathlib

import lmdb

import protocol


def varint(value):
  out = bytearray()
  while value > 127:
    out.append(value & 127 | 128)
    value >>= 7
  return bytes(out + bytes([value]))


def datum(image, label):
  """caffe.Datum: data = 4, label = 5, encoded = 7."""
  return b"\x22" + varint(len(image)) + image + b"\x28" + varint(label) + b"\x38\x01"


def write(job):
  samples, records = job["samples"], job["records"]
  for begin in range(0, len(samples), records):
    path = pathlib.Path(job["root"]) / f"part-{begin // records:05d}"
    with lmdb.open(str(path), map_size=1 << 32) as environment, environment.begin(write=True) as transaction:
      for number, (name, image, label) in enumerate(samples[begin:begin + records]):
        data = pathlib.Path(image).read_bytes()
        is_datum = job["layout"] == "caffe"
        transaction.put(f"{number:08d}_{name}".encode(), datum(data, label) if is_datum else data)


protocol.serve_writer(lmdb.__version__, write)
