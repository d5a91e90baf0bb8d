"""What the files of the Debian packages repeat agrees with what they repeat it from. (packaging/debs/check makes the packages and
installs them, for which it needs root and the network.)"""

import os
import pathlib
import re
import subprocess
import unittest

DEBIAN = pathlib.Path("packaging/debs/debian")


class DebsTest(unittest.TestCase):

  def test_symbols_are_those_of_the_library(self):
    lines = (DEBIAN / "libshardpack0.symbols").read_text().splitlines()
    self.assertRegex(lines[0], r"^libshardpack\.so\.0 libshardpack0 #MINVER#$")
    symbols = [re.fullmatch(r" (\w+)@SHARDPACK_0 (\d+\.\d+\.\d+)", line) for line in lines[2:]]
    self.assertNotIn(None, symbols, lines)
    listed = subprocess.run(["nm", "-D", "--defined-only", "--without-symbol-versions", "api/libshardpack.so.0"], stdout=subprocess.PIPE, text=True,
                            check=True)
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    self.assertGreater(len(exported), 50)
    # A new function has a line with the version that brought it.
    self.assertEqual(exported, {symbol.group(1) for symbol in symbols})
    self.assertEqual(len(symbols), len({symbol.group(1) for symbol in symbols}))
    version = re.search(r'SHARDPACK_VERSION "([\d.]+)"', pathlib.Path("api/shardpack.h").read_text()).group(1)
    number = lambda text: tuple(map(int, text.split(".")))
    for symbol in symbols:
      self.assertLessEqual(number(symbol.group(2)), number(version), symbol.group(0))

  def test_the_container_installs_packages_that_are_made(self):
    packages = set(re.findall(r"^Package: (\S+)$", (DEBIAN / "control").read_text(), re.MULTILINE))
    text = pathlib.Path("packaging/Containerfile").read_text()
    installed = re.findall(r"/debs/([\w-]+)_\*\.deb", text)
    self.assertEqual({"shardpack", "libshardpack0", "python3-shardpack"}, set(installed))
    self.assertLessEqual(set(installed), packages)
    self.assertIn("RUN /shardpack/bazelw run --config=deb //packaging:debs -- /debs\n", text)
    # packaging/debs/check runs the commands of the last stage; it understands these instructions.
    self.assertLessEqual(set(re.findall(r"^([A-Z]+) ", text, re.MULTILINE)), {"FROM", "COPY", "RUN", "WORKDIR", "ENTRYPOINT"})

  def test_nvidias_runtime_has_its_notice(self):
    # That the packages have it is tested in debian/tests/linked.
    if b".nv_fatbin" in pathlib.Path("api/libshardpack.so.0").read_bytes():
      self.assertIn("NVIDIA", (DEBIAN / "copyright").read_text())

  def test_versions_that_do_not_work_together(self):
    # The library's jobs refuse a pack of another version.
    control = (DEBIAN / "control").read_text()
    library = control.split("Package: libshardpack0\n")[1].split("\n\n")[0]
    self.assertIn("\nBreaks: shardpack (<< ${binary:Version}), shardpack (>> ${binary:Version})\n", library)
    # Labels and ids of a batch are arrays of NumPy.
    module = control.split("Package: python3-shardpack\n")[1].split("\n\n")[0]
    self.assertRegex(module, r"\nRecommends: .*\bpython3-numpy\b")

  def test_the_source_package_names_what_the_build_needs(self):
    wanted, section = set(), ""
    for line in pathlib.Path("third_party/packages.txt").read_text().splitlines():
      if line.startswith("# "):
        section = line[2:]
      elif line and section in ("Build", "Libraries"):
        wanted.add(line)
    control = (DEBIAN / "control").read_text()
    named = re.search(r"^Build-Depends: (.*(?:\n .*)*)", control, re.MULTILINE)[1].split(",\n ")
    self.assertGreater(len(wanted), 30)
    # Debian's builders always have a compiler.
    self.assertEqual(wanted - {"g++"} | {"debhelper-compat (= 13)", "dh-sequence-python3", "python3:any"}, set(named))

  def test_tests_of_installed_packages(self):
    control = (DEBIAN / "tests/control").read_text()
    for name in re.findall(r"^Tests: (.*)$", control, re.MULTILINE):
      self.assertTrue(os.access(DEBIAN / "tests" / name, os.X_OK), name)
      # packaging/debs/check runs all of them.
      self.assertIn(f" /tests/{name}\n", pathlib.Path("packaging/debs/check").read_text())

  def test_each_package_says_what_it_has(self):
    for package in re.findall(r"^Package: (\S+)$", (DEBIAN / "control").read_text(), re.MULTILINE):
      self.assertTrue((DEBIAN / f"{package}.install").read_text().strip(), package)


if __name__ == "__main__":
  unittest.main()
