"""Builds of a plan that was given: what the source must still be, and the way on where it is not."""

import json
import os
import shutil
import subprocess

import command
import workers


class GivenPlanTest(workers.WorkersTest):
  """A plan does not change with its source: what leads on where its inputs are not as planned."""

  def setUp(self):
    super().setUp()
    self.source(count=24)
    for path in (self.folder / "src").rglob("*.jpg"):
      os.utime(path, (10**9, 10**9))
    self.plan("plan", "--samples-per-shard", "4")
    self.pack("build", "--plan", "plan", "-o", "want", "-q")
    self.want = self.contents("want")

  def plan(self, name, *words, **options):
    return self.pack("plan", "src", *words, "--write", name, **options)

  def assert_no_dead_end(self, text):
    self.assertIn("make a new plan with pack plan, and build it in another folder", text)
    self.assertNotIn("--overwrite", text)

  def test_a_finished_dataset_whose_source_has_other_times(self):
    os.utime(self.folder / "src/dog/good-0001.jpg", (1, 1))
    self.assert_no_dead_end(self.pack("build", "--plan", "plan", "-o", "want", expect=5).stderr)
    self.assertEqual(self.want, self.contents("want"))

  def test_shards_that_were_built_before_their_files_were_changed(self):
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5", "-q")
    path = self.folder / "src/dog/good-0001.jpg"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    for words in (("--shards-range", "0-5"), ()):
      refused = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=5).stderr
      self.assertIn("dog/good-0001.jpg", refused)
      self.assert_no_dead_end(refused)
    self.assertEqual(0, self.typed(refused).returncode)  # the commit
    self.assertEqual(self.want, self.contents("out"))

  def test_a_worker_that_comes_to_a_dataset_with_skips(self):
    (self.folder / "src/dog/good-0001.jpg").unlink()
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5", "-q")
    self.pack("commit", "out", "--max-skip", "10%", "-q", expect=3)
    done = self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0", expect=None)
    self.assertNotIn("--max-skip", done.stderr)
    refused = self.pack("commit", "out", expect=4).stderr
    self.assertEqual(3, self.typed(refused).returncode, refused)

  def test_a_finished_dataset_whose_inputs_were_not_as_planned(self):
    path = self.folder / "src/dog/good-0001.jpg"
    data = path.read_bytes()

    def of_the_size():
      path.write_bytes(bytes([data[0]]) + data[:0:-1])
    for lose in (path.unlink, lambda: path.write_bytes(data + b"more"), of_the_size):
      for workers in (True, False):
        with self.subTest(lose, workers=workers):
          shutil.rmtree(self.folder / "out", ignore_errors=True)
          path.write_bytes(data)
          os.utime(path, (10**9, 10**9))
          lose()
          build = ["build", "--plan", "plan", "-o", "out"]
          if workers:
            self.pack(*build, "--shards-range", "0-5", "-q")
            self.pack("commit", "out", "--max-skip", "10%", "-q", expect=3)
          else:
            self.pack(*build, "--max-skip", "10%", "-q", expect=3)
          before = self.contents("out")
          for code, words in ((3, [*build, "--max-skip", "10%"]), (0, [*build, "--shards-range", "0-5"]),
                              (3, ["commit", "out", "--max-skip", "10%"])):
            self.assertIn("nothing to do", self.pack(*words, expect=code).stderr)
          self.typed(self.pack(*build, expect=4).stderr)
          self.assertEqual(before, self.contents("out"))
          os.utime(self.folder / "src/cat/good-0000.jpg")
          self.assertIn("cat/good-0000.jpg", self.pack(*build, "--max-skip", "10%", expect=5).stderr)
          os.utime(self.folder / "src/cat/good-0000.jpg", (10**9, 10**9))

  def test_a_bad_file_that_was_fixed_after_it_was_skipped(self):
    path = self.write("src/dog/bad.jpg", b"no image")
    self.plan("bad", "--samples-per-shard", "4")
    build = ["build", "--plan", "bad", "-o", "out", "--max-skip", "10%"]
    self.pack(*build, "-q", expect=3)
    self.assertIn("nothing to do", self.pack(*build, expect=3).stderr)
    path.write_bytes(command.jpeg(90))
    self.assertIn("dog/bad.jpg has ", self.pack(*build, expect=5).stderr)

  def test_a_plan_that_workers_could_not_build(self):
    shutil.make_archive(self.folder / "src", "tar", self.folder / "src")
    self.assertIn("cannot be shared", self.pack("plan", "src.tar", "--write", "p", expect=2).stderr)
    self.assertFalse((self.folder / "p").exists())

  def away(self, *names):
    for name in names:
      (self.folder / "away" / name).parent.mkdir(parents=True, exist_ok=True)
      (self.folder / "src" / name).rename(self.folder / "away" / name)

  def back(self):
    for path in (self.folder / "away").rglob("*.jpg"):
      path.rename(self.folder / "src" / path.relative_to(self.folder / "away"))

  def test_a_worker_with_an_empty_mount(self):
    (self.folder / "empty").mkdir()
    build = ["build", "empty", "--plan", "plan", "-o", "out", "-q", "--shards-range"]
    refused = self.pack(*build, "0-1", expect=5).stderr
    self.assertIn("all 8 files of these shards are missing in empty", refused)
    self.assertIn("a new plan with pack plan, and build it in another folder", refused)
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "2-5", "-q")
    # With one file of them it may be a source from which files were removed.
    first = json.loads(self.pack("ls", "want", "--json").stdout.splitlines()[0])["path"]
    (self.folder / "empty" / first).parent.mkdir()
    shutil.copy2(self.folder / "src" / first, self.folder / "empty" / first)
    self.pack(*build, "0-1")
    refused = self.pack("commit", "out", expect=4).stderr
    self.assertIn("every sample of shard train-000001.tar was bad", refused)
    self.assertIn("--shards 0-1\n", refused)
    self.assertNotIn("--max-skip", refused)
    self.assert_no_dead_end(refused)
    self.assertEqual(0, self.typed(refused).returncode)
    self.assertEqual(self.want, self.contents("out"))

  def test_a_run_with_an_empty_mount(self):
    (self.folder / "empty").mkdir()
    refused = self.pack("build", "empty", "--plan", "plan", "-o", "out", expect=5).stderr
    self.assertIn("all 24 files of these shards are missing in empty", refused)
    self.assertEqual([], list((self.folder / "out").glob("train*")))
    self.pack("build", "--plan", "plan", "-o", "out", "-q")
    self.assertEqual(self.want, self.contents("out"))

  def test_a_class_that_is_gone(self):
    self.plan("sorted", "--shards", "12", "--no-shuffle")
    (self.folder / "src/cat").rename(self.folder / "cat")
    refused = self.pack("build", "--plan", "sorted", "-o", "out", expect=4).stderr
    self.assertNotIn("--max-skip", refused)
    self.assert_no_dead_end(refused)
    (self.folder / "cat").rename(self.folder / "src/cat")
    self.assertEqual(0, self.typed(refused).returncode)

  def test_inputs_that_are_gone_for_a_while(self):
    for words in (["--shards-range", "0-5"], []):
      self.away("cat/good-0000.jpg")
      done = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=0 if words else 4)
      refused = self.pack("commit", "out", expect=4).stderr if words else done.stderr
      self.assertIn("--max-skip 5%", refused)
      self.assertIn("--shards ", refused)
      self.assert_no_dead_end(refused)
      self.back()
      self.assertEqual(0, self.typed(refused).returncode, refused)
      self.assertEqual(self.want, self.contents("out"))
      shutil.rmtree(self.folder / "out")

  def test_inputs_that_are_something_else_for_a_while(self):
    path, aside = self.folder / "src/cat/good-0000.jpg", self.folder / "aside.jpg"
    other = self.write("elsewhere/1.jpg", command.jpeg(500))
    stand_ins = {"not-regular": path.mkdir, "dangling": lambda: path.symlink_to("nothing"),
                 "outside-root": lambda: path.symlink_to(other), "symlink-loop": lambda: path.symlink_to(path.name)}
    for reason, stand_in in stand_ins.items():
      for words in (["--shards-range", "0-5"], []):
        with self.subTest(reason=reason, words=words):
          path.rename(aside)
          stand_in()
          done = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=0 if words else 4)
          refused = self.pack("commit", "out", expect=4).stderr if words else done.stderr
          self.assertIn(f"cat/good-0000.jpg: {reason}", refused)
          self.assertIn("--shards ", refused)
          self.assert_no_dead_end(refused)
          if reason == "outside-root":
            self.assertIn("the plan decides these, give them to pack plan --write: outside-root: --follow", refused)
          path.unlink() if path.is_symlink() else path.rmdir()
          aside.rename(path)
          done = self.typed(refused)
          self.assertEqual(0, done.returncode, done.stderr)
          self.assertEqual(self.want, self.contents("out"))
        shutil.rmtree(self.folder / "out", ignore_errors=True)

  def test_a_damaged_plan_file_is_named(self):
    whole = (self.folder / "plan").read_bytes()
    for data, why in ((whole[:99] + bytes([whole[99] ^ 1]) + whole[100:], "does not match its own hash"), (b"{}", "not a plan file")):
      self.write("a plan", data)
      refused = self.pack("build", "--plan", "a plan", "-o", "out", expect=4).stderr
      self.assertIn("--plan a plan: ", refused)
      self.assertIn(why, refused)
      self.assertFalse((self.folder / "out").exists())

  def test_inputs_that_are_gone_for_good(self):
    self.away("cat/good-0000.jpg")
    refused = self.pack("build", "--plan", "plan", "-o", "out", expect=4).stderr
    commands = self.commands(refused)
    done = subprocess.run(["sh", "-c", commands[-1]], cwd=self.folder, capture_output=True, check=False)
    self.assertEqual(3, done.returncode, done.stderr)

  def test_in_place_of_a_dataset(self):
    shutil.copytree(self.folder / "want", self.folder / "out")
    self.plan("other", "--samples-per-shard", "6")
    self.away("cat/good-0000.jpg")
    refused = self.pack("build", "--plan", "other", "-o", "out", "--overwrite", expect=4).stderr
    self.assertIn("built again by the same command", refused)
    self.back()
    self.pack("build", "--plan", "other", "-o", "out", "--overwrite")

  def test_a_folder_that_could_not_be_listed(self):
    self.write("src/hidden/one.jpg", command.jpeg(78))
    (self.folder / "src/hidden").chmod(0)
    for words in ([], ["-q"]):
      done = self.plan(f"partial{len(words)}", "--samples-per-shard", "4", *words, unprivileged=True)
      self.assertIn("warning: hidden: the folder cannot be listed", done.stderr.replace("\n", " "))
    notes = json.loads(self.pack("plan", "src", "--json", unprivileged=True).stdout)["notes"]
    self.assertTrue(any("hidden: the folder cannot be listed" in note for note in notes), notes)
    (self.folder / "src/hidden").chmod(0o755)
    refused = self.pack("build", "--plan", "partial0", "-o", "out", expect=4).stderr
    self.assert_no_dead_end(refused)
    self.assertEqual(3, self.typed(refused).returncode)

  def test_a_file_that_was_empty_when_it_was_planned(self):
    late = self.write("src/cat/late.jpg", b"")
    self.plan("early")
    late.write_bytes(command.jpeg(99))
    bytes_now = late.stat().st_size
    for words in (["--strict"], ["--max-skip", "50%"]):
      done = self.pack("build", "--plan", "early", "-o", "out", *words, expect=4 if words[0] == "--strict" else 3)
      self.assertRegex(done.stderr, rf"cat/late.jpg: changed.*listed with 0 bytes, now {bytes_now}")
      if words[0] == "--strict":
        self.assert_no_dead_end(done.stderr)

  def test_a_copy_without_times(self):
    shutil.copytree(self.folder / "src", self.folder / "copy", copy_function=shutil.copyfile)
    for words in (["--shards-range", "2-3"], []):
      refused = self.pack("build", "copy", "--plan", "plan", "-o", "out", *words, expect=5).stderr
      self.assertIn(f"all {8 if words else 24} files of these shards in copy have the sizes, but not the times", refused)
      self.assertIn("cp -a", refused)
      self.assertEqual([], list((self.folder / "out").glob("train*")))
      self.assertEqual([], [path for path in (self.folder / "out/.pack/stage").iterdir()])
    subprocess.run(["cp", "-a", "src/.", "copy"], cwd=self.folder, check=True)
    self.pack("build", "copy", "--plan", "plan", "-o", "out", "-q")

  def test_files_that_were_written_again_are_no_copy(self):
    for name in ("cat/good-0000.jpg", "dog/good-0001.jpg"):
      os.utime(self.folder / "src" / name)
    self.pack("build", "--plan", "plan", "-o", "out", "--max-skip", "50%", expect=3)
    self.assertEqual({"cat/good-0000.jpg": "changed", "dog/good-0001.jpg": "changed"}, self.skips())

  def test_flags_that_a_worker_cannot_keep(self):
    for words in (["--expect", "xxh3:" + 32 * "0"], ["--strict"], ["--max-skip", "2%"]):
      refused = self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-1", *words, expect=2).stderr
      self.assertIn("give it to pack commit", refused)
    self.assertFalse((self.folder / "out").exists())

  def test_a_share_that_was_given_before(self):
    self.away("cat/good-0000.jpg")
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5")
    for words in (["--max-skip", "0"], ["--max-skip=1%"], ["--strict"]):
      refused = self.pack("commit", *words, "out", "-q", expect=4).stderr
      self.assertRegex(refused, r"commit out -q --max-skip 5%")

  def test_all_that_pack_noted_is_lost(self):
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5", "-q")
    shutil.rmtree(self.folder / "out/.pack")
    for words in (["commit", "out"], ["build", "--plan", "plan", "-o", "out"],
                  ["build", "--plan", "plan", "-o", "out", "--overwrite"]):
      self.assertIn("remove the folder by hand and build again", self.pack(*words, expect=4).stderr)


if __name__ == "__main__":
  command.main()
