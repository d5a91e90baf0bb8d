#!/usr/bin/env python3
"""Reads a shard with h5py, numpy.memmap and PyTables and compares it with what was written.

    read_shard.py SHARD EXPECTED LAYOUT        EXPECTED: a line "key TAB label TAB image in hex TAB txt in hex" a sample
"""
import sys

import h5py
import numpy as np
import tables


def check_h5py(path, rows, layout):
    with h5py.File(path, "r") as h5:
        attributes = {name: h5.attrs[name] for name in h5.attrs}
        classes = list(attributes.pop("classes"))
        assert classes == ["cat", "dog", "éléphant", "d", "e"], classes
        assert attributes == {"format": "shardpack", "version": "1", "layout": layout, "split": "train",
                              "label_base": 0}, attributes
        assert list(h5["labels"][:]) == [int(row[1]) for row in rows]
        assert h5["labels"].dtype == np.dtype("<i8")
        assert list(h5["keys"].asstr()[:]) == [row[0] for row in rows]
        for name, column in (("images", 2), ("txt", 3)):
            if layout == "packed":
                data, offsets = h5[name]["data"], h5[name]["offsets"][:]
                assert data.dtype == np.uint8 and len(offsets) == len(rows) + 1
                mapped = np.memmap(path, mode="r", offset=data.id.get_offset(), shape=(int(offsets[-1]),))
                assert np.array_equal(mapped, data[: offsets[-1]])
                found = [bytes(mapped[offsets[i]:offsets[i + 1]]) for i in range(len(rows))]
            else:
                found = [bytes(item) for item in h5[name][:]]
            assert found == [bytes.fromhex(row[column]) for row in rows], name


def check_pytables(path, rows, layout):
    with tables.open_file(path) as h5:
        kinds = {node._v_pathname: type(node).__name__ for node in h5.walk_nodes("/", "Leaf")}
        assert "UnImplemented" not in kinds.values(), kinds
        assert list(h5.root.labels[:]) == [int(row[1]) for row in rows]
        assert [key.decode() for key in h5.root.keys[:]] == [row[0] for row in rows]
        if layout == "packed":
            offsets = h5.root.images.offsets[:]
            found = [bytes(h5.root.images.data[offsets[i]:offsets[i + 1]]) for i in range(len(rows))]
        else:
            assert kinds["/images"] == "VLArray", kinds
            found = [bytes(item) for item in h5.root.images]
        assert found == [bytes.fromhex(row[2]) for row in rows]


def main(path, expected, layout):
    with open(expected) as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    check_h5py(path, rows, layout)
    check_pytables(path, rows, layout)


if __name__ == "__main__":
    main(*sys.argv[1:])
