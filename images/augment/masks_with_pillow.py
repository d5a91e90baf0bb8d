"""Makes masks, and crops and resizes them with Pillow's NEAREST: masks_with_pillow.py FOLDER

Each line of FOLDER/cases is a mask: name, kind (an ending and, behind a dash, the mode or the bits of a sample), orientation,
width and height as stored, crop or resize first (0 or 1), the box of the crop, the size of the resize, flip (0 or 1). Writes
FOLDER/NAME, the file, and FOLDER/NAME.expected, the result's bytes.
"""

import io
import random
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageOps

ORIENTATION = 0x0112


def png(values, bits, palette, orientation):
  """Pillow writes gray of 8 bits and one bit only."""
  chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
  height, width = values.shape
  rows = b""
  for row in values:
    spread = (row[:, None] >> np.arange(bits - 1, -1, -1)) & 1
    rows += b"\0" + np.packbits(spread.astype(np.uint8).reshape(-1)).tobytes()
  exif = Image.Exif()
  exif[ORIENTATION] = orientation
  return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 3 if palette else 0, 0, 0, 0)) +
          (chunk(b"PLTE", bytes(range(3 * 85)) * 3 + b"xyz" if bits == 8 else b"abc" * 2**bits) if palette else b"") +
          (chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0")) if orientation != 1 else b"") +
          chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def encoded(kind, values, orientation):
  ending, mode = kind.split("-")
  if ending == "png":
    return png(values, int(mode[1:]), mode[0] == "p", orientation)
  image = Image.fromarray(values.astype(bool)) if mode == "1" else Image.fromarray(values)
  if mode == "P":
    image.putpalette(random.randbytes(768))
  exif = Image.Exif()
  exif[ORIENTATION] = orientation
  options = {"exif": exif} if orientation != 1 else {}
  if ending == "tif":
    options["compression"] = random.choice(["raw", "tiff_lzw", "packbits"])
  out = io.BytesIO()
  image.save(out, {"tif": "TIFF", "jpg": "JPEG"}.get(ending, ending), **options)
  return out.getvalue()


def main(folder):
  random.seed(7)
  for line in open(folder + "/cases", encoding="utf-8"):
    name, kind, *numbers = line.split()
    orientation, width, height, resize_first, left, top, right, bottom, to_width, to_height, flip = map(int, numbers)
    mode = kind.split("-")[1]
    levels = 2**int(mode[1:]) if kind.startswith("png") else 2 if mode == "1" else 256
    values = np.frombuffer(random.randbytes(width * height), np.uint8).reshape(height, width) & (levels - 1)
    data = encoded(kind, values, orientation)
    with open(f"{folder}/{name}", "wb") as out:
      out.write(data)
    if kind.startswith("png"):
      image = Image.fromarray(values)  # Pillow scales gray of 2 and 4 bits
      exif = image.getexif()
      exif[ORIENTATION] = orientation
    else:
      image = Image.open(io.BytesIO(data))
    # Loading a TIFF already turns it upright.
    image.load()
    upright = image if kind.startswith("tif") else ImageOps.exif_transpose(image)
    mask = Image.fromarray(np.asarray(upright).astype(np.uint8))
    if resize_first:
      mask = mask.resize((to_width, to_height), Image.NEAREST).crop((left, top, right, bottom))
    else:
      mask = mask.crop((left, top, right, bottom)).resize((to_width, to_height), Image.NEAREST)
    if flip:
      mask = mask.transpose(Image.FLIP_LEFT_RIGHT)
    with open(f"{folder}/{name}.expected", "wb") as out:
      out.write(mask.tobytes())


main(*sys.argv[1:])
