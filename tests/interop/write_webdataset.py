"""Writes WebDataset shards with webdataset's ShardWriter, which makes pax archives (jobs on stdin, see protocol.py)."""

import pathlib

import webdataset

import protocol


def write(job):
  with webdataset.ShardWriter(str(pathlib.Path(job["root"]) / "part-%06d.tar"), maxcount=job["records"], verbose=0) as writer:
    for name, path, label in job["samples"]:
      image = pathlib.Path(path)
      writer.write({"__key__": name, image.suffix[1:].lower(): image.read_bytes(), "cls": label})


protocol.serve_writer(webdataset.__version__, write)
