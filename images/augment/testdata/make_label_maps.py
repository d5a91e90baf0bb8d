"""Writes label_maps.txt: what torchvision makes of label maps. Run once, with torch and torchvision:

    python3 make_label_maps.py > label_maps.txt

Each line is a case: width, height, kind (crop or center), left, top, width and height of the crop (for center: the shortest side and
three zeros), width and height of the result, flip, legacy, and the CRC-32 of the result's bytes. The map has
(3 x + 5 y + x y / 7) mod 256 at x, y.
"""

import random
import zlib

import torch
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F


def main():
  random.seed(5)
  for number in range(400):
    width, height = random.randint(1, 400), random.randint(1, 400)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    image = ((3 * x + 5 * y + x * y // 7) % 256).to(torch.uint8)[None]
    to_width, to_height = random.randint(1, 120), random.randint(1, 120)
    flip, legacy = random.randint(0, 1), random.randint(0, 1)
    mode = InterpolationMode.NEAREST if legacy else InterpolationMode.NEAREST_EXACT
    if number % 4 == 3:
      shortest = max(to_width, to_height) + random.randint(0, 60)
      kind, box = "center", (shortest, 0, 0, 0)
      result = F.center_crop(F.resize(image, [shortest], mode), [to_height, to_width])
    else:
      crop_width, crop_height = random.randint(1, width), random.randint(1, height)
      left, top = random.randint(0, width - crop_width), random.randint(0, height - crop_height)
      kind, box = "crop", (left, top, crop_width, crop_height)
      result = F.resized_crop(image, top, left, crop_height, crop_width, [to_height, to_width], mode)
    if flip:
      result = F.horizontal_flip(result)
    print(width, height, kind, *box, to_width, to_height, flip, legacy, zlib.crc32(result.contiguous().numpy().tobytes()))


main()
