"""In a root, beside the archives: what check_roots wants to know."""

import glob
import pathlib
import platform
import shutil
import sys
import tempfile

from round_trip import round_trip, run


def main():
  work = pathlib.Path(tempfile.mkdtemp())
  for name in ("tarball", "wheel"):
    (work / name).mkdir()
  shutil.unpack_archive(glob.glob("*.tar.gz")[0], work)
  round_trip(glob.glob(f"{work}/shardpack-*/bin/pack")[0], "images", work / "tarball")
  run(sys.executable, "-m", "venv", work / "venv")
  run(work / "venv/bin/pip", "install", "--no-index", *glob.glob("*.whl"))
  round_trip(work / "venv/bin/shardpack", "images", work / "wheel")
  run(work / "venv/bin/python", "-c", "import shardpack; assert len(shardpack.Dataset('webdataset')) > 5", cwd=work / "wheel")
  print(f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {' '.join(platform.libc_ver())}, Python {platform.python_version()}: "
        "tarball and wheel work")


if __name__ == "__main__":
  main()
