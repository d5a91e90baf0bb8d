"""Writes HDF5 shards with h5py: concatenated images with offsets, or of variable length (jobs on stdin, see protocol.py)."""

import pathlib

import h5py
import numpy

import protocol


def write(job):
  samples, records = job["samples"], job["records"]
  for begin in range(0, len(samples), records):
    shard = samples[begin:begin + records]
    images = [numpy.frombuffer(pathlib.Path(path).read_bytes(), numpy.uint8) for _, path, _ in shard]
    with h5py.File(pathlib.Path(job["root"]) / f"part-{begin // records:05d}.h5", "w") as file:
      if job["layout"] == "vlen":
        file.create_dataset("images", (len(images),), h5py.vlen_dtype(numpy.uint8))
        for i, image in enumerate(images):
          file["images"][i] = image
      else:
        file["images/data"] = numpy.concatenate(images)
        file["images/offsets"] = numpy.cumsum([0] + [len(image) for image in images]).astype(numpy.uint64)
      file["labels"] = numpy.array([label for _, _, label in shard], numpy.int64)


protocol.serve_writer(h5py.__version__, write)
