"""Resizes raw RGB images with Pillow: resize_with_pillow.py CASES PIXELS RESULT

Each line of CASES is "width height filter left top right bottom out_width out_height"; PIXELS contains the
images' bytes one after the other; the resized images' bytes are written to RESULT.
"""

import sys

from PIL import Image

FILTERS = {
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


def main(cases, pixels, result):
  with open(cases, encoding="ascii") as lines, open(pixels, "rb") as source, open(result, "wb") as out:
    for line in lines:
      width, height, name, *box, out_width, out_height = line.split()
      size = int(width), int(height)
      image = Image.frombytes("RGB", size, source.read(size[0] * size[1] * 3))
      box = tuple(float.fromhex(edge) for edge in box)
      resized = image.resize((int(out_width), int(out_height)), FILTERS[name], box=box)
      out.write(resized.tobytes())


main(*sys.argv[1:])
