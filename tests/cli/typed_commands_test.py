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
AT_THE_END = re.compile(r"(?m)(?:^next +|: |; )(\S*pack .*)$")
OF_A_HINT = re.compile(r"(?m)^  hint: run `(.*)`, which")


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

  def test_what_a_finding_says(self):
    for source in self.each_name():
      out = source + "-out"
      self.pack(source, "-o", out, "--shards", "3")
      (self.folder / out / "train-000001.tar").unlink()
      hint = self.only(OF_A_HINT, self.pack("validate", out, expect=4).stdout)
      self.assertIn("train-000001.tar", self.type(hint))
      self.pack("validate", out)

  def test_ranges_that_a_commit_lacks(self):
    for source in self.each_name():
      plan, out = source + ".plan", source + "-out"
      self.pack("plan", source, "--write", plan, "--shards", "4", "-q")
      self.pack("build", "--plan", plan, "-o", out, "--shards-range", "1-1", "-q")
      typed = OWN_LINE.findall(self.pack("commit", out, expect=7).stderr)
      self.assertEqual(2, len(typed))
      self.type(typed[0])
      self.assertIn("6 of 6 images", self.type(typed[1]))

  def test_a_finished_one_that_lost_a_shard(self):
    for source in self.each_name():
      out = source + "-out"
      self.pack(source, "-o", out, "--shards", "3")
      (self.folder / out / "train-000001.tar").unlink()
      typed = OWN_LINE.findall(self.pack(source, "-o", out, "--shards", "3", expect=4).stderr)
      self.type(typed[0])
      self.pack("validate", out)

  def test_the_program_is_named_as_it_was_called(self):
    self.source()
    (self.folder / "my tools").mkdir()
    (self.folder / "my tools/pack").symlink_to(command.PACK)
    environment = {key: value for key, value in os.environ.items() if key != "BUILD_WORKING_DIRECTORY"}
    def run(*words):
      return subprocess.run(["my tools/pack", *words], cwd=self.folder, env=environment, capture_output=True, text=True,
                            check=False)
    for said in (run("src", "-o", "out").stderr, run("extract", "out").stderr,
                 run("plan", "src", "--write", "plan").stderr):
      self.assertIn("'my tools/pack' ", said)
      self.assertNotRegex(said, r"(?m)^(  |next +)pack ")

  def test_of_a_dataset(self):
    for source in self.each_name():
      out = source + "-out"
      self.pack(source, "-o", out)
      typed = self.only(AT_THE_END, self.pack("cat", out, "nothing", expect=2).stderr).removesuffix(" lists them")
      self.assertEqual(6, len(self.type(typed).splitlines()))
      typed = self.only(OWN_LINE, self.pack("extract", out, expect=2).stderr)
      self.assertIn("extracted 6 files", self.type(typed))
      subprocess.run(["rm", "-rf", "again"], cwd=self.folder, check=True)

  # Names that begin with a dash.

  def last_line(self, text, begin):
    lines = [line.strip() for line in text.splitlines() if begin in line]
    self.assertTrue(lines, text)
    return lines[-1][lines[-1].index(command.PACK):]

  def test_an_output_folder_that_begins_with_a_dash(self):
    self.source(count=6)
    self.pack("plan", "src", "--shards", "2", "--write", "plan")
    done = self.pack("build", "--plan", "plan", "-o", "-x", "--shards-range", "0-1")
    self.assertIn("commit ./-x", done.stderr)
    self.type(self.last_line(done.stderr, "commit"))
    self.type(self.last_line(self.pack("src", "-o", "-y").stderr, "validate"))

  def test_flags_go_before_the_end_of_flags(self):
    self.source(count=6)
    self.write("src/cat/bad.jpg")
    self.pack("plan", "src", "--shards", "1", "--write", "plan")
    self.pack("build", "--plan", "plan", "-o", "-x", "--shards-range", "0-0")
    refused = self.pack("commit", "--", "-x", expect=4).stderr
    self.type(self.last_line(refused, "--max-skip"), expect=3)

  def test_a_source_that_begins_with_a_dash(self):
    self.source(name="-src", count=6)
    self.type(self.last_line(self.pack("--", "-src", expect=2).stderr, " -o "))
    planned = self.pack("plan", "--write", "plan", "--", "-src").stderr
    for line in [line.strip() for line in planned.splitlines() if "build --plan" in line]:
      self.type(line)
    self.type(self.last_line(planned, "commit"))


if __name__ == "__main__":
  command.main()
