"""Writes object_labels.txt: what pycocotools makes of polygons and run lengths. Run once, with pycocotools and NumPy:

    python3 make_object_labels.py > object_labels.txt

Each line is an image: width, height, the CRC-32 of its label map where pixels of several objects are 255, that where they have the
label of the last one, and the annotations as JSON without spaces. A label is category_id + 1, 0 is the background.
"""

import json
import random
import zlib

import numpy as np
from pycocotools import mask


def polygon(width, height):
  """Also concave ones, ones that cross themselves, reach beyond the image, or have corners on the borders of pixels."""
  kind = random.randrange(4)
  corners = random.choice((3, 4, 7, 40))
  low, high = (-0.5, 1.5) if kind == 0 else (0, 1)
  numbers = []
  for _ in range(corners):
    x, y = random.uniform(low, high) * width, random.uniform(low, high) * height
    numbers += [x, y] if kind < 2 else [round(x), round(y)] if kind == 2 else [round(x, 2), round(y, 2)]
  return numbers


def segmentation(width, height):
  kind = random.randrange(6)
  if kind > 1:
    return [polygon(width, height) for _ in range(random.choice((1, 1, 1, 2, 3)))]
  y, x = np.mgrid[:height, :width]
  disc = ((x - width * random.random()) / (1 + width * random.random()))**2 + ((y - height * random.random()) / (1 + height * random.random()))**2
  encoded = mask.encode(np.asfortranarray((disc < 0.2).astype(np.uint8)))
  if kind == 0:
    return {"size": [height, width], "counts": encoded["counts"].decode()}
  flat = (disc < 0.2).T.ravel()
  edges = np.flatnonzero(np.diff(np.concatenate([[False], flat])))
  return {"size": [height, width], "counts": np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()}


def mask_of(given, width, height):
  """As convert_coco_poly_to_mask of torchvision's references/segmentation/coco_utils.py."""
  made = mask.decode(mask.frPyObjects(given, height, width) if isinstance(given, list) or isinstance(given["counts"], list) else given)
  return made.any(axis=2) if made.ndim == 3 else made.astype(bool)


def main():
  random.seed(5)
  for _ in range(150):
    width, height = random.choice(((1, 1), (7, 90), (90, 7), (61, 47), (120, 99)))
    annotations, several, last = [], np.zeros((height, width), int), np.zeros((height, width), np.uint8)
    for _ in range(random.randrange(1, 5)):
      given, label = segmentation(width, height), random.randrange(5)
      inside = mask_of(given, width, height)
      several += inside
      last[inside] = label + 1
      annotations.append({"bbox": [0, 0, 1, 1], "category_id": label, "segmentation": given})
    ignored = np.where(several > 1, np.uint8(255), last)
    print(width, height, zlib.crc32(ignored.tobytes()), zlib.crc32(last.tobytes()), json.dumps(annotations, separators=(",", ":")))


main()
