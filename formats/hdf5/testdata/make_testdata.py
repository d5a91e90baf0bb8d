#!/usr/bin/env python3
"""Writes the HDF5 files of other writers here: h5py 3.7.0 and PyTables 3.7.0 with HDF5 1.10.8 (Debian 12).

    python3 make_testdata.py FOLDER

The images are made up: a JPEG's first bytes, then the sample's number. Run again it writes files with the same
content; times of modification are left out, so that the bytes are the same, too, but for PyTables'.
"""
import os
import sys

import h5py
import numpy as np
import tables

COUNT = 5
LABELS = [0, 1, 2, 1, 0]
KEYS = ["cat/1", "dog/22", "owl/333", "dog/4444", "cat/55555"]


def image(number):
    return b"\xff\xd8\xff\xe0" + bytes([number]) * (40 + 7 * number)


def fill(h5, images, key_type="S9"):
    for i in range(COUNT):
        images[i] = np.frombuffer(image(i), np.uint8)
    h5.create_dataset("labels", data=np.array(LABELS, "<i8"))
    if key_type == "vlen":
        h5.create_dataset("keys", data=KEYS, dtype=h5py.string_dtype())
    else:
        h5.create_dataset("keys", data=np.array(KEYS, key_type))


def vlen(path, key_type="S9", file_options={}, **options):
    with h5py.File(path, "w", **file_options) as h5:
        fill(h5, h5.create_dataset("images", (COUNT,), dtype=h5py.vlen_dtype(np.uint8), **options), key_type)


def packed(path, **options):
    with h5py.File(path, "w") as h5:
        data = b"".join(image(i) for i in range(COUNT))
        offsets = np.cumsum([0] + [len(image(i)) for i in range(COUNT)])
        h5.create_dataset("images/data", data=np.frombuffer(data, np.uint8), **options)
        h5.create_dataset("images/offsets", data=offsets.astype("<u8"))
        h5.create_dataset("labels", data=np.array(LABELS, ">i2"))
        h5.create_dataset("keys", data=np.array(KEYS, "S9"))


def main(folder):
    os.chdir(folder)
    vlen("h5py-contiguous.h5")
    vlen("h5py-chunked.h5", chunks=(2,), key_type="vlen")
    vlen("h5py-user-block.h5", file_options={"userblock_size": 512}, chunks=(2,))
    vlen("h5py-latest.h5", file_options={"libver": "latest"}, chunks=(2,))
    vlen("h5py-latest-single.h5", file_options={"libver": "latest"}, chunks=(COUNT,))
    vlen("h5py-v108.h5", file_options={"libver": ("v108", "v108")}, chunks=(2,))
    vlen("h5py-extensible.h5", file_options={"libver": "latest"}, chunks=(2,), maxshape=(None,))
    vlen("h5py-gzip.h5", chunks=(2,), compression="gzip")
    packed("h5py-packed.h5")
    packed("h5py-packed-fletcher32.h5", chunks=(64,), fletcher32=True)
    packed("h5py-packed-lzf.h5", chunks=(64,), compression="lzf")
    packed("h5py-packed-chunked.h5", chunks=(64,))
    with h5py.File("h5py-fuel.h5", "w") as h5:  # as mila-iqia/fuel writes
        images = h5.create_dataset("encoded_images", (COUNT,), dtype=h5py.vlen_dtype(np.uint8))
        for i in range(COUNT):
            images[i] = np.frombuffer(image(i), np.uint8)
        h5.create_dataset("targets", data=np.array(LABELS, np.int16).reshape(COUNT, 1))
        h5.create_dataset("filenames", data=np.array([k + ".JPEG" for k in KEYS], "S32").reshape(COUNT, 1))
    with h5py.File("h5py-external-link.h5", "w") as h5:
        h5["images"] = h5py.ExternalLink("/etc/passwd", "/images")
    with h5py.File("h5py-external-storage.h5", "w") as h5:
        h5.create_dataset("images/data", (100,), np.uint8, external=[("/etc/passwd", 0, 100)])
        h5.create_dataset("images/offsets", data=np.array([0, 100], "<u8"))
    with h5py.File("h5py-virtual.h5", "w", libver="latest") as h5:
        layout = h5py.VirtualLayout((100,), np.uint8)
        layout[:] = h5py.VirtualSource("/etc/passwd", "x", (100,))
        h5.create_virtual_dataset("images/data", layout)
        h5.create_dataset("images/offsets", data=np.array([0, 100], "<u8"))
    with h5py.File("h5py-pixels.h5", "w") as h5:
        h5.create_dataset("images", data=np.arange(96).astype(np.uint8).reshape(2, 4, 4, 3))
        h5.create_dataset("labels", data=np.array([[7], [3]], ">i2"))
    with h5py.File("h5py-pixels-gray.h5", "w") as h5:
        h5.create_dataset("X", data=np.arange(150).astype(np.uint8).reshape(3, 5, 10))
    with h5py.File("h5py-pixels-chunked.h5", "w") as h5:
        h5.create_dataset("images", data=np.zeros((2, 4, 4, 3), np.uint8), chunks=(1, 4, 4, 3))
    with h5py.File("h5py-pixels-gzip.h5", "w") as h5:
        h5.create_dataset("images", data=np.zeros((2, 4, 4, 3), np.uint8), compression="gzip")
    with h5py.File("h5py-pixels-channels-first.h5", "w") as h5:
        h5.create_dataset("images", data=np.zeros((2, 3, 14, 14), np.uint8))
    for name, fill_images in (("h5py-aliases.h5", vlen), ("h5py-packed-aliases.h5", packed)):  # other names of a field
        fill_images(name)
        with h5py.File(name, "a") as h5:
            h5["alias"] = h5["images"]
            h5["numbers"] = h5["labels"]
            h5["masks"] = np.arange(COUNT * 16, dtype="u1").reshape(COUNT, 4, 4)
            h5["masks_too"] = h5["masks"]
            if fill_images is packed:
                h5["again/data"], h5["again/offsets"] = h5["images/data"], h5["images/offsets"]
    with h5py.File("h5py-shared-offsets.h5", "w", libver="latest") as h5:  # one list of positions for many fields
        h5["images/data"], h5["images/offsets"] = np.ones(1, "u1"), np.zeros(401, "<u8")
        for i in range(7):
            h5[f"f{i}/data"], h5[f"f{i}/offsets"] = np.ones(1, "u1"), h5["images/offsets"]
    with tables.open_file("pytables-vlarray.h5", "w") as h5:
        images = h5.create_vlarray("/", "images", tables.UInt8Atom(), chunkshape=(2,))
        for i in range(COUNT):
            images.append(np.frombuffer(image(i), np.uint8))
        h5.create_array("/", "labels", np.array(LABELS, "<i4"))
    with tables.open_file("pytables-blosc.h5", "w") as h5:
        data = np.frombuffer(b"".join(image(i) for i in range(COUNT)), np.uint8)
        offsets = np.cumsum([0] + [len(image(i)) for i in range(COUNT)]).astype("<u8")
        group = h5.create_group("/", "images")
        h5.create_carray(group, "data", obj=data, filters=tables.Filters(5, "blosc"))
        h5.create_array(group, "offsets", offsets)


if __name__ == "__main__":
    main(sys.argv[1])
