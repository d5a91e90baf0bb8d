#!/usr/bin/env python3
"""Reads a shard of the layout decoded with h5py, numpy.memmap and PyTables and compares it with what was written.

    read_pixels.py SHARD EXPECTED HEIGHT WIDTH CHANNELS    EXPECTED: a line "key TAB label TAB pixels in hex" a sample
"""
import sys

import h5py
import numpy as np
import tables


def main(path, expected, *shape):
    with open(expected) as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    shape = (len(rows),) + tuple(int(word) for word in shape)
    pixels = np.frombuffer(b"".join(bytes.fromhex(row[2]) for row in rows), np.uint8).reshape(shape)
    with h5py.File(path, "r") as h5:
        images = h5["images"]
        assert images.shape == shape and images.dtype == np.uint8 and images.chunks is None
        assert [dim.label for dim in images.dims] == ["batch", "height", "width", "channel"]
        assert np.array_equal(images[:], pixels)
        assert np.array_equal(images[1:3], pixels[1:3])
        if rows:
            assert np.array_equal(np.memmap(path, mode="r", offset=images.id.get_offset(), shape=shape), pixels)
        assert h5["labels"][:].tolist() == [int(row[1]) for row in rows]
        assert list(h5["keys"].asstr()[:]) == [row[0] for row in rows]
        assert h5.attrs["layout"] == "decoded" and h5.attrs["label_base"] == 0
    with tables.open_file(path) as h5:
        assert np.array_equal(h5.root.images[:], pixels)


if __name__ == "__main__":
    main(*sys.argv[1:])
