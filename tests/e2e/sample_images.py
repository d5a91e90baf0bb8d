"""Small JPEGs in class folders, all different, made without any image library.

  write_class_folders("/tmp/photos", pathlib.Path("testdata/images"), count=300, classes=10, seed=1)

Each is one of the images of testdata/ with a comment segment of its own, which every JPEG reader accepts.
"""

import pathlib
import random

BASES = ("baseline.jpg", "progressive.jpg", "gray.jpg", "restart.jpg", "orientation-6.jpg", "thumbnail.jpg")


def with_comment(jpeg, comment):
  """The JPEG with a comment segment (COM) right after its start marker."""
  if jpeg[:2] != b"\xff\xd8" or len(comment) > 65533:
    raise ValueError("not a JPEG, or a comment that no segment can hold")
  return jpeg[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + jpeg[2:]


def write_class_folders(target, testdata_images, count, classes=10, seed=0, largest_comment=800):
  """Writes `count` JPEGs as class-N/NNNNNN.jpg; the same arguments give the same bytes."""
  target, bases = pathlib.Path(target), [(pathlib.Path(testdata_images) / name).read_bytes() for name in BASES]
  numbers = random.Random(seed)
  for label in range(classes):
    (target / f"class-{label}").mkdir(parents=True, exist_ok=True)
  for i in range(count):
    comment = b"%d " % i + numbers.randbytes(numbers.randrange(largest_comment))
    path = target / f"class-{i % classes}" / f"{i:06d}.jpg"
    path.write_bytes(with_comment(bases[i % len(bases)], comment))
