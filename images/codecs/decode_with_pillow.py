"""Decodes images with Pillow: decode_with_pillow.py FOLDER RESULT NAME...

For each name, writes to RESULT a line "NAME WIDTH HEIGHT" and the image, turned upright, as RGB without alpha.
"""

import sys

from PIL import Image, ImageOps


def main(folder, result, *names):
  with open(result, "wb") as out:
    for name in names:
      image = Image.open(folder + "/" + name)
      # Loading a TIFF already turns it upright.
      if image.format != "TIFF":
        image = ImageOps.exif_transpose(image)
      if image.mode.startswith("I"):
        # Pillow clamps 16-bit gray at 255.
        image = image.convert("I").point(lambda v: v * (1 / 257) + 0.5).convert("L")
      image = image.convert("RGB")
      out.write(b"%s %d %d\n" % (name.encode(), image.width, image.height))
      out.write(image.tobytes())


main(*sys.argv[1:])
