#!/usr/bin/env python3
"""Makes the .npy files of this folder with NumPy (1.24.2, Debian 12): make_testdata.py [FOLDER]"""
import pathlib
import sys

import numpy as np

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)


def pixels(*shape):
  return (np.arange(np.prod(shape)) * 7 % 251).astype(np.uint8).reshape(shape)


def save(folder, images, labels=None, version=None):
  (root / folder).mkdir(exist_ok=True)
  with open(root / folder / "images.npy", "wb") as file:
    np.lib.format.write_array(file, images, version=version)
  if labels is not None:
    np.save(root / folder / "labels.npy", labels)


save("rgb", pixels(5, 4, 6, 3), np.array([3, 1, -1, 0, 2], np.int64))
save("gray", pixels(5, 4, 6), np.array([[3], [1], [9], [0], [2]], np.uint8))
save("version-2", pixels(5, 4, 6, 1), np.array([3, 1, -5, 0, 2], ">i2"), version=(2, 0))
save("version-3", pixels(2, 3, 2, 4), version=(3, 0))
save("empty", pixels(0, 4, 6, 3), np.array([], np.int64))
save("fortran", np.asfortranarray(pixels(5, 4, 6, 3)))
save("floats", pixels(5, 4, 6, 3).astype(np.float32))
save("channels-first", pixels(5, 3, 40, 60))
save("structure", np.zeros(3, [("image", "u1", (4, 6, 3)), ("label", "<i8")]))
save("labels-short", pixels(5, 4, 6, 3), np.arange(4))
save("labels-floats", pixels(5, 4, 6, 3), np.arange(5.0))
