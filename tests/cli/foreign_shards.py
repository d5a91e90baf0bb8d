"""Makes shards as other tools do, with the distribution's Python, py-lmdb, h5py, GNU tar and bsdtar.

  python3 foreign_shards.py tfrecord SHARD < samples.json     # [[key, path of the image, label], ...]

Knows the formats by itself, so that no mistake is shared with what is tested.
"""

import json
import os
import struct
import subprocess
import sys


def varint(value):
  out = bytearray()
  while value > 127:
    out.append(value & 127 | 128)
    value >>= 7
  return bytes(out + bytes([value]))


def field(number, data):
  """A length-delimited field of protobuf."""
  return varint(number << 3 | 2) + varint(len(data)) + data


def tar(program, shard, samples):
  folder = shard + ".members"
  names = []
  for key, image, label in samples:
    for name, data in ((key + os.path.splitext(image)[1], open(image, "rb").read()), (key + ".cls", b"%d" % label)):
      path = os.path.join(folder, name)
      os.makedirs(os.path.dirname(path), exist_ok=True)
      with open(path, "wb") as file:
        file.write(data)
      names.append(name)
  subprocess.run([*program, "-cf", os.path.abspath(shard), "-C", folder, *names], check=True)
  subprocess.run(["rm", "-rf", folder], check=True)


def masked_crc32c(data):
  crc = 0xFFFFFFFF
  for byte in data:
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
  crc ^= 0xFFFFFFFF
  return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(shard, samples):
  with open(shard, "wb") as file:
    for key, image, label in samples:
      def feature(name, kind, value):
        return field(1, field(1, name) + field(2, field(kind, value)))
      example = field(1, feature(b"image/encoded", 1, field(1, open(image, "rb").read())) +
                      feature(b"image/class/label", 3, field(1, varint(label))) +
                      (feature(b"image/filename", 1, field(1, key.encode())) if key else b""))
      length = struct.pack("<Q", len(example))
      file.write(length + masked_crc32c(length) + example + masked_crc32c(example))


def lmdb_shard(shard, samples, datum):
  import lmdb  # pylint: disable=import-outside-toplevel
  with lmdb.open(shard, map_size=1 << 28) as environment, environment.begin(write=True) as transaction:
    for number, (key, image, label) in enumerate(samples):
      data = open(image, "rb").read()
      if datum:  # data = 4, label = 5, encoded = 7
        data = field(4, data) + b"\x28" + varint(label) + b"\x38\x01"
        key = f"{number:08d}_{key}"
      transaction.put(key.encode(), data)


def h5py_shard(shard, samples, vlen):
  import h5py  # pylint: disable=import-outside-toplevel
  import numpy  # pylint: disable=import-outside-toplevel
  images = [numpy.frombuffer(open(image, "rb").read(), numpy.uint8) for _, image, _ in samples]
  with h5py.File(shard, "w") as file:
    if vlen:
      file.create_dataset("images", (len(images),), h5py.vlen_dtype(numpy.uint8))
      for i, image in enumerate(images):
        file["images"][i] = image
    else:
      file["images/data"] = numpy.concatenate(images)
      file["images/offsets"] = numpy.cumsum([0] + [len(image) for image in images]).astype(numpy.uint64)
    file["labels"] = numpy.array([label for _, _, label in samples], numpy.int64)


MAKERS = {
    "gnu tar": lambda *args: tar(["tar", "--format=gnu"], *args),
    "pax tar": lambda *args: tar(["tar", "--format=pax"], *args),
    "bsdtar": lambda *args: tar(["bsdtar", "--format=ustar"], *args),
    "tfrecord": tfrecord,
    "lmdb datum": lambda *args: lmdb_shard(*args, datum=True),
    "lmdb raw": lambda *args: lmdb_shard(*args, datum=False),
    "h5py packed": lambda *args: h5py_shard(*args, vlen=False),
    "h5py vlen": lambda *args: h5py_shard(*args, vlen=True),
}

if __name__ == "__main__":
  MAKERS[sys.argv[1]](sys.argv[2], json.load(sys.stdin))
