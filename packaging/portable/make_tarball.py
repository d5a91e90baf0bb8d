"""Writes the tarball of command and library that runs on Linux systems other than the one that built it.

  make_tarball.py --tree TREE.tar --out shardpack-0.1.0-linux-x86_64.tar.gz

It is what //:install writes below a prefix, with the libraries that it needs in lib/; without the operations of OpenCV, which is to be
the system's.
"""

import argparse
import pathlib
import shutil
import tempfile

import archives
import graft
import licences


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--tree", required=True)
  parser.add_argument("--instead", nargs="*", default=[], metavar="LIBRARY", help="to be taken in place of the installed one")
  parser.add_argument("--out", required=True)
  options = parser.parse_args()
  instead = {pathlib.Path(path).name: path for path in options.instead}
  with tempfile.TemporaryDirectory() as folder:
    root, aside = pathlib.Path(folder, "root").resolve(), pathlib.Path(folder, "aside")
    shutil.unpack_archive(options.tree, root)
    (root / "lib/libshardpack_opencv.so.0").unlink()
    aside.mkdir()
    files = {path.relative_to(root): path.rename(aside / path.name) for path in (root / "bin/pack", (root / "lib/libshardpack.so").resolve())}
    libraries = graft.graft(files, root, instead)
    texts = root / "share/doc/shardpack/licenses"
    static = [path.name for path in texts.glob("*-dev")]
    licences.collect([path for name, path in libraries.items() if name not in instead], static, texts)
    archives.write_tar_gz(root, pathlib.Path(options.out).name.removesuffix(".tar.gz"), options.out)


if __name__ == "__main__":
  main()
