"""Programs outside of this project build against an installed tree, or the tarball, wherever it was moved, and load a packed dataset.

By a compiler with pkg-config, and by CMake: examples/linked, as its files say it is built.

usage: linked_test.py [TARBALL]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LINKED = pathlib.Path("examples/linked").absolute()
PACK = pathlib.Path("cli/pack").absolute()
WARNINGS = "-Wall -Wextra -pedantic -Werror"


def run(*command):
  subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Linked:

  @classmethod
  def setUpClass(cls):
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.folder = pathlib.Path(folder.name)
    # Nothing in it may say where it was.
    cls.prefix = cls.folder / "moved" / "our prefix"
    cls.prefix.parent.mkdir()
    cls.place_in(cls.folder / "first").rename(cls.prefix)
    shutil.copytree("testdata/shapes", cls.folder / "photos")
    run(cls.prefix / "bin/pack", cls.folder / "photos", "-o", cls.folder / "shards", "-q")
    cls.version = cls.shell("'{prefix}/bin/pack' --version").split()[1]

  @classmethod
  def shell(cls, command, code=0):
    """What it prints; {prefix} and {folder} are known to it."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(cls.prefix / "lib/pkgconfig"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", command.format(prefix=cls.prefix, folder=cls.folder, linked=LINKED)], cwd=cls.folder,
                          env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != code:
      raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout

  def check_loader(self, program, library_path=True):
    path = "LD_LIBRARY_PATH='{prefix}/lib' " if library_path else ""
    self.assertEqual(f"shardpack {self.version}: 60 of 60 images\n", self.shell(f"{path}{program} shards"))
    self.assertRegex(self.shell(f"{path}{program} nothing", code=1), "^NOT_FOUND: .*nothing")

  def test_one_version(self):
    self.assertRegex(self.version, r"^\d+\.\d+\.\d+$")
    self.assertEqual(self.version + "\n", self.shell("pkg-config --modversion shardpack"))
    self.assertIn(f'"shardpack {self.version}"', (self.prefix / "share/man/man1/pack.1").read_text())

  def test_nothing_names_where_it_was_built(self):
    for path in self.prefix.rglob("*"):
      if path.is_file():
        content = path.read_bytes()
        self.assertNotIn(os.fsencode(self.folder), content, path)
        self.assertIsNone(re.search(rb"/[\w/]*bazel-out/", content), path)

  def test_c_with_pkg_config(self):
    self.shell("eval cc -std=c99 " + WARNINGS + " '{linked}/loader.c' $(pkg-config --cflags --libs shardpack) -o c_loader")
    self.check_loader("./c_loader")

  def test_cxx17_with_pkg_config(self):
    self.shell("eval c++ -std=c++17 " + WARNINGS + " '{linked}/loader.cc' $(pkg-config --cflags --libs shardpack) -o cc_loader")
    self.check_loader("./cc_loader")

  def test_cmake(self):
    self.shell("cmake -S '{linked}' -B build '-DCMAKE_PREFIX_PATH={prefix}' && cmake --build build")
    # CMake tells its programs where the library lies.
    self.check_loader("build/loader_c", library_path=False)
    self.check_loader("build/loader_cc", library_path=False)

  def test_cmake_where_lib_is_a_link(self):
    """As /lib is one to /usr/lib, of which CMake finds the former first where PATH begins with /bin."""
    (self.folder / "root/usr").mkdir(parents=True)
    for name in ("include", "lib"):
      shutil.copytree(self.prefix / name, self.folder / "root/usr" / name, symlinks=True)
    (self.folder / "root/lib").symlink_to("usr/lib")
    self.shell("cmake -S '{linked}' -B linked_build '-Dshardpack_DIR={folder}/root/lib/cmake/shardpack' && cmake --build linked_build")
    self.check_loader("linked_build/loader_c", library_path=False)

  def test_cmake_asks_for_a_version(self):
    (self.folder / "asks").mkdir()
    for wanted, code in (("0.1", 0), (self.version + " EXACT", 0), ("99", 1), ("0.0.1...99", 0), ("0.0.1..." + self.version, 0),
                         ("0.0.1...<" + self.version, 1), ("0.0.1...0.0.2", 1)):
      (self.folder / "asks/CMakeLists.txt").write_text(
          f"cmake_minimum_required(VERSION 3.19)\nproject(asks C)\nfind_package(shardpack {wanted} REQUIRED)\n")
      said = self.shell("rm -rf asking; cmake -S asks -B asking '-DCMAKE_PREFIX_PATH={prefix}'", code=code)
      self.assertEqual(code != 0, f"version: {self.version}" in said, said)

  def test_cmake_asks_for_a_component(self):
    (self.folder / "parts").mkdir()
    (self.folder / "parts/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(parts C)\nfind_package(shardpack REQUIRED COMPONENTS reader)\n")
    said = self.shell("cmake -S parts -B parted '-DCMAKE_PREFIX_PATH={prefix}'", code=1)
    self.assertIn("no components, so none called reader", " ".join(said.split()))

  def test_cmake_for_another_size_of_pointers(self):
    (self.folder / "narrow").mkdir()
    (self.folder / "narrow/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(narrow C)\nset(CMAKE_SIZEOF_VOID_P 4)\nfind_package(shardpack REQUIRED)\n")
    said = self.shell("cmake -S narrow -B narrowed '-DCMAKE_PREFIX_PATH={prefix}'", code=1)
    self.assertIn("(64-bit)", said)

  def test_nvidias_notice_is_where_its_runtime_is(self):
    notice = self.prefix / "share/doc/shardpack/licenses/nvidia-cuda-runtime"
    self.assertEqual(".nv_fatbin" in self.shell("readelf -SW '{prefix}/lib/libshardpack.so'"), notice.exists())

  def test_what_bash_completes(self):
    self.assertIn("validate", self.shell(
        "source '{prefix}/share/bash-completion/completions/pack' && COMP_WORDS=(pack val) COMP_CWORD=1 && "
        "$(complete -p pack | sed 's/.*-F \\([^ ]*\\).*/\\1/') && echo ${{COMPREPLY[@]}}"))


class InstalledTest(Linked, unittest.TestCase):

  @staticmethod
  def place_in(folder):
    run("packaging/tree/install.sh", "--prefix", folder)
    return folder

  def test_layout(self):
    files = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if not path.is_dir() or path.is_symlink()}
    expected = {"bin/pack", "include/shardpack.h", "include/shardpack.hpp", "include/shardpack_op.h", "lib/libshardpack.so",
                "lib/libshardpack.so.0", "lib/libshardpack.so." + self.version, "lib/libshardpack_opencv.so.0",
                "lib/pkgconfig/shardpack.pc", "lib/cmake/shardpack/shardpackConfig.cmake",
                "lib/cmake/shardpack/shardpackConfigVersion.cmake", "share/man/man1/pack.1",
                "share/bash-completion/completions/pack", "share/zsh/site-functions/_pack", "share/fish/vendor_completions.d/pack.fish",
                "share/doc/shardpack/LICENSE"}
    self.assertEqual(set(), expected - files)
    self.assertEqual(set(), {name for name in files - expected if not name.startswith("share/doc/shardpack/")})
    self.assertNotEqual(set(), {name for name in files if "/licenses/" in name})

  def test_nothing_is_larger_than_it_has_to_be(self):
    for name in ("bin/pack", "lib/libshardpack.so"):
      self.assertNotIn(".debug_info", self.shell(f"readelf -SW '{{prefix}}/{name}'"))

  def test_the_page_names_the_packages_that_it_needs(self):
    """Those that have what both files load, but for the runtimes of C and C++, which every system has."""
    needed = {name for file in ("bin/pack", "lib/libshardpack.so")
              for name in re.findall(r"Shared library: \[(.+)\]", self.shell(f"readelf -dW '{{prefix}}/{file}'"))}
    self.assertGreater(len(needed), 20)
    owners = self.shell("dpkg-query --search " + " ".join(f"'*/{name}'" for name in sorted(needed)))
    # Others of the same name are for 32 bits.
    have = {line.split(":")[0] for line in owners.splitlines() if f"/{os.uname().machine}-linux-gnu/" in line}
    named = re.search(r"apt-get install (.*\bliblmdb0\b.*)$", pathlib.Path("docs/install.md").read_text(), re.MULTILINE).group(1)
    self.assertEqual(have - {"libc6", "libgcc-s1", "libstdc++6"}, set(named.split()))


class TarballTest(Linked, unittest.TestCase):

  @staticmethod
  def place_in(folder):
    shutil.unpack_archive(sys.argv[1], folder)
    return next(folder.iterdir())

  def test_no_operations_of_opencv(self):
    self.assertEqual([], list(self.prefix.rglob("*opencv*")))


if __name__ == "__main__":
  unittest.main(argv=[sys.argv[0], "TarballTest" if len(sys.argv) > 1 else "InstalledTest"])
