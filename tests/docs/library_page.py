"""The programs of docs/library.md: each compiles without a warning, and prints what the page says below it.

LIBRARY, HEADERS and PACK name what is used (default: as Bazel's tests see them).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

PACK = os.path.abspath(os.environ.get("PACK", "cli/pack"))
LIBRARY = os.path.abspath(os.environ.get("LIBRARY", "api/libshardpack.so.0"))
HEADERS = os.path.abspath(os.environ.get("HEADERS", "api"))
PAGE = ROOT / "docs" / "library.md"
PROGRAM = re.compile(r"^```(c|cpp)\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


class LibraryPageTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    for name in ("libshardpack.so", "libshardpack.so.0"):
      (self.folder / name).symlink_to(LIBRARY)
    sample_images.write_class_folders(self.folder / "photos", ROOT / "testdata" / "images", count=100, classes=3, seed=4)
    self.environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "SHARDPACK_PACK": PACK}
    subprocess.run([PACK, "photos", "-o", "shards", "-q"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

  def compile(self, language, text):
    compiler, standard = ("cc", "c99") if language == "c" else ("c++", "c++20" if text.startswith("// C++20\n") else "c++17")
    source = self.folder / f"program.{language}"
    source.write_text(text)
    done = subprocess.run([compiler, f"-std={standard}", *WARNINGS, "-O1", f"-I{HEADERS}", source, f"-L{self.folder}", "-lshardpack",
                           "-o", self.folder / "program"], capture_output=True, text=True, check=False)
    self.assertEqual(0, done.returncode, done.stderr)

  def test_every_program(self):
    found = PROGRAM.findall(PAGE.read_text())
    self.assertEqual(PAGE.read_text().count("```c"), len(found))
    self.assertGreater(len(found), 8)
    for language, text, printed in found:
      with self.subTest(text=text):
        for name in ("packed", "written"):
          shutil.rmtree(self.folder / name, ignore_errors=True)
        self.compile(language, text)
        done = subprocess.run([self.folder / "program"], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(printed, done.stdout)


if __name__ == "__main__":
  unittest.main()
