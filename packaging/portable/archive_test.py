"""An archive (tarball or wheel) runs on the oldest system that it promises, and needs nothing beside itself there.

  archive_test.py ARCHIVE MAX_MEGABYTES
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import elf
import graft

ARCHIVE, MAX_MEGABYTES = pathlib.Path(sys.argv[1]), float(sys.argv[2])


class ArchiveTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.root = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))).resolve()
    if ARCHIVE.suffix == ".whl":
      zipfile.ZipFile(ARCHIVE).extractall(cls.root)
    else:
      shutil.unpack_archive(ARCHIVE, cls.root)
    cls.binaries = [path for path in cls.root.rglob("*") if path.is_file() and not path.is_symlink() and elf.is_elf(path)]

  @staticmethod
  def soname(path):
    """A program's is its name."""
    found = re.search(r"Library soname: \[(.+)\]", graft.run("readelf", "-dW", path))
    return found.group(1) if found else path.name

  def test_it_is_small(self):
    self.assertLess(ARCHIVE.stat().st_size / 1e6, MAX_MEGABYTES)

  def test_runtimes_may_be_old(self):
    self.assertGreater(len(self.binaries), 15)
    self.assertEqual({}, {path.name: elf.too_new(path) for path in self.binaries if elf.too_new(path)})

  def test_a_new_symbol_is_seen(self):
    # The system's own, which has arc4random_buf of glibc 2.36.
    self.assertEqual(["GLIBC_2.36"], elf.too_new(graft.installed_libraries()["libarchive.so.13"]))

  def test_all_libraries_are_inside(self):
    inside = {self.soname(path) for path in self.binaries}
    used = {"libshardpack.so.0"}
    for path in self.binaries:
      names = {name for name in graft.needed(path) if not graft.SYSTEM.fullmatch(name)}
      self.assertEqual(set(), names - inside, path)
      used |= names
    self.assertEqual({"pack"}, inside - used, "nothing needs it")

  def test_libraries_are_found_beside(self):
    for path in self.binaries:
      dynamic = graft.run("readelf", "-dW", path)
      folder = "../lib" if path.parent.name == "bin" else "."
      self.assertIn("[$ORIGIN/../lib]" if folder != "." else "[$ORIGIN]", dynamic, path)
      if path.parent.name == "lib":
        self.assertEqual(path, (path.parent / self.soname(path)).resolve())

  def test_nothing_tells_where_it_was_built(self):
    for path in self.binaries:
      self.assertNotIn(b"/execroot/", path.read_bytes(), path)

  def test_each_library_has_its_license(self):
    licenses = {path.name for path in self.root.rglob("licenses/*")}
    self.assertLessEqual({"libtiff6", "libtbb12", "libjpeg62-turbo", "libhdf5-dev", "libarchive-dev"}, licenses)
    self.assertNotIn("libjbig0", licenses)  # the GPL; see no_jbig.c
    self.assertTrue(list(self.root.rglob("common-licenses/Apache-2.0")))
    self.assertTrue(list(self.root.rglob("LICENSE")))


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
