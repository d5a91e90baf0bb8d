"""Reads WebDataset shards with tar programs: Python's tarfile, GNU tar or bsdtar.

The class label is the member `KEY.cls`; any other member of a key is a field, the image among them.
usage: read_plain_tar.py tarfile|tar|bsdtar    (jobs on stdin, see protocol.py)
"""

import os
import subprocess
import sys
import tarfile
import tempfile

import protocol


def members_by_tarfile(shard):
  with tarfile.open(shard) as archive:
    for member in archive:
      if member.isfile():
        yield member.name, archive.extractfile(member).read()


def members_by_program(program, shard):
  with tempfile.TemporaryDirectory() as folder:
    subprocess.run([program, "-x", "-f", os.path.abspath(shard), "-C", folder], check=True)
    for parent, _, names in os.walk(folder):
      for name in names:
        path = os.path.join(parent, name)
        with open(path, "rb") as file:
          yield os.path.relpath(path, folder), file.read()


def version_of(program):
  first = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
  words = [word for word in first.replace(",", " ").split() if word[0].isdigit()]
  return words[0] if words else first


def read(job, program):
  for shard in job["shards"]:
    images, labels = {}, {}
    for name, data in members_by_tarfile(shard) if program == "tarfile" else members_by_program(program, shard):
      # The rule of webdataset: a key ends before the first dot of the last component.
      folder, _, base = name.rpartition("/")
      stem, _, extension = base.partition(".")
      key = f"{folder}/{stem}" if folder else stem
      if extension == "cls":
        labels[key] = int(data)
      elif extension != "json":
        images[key] = data
    if images.keys() != labels.keys():
      raise ValueError(f"{shard}: images and labels do not pair up")
    for key, image in images.items():
      yield protocol.sample(key, image, labels[key])


if __name__ == "__main__":
  tool = sys.argv[1]
  release = sys.version.split()[0] if tool == "tarfile" else version_of(tool)
  protocol.serve(release, lambda job: read(job, tool))
