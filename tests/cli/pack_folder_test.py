"""What pack has not put into `.pack` stays there, whatever is run, and is named where it is in the way."""

import json
import os
import pathlib
import shutil

import command

RUN = "elsewhere-00000000-1-00000000"  # of another machine
THEIRS = {
    "stage/notes/thesis.txt": b"precious", "stage/mine": b"precious", "stage/build/thesis.txt": b"precious",
    "journal-pretty.jsonl": b'{\n  "notes": 1\n}\n',
    "stage/caf\u00e9": b"precious", f"stage/{RUN}/thesis.txt": b"precious", "stage/node.lock": b"",
    f"stage/{RUN}.lock": b"precious", "journal-notes.jsonl": b"precious", "lock": b"precious",
    "journal-backup.jsonl": b'\n{"facts":[1,', "journal-node-00000000-3-00000000.jsonl": b"precious",
}
# What a killed run leaves beside them.
LEFT = {f"stage/{RUN}/train-000000.tar": b"half", f"stage/{RUN}/of-the-run": b"half",
        f"stage/{RUN}/plan-of-the-run": b"half",
        f"stage/{RUN}/train-000000.tar.values": b"half", f"stage/{RUN}/train-000001.tar.spool": b"half",
        f"stage/{RUN}/rebuilt.part": b"half", f"stage/{RUN}/0.pidx.new": b"half",
        "stage/node-00000000-2-00000000.lock": b"", "stage/node-00000000-2-00000000/train-000001.pidx": b"half",
        "journal-node-00000000-2-00000000.jsonl": b'\n{"facts":[1,'}


class PackFolderTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source()
    self.pack("plan", "src", "--shards", "4", "--write", "plan")

  def put(self, out="out", journals=True):
    for name, data in {**THEIRS, **LEFT}.items():
      if journals or name not in LEFT or not name.startswith("journal"):
        self.write(f"{out}/.pack/{name}", data)

  def assert_kept(self, out="out"):
    top = self.folder / out / ".pack"
    left = {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}
    self.assertEqual(THEIRS, left)

  def assert_named(self, text):
    first = sorted(".pack/" + name for name in THEIRS)[:3]
    for name in first:
      self.assertIn(os.path.dirname(name) if "notes/" in name else name, text)

  def built(self):
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-3", "-q")
    self.put()
    return self.contents()

  def test_notes_of_a_user_with_a_name_of_pack(self):
    notes = b"Training notes: lr 0.1\n"
    for name in ("plan", "made", "made-extras", "replaced", "replaces"):
      shutil.rmtree(self.folder / "out", ignore_errors=True)
      self.pack("build", "--plan", "plan", "-o", "out", "-q")
      self.write(f"out/.pack/{name}", notes)
      self.pack("commit", "out", expect=None)
      self.pack("build", "--plan", "plan", "-o", "out", expect=None)
      (self.folder / "out/train-000000.tar").unlink()
      self.pack("repair", "out", expect=None)
      self.pack("src", "-o", "out", "--shards", "5", "--overwrite", expect=None)
      self.assertEqual(notes, (self.folder / f"out/.pack/{name}").read_bytes(), name)

  def test_a_note_of_one_word(self):
    self.pack("src", "-o", "out", "--shards", "4")
    for name in ("replaced", "replaced-by", "replaces"):
      self.write(f"out/.pack/{name}", b"thesis\n")
      for words in (["src", "-o", "out", "--shards", "4"], ["commit", "out"], ["repair", "out"]):
        self.pack(*words)
        self.assertEqual(b"thesis\n", (self.folder / f"out/.pack/{name}").read_bytes(), words)
      self.assertIn(name, self.pack("src", "-o", "out", "--shards", "5", "--overwrite", expect=5).stderr)
      self.assertEqual(b"thesis\n", (self.folder / f"out/.pack/{name}").read_bytes())
      (self.folder / f"out/.pack/{name}").unlink()

  def test_notes_of_a_user_in_a_build_that_goes_on(self):
    notes = b"Training notes: lr 0.1\n"
    for name in ("plan", "made"):
      self.begin()
      note = self.folder / f"out/.pack/{name}"
      note.write_bytes(notes)
      for words in (["--shards-range", "2-3"], []):
        refused = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=5).stderr
        self.assertIn(f"out/.pack/{name} was not made by pack", refused)
        self.assertIn("move it away", refused)
        self.assertEqual(notes, note.read_bytes())
      note.unlink()
      self.pack("build", "--plan", "plan", "-o", "out", "-q")
      self.pack("validate", "out")

  def test_a_file_of_a_user_with_the_name_of_a_shard(self):
    for name in ("train-000002.tar", "train-000002.pidx"):
      shutil.rmtree(self.folder / "out", ignore_errors=True)
      self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-1", "-q")
      self.write(f"out/{name}", b"precious")
      for words in (("--shards-range", "2-3"), ()):
        refused = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=5).stderr
        self.assertIn(name, refused)
        self.assertIn("move it away", refused)
        self.assertEqual(b"precious", (self.folder / "out" / name).read_bytes())
      (self.folder / "out" / name).unlink()
      self.pack("build", "--plan", "plan", "-o", "out", "-q")
      self.pack("validate", "out")

  def test_a_shard_that_a_killed_run_has_not_noted(self):
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-3", "-q")
    for journal in (self.folder / "out/.pack").glob("journal*"):
      lines = journal.read_bytes().splitlines(keepends=True)
      journal.write_bytes(b"".join(lines[:-2]))
    self.pack("build", "--plan", "plan", "-o", "out", "-q")
    self.pack("validate", "out")

  def begin(self, shards="0-1"):
    shutil.rmtree(self.folder / "out", ignore_errors=True)
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", shards, "-q")

  def published_but_not_journalled(self):
    """As a run leaves a shard that was killed between the two steps: its last line but one says what it was about to do."""
    self.begin()
    journal, = (self.folder / "out/.pack").glob("journal*")
    lines = journal.read_text().splitlines(keepends=True)
    last = [n for n, line in enumerate(lines) if line.strip() and not json.loads(line).get("pending")][-1]
    shard = json.loads(lines.pop(last))["file"]["name"]
    journal.write_text("".join(lines))
    return shard

  def test_overwrite_of_an_unfinished_build_removes_what_that_has_made(self):
    for words in (["build", "--plan", "plan"], ["build", "src", "--shards", "3"]):
      for begin in (self.begin, self.published_but_not_journalled):
        with self.subTest(words, begin=begin.__name__):
          begin()
          self.pack(*words, "-o", "out", "--overwrite", "-q")
          self.pack("validate", "out")
          self.assertFalse((self.folder / "out.pack-new").exists())

  def test_overwrite_of_an_unfinished_build_keeps_a_file_of_a_user(self):
    for words in (["build", "--plan", "plan"], ["build", "src", "--shards", "3"]):
      for name in ("train-000003.tar", "train-000002.pidx", "manifest.json"):
        with self.subTest(words, name=name):
          self.begin()
          self.write(f"out/{name}", b"precious")
          before = self.contents()
          refused = self.pack(*words, "-o", "out", "--overwrite", expect=4 if name == "manifest.json" else 5).stderr
          self.assertIn(name, refused)
          if name == "manifest.json":
            for text in (refused, self.pack("commit", "out", expect=4).stderr, self.pack(*words, "-o", "out", expect=4).stderr):
              self.assertIn("The build there has not finished; move that file away and run again", text)
          self.assertEqual(before, {name: data for name, data in self.contents().items() if name != ".pack/lock"})
          (self.folder / "out" / name).unlink()
          self.pack(*words, "-o", "out", "--overwrite", "-q")
          self.pack("validate", "out")

  def test_overwrite_keeps_a_file_in_the_place_of_a_shard_that_was_about_to_be_published(self):
    shard = self.published_but_not_journalled()
    self.write(f"out/{shard}", b"precious")
    for words in (["--overwrite"], []):
      self.assertIn(shard, self.pack("build", "--plan", "plan", "-o", "out", *words, expect=5).stderr)
      self.assertEqual(b"precious", (self.folder / "out" / shard).read_bytes())

  def test_what_overwrite_has_begun_beside_keeps_a_file_of_a_user(self):
    never = ["--expect", "xxh3:" + "0" * 32, "-q"]
    for words in (["--seed", "4"], ["--seed", "3"]):  # another plan starts the folder again
      shutil.rmtree(self.folder / "out", ignore_errors=True)
      shutil.rmtree(self.folder / "out.pack-new", ignore_errors=True)
      self.pack("src", "-o", "out", "--shards", "2", "-q")
      self.pack("src", "-o", "out", "--shards", "4", "--seed", "3", "--overwrite", *never, expect=4)
      beside = self.folder / "out.pack-new"
      for journal in (beside / ".pack").glob("journal*"):
        journal.write_bytes(b"")
      for path in beside.glob("train-*"):
        path.unlink()
      self.write("out.pack-new/train-000001.tar", b"precious")
      refused = self.pack("src", "-o", "out", "--shards", "4", *words, "--overwrite", expect=5).stderr
      self.assertIn("train-000001.tar", refused)
      self.assertEqual(b"precious", (beside / "train-000001.tar").read_bytes())

  def test_a_copy_of_a_journal_is_the_users(self):
    self.begin("0-3")
    journal, = (self.folder / "out/.pack").glob("journal*")
    shutil.copy(journal, self.folder / "out/.pack/journal-backup.jsonl")
    copied = journal.read_bytes()
    for words in (["commit", "out"], ["build", "--plan", "plan", "-o", "out"], ["build", "--plan", "plan", "-o", "out", "--overwrite"]):
      self.assertIn("journal-backup.jsonl", self.pack(*words, expect=5).stderr)
    self.assertEqual(copied, (self.folder / "out/.pack/journal-backup.jsonl").read_bytes())
    (self.folder / "out/.pack/journal-backup.jsonl").unlink()
    self.pack("build", "--plan", "plan", "-o", "out", "-q")
    self.write("out/.pack/journal-backup.jsonl", copied)
    for words in (["commit", "out"], ["build", "--plan", "plan", "-o", "out"], ["repair", "out"]):
      self.pack(*words)
      self.assertEqual(copied, (self.folder / "out/.pack/journal-backup.jsonl").read_bytes())

  def test_a_commit_names_them(self):
    before = self.built()
    self.assert_named(self.pack("commit", "out", expect=5).stderr)
    self.assertEqual(before, {name: data for name, data in self.contents().items() if name in before})
    for name in THEIRS:
      (self.folder / "out/.pack" / name).unlink()
    shutil.rmtree(self.folder / "out/.pack/stage/notes")
    self.pack("commit", "out")
    self.assertFalse((self.folder / "out/.pack").exists())

  def test_a_build_that_ends_names_them(self):
    before = self.built()
    self.assert_named(self.pack("build", "--plan", "plan", "-o", "out", expect=5).stderr)
    self.assert_named(self.pack("build", "--plan", "plan", "-o", "out", "--overwrite", expect=5).stderr)
    after = self.contents()
    for name in before:
      if name.startswith(".pack") and name[len(".pack/"):] in THEIRS:
        self.assertEqual(before[name], after.get(name), name)

  def test_a_dataset_that_is_whole(self):
    self.pack("src", "-o", "out", "--shards", "4")
    for words in (["src", "-o", "out", "--shards", "4"], ["commit", "out"], ["repair", "out"],
                  ["build", "--plan", "plan", "-o", "out"]):
      self.put()
      self.pack(*words)
      self.assert_kept()
    self.put()
    before = self.contents()
    self.assert_named(self.pack("src", "-o", "out", "--seed", "3", "--overwrite", expect=5).stderr)
    self.assertEqual(before, self.contents())

  def test_a_repair(self):
    self.pack("src", "-o", "out", "--shards", "4")
    want = self.contents()
    for lost in (["train-000000.tar"], ["train-000001.tar", "train-000001.pidx"], ["manifest.json"]):
      for name in lost:
        (self.folder / "out" / name).unlink()
      self.put(journals=False)
      if lost == ["manifest.json"]:
        self.pack("src", "-o", "copy", "--shards", "4")
        self.pack("repair", "out", "--from", "copy")
      else:
        self.pack("repair", "out")
      self.assert_kept()
      self.assertEqual(want, {name: data for name, data in self.contents().items() if not name.startswith(".pack")})

  def test_an_index(self):
    self.pack("src", "-o", "made", "--shards", "2")
    (self.folder / "in").mkdir()
    for shard in (self.folder / "made").glob("*.tar"):
      shutil.copy(shard, self.folder / "in")
    for flags in ([], [], ["--overwrite"]):
      self.put("in", journals=False)
      for name in ("0.pidx", "manifest.json.new"):
        self.write(f"in/.pack/stage/{name}", b"half")
      self.pack("index", "in", *flags)
      self.assert_kept("in")

  def test_what_is_in_the_way_of_a_build_is_named(self):
    self.pack("src", "-o", "out", "--shards", "4")
    for name, data, said in (("index", b"train-000000.pidx\n", "index is not what pack index notes there"),
                             ("index", b"shardpack index run, version 1\n", "index is of a run of pack index")):
      self.write(f"out/.pack/{name}", data)
      before = self.contents()
      for words in (["src", "-o", "out", "--shards", "4"], ["src", "-o", "out", "--seed", "3", "--overwrite"], ["repair", "out"]):
        refused = self.pack(*words, expect=5).stderr
        self.assertIn(f"out/.pack/{said}", refused)
        self.assertIn("move it away and run again", refused)
        self.assertEqual(before, self.contents())

  def test_links_and_folders_in_place_of_files_of_pack(self):
    self.pack("src", "-o", "done", "--shards", "4")
    self.write("mine", b"train-000000.tar\n")
    commands = {"out": (["index", "done/train-000000.tar", "-o", "out"], ["src", "-o", "out"], ["src", "-o", "out", "--overwrite"]),
                "done": (["src", "-o", "done"], ["src", "-o", "done", "--seed", "3", "--overwrite"], ["repair", "done"])}
    for name in ("plan", "made", "made-extras", "replaced", "replaced-by", "replaces", "lock"):
      for folder in (False, True):
        for out, each in commands.items():
          path = self.folder / out / ".pack" / name
          path.parent.mkdir(parents=True)
          path.mkdir() if folder else path.symlink_to(self.folder / "mine")
          for words in each:
            with self.subTest(name, folder=folder, words=words):
              self.assertIn(f"{out}/.pack/{name} is a link or a folder", self.pack(*words, expect=5).stderr)
              self.assertTrue(path.is_dir() if folder else path.is_symlink())
          shutil.rmtree(path) if folder else path.unlink()
          shutil.rmtree(path.parent)
    self.assertEqual(b"train-000000.tar\n", (self.folder / "mine").read_bytes())

  def test_a_run_does_not_write_to_a_journal_of_somebody_else(self):
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-1", "-q")
    self.write("out/.pack/journal.jsonl", b'{"mine": 1}\n')
    refused = self.pack("build", "--plan", "plan", "-o", "out", expect=5).stderr
    self.assertIn("out/.pack/journal.jsonl is not a journal of pack; move it away", refused)
    self.assertEqual(b'{"mine": 1}\n', pathlib.Path(self.folder / "out/.pack/journal.jsonl").read_bytes())

  def test_a_run_does_not_write_through_a_link(self):
    self.begin()
    self.write("mine")
    (self.folder / "out/.pack/journal.jsonl").symlink_to(self.folder / "mine")
    refused = self.pack("build", "--plan", "plan", "-o", "out", expect=5).stderr
    self.assertIn("out/.pack/journal.jsonl is not a journal of pack; move it away", refused)
    self.assertEqual(b"", (self.folder / "mine").read_bytes())

  def test_a_journal_of_somebody_else_in_a_damaged_dataset(self):
    self.pack("src", "-o", "out", "--shards", "4")
    want = self.contents()
    self.write("out/.pack/journal.jsonl", b"bar\n")
    (self.folder / "out/train-000002.tar").unlink()
    self.assertIn("repair out", self.pack("src", "-o", "out", "--shards", "4", expect=4).stderr)
    self.assertIn("out/.pack/journal.jsonl is not a journal of pack; move it away", self.pack("repair", "out", expect=5).stderr)
    os.rename(self.folder / "out/.pack/journal.jsonl", self.folder / "moved")
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())


if __name__ == "__main__":
  command.main()
