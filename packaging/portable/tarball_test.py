"""The tarball, unpacked where a user may put it.

  tarball_test.py TARBALL PACK SHA256SUMS
"""

import base64
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import graft
from round_trip import round_trip, run

TARBALL, PACK, SUMS = (os.path.abspath(path) for path in sys.argv[1:4])

# 96 x 8 pixels, written by libtiff.
JBIG = base64.b64decode(
    "SUkqACgAAAAAAIAAAAAABgAAABAAAABAEADAOAvk/0AB/0D/QP9AAAkAAAEDAAEAAABgAAAAAQEDAAEAAAAIAAAAAgEDAAEAAAABAAAAAwEDAA"
    "EAAABlhwAABgEDAAEAAAAAAAAAEQEEAAEAAAAIAAAAFQEDAAEAAAABAAAAFgEDAAEAAAAIAAAAFwEEAAEAAAAfAAAAAAAAAA==")


class TarballTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    shutil.unpack_archive(TARBALL, self.folder / "a place")
    (self.top,) = (self.folder / "a place").iterdir()

  def test_name(self):
    version = run(PACK, "--version").split()[1]
    self.assertEqual(f"shardpack-{version}-linux-{os.uname().machine}", self.top.name)

  def test_it_runs_wherever_it_lies(self):
    self.assertEqual(run(PACK, "--version"), run(self.top / "bin/pack", "--version"))
    self.top = self.top.rename(self.folder / "b")
    (self.folder / "link").symlink_to("b/bin/pack")
    round_trip(self.folder / "link", "testdata/images", self.folder)

  def test_it_loads_what_is_beside_it(self):
    for file in ("bin/pack", "lib/libshardpack.so.0"):
      for line in run("ldd", self.top / file).splitlines():
        name, _, place = line.strip().partition(" => ")
        if place and not graft.SYSTEM.fullmatch(name):
          self.assertEqual(self.top / "lib" / name, pathlib.Path(os.path.normpath(place.rsplit(" (", 1)[0])))

  def test_manual_page_and_completions(self):
    self.assertEqual(run(PACK, "man"), (self.top / "share/man/man1/pack.1").read_text())
    self.assertEqual(run(PACK, "completions", "bash"), (self.top / "share/bash-completion/completions/pack").read_text())

  def test_all_may_use_what_root_has_unpacked(self):
    place = self.folder / "for all"
    place.mkdir()
    # -p, which is root's default: modes are those of the archive.
    run("bash", "-c", 'umask 077 && tar -xpf "$1"', "-", TARBALL, cwd=place)
    for path in place.rglob("*"):
      mode = 0o755 if path.is_dir() or path.name == "pack" and path.parent.name == "bin" else 0o644
      self.assertEqual(mode, path.stat().st_mode & 0o777, path)

  def test_its_libraries_can_be_named(self):
    # A copy does not find them, nor does any program without /proc.
    shutil.copy(self.top / "bin/pack", self.folder / "copy")
    with self.assertRaisesRegex(AssertionError, "error while loading shared libraries"):
      run(self.folder / "copy", "--version")
    run("env", f"LD_LIBRARY_PATH={self.top / 'lib'}", self.folder / "copy", "--version")

  def test_its_hash(self):
    sums = dict(line.split("  ")[::-1] for line in pathlib.Path(SUMS).read_text().splitlines())
    self.assertEqual(2, len(sums))
    self.assertEqual(hashlib.sha256(pathlib.Path(TARBALL).read_bytes()).hexdigest(), sums[os.path.basename(TARBALL)])

  def test_jbig_cannot_be_decoded(self):
    place = self.folder / "src/a.tif"
    place.parent.mkdir()
    place.write_bytes(JBIG)
    command = ["-o", "out", "--encode", "png", "--overwrite", "--max-skip", "100%"]
    run(PACK, place.parent, *command, cwd=self.folder)
    with self.assertRaisesRegex(AssertionError, "ended with [34]"):
      run(self.top / "bin/pack", place.parent, *command, cwd=self.folder)

  def test_the_same_again(self):
    again = self.folder / os.path.basename(TARBALL)
    os.umask(0o077)
    run(sys.executable, "packaging/portable/make_tarball.py", "--tree", "packaging/tree/tree.tar", "--instead",
        "packaging/portable/libjbig.so.0", "--out", again)
    self.assertEqual(pathlib.Path(TARBALL).read_bytes(), again.read_bytes())


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
