"""Writes boxes.txt: what torchvision makes of boxes. Run once, with torch and torchvision:

    python3 make_boxes.py > boxes.txt

Each line is a box: width and height of the image, left, top, width and height of the crop, width and height of the result, flip,
degrees of a rotation after it (0: none), the box (left, top, right, bottom), and the box that became of it.
"""

import random

import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F


def main():
  random.seed(3)
  for number in range(300):
    width, height = random.randint(20, 640), random.randint(20, 640)
    to_width, to_height = random.randint(8, 500), random.randint(8, 500)
    flip, degrees = random.randint(0, 1), 0.0 if number % 2 else round(random.uniform(-180, 180), 3)
    crop_width, crop_height = random.randint(max(1, width // 4), width), random.randint(max(1, height // 4), height)
    left, top = random.randint(0, width - crop_width), random.randint(0, height - crop_height)
    boxes = []
    for _ in range(4):
      x, y = random.uniform(0, width), random.uniform(0, height)
      boxes.append([x, y, random.uniform(x, width), random.uniform(y, height)])
    given = tv_tensors.BoundingBoxes(torch.tensor(boxes, dtype=torch.float32), format="XYXY", canvas_size=(height, width))
    moved = F.resized_crop(given, top, left, crop_height, crop_width, [to_height, to_width])
    if flip:
      moved = F.horizontal_flip(moved)
    if degrees:
      moved = F.rotate(moved, degrees)
    for box, result in zip(given.tolist(), moved.tolist()):
      numbers = (width, height, left, top, crop_width, crop_height, to_width, to_height, flip, degrees, *box, *result)
      print(" ".join(f"{number:.9g}" for number in numbers))


main()
