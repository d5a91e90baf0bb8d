"""Decodes images with Pillow: decode_with_pillow.py FOLDER RESULT NAME...

For each name RESULT gets a line "NAME WIDTH HEIGHT" and the bytes of the image, turned as EXIF says, as RGB without alpha.
"""

import sys

from PIL import Image, ImageOps


def main(folder, result, *names):
  with open(result, "wb") as out:
    for name in names:
      image = Image.open(folder + "/" + name)
      # A TIFF is turned when it is loaded, and would be again.
      if image.format != "TIFF":
        image = ImageOps.exif_transpose(image)
      if image.mode.startswith("I"):
        # Pillow cuts 16 bits of gray off at 255.
        image = image.convert("I").point(lambda v: v * (1 / 257) + 0.5).convert("L")
      image = image.convert("RGB")
      out.write(b"%s %d %d\n" % (name.encode(), image.width, image.height))
      out.write(image.tobytes())


main(*sys.argv[1:])
