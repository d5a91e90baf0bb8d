"""The wheel, installed in a new virtual environment.

  wheel_test.py WHEEL PACK LIBRARY PYTHON_FILE...
"""

import os
import pathlib
import re
import sys
import tempfile
import unittest
import zipfile

from round_trip import round_trip, run

WHEEL, PACK, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:4])
PYTHON_FILES = sys.argv[4:]


class WheelTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    run("/usr/bin/python3", "-m", "venv", cls.folder / "an environment")
    cls.bin = cls.folder / "an environment/bin"
    run(cls.bin / "pip", "install", "--no-index", "--disable-pip-version-check", WHEEL)

  def test_both_commands(self):
    for name in ("pack", "shardpack"):
      self.assertEqual(run(PACK, "--version"), run(self.bin / name, "--version"))
    self.assertEqual(run(PACK, "--version"), run(self.bin / "python", "-m", "shardpack", "--version"))

  def test_commands_wherever_they_lie(self):
    version, link = run(PACK, "--version"), self.folder / "link"
    install = [self.bin / "pip", "install", "--quiet", "--no-index", "--ignore-installed", "--no-warn-script-location"]
    for how, name in (("--prefix", "quoted \"$x'`*"), ("--target", "[a] \\n"), ("--prefix", os.fsdecode(b"no text \xff")),
                      ("--target", "-e")):
      run(*install, how, self.folder / "first", WHEEL)
      place = (self.folder / "first").rename(self.folder / name)
      link.symlink_to(place / "bin/shardpack")
      self.assertEqual(version, run(place / "bin/pack", "--version"))
      self.assertEqual(version, run(link, "--version"))
      self.assertEqual(version, run("pack", "--version", path=f"{place}/bin:/usr/bin:/bin"))
      self.assertEqual(version, run("./pack", "--version", cwd=place / "bin"))
      self.assertEqual(version, run("bash", "--posix", "bin/pack", "--version", cwd=place))  # the sh of RHEL
      # As if the package were of another version.
      facts, = place.rglob("shardpack-*.dist-info")
      facts.rename(facts.with_name("shardpack-0.0.9.dist-info"))
      with self.assertRaisesRegex(AssertionError, "ended with 127\n.*shardpack.* is not installed beside .*/bin/shardpack\n"):
        run(link, "--version")
      link.unlink()

  def test_pack_converts_to_all_formats(self):
    round_trip(self.bin / "pack", "testdata/images", self.folder)

  def test_the_module_reads_what_the_command_packed(self):
    source = self.folder / "few/cat"
    source.mkdir(parents=True)
    (source / "1.jpg").write_bytes(pathlib.Path("testdata/images/baseline.jpg").read_bytes())
    run(self.bin / "pack", "few", "-o", "shards", cwd=self.folder)
    count = run(self.bin / "python", "-c", "import shardpack; print(len(shardpack.Dataset('shards')))", cwd=self.folder)
    self.assertEqual("1\n", count)

  def test_numpy_is_an_extra(self):
    # The command does without it, and so do datasets; what a batch has are arrays.
    said = run(self.bin / "python", "-c", "from importlib.metadata import metadata as m, requires; "
               "print(m('shardpack').get_all('Provides-Extra'), *requires('shardpack'))")
    self.assertRegex(said, "^\\['numpy'\\] numpy ?; extra == .numpy.\n$")

  def test_pip_knows_licences_and_types(self):
    said = run(self.bin / "python", "-c", "from importlib.metadata import distribution as d; m = d('shardpack').metadata; "
               "print(*m.get_all('Classifier'), sep='\\n'); print(*m.get_all('License-File'), sep='\\n')")
    self.assertIn("Typing :: Typed\n", said)
    held = [name.partition(".dist-info/licenses/")[2] for name in zipfile.ZipFile(WHEEL).namelist()]
    self.assertEqual(sorted(filter(None, held)), [line for line in said.splitlines() if "::" not in line])

  def test_pip_knows_all_files(self):
    shown = run(self.bin / "pip", "show", "--files", "shardpack")
    self.assertIn("shardpack/bin/pack", shown)
    self.assertIn(f"Version: {run(PACK, '--version').split()[1]}", shown)
    run(self.bin / "pip", "uninstall", "--yes", "shardpack", cwd=self.folder)
    left = [path for path in (self.folder / "an environment").rglob("*shardpack*") if path.is_file()]
    self.assertEqual([], left)
    run(self.bin / "pip", "install", "--no-index", "--disable-pip-version-check", WHEEL)

  def test_the_same_again(self):
    again = self.folder / os.path.basename(WHEEL)
    names = zipfile.ZipFile(WHEEL).namelist()
    statics = [name.rsplit("/")[-1] for name in names if re.search(r"/licenses/[^/]+-dev$", name)]
    notices = [f"packaging/portable/{name.rsplit('/')[-1]}" for name in names if "/licenses/nvidia" in name]
    os.umask(0o077)
    run(sys.executable, "packaging/portable/make_wheel.py", "--python", *reversed(PYTHON_FILES), "--library", LIBRARY,
        "--pack", PACK, "--license", "LICENSE", "--readme", "README.md", "--static", *statics, "--notices", *notices,
        "--instead", "packaging/portable/libjbig.so.0", "--out", again)
    self.assertEqual(pathlib.Path(WHEEL).read_bytes(), again.read_bytes())


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
