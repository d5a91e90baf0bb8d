"""A source that several processes list: the plan that is made of their lists is the one that a single process makes, byte for
byte, whatever lies in the source, and whoever is killed.
"""

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
    self.pack("build", "src/dog", "-o", "made", "-q", "--label-from", "none", "--max-skip", "90%", expect=3)
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
    self.assertIn("1 are not listed yet: 1", refused)
    typed = re.search(r"^  (\S*pack list .*)$", refused, re.MULTILINE)[1]
    subprocess.run(["sh", "-c", typed], cwd=self.folder, check=True, stderr=subprocess.DEVNULL)
    self.assertEqual(want, self.listing("--from", "lists", "--missing-part", "keep"))

  def test_what_is_refused(self):
    self.lists("--exclude", "dog/")
    self.assertIn("--join", self.lists("--exclude", "dog/", expect=5).stderr)
    self.assertIn("other flags", self.lists("--join", expect=5).stderr)
    shutil.copytree(self.folder / "src", self.folder / "src2")
    self.assertIn("is the list of", self.pack("list", "src2", "--write", "lists", "--join", expect=5).stderr)
    self.assertIn("decided by the list", self.pack("plan", "--from", "lists", "--ext", "png", expect=2).stderr)
    self.assertIn("give it, or SRC", self.pack("plan", "src", "--from", "lists", expect=2).stderr)
    self.assertIn("As in", self.pack("plan", expect=2).stderr)
    self.assertIn("list src --write lists", self.pack("list", "src", expect=2).stderr)
    self.assertIn("holds no list", self.pack("plan", "--from", "src", expect=2).stderr)
    self.write("strange/file", b"x")
    self.assertIn("is not empty", self.pack("list", "src", "--write", "strange", expect=5).stderr)
    part = self.folder / "lists/part-000000"
    data = part.read_bytes()
    for damaged in (data[:-1], data[:40] + bytes([data[40] ^ 1]) + data[41:], b""):
      part.write_bytes(damaged)
      self.assertIn("part-000000 does not match its own hash", self.pack("plan", "--from", "lists", expect=4).stderr)

  def test_json(self):
    report = json.loads(self.lists("--json").stdout)
    self.assertEqual("shardpack.listed/1", report["schema"])
    self.assertEqual(report["parts"], report["my_parts"])
    self.assertEqual(40, report["my_files"])


if __name__ == "__main__":
  cluster.main()
