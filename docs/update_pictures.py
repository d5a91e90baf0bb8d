"""Makes the pictures of docs/pixels.md with `pack` itself: docs/update_pictures.py [PACK [FOLDER]]

The scene is drawn here; every other picture is what `pack` makes of it. A test makes them again and compares bytes.
Only Python's standard library is used.
"""

import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

WIDTH, HEIGHT = 150, 100


def chunk(kind, data):
  return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, channels, pixel, extra=b""):
  rows = b"".join(b"\0" + bytes(v for x in range(width) for v in pixel(x, y)) for y in range(height))
  color = {1: 0, 3: 2, 4: 6}[channels]
  return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)) + extra +
          chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def scene(x, y):
  """A sun over stripes that grow finer to the right."""
  if math.hypot(x - 45, y - 36) < 22:
    return 250, 210, 60
  if y > 66:
    wave = math.sin(x * x / 190)
    return (30, 90, 50) if wave > 0 else (200, 230, 170)
  return 90 + y, 140 + y, 235


def leaf(x, y):
  """A disk with a soft edge; what is transparent is red underneath."""
  distance = math.hypot(x - 75, y - 50)
  alpha = max(0, min(255, int((44 - distance) * 20)))
  return (40, 140, 60, alpha) if alpha else (220, 30, 30, 0)


# EXIF with the orientation 6 alone: what is stored is turned by 90 degrees with the clock to be seen.
ORIENTATION_6 = chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0")

SOURCES = {
    "scene": png(WIDTH, HEIGHT, 3, scene),
    "leaf": png(WIDTH, HEIGHT, 4, leaf),
    # The scene as a camera held upright would store it.
    "camera": png(HEIGHT, WIDTH, 3, lambda x, y: scene(WIDTH - 1 - y, x), ORIENTATION_6),
}

# Name of the picture, its source, the options.
PICTURES = [
    ("resize-shortest", "scene", "--resize shortest --size 64"),
    ("resize-longest", "scene", "--resize longest --size 64"),
    ("resize-exact", "scene", "--resize exact --size 64"),
    ("resize-crop", "scene", "--resize crop --size 64"),
    ("resize-pad", "scene", "--resize pad --size 64"),
    ("only-if-bigger", "scene", "--resize pad --size 180x120 --only-if-bigger"),
    ("interpolation-area", "scene", "--resize longest --size 75 --interpolation area"),
    ("interpolation-bilinear", "scene", "--resize longest --size 75 --interpolation bilinear"),
    ("interpolation-bicubic", "scene", "--resize longest --size 75 --interpolation bicubic"),
    ("interpolation-lanczos", "scene", "--resize longest --size 75 --interpolation lanczos"),
    ("encode-jpg-quality-10", "scene", "--encode jpg --quality 10"),
    ("color-gray", "scene", "--color gray"),
    ("alpha-drop", "leaf", "--alpha drop"),
    ("alpha-blend", "leaf", "--alpha #ffffff"),
    ("orient-bake", "camera", "--orient bake"),
    ("orient-keep", "camera", "--resize longest --size 75 --orient keep"),
]


def main(pack="bazel-bin/cli/pack", folder="docs/pictures"):
  pack, folder = pathlib.Path(pack).resolve(), pathlib.Path(folder)
  for name, data in SOURCES.items():
    (folder / f"{name}.png").write_bytes(data)
  with tempfile.TemporaryDirectory() as scratch:
    for name, data in SOURCES.items():
      source = pathlib.Path(scratch) / "src" / name
      source.mkdir(parents=True)
      (source / "image.png").write_bytes(data)
    for name, source, words in PICTURES:
      command = [pack, f"src/{source}", "-o", name, "-q", "--label-from", "none", *words.split()]
      subprocess.run(command, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
      image = subprocess.run([pack, "cat", name, "--record", "0"], cwd=scratch, check=True, stdout=subprocess.PIPE).stdout
      ending = "jpg" if image.startswith(b"\xff\xd8") else "png"
      (folder / f"{name}.{ending}").write_bytes(image)


if __name__ == "__main__":
  main(*sys.argv[1:])
