#!/usr/bin/env python3
"""Makes the foreign shards in this folder with the tools that people make shards with.

usage: make_testdata.py [FOLDER]      default: this script's own

Needs GNU tar and bsdtar in PATH; the webdataset package is used when it can be imported (pip install webdataset in a
virtual environment), else its file is left alone. Everything but the change times inside bsdtar_pax.tar is the same in
each run. All files hold the samples of SAMPLES, so that
webdataset_golden_test.cc expects the same records of each.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile

LONG = "folder_" + "l" * 60 + "/" + "key_" + "n" * 60
# (name, bytes), in the order of the members.
SHORT = [
    ("cat/1.cls", b"0"),
    ("cat/1.jpg", b"\xff\xd8\xff\xe0 one"),
    ("dog/2.cls", b"1"),
    ("dog/2.jpg", b"\xff\xd8\xff\xe0 two" + b"." * 600),
]
SAMPLES = SHORT + [
    (LONG + ".cls", b"2"),
    (LONG + ".jpg", b"\xff\xd8\xff\xe0 three"),
    ("caf\u00e9.cls", b"3"),
    ("caf\u00e9.jpg", b"\xff\xd8\xff\xe0 four"),
]
MTIME = 1700000000.25


def make_with_python(path, tar_format):
  with tarfile.open(path, "w", format=tar_format, encoding="utf-8") as tar:
    for name, data in SAMPLES:
      info = tarfile.TarInfo(name)
      info.size, info.mtime = len(data), MTIME if tar_format == tarfile.PAX_FORMAT else int(MTIME)
      tar.addfile(info, io.BytesIO(data))


def make_with_command(path, samples, command):
  with tempfile.TemporaryDirectory() as folder:
    for name, data in samples:
      full = os.path.join(folder, name)
      os.makedirs(os.path.dirname(full), exist_ok=True)
      with open(full, "wb") as file:
        file.write(data)
      os.chmod(full, 0o644)
      os.utime(full, ns=(int(MTIME * 1e9), int(MTIME * 1e9)))
    names = [name for name, _ in samples]
    subprocess.run(command + ["-cf", os.path.abspath(path)] + names, cwd=folder, check=True,
                   env={**os.environ, "LC_ALL": "C.UTF-8"})


def make_with_webdataset(path):
  try:
    import webdataset
  except ImportError:
    print("webdataset cannot be imported:", path, "is left as it is", file=sys.stderr)
    return
  samples = {}
  for name, data in SAMPLES:
    key, _, extension = name.rpartition(".")
    samples.setdefault(key, {"__key__": key})[extension] = data
  with webdataset.TarWriter(path, mtime=MTIME) as writer:
    for sample in samples.values():
      writer.write(sample)


def main():
  folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
  at = lambda name: os.path.join(folder, name)
  make_with_python(at("python_gnu.tar"), tarfile.GNU_FORMAT)
  make_with_python(at("python_pax.tar"), tarfile.PAX_FORMAT)
  make_with_python(at("python_ustar.tar"), tarfile.USTAR_FORMAT)
  owner = ["--owner=0", "--group=0", "--numeric-owner"]
  for kind in ("gnu", "pax", "ustar"):
    make_with_command(at(f"gnutar_{kind}.tar"), SAMPLES, ["tar", f"--format={kind}"] + owner +
                      (["--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"] if kind == "pax" else []))
  make_with_command(at("gnutar_v7.tar"), SHORT, ["tar", "--format=v7"] + owner)
  owner = ["--uid=0", "--gid=0", "--numeric-owner"]
  for kind in ("pax", "ustar", "gnutar"):
    make_with_command(at(f"bsdtar_{kind}.tar"), SAMPLES, ["bsdtar", f"--format={kind}"] + owner)
  make_with_webdataset(at("webdataset.tar"))


if __name__ == "__main__":
  main()
