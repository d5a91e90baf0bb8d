"""Plants faults in shards that their readers cannot notice: only a comparison with the source can.

  in_webdataset("OUT/train-000000.tar", "byte")      # one wrong byte in an image
  in_tfrecord("OUT/train-00000-of-00004.tfrecord", "label", images)

Faults: "byte" (one byte of one image), "label" (of one sample), "drop" (one sample is missing). Checksums are made right
again and nothing else changes. Knows the formats by itself, so that no mistake is shared with what is tested.
"""

import struct
import tarfile

FAULTS = ("byte", "label", "drop")


def in_webdataset(path, fault):
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


def in_tfrecord(path, fault, images):
  """`images` are the sources' bytes, among them that of each record."""
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
      name = b"image/class/label"
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
