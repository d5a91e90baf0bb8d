"""Every command that the program prints for its user to type is typed here, as it stands, into a shell.

The folders have names that a shell would take apart or a terminal could not show.
"""

import os
import re
import resource
import shutil
import subprocess

import command
from command import jpeg

NAMES = ("two words", "it's", 'a "quoted" фото', "$(touch hit) `touch hit`", "back\\slash", "tab\tand\nline", "caf\udce9", "~;*&#!")
# A line of its own, indented; or the end of a line.
OWN_LINE = re.compile(r"(?m)^  (\S*pack .*)$")
AT_THE_END = re.compile(r"(?m)(?:^next +|: |; )(pack .*)$")


class TypedCommands(command.PackTest):

  def setUp(self):
    super().setUp()
    self.bin = self.folder / ".bin"
    self.bin.mkdir()
    (self.bin / "pack").symlink_to(command.PACK)

  def type(self, typed, expect=0):
    """What bash and dash make of it; `typed` as the program has printed it."""
    environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.folder / "home")}
    environment.pop("BUILD_WORKING_DIRECTORY", None)
    done = subprocess.run(["bash", "-c", typed], cwd=self.folder, env=environment, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL)
    shown = (done.stdout + done.stderr).decode(errors="surrogateescape")
    self.assertEqual(expect, done.returncode, f"{typed!r}\n{shown}")
    self.assertFalse((self.folder / "hit").exists(), typed)
    return shown

  def only(self, pattern, text):
    found = pattern.findall(text)
    self.assertEqual(1, len(found), text)
    return found[0]

  def each_name(self):
    for number, name in enumerate(NAMES):
      path = f"{number}/{name}"
      for i in range(6):
        self.write(f"{path}/{'cat' if i % 2 else 'dog'}/{i}.jpg", jpeg(i))
      yield path

  def test_without_an_output_folder(self):
    for source in self.each_name():
      typed = self.only(OWN_LINE, self.pack(source, expect=2).stderr)
      self.assertIn("6 of 6 images", self.type(typed))
      self.assertIn("6 of 6 images", self.type(typed))  # and again

  def test_next_after_a_build_and_an_index(self):
    for source in self.each_name():
      out = source + "-out"
      self.assertIn("0 errors", self.type(self.only(AT_THE_END, self.pack(source, "-o", out).stderr)))
      self.assertIn("6 of 6 images", self.pack(source, "-o", out, "--overwrite").stderr)  # what a finished build offers
      for path in [*(self.folder / out).glob("*.pidx"), self.folder / out / "manifest.json"]:
        path.unlink()
      self.assertIn("0 errors", self.type(self.only(AT_THE_END, self.pack("index", out).stderr)))

  def test_workers_and_the_one_that_publishes(self):
    for source in self.each_name():
      for words in (["--shards", "3"], ["--shards", "1"], ["--shards", "3", "-o", source + "-out"]):
        plan = source + ".plan"
        said = self.pack("plan", source, "--write", plan, *words).stderr
        typed = OWN_LINE.findall(said)
        self.assertEqual([2, 3][words[1] == "3"], len(typed), said)
        for worker in typed[:-1]:
          self.assertEqual(typed[-1], self.only(AT_THE_END, self.type(worker)))
        self.assertIn("6 of 6 images", self.type(typed[-1]))
        (self.folder / plan).unlink()
        # The next plan is another one, and the OUT that is offered the same.
        for out in [path for path in self.folder.iterdir() if path.name.endswith("shards")]:
          shutil.rmtree(out)

  def test_after_an_error_of_the_disk(self):
    for source in self.each_name():
      words = (source, "-o", source + "-out", "--shards", "2")
      failed = self.pack(*words, expect=6, limits=[(resource.RLIMIT_FSIZE, 2000)])
      self.assertIn("6 of 6 images", self.type(self.only(OWN_LINE, failed.stderr)))

  def test_an_output_named_like_a_file(self):
    for source in self.each_name():
      for ending in (".tar", ".tfrecord", ".h5"):
        refused = self.pack(source, "-o", source + "-out" + ending, expect=2)
        rest = re.search(r"(?m)^  (-o .*)$", refused.stderr).group(1)
        self.type(self.only(OWN_LINE, self.pack(source, expect=2).stderr).split(" -o ")[0] + " " + rest)
        self.assertTrue((self.folder / (source + "-out") / "manifest.json").exists())
        subprocess.run(["rm", "-rf", source + "-out"], cwd=self.folder, check=True)

  def test_of_a_dataset(self):
    for source in self.each_name():
      out = source + "-out"
      self.pack(source, "-o", out)
      typed = self.only(AT_THE_END, self.pack("cat", out, "nothing", expect=2).stderr).removesuffix(" lists them")
      self.assertEqual(6, len(self.type(typed).splitlines()))
      typed = self.only(OWN_LINE, self.pack("extract", out, expect=2).stderr)
      self.assertIn("extracted 6 files", self.type(typed))
      subprocess.run(["rm", "-rf", "again"], cwd=self.folder, check=True)


if __name__ == "__main__":
  command.main()
