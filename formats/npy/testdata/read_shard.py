#!/usr/bin/env python3
"""Reads a shard with NumPy and compares it with what was written.

    read_shard.py SHARD EXPECTED        EXPECTED: a line "label TAB pixels in hex" a sample
"""
import sys

import numpy as np


def main(shard, expected):
  with open(expected) as lines:
    rows = [line.rstrip("\n").split("\t") for line in lines]
  for mode in ("r", None):
    images = np.load(shard + "/images.npy", mmap_mode=mode)
    labels = np.load(shard + "/labels.npy", mmap_mode=mode)
    assert isinstance(images, np.memmap) == (mode == "r")
    assert images.dtype == np.uint8 and images.ndim == 4 and images.flags.c_contiguous
    assert labels.dtype == np.dtype("<i8")
    assert labels.tolist() == [int(row[0]) for row in rows]
    assert [image.tobytes().hex() for image in images] == [row[1] for row in rows]


if __name__ == "__main__":
  main(*sys.argv[1:])
