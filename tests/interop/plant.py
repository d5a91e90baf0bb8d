"""Plants faults in shards that their readers cannot notice: only a comparison with the source can.

  PLANT["webdataset"](Path("OUT/train-000000.tar"), "byte", images, "ustar")      # one wrong byte in an image
  PLANT["lmdb"](Path("OUT/train-00000-of-00004.lmdb"), "label", images, "caffe")

`images` are the sources' bytes, among them that of each sample. Faults: "byte" (one byte of one image), "label" (of one sample), "drop" (one sample is missing). Checksums are made right
again and nothing else changes. Knows the formats by itself, so that no mistake is shared with what is tested.
"""

import pickle
import struct
import tarfile

import h5py
import lmdb
import numpy

FAULTS = ("byte", "label", "drop")


def in_webdataset(path, fault, _images, _layout):
  with tarfile.open(path) as archive:
    members = archive.getmembers()
  data = bytearray(open(path, "rb").read())
  image = next(member for member in members[len(members) // 2:] if not member.name.endswith(".cls"))
  key = image.name.rpartition(".")[0]
  sample = [member for member in members if member.name.rpartition(".")[0] == key]
  label = next(member for member in sample if member.name.endswith(".cls"))
  if fault == "byte":
    data[image.offset_data + image.size // 2] ^= 0x10
  elif fault == "label":
    data[label.offset_data] ^= 1  # one decimal digit becomes another
  else:
    begin = min(member.offset for member in sample)
    end = max(member.offset_data + (member.size + 511) // 512 * 512 for member in sample)
    del data[begin:end]
  open(path, "wb").write(data)


def in_tfrecord(path, fault, images, layout):
  data = bytearray(open(path, "rb").read())
  starts, at = [], 0
  while at < len(data):
    starts.append(at)
    at += 16 + struct.unpack_from("<Q", data, at)[0]
  begin = starts[len(starts) // 2]
  size = struct.unpack_from("<Q", data, begin)[0]
  payload = data[begin + 12:begin + 12 + size]
  if fault == "drop":
    del data[begin:begin + 16 + size]
  else:
    if fault == "byte":
      image = max((image for image in images if image in payload), key=len)
      payload[payload.index(image) + len(image) // 2] ^= 0x10
    else:
      name = b"\x05label" if layout == "tfds" else b"image/class/label"
      # After the key: the value's tag and length, the list's, the packed integers', and a label below 128.
      value = payload.index(name) + len(name) + 6
      payload[value] ^= 1
    data[begin + 12:begin + 12 + size] = payload
    struct.pack_into("<I", data, begin + 12 + size, masked_crc32c(payload))
  open(path, "wb").write(data)


def masked_crc32c(data):
  crc = 0xFFFFFFFF
  for byte in data:
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
  crc ^= 0xFFFFFFFF
  return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def in_lmdb(path, fault, images, layout):
  if fault == "drop":
    with lmdb.open(str(path), lock=False, map_size=1 << 30) as environment, environment.begin(write=True) as transaction:
      keys = [key for key, _ in transaction.cursor() if not key.startswith(b"__")]
      dropped = keys.pop(len(keys) // 2)
      transaction.delete(dropped)
      if layout == "pickle":
        transaction.put(b"__keys__", pickle.dumps(keys))
        transaction.put(b"__len__", pickle.dumps(len(keys)))
    return
  # No checksums: bytes are changed where they lie.
  data = bytearray((path / "data.mdb").read_bytes())
  image = max((image for image in images if image in data), key=len)
  begin = data.index(image)
  if fault == "byte":
    data[begin + len(image) // 2] ^= 0x10
  else:
    # After the image: caffe has the label's tag, pickle the opcode BININT1, both with one byte of label.
    data[begin + len(image) + 1] ^= 1
  (path / "data.mdb").write_bytes(data)


def in_hdf5(path, fault, _images, layout):
  with h5py.File(path, "r+") as file:
    middle = len(file["labels"]) // 2
    if fault == "label":
      file["labels"][middle] ^= 1
    elif layout == "packed":
      offsets = file["images/offsets"][:]
      begin, end = int(offsets[middle]), int(offsets[middle + 1])
      if fault == "byte":
        file["images/data"][(begin + end) // 2] ^= 0x10
      else:
        data = file["images/data"][:int(offsets[-1])]
        data = numpy.concatenate([data[:begin], data[end:]])
        offsets = numpy.concatenate([offsets[:middle + 1], offsets[middle + 2:] - numpy.uint64(end - begin)])
        replace(file, "images/data", data)
        replace(file, "images/offsets", offsets)
    else:
      images = [image.copy() for image in file["images"][:]]
      if fault == "byte":
        images[middle][len(images[middle]) // 2] ^= 0x10
        file["images"][middle] = images[middle]
      else:
        del images[middle], file["images"]
        kind = h5py.vlen_dtype(numpy.uint8)
        kept = file.create_dataset("images", (len(images),), kind)
        for i, image in enumerate(images):
          kept[i] = image
    if fault == "drop":
      for name in ("labels", "keys"):
        replace(file, name, numpy.delete(file[name][:], middle))


def replace(file, name, data):
  del file[name]
  file[name] = data


PLANT = {"webdataset": in_webdataset, "tfrecord": in_tfrecord, "lmdb": in_lmdb, "hdf5": in_hdf5}
