"""The installer, on a small tree: what it writes, what it never touches, and what it says.

INSTALL names the program.
"""

import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, "packaging/tree")
import tree  # noqa: E402  pylint: disable=wrong-import-position

PC = pathlib.Path("packaging/tree/shardpack.pc.in")
CONFIG = pathlib.Path("packaging/tree/shardpackConfig.cmake.in")
ROOT = os.geteuid() == 0


def files_of(prefix):
  """Name -> content of every file and link below it."""
  return {str(path.relative_to(prefix)): os.readlink(path) if path.is_symlink() else path.read_bytes()
          for path in sorted(pathlib.Path(prefix).rglob("*")) if path.is_symlink() or not path.is_dir()}


class InstallTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.prefix = self.folder / "a prefix"

  def make_tree(self, version="0.1.0", more=()):
    for name, text in (("pack", "program " + version), ("lib", "library " + version), ("h", "")):
      (self.folder / name).write_text(text)
    out = self.folder / (version + ".tar")
    given = [f"{self.folder}/pack=bin/pack", f"{self.folder}/lib=lib/libshardpack.so", f"{PC}=lib/pkgconfig/shardpack.pc",
             f"{CONFIG}=lib/cmake/shardpack/shardpackConfig.cmake", *more]
    tree.write(out, tree.entries(given, version))
    return out

  def install(self, *words, tree_file=None, prefix=None, cwd=None, before=()):
    command = [*before, sys.executable, os.path.abspath("packaging/tree/install.py"), "--tree", tree_file or self.make_tree(), "--prefix", prefix or self.prefix,
               *words]
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

  def must(self, *words, **options):
    done = self.install(*words, **options)
    self.assertEqual(0, done.returncode, done.stdout)
    return done.stdout

  def test_equal_files_give_an_equal_tar(self):
    first = self.make_tree().read_bytes()
    os.utime(self.folder / "pack", (1, 1))
    (self.folder / "pack").chmod(0o700)
    self.assertEqual(first, self.make_tree().read_bytes())
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
      self.assertEqual({(0, 0, "", "")}, {(e.uid, e.mtime, e.uname, e.gname) for e in tar})
      self.assertEqual(sorted(tar.getnames()), tar.getnames())

  def test_layout_and_modes(self):
    old = os.umask(0o077)
    self.addCleanup(os.umask, old)
    self.assertIn("installed 6 files", self.must())
    self.assertEqual("libshardpack.so.0", os.readlink(self.prefix / "lib/libshardpack.so"))
    self.assertEqual("libshardpack.so.0.1.0", os.readlink(self.prefix / "lib/libshardpack.so.0"))
    self.assertEqual(0o755, (self.prefix / "bin/pack").stat().st_mode & 0o777)
    self.assertEqual(0o644, (self.prefix / "lib/libshardpack.so").stat().st_mode & 0o777)
    for name in ("", "bin", "lib", "lib/pkgconfig", "share/doc/shardpack"):
      self.assertEqual(0o755, (self.prefix / name).stat().st_mode & 0o777, name)
    self.assertIn("Version: 0.1.0\n", (self.prefix / "lib/pkgconfig/shardpack.pc").read_text())
    subprocess.run(["sha256sum", "--quiet", "-c", "share/doc/shardpack/SHA256SUMS"], cwd=self.prefix, check=True)

  def test_the_archive_has_its_folders(self):
    with tarfile.open(self.make_tree()) as tar:
      seen = {"": 0o755}
      for entry in tar:
        self.assertEqual(0o755, seen.get(os.path.dirname(entry.name)), entry.name)
        if entry.isdir():
          seen[entry.name] = entry.mode
    self.assertIn("lib/cmake/shardpack", seen)

  def test_no_file_names_the_prefix(self):
    self.must()
    for name, content in files_of(self.prefix).items():
      self.assertNotIn(str(self.folder), content if isinstance(content, str) else content.decode(), name)

  def test_another_lib(self):
    self.must("--libdir", "lib/x86_64-linux-gnu/")
    pc = (self.prefix / "lib/x86_64-linux-gnu/pkgconfig/shardpack.pc").read_text()
    self.assertIn("prefix=${pcfiledir}/../../..\nlibdir=${pcfiledir}/..\n", pc)
    config = (self.prefix / "lib/x86_64-linux-gnu/cmake/shardpack/shardpackConfig.cmake").read_text()
    self.assertIn('prefix "${_shardpack_DIR}/../../../.." ', config)
    self.assertIn('lib "${_shardpack_DIR}/../.." ', config)
    # And back: the files are found again where they are, though elsewhere.
    self.must()
    self.assertFalse((self.prefix / "lib/x86_64-linux-gnu/libshardpack.so").exists())

  def test_a_relative_prefix_with_bytes_that_are_no_text(self):
    self.must(prefix=b"p \xff", cwd=self.folder)
    self.assertTrue(os.path.exists(os.fsencode(self.folder) + b"/p \xff/bin/pack"))

  def test_again_and_an_upgrade(self):
    self.must()
    self.must()
    (self.prefix / "bin/mine").write_text("mine")
    self.must(tree_file=self.make_tree("0.2.0"))
    have = files_of(self.prefix)
    self.assertEqual(b"program 0.2.0", have["bin/pack"])
    self.assertEqual(b"mine", have["bin/mine"])
    self.assertNotIn("lib/libshardpack.so.0.1.0", have)
    self.assertEqual("libshardpack.so.0.2.0", have["lib/libshardpack.so.0"])

  def test_files_of_others_are_in_the_way(self):
    for make in (lambda path: path.write_text("another pack"), lambda path: path.mkdir(), lambda path: path.symlink_to("nothing")):
      (self.prefix / "bin").mkdir(parents=True)
      make(self.prefix / "bin/pack")
      before = files_of(self.prefix)
      done = self.install()
      self.assertEqual(1, done.returncode)
      self.assertIn("in the way", done.stdout)
      self.assertIn(f"{self.prefix}/bin/pack", done.stdout)
      self.assertEqual(before, files_of(self.prefix))
      subprocess.run(["rm", "-r", self.prefix], check=True)

  def test_changed_files_stay(self):
    self.must()
    (self.prefix / "bin/pack").write_text("changed")
    done = self.install(tree_file=self.make_tree("0.2.0"))
    self.assertEqual(1, done.returncode)
    self.assertIn("bin/pack", done.stdout)
    self.assertIn("bin/pack was changed since it was installed, and stays", self.must("--uninstall"))
    self.assertEqual({"bin/pack"}, set(files_of(self.prefix)))

  def test_uninstall(self):
    (self.prefix / "lib").mkdir(parents=True)
    (self.prefix / "lib/mine").write_text("mine")
    self.must()
    self.must("--uninstall")
    self.assertEqual({"lib/mine": b"mine"}, files_of(self.prefix))
    self.assertFalse((self.prefix / "share/doc/shardpack").exists())
    self.assertFalse((self.prefix / "lib/cmake/shardpack").exists())
    self.assertIn("nothing of Shardpack is installed", self.install("--uninstall").stdout)

  def test_a_list_that_leads_elsewhere(self):
    self.must()
    victim = self.folder / "victim"
    victim.write_text("mine")
    sum_of = hashlib.sha256(b"mine").hexdigest()
    for name in (str(victim), "../victim", "lib/../../victim"):
      (self.prefix / "share/doc/shardpack/SHA256SUMS").write_text(f"{sum_of}  {name}\n")
      for words in ((), ("--uninstall",)):
        self.assertIn("is not a list of installed files", self.install(*words).stdout)
    self.assertTrue(victim.exists())

  def test_a_place_that_cannot_be_written(self):
    (self.folder / "file").write_text("")
    done = self.install(prefix=self.folder / "file/prefix")
    self.assertEqual(1, done.returncode)
    self.assertRegex(done.stdout, r"^install: .*/file: File exists; nothing was installed\n$")
    # /proc is written by nobody, root included.
    done = self.install(prefix="/proc/1/shardpack")
    self.assertEqual(1, done.returncode)
    self.assertIn("nothing was installed", done.stdout)

  def test_a_full_disk(self):
    command = ["bash", "-c", 'ulimit -f 1 && exec "$@"', "-", sys.executable, "-B", "packaging/tree/install.py", "--prefix", self.prefix, "--tree"]
    (self.folder / "large").write_bytes(bytes(5000))
    tree_file = self.make_tree(more=[f"{self.folder}/large=share/large"])
    done = subprocess.run([*command, tree_file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    self.assertEqual(1, done.returncode)
    self.assertEqual(f"install: {self.prefix}: File too large; nothing was installed\n", done.stdout)
    self.assertFalse(self.prefix.exists())

  @unittest.skipIf(ROOT, "root may write everywhere")
  def test_a_folder_of_somebody_else(self):
    (self.prefix / "lib").mkdir(parents=True)
    (self.prefix / "lib").chmod(0o555)
    self.addCleanup((self.prefix / "lib").chmod, 0o755)
    done = self.install()
    self.assertEqual(1, done.returncode)
    self.assertRegex(done.stdout, "^install: .*/lib/.*[a-z]: Permission denied; give another --prefix, or run this as root; nothing was installed\n$")
    self.assertEqual({}, files_of(self.prefix))

  @unittest.skipUnless(ROOT, "only root may mount")
  def test_a_read_only_file_system(self):
    """Which refuses root too, and with another error than a mode does."""
    (self.prefix / "lib").mkdir(parents=True)
    mounted = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"', self.prefix]
    tried = subprocess.run([*mounted, "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if tried.returncode != 0:
      print(f"install_test: NOT TESTED: a read-only file system cannot be mounted here: {tried.stdout}", file=sys.stderr)
      self.skipTest("no mounts here")
    done = self.install(before=mounted)
    self.assertEqual(1, done.returncode)
    self.assertRegex(done.stdout, "^install: .*: Read-only file system; give another --prefix; nothing was installed\n$")
    self.assertEqual({}, files_of(self.prefix))


if __name__ == "__main__":
  unittest.main()
