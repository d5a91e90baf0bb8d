"""A source that several processes list: the plan that is made of their lists is the one that a single process makes, byte for
byte, whatever lies in the source, and whoever is killed.
"""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import cluster
import command


class ListTest(cluster.ClusterTest):
  shards, samples = 4, 10

  def lists(self, *words, expect=0, **options):
    return self.pack("list", "src", "--write", "lists", *words, expect=expect, **options)

  def typed(self, said):
    """Runs the command that was printed."""
    typed = re.search(r"^  (\S*pack list .*)$", said, re.MULTILINE)[1]
    subprocess.run(["sh", "-c", typed], cwd=self.folder, check=True, stderr=subprocess.DEVNULL)

  def listing(self, *words, **options):
    """What a plan of the source is, and what is said of it."""
    (self.folder / "planned").unlink(missing_ok=True)
    said = self.pack("plan", *words, "--write", "planned", "--samples-per-shard", "7", **options).stderr
    kept = [line for line in said.splitlines() if line.startswith(("pack: warning", "note:"))]
    return (self.folder / "planned").read_bytes(), kept

  def odd_source(self):
    """Everything that a walk has something to say of."""
    for number in range(20):
      self.write(f"src/deep/{number % 3}/{number % 5}/image-{number}.jpg", command.jpeg(number))
      self.write(f"src/deep/{number % 3}/{number % 5}/image-{number}.txt", b"a caption")
    self.write("src/cat/empty.jpg")
    self.write("src/cat/._hidden.jpg", b"x")
    self.write("src/cat/notes.doc", b"x")
    self.write("src/cat/UPPER.TXT", b"x")
    self.write("src/.git/config.jpg", b"x")
    self.write("src/deep/1/.cache/thumb.jpg", b"x")
    self.write("src/a\nb\xe9/one.jpg", command.jpeg(77))
    (self.folder / "src/void/below").mkdir(parents=True)
    os.symlink("../deep/1", self.folder / "src/cat/link")
    os.symlink("..", self.folder / "src/cat/loop")
    self.write("elsewhere/below/one.jpg", command.jpeg(99))
    os.symlink("../../elsewhere", self.folder / "src/dog/outside")
    os.symlink("nowhere.jpg", self.folder / "src/dog/dangling.jpg")
    os.mkfifo(self.folder / "src/dog/fifo.jpg")
    self.pack("build", "src/deep", "-o", "src/deep/2/packed", "-q", "--label-from", "none", expect=None)
    self.pack("build", "src/dog", "-o", "made", "-q", "--label-from", "none", "--max-skip", "100%", expect=3)
    shutil.move(self.folder / "made", self.folder / "src/deep/0/made")
    (self.folder / "src/deep/0/closed").mkdir(mode=0)

  def test_a_list_plans_as_its_source(self):
    self.odd_source()
    for words in ((), ("--exclude", "3/", "--exclude", "unmatched/"), ("--ext", "jpg,doc", "--include", "cat/*"), ("--follow",),
                  ("--fields", "txt"), ("--max-file-size", str(len(command.jpeg(7))))):
      with self.subTest(words=words):
        of_plan = ("--label-from", "dir", "--split-by", "hash", "--missing-part", "keep")
        want = self.listing("src", *words, *of_plan, unprivileged=True)
        self.lists(*words, unprivileged=True)
        self.assertEqual(want, self.listing("--from", "lists", *of_plan, unprivileged=True))
      shutil.rmtree(self.folder / "lists", ignore_errors=True)

  def test_processes_that_list_together(self):
    for number in range(300):
      self.write(f"src/many/{number}/one.jpg", command.jpeg(number))
    want = self.listing("src")
    chance = random.Random(7)
    for turn in range(4):
      workers = [self.start("list", "src", "--write", "lists", "--join", "-q") for _ in range(4)]
      self.running += workers
      if turn > 0:
        for each in workers[1:]:
          time.sleep(chance.random() * 0.02)
          each.send_signal(signal.SIGKILL)
      for each in workers[:1]:
        self.ends(each)
      for each in workers[1:]:
        each.communicate()
      self.assertEqual(want, self.listing("--from", "lists"))
      parts = json.loads((self.folder / "lists/list.json").read_text())["parts"]
      self.assertEqual(len(parts), len(list((self.folder / "lists").glob("part-*"))))
      shutil.rmtree(self.folder / "lists")

  def test_a_list_that_is_not_complete(self):
    words = ("--exclude", "it's*", "--include", "[!x]*/*.jpg", "--ext", "jpg,png", "--fields", "txt,json:meta", "--follow",
             "--max-file-size", "1MB")
    want = self.listing("src", *words, "--missing-part", "keep")
    self.lists(*words)
    os.unlink(self.folder / "lists/part-000001")
    refused = self.pack("plan", "--from", "lists", expect=7).stderr
    self.assertIn("1 of 3 parts is not listed yet (number 1). To list it:", refused)
    self.typed(refused)
    self.assertEqual(want, self.listing("--from", "lists", "--missing-part", "keep"))

  def test_what_is_refused(self):
    self.lists("--exclude", "dog/")
    self.assertIn("--join", self.lists("--exclude", "dog/", expect=5).stderr)
    self.assertIn("other flags", self.lists("--join", expect=5).stderr)
    shutil.copytree(self.folder / "src", self.folder / "src2")
    self.assertIn("is the list of", self.pack("list", "src2", "--write", "lists", "--join", expect=5).stderr)
    self.assertIn("decided by the list", self.pack("plan", "--from", "lists", "--ext", "png", expect=2).stderr)
    self.assertIn("give either SRC or --from, not both", self.pack("plan", "src", "--from", "lists", expect=2).stderr)
    self.assertIn("As in", self.pack("plan", expect=2).stderr)
    self.assertIn("list src --write lists", self.pack("list", "src", expect=2).stderr)
    self.assertIn("holds no list; pack list SRC --write NEWFOLDER makes one", self.pack("plan", "--from", "src", expect=2).stderr)

  def test_folders_that_hold_something_else(self):
    for names in (("file",), ("part-00000.parquet",), tuple(f"part-00000{n}" for n in range(4)), (".pack/lock", "part-000000")):
      with self.subTest(names=names):
        shutil.rmtree(self.folder / "strange", ignore_errors=True)
        for name in names:
          self.write(f"strange/{name}", b"theirs")
        for words in ((), ("--join",)):
          self.assertIn("is not empty", self.pack("list", "src", "--write", "strange", *words, expect=5).stderr)
        self.assertEqual({name: b"theirs" for name in names}, self.contents("strange"))
    (self.folder / "begun/.pack").mkdir(parents=True)
    self.pack("list", "src", "--write", "begun")

  def test_what_is_left_of_the_list_of_another_source(self):
    self.lists()
    self.write("other/emu/1.jpg", command.jpeg(1))
    head = self.folder / "lists/list.json"
    head.unlink()
    self.assertIn("holds no list", self.pack("list", "other", "--write", "lists", "--join", expect=5).stderr)
    # Whoever writes another head there gets no part of the first.
    self.pack("list", "other", "--write", "lists2")
    shutil.copy(self.folder / "lists2/list.json", head)
    for said in (self.pack("list", "other", "--write", "lists", "--join", expect=4).stderr, self.pack("plan", "--from", "lists", expect=4).stderr):
      self.assertRegex(said, r"part-00000\d is not a part of this list")

  def test_a_damaged_part(self):
    want = self.listing("src")
    self.lists()
    part = self.folder / "lists/part-000000"
    data = part.read_bytes()
    for damaged in (data[:-1], data[:40] + bytes([data[40] ^ 1]) + data[41:], b"", b"SPKLIST1"):
      part.write_bytes(damaged)
      said = self.pack("plan", "--from", "lists", expect=4).stderr
      self.assertIn("part-000000 does not match its own hash; remove that file, and run", said)
      part.unlink()
      self.typed(said)
      self.assertEqual(want, self.listing("--from", "lists"))

  def test_a_damaged_head(self):
    self.lists()
    path = self.folder / "lists/list.json"
    head = json.loads(path.read_text())
    self.assertEqual([[""], ["cat"], ["dog"]], head["parts"])
    for parts in ([], [[]], [["cat"]], [[""], ["cat"], ["cat"]], [[""], ["../src"]], [[""], ["/etc"]], [[""], ["cat/deep"]], {}, [7]):
      path.write_text(json.dumps({**head, "parts": parts}))
      with self.subTest(parts=parts):
        for words in (("list", "src", "--write", "lists", "--join"), ("plan", "--from", "lists")):
          self.assertIn("list.json is damaged", self.pack(*words, expect=4).stderr)
    damaged = json.dumps({**head, "options": {**head["options"], "max_file_bytes": 900}})
    for text in (damaged, json.dumps({name: head[name] for name in head if name != "hash"}), "", "[]", "7"):
      path.write_text(text)
      with self.subTest(text=text):
        for words in (("list", "src", "--write", "lists", "--join"), ("plan", "--from", "lists")):
          said = self.pack(*words, expect=4).stderr
          self.assertIn("list.json is damaged; remove the folder, and list again", said)
          self.assertNotIn("part-", said)
    path.write_text(json.dumps({**head, "schema": "shardpack.list/1"}))
    for words in (("list", "src", "--write", "lists", "--join"), ("plan", "--from", "lists")):
      self.assertIn("was made by another version of pack", self.pack(*words, expect=2).stderr)
    path.chmod(0)
    self.assertIn("ermission denied", self.pack("plan", "--from", "lists", expect=6, unprivileged=True).stderr)

  def test_folders_that_come_while_it_is_listed(self):
    self.lists()
    os.unlink(self.folder / "lists/part-000000")
    self.write("src/zebra/foal/1.jpg", command.jpeg(1))
    self.write("src/ant/1.jpg", command.jpeg(2))
    self.lists("--join")
    self.assertEqual(self.listing("src"), self.listing("--from", "lists"))

  def test_a_source_that_is_not_mounted(self):
    (self.folder / "empty").mkdir()
    for words in ((), ("--join",)):
      self.assertIn("empty holds nothing; is its disk mounted?", self.pack("list", "empty", "--write", "lists", *words, expect=5).stderr)
      self.assertFalse((self.folder / "lists").exists())
    want = self.listing("src")
    self.lists()
    for number in range(3):
      (self.folder / f"lists/part-00000{number}").unlink()
    (self.folder / "src").rename(self.folder / "mounted")
    (self.folder / "src").mkdir()
    self.assertIn("src holds nothing; is its disk", self.lists("--join", expect=5).stderr)
    self.write("src/README", b"This disk is not mounted.")
    self.assertRegex(self.lists("--join", expect=5).stderr, r"src holds nothing of what it held when lists was begun, as (cat|dog); is its disk mounted\?")
    self.assertEqual([], list((self.folder / "lists").glob("part-*")))
    shutil.rmtree(self.folder / "src")
    (self.folder / "mounted").rename(self.folder / "src")
    self.lists("--join")
    self.assertEqual(want, self.listing("--from", "lists"))

  def test_a_source_of_names_with_dots(self):
    self.write("dotted/.one.jpg", command.jpeg(1))
    self.pack("list", "dotted", "--write", "lists")
    self.assertEqual(self.listing("dotted"), self.listing("--from", "lists"))

  def test_folders_that_cannot_be_listed(self):
    self.lists(unprivileged=True)
    (self.folder / "lists/part-000001").unlink()
    (self.folder / "lists/part-000002").unlink()
    (self.folder / "src/dog").rename(self.folder / "dog")
    for number in range(3):
      (self.folder / f"src/cat/closed{number}").mkdir(mode=0)
    said = self.lists("--join", unprivileged=True).stderr
    self.assertRegex(said, r"warning: 4 folders could not be listed: .* \((permission|vanished)\), .* and 1 more; the list holds nothing of them")
    self.assertIn("run this command again with --join, after\n  rm lists/part-000001 lists/part-000002\n", said)
    # Another folder of its class is in the list, or none.
    said = self.pack("plan", "--from", "lists", unprivileged=True).stderr
    self.assertIn("cat/closed0: the folder cannot be listed (permission denied); its files are not in the plan, though others of its class are", said)
    self.assertIn("dog: the folder vanished while it was listed; its files are not in the plan, and the labels are numbered without it", said)
    (self.folder / "dog").rename(self.folder / "src/dog")
    for number in range(3):
      (self.folder / f"src/cat/closed{number}").rmdir()
    for number in range(1, 3):
      (self.folder / f"lists/part-00000{number}").unlink()
    self.assertNotIn("warning", self.lists("--join").stderr)
    self.assertEqual(self.listing("src"), self.listing("--from", "lists"))

  def test_a_commit_without_a_folder_says_what_becomes_of_the_labels(self):
    for folder, renumbers in (("cat/closed", False), ("ant", True)):
      with self.subTest(folder=folder):
        closed = self.folder / "src" / folder
        closed.mkdir(mode=0)
        said = self.pack("build", "src", "-o", "out", expect=4, unprivileged=True).stderr
        self.assertIn("go on without these inputs and folders", said)
        self.assertEqual(renumbers, "the labels after it have other numbers" in said, said)
        closed.rmdir()
        shutil.rmtree(self.folder / "out", ignore_errors=True)

  def test_a_list_without_images(self):
    self.write("text/one.txt", b"x")
    self.pack("list", "text", "--write", "lists")
    said = self.pack("plan", "--from", "lists", expect=2).stderr
    self.assertIn("the list says: source ", said)
    self.assertIn("the source may differ now: list it again into another folder", said)

  def test_how_to_go_on_is_said_where_it_can_be(self):
    self.write("file", b"")
    (self.folder / "closed").mkdir(mode=0o555)
    for lists in ("file", "closed/lists"):
      self.assertNotIn("To go on", self.pack("list", "src", "--write", lists, expect=None, unprivileged=True).stderr)
    said = self.lists(env=self.shim("src", ONLY="getdents", AT=3, DO=errno.EIO), expect=6).stderr
    self.assertIn("What was listed is kept. To go on, run again:", said)

  def shim(self, root, **settings):
    return {"LD_PRELOAD": cluster.SHIM, "SHARDPACK_FAULT_ROOT": str(self.folder / root),
            **{f"SHARDPACK_FAULT_{name}": str(value) for name, value in settings.items()}}

  def test_an_error_of_any_listing_loses_no_folder(self):
    for number in range(12):
      self.write(f"src/{number}/deep/1.jpg", command.jpeg(number))
    want = self.listing("src")
    for call in ("readdir", "getdents"):
      for number in range(1, 60, 7 if call == "readdir" else 11):
        with self.subTest(call=call, number=number):
          shutil.rmtree(self.folder / "lists", ignore_errors=True)
          # Two for each folder; the first look at the root, of 14 entries; the division's look may miss some.
          stops = number <= (50 if call == "getdents" else 16)
          done = self.lists(env=self.shim("src", ONLY=call, AT=number, DO=errno.EIO), expect=6 if stops else 0)
          if call == "readdir" and stops:
            self.assertFalse((self.folder / "lists").exists())
            self.lists()
          elif stops:
            self.typed(done.stderr)
          self.assertEqual(want, self.listing("--from", "lists"))

  def test_an_interrupted_list_goes_on_with_the_printed_command(self):
    for words in ((), ("--join",)):
      shutil.rmtree(self.folder / "lists", ignore_errors=True)
      said = self.lists(*words, env=self.shim("lists", ONLY="fdatasync", AT=2, DO=errno.EIO), expect=6).stderr
      self.assertEqual(1, said.count("--join"), said)
      self.typed(said)
      self.assertEqual(self.listing("src"), self.listing("--from", "lists"))

  def test_places_that_do_not_suit(self):
    said = self.pack("list", "src", "--write", "src/lists", expect=2).stderr
    self.assertIn("the folder for the lists src/lists lies inside the source src", said)
    self.assertIn("as in\n  --write src-lists\n", said)
    self.assertIn("another folder for --write", self.pack("list", "src", "--write", ".", expect=2).stderr)
    said = self.lists(env=self.shim("lists", EACH="link", DO=errno.EPERM), expect=2).stderr
    self.assertIn("or pack plan SRC, which needs no lists", said)
    self.assertNotIn("build", said)
    # No shard, whatever it is called.
    self.pack("list", "src", "--write", "lists.tar")

  def test_json(self):
    report = json.loads(self.lists("--json").stdout)
    self.assertEqual("shardpack.listed/1", report["schema"])
    self.assertEqual(report["parts"], report["my_parts"])
    self.assertEqual(40, report["my_files"])


if __name__ == "__main__":
  cluster.main()
