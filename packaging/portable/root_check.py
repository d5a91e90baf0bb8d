"""In a root, beside the archives: what check_roots wants to know."""

import glob
import pathlib
import platform
import shutil
import sys
import tempfile

from round_trip import round_trip, run

# All that can be done without NumPy, which is not there.
READ = """
import shardpack
dataset = shardpack.Dataset("webdataset")
loader = shardpack.Loader(dataset, shardpack.Order(len(dataset), global_batch=2), decode=shardpack.Decode(8, 8))
assert len(list(loader)) == 3
"""


# The library of the tarball, with what it needs.
LOAD = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.shardpack_version.restype = ctypes.c_char_p
assert library.shardpack_version()
"""


def main():
  work = pathlib.Path(tempfile.mkdtemp())
  for name in ("tarball", "wheel"):
    (work / name).mkdir()
  shutil.unpack_archive(glob.glob("*.tar.gz")[0], work)
  round_trip(glob.glob(f"{work}/shardpack-*/bin/pack")[0], "images", work / "tarball")
  run(sys.executable, "-c", LOAD, *glob.glob(f"{work}/shardpack-*/lib/libshardpack.so"))
  venv = work / "an environment"
  run(sys.executable, "-m", "venv", venv)
  run(venv / "bin/pip", "install", "--no-index", *glob.glob("*.whl"))
  round_trip(venv / "bin/shardpack", "images", work / "wheel")
  run(venv / "bin/python", "-c", READ, cwd=work / "wheel")
  print(f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {' '.join(platform.libc_ver())}, Python {platform.python_version()}: "
        "tarball and wheel work")


if __name__ == "__main__":
  main()
