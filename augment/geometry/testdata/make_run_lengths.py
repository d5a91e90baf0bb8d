"""Writes run_lengths.txt: what pycocotools makes of masks. Run once, with pycocotools and NumPy:

    python3 make_run_lengths.py > run_lengths.txt

Each line is a mask: height, width, the compressed text, its area, and the CRC-32 of the mask's bytes, row after row, 1 inside.
"""

import random
import zlib

import numpy as np
from pycocotools import mask


def masks():
  rng = np.random.default_rng(7)
  yield np.zeros((5, 7), np.uint8)
  yield np.ones((5, 7), np.uint8)
  yield np.eye(40, 30, dtype=np.uint8)
  yield np.ones((1, 1), np.uint8)
  big = np.zeros((640, 480), np.uint8)
  big[:, 200:210] = 1
  big[17, 3] = 1
  yield big
  for number in range(60):
    height, width = random.randint(1, 90), random.randint(1, 90)
    if number % 3 == 0:
      yield (rng.random((height, width)) < random.random()).astype(np.uint8)
    else:
      y, x = np.mgrid[:height, :width]
      disc = ((x - width / 2) / (1 + width * random.random()))**2 + ((y - height / 2) / (1 + height * random.random()))**2
      yield (disc < 0.2).astype(np.uint8)


def main():
  random.seed(7)
  for each in masks():
    encoded = mask.encode(np.asfortranarray(each))
    assert (mask.decode(encoded) == each).all()
    print(*encoded["size"], encoded["counts"].decode(), mask.area(encoded), zlib.crc32(each.tobytes()))


main()
