"""Transforms images with Pillow: transform_with_pillow.py JOBS RESULT

Each line of JOBS is "FILE MODE BACKGROUND FILTER WIDTH HEIGHT LEFT TOP RIGHT BOTTOM". The first frame is
turned upright, converted from its ICC profile to sRGB, blended onto BACKGROUND (rrggbb; - keeps alpha, drop drops it)
and converted to MODE; its box is resized to WIDTH x HEIGHT (0: not resized). Writes to RESULT a line "WIDTH HEIGHT
CHANNELS" and the bytes. MODE is one of Pillow's; I;16 is 16-bit gray.
"""

import io
import sys

from PIL import Image, ImageCms, ImageOps

FILTERS = {
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
MODEL_OF = {"GRAY": ("L",), "RGB ": ("RGB", "RGBA"), "CMYK": ("CMYK",)}


def in_srgb(image):
  profile = image.info.get("icc_profile")
  if not profile:
    return image
  profile = ImageCms.ImageCmsProfile(io.BytesIO(profile))
  if "srgb" in ImageCms.getProfileDescription(profile).lower():
    return image
  if image.mode not in MODEL_OF[profile.profile.xcolor_space]:
    return image
  # Gray is converted via RGB.
  to = image.mode if image.mode in ("RGB", "RGBA") else "RGB"
  return ImageCms.profileToProfile(image, profile, ImageCms.createProfile("sRGB"), outputMode=to)


def load(path, mode, background):
  image = Image.open(path)
  if image.format == "JPEG" and mode == "L" and image.mode == "RGB" and "icc_profile" not in image.info:
    image.draft("L", image.size)  # the stored luma, not one computed from clamped RGB
  oriented = image.format != "TIFF"  # loading a TIFF already turns it upright
  image = ImageOps.exif_transpose(image) if oriented else image
  if mode == "I;16":
    return image
  if image.mode.startswith("I"):
    # Pillow clamps 16-bit gray at 255.
    image = image.convert("I").point(lambda v: v * (1 / 257) + 0.5).convert("L")
  if image.mode == "P" or "transparency" in image.info:
    image = image.convert("RGBA" if "transparency" in image.info else "RGB")
  image = in_srgb(image)
  if background not in ("-", "drop") and image.mode in ("RGBA", "LA"):
    canvas = Image.new("RGBA", image.size, "#" + background)
    canvas.alpha_composite(image.convert("RGBA"))
    image = canvas.convert("RGB")
  return image.convert(mode)


def main(jobs, result):
  with open(jobs, encoding="utf-8") as lines, open(result, "wb") as out:
    for line in lines:
      path, mode, background, name, width, height, *box = line.split()
      image = load(path, mode, background)
      if int(width) > 0:
        image = image.resize((int(width), int(height)), FILTERS[name], box=tuple(float.fromhex(edge) for edge in box))
      out.write(b"%d %d %d\n" % (image.width, image.height, len(image.getbands())))
      out.write(image.tobytes())


main(*sys.argv[1:])
