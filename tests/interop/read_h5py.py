"""Reads HDF5 shards with h5py (jobs on stdin, see protocol.py)."""

import h5py

import protocol


def read(job):
  for shard in job["shards"]:
    with h5py.File(shard) as file:
      labels, keys = file["labels"][:], file["keys"][:]
      if job["layout"] == "packed":
        offsets = file["images/offsets"][:]
        images = (file["images/data"][begin:end] for begin, end in zip(offsets, offsets[1:]))
      else:
        images = (file["images"][i] for i in range(len(labels)))
      for key, image, label in zip(keys, images, labels):
        yield protocol.sample(key.decode(), image.tobytes(), int(label))


protocol.serve(h5py.__version__, read)
