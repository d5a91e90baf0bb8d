"""Workers with parts, joined workers and named shards at once, and what the files in `.pack` say of them."""

import json
import os
import re
import shutil
import time

import cluster
import command


class RacesTest(cluster.ClusterTest):
  shards, samples = 40, 2

  def test_parts_that_join(self):
    for _ in range(4):
      workers = [self.worker("--worker", f"{n}/4", "--join", "-j", "1") for n in (1, 2, 3, 4)]
      workers += [self.worker("--shards", "0-9,30"), self.worker("--join", "-j", "2")]
      for each in workers:
        self.ends(each)
      self.pack("status", "out", "-q")
      self.commit()
      self.assert_whole()
      self.clear()

  def test_a_part_alone_and_others_that_wait_for_it(self):
    waits = self.start("status", "out", "--wait")  # before there is anything
    for n in (3, 1, 2):
      self.work("--worker", f"{n}/3")
      if n != 2:
        self.assertIsNone(waits.poll())
    out, _ = waits.communicate(timeout=30)
    self.assertEqual(0, waits.returncode)
    self.assertIn(b"40 of 40 done", out)
    self.assertFalse((self.out / "manifest.json").exists())
    self.commit()
    self.assert_whole()
    self.assertIn("is published", self.pack("status", "out").stdout)

  def test_claims_are_few_and_of_their_owners(self):
    workers = [self.worker("--join", "-j", "1", "--stale-after", "600s") for _ in range(4)]
    for each in workers:
      self.ends(each)
    leases = self.leases()
    self.assertEqual(40, len(leases))
    self.assertEqual({1}, {len(owners) for owners in leases.values()}, "nobody was dead")
    owners = {path.name: json.loads(path.read_text()) for path in (self.out / ".pack/owners").iterdir()}
    self.assertEqual(4, len(owners))
    self.assertTrue(all(each["ended"] for each in owners.values()))
    self.assertEqual(40, sum(each["shards"] for each in owners.values()))
    self.assertLessEqual({owner for each in leases.values() for owner in each}, set(owners))
    self.commit()
    self.assert_whole()

  def test_status_as_json(self):
    self.work("--shards", "1-3,8")
    status = json.loads(self.pack("status", "out", "--json", expect=7).stdout)
    self.assertEqual("shardpack.status/1", status["schema"])
    self.assertEqual((40, 4, False), (status["shards"], status["done"], status["published"]))
    self.assertEqual([n for n in range(40) if n not in (1, 2, 3, 8)], status["unfinished"])
    self.work("--join")
    status = json.loads(self.pack("status", "out", "--json").stdout)
    self.assertEqual([], status["unfinished"])
    self.commit()
    status = json.loads(self.pack("status", "out", "--json").stdout)
    self.assertTrue(status["published"])
    self.assertEqual([], status["unfinished"])
    self.pack("status", "nowhere", expect=2)
    planned = json.loads(self.pack("status", "nowhere", "--plan", "plan", "--json", expect=7).stdout)
    self.assertEqual(list(range(40)), planned["unfinished"])

  def test_a_named_shard_needs_no_journal_of_others(self):
    """A task of an engine that read all that was journalled would cost more with each shard that is done."""
    self.work("--shards", "1-3")
    (self.out / ".pack/journal-of-others.jsonl").mkdir()  # nobody can read it
    self.work("--shards", "4")
    self.assertIn("is not a file", self.work("--join", expect=5))
    (self.out / ".pack/journal-of-others.jsonl").rmdir()
    before = {path.name: path.stat().st_ino for path in self.out.glob("train*")}
    self.work("--shards", "2")
    self.assertEqual(before, {path.name: path.stat().st_ino for path in self.out.glob("train*")}, "it is known to be done")
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_plans_of_all_kinds_are_the_same_in_slices(self):
    """What workers and a commit know from slices of the plan is what one process knows that has listed the source."""
    self.write("src/bad/half.jpg", command.jpeg(7)[:300])
    self.write("src/bad/empty.jpg")
    self.write("src/bad/copy.jpg", command.jpeg(3))
    self.write("src/bad/copy.png", command.png())
    for number in range(0, 40, 3):
      self.write(f"src/{'cat' if number % 2 == 0 else 'dog'}/good-{number:04}.json", b'{"a": %d}' % number)
    self.write("src/bad/a name \n of \xe9.jpg", command.jpeg(4711))
    for words in ((), ("-f", "lmdb"), ("-f", "hdf5"), ("--dedupe", "drop"), ("--key", "index", "--no-shuffle"), ("--limit", "30"),
                  ("--split", "train=0.7,val=0.3"), ("-f", "lmdb", "--key", "index"), ("--fields", "json", "--missing-part", "keep")):
      words = ("--samples-per-shard", "7", *words)
      with self.subTest(words=words):
        self.pack("build", "src", "-o", "one", "-q", "--max-skip", "90%", *words, expect=3)
        self.pack("plan", "src", "--write", "other", "-q", *words)
        self.pack("build", "--plan", "other", "-o", "whole", "-q", "--max-skip", "90%", expect=3)
        self.work("--worker", "1/3", plan="other")
        workers = [self.worker("--join", plan="other"), self.worker("--shards", "0-1", plan="other")]
        for each in workers:
          self.ends(each)
        self.work("--join", plan="other")
        self.pack("commit", "out", "-q", "--max-skip", "90%", expect=3)
        self.assertEqual(self.contents("one"), self.contents("whole"))
        self.assertEqual(self.contents("one"), self.contents("out"))
      for folder in ("one", "whole", "out"):
        shutil.rmtree(self.folder / folder, ignore_errors=True)
      (self.folder / "other").unlink(missing_ok=True)

  def test_a_dataset_as_the_source_of_workers(self):
    self.pack("build", "src", "-o", "packed", "-q", "--samples-per-shard", "9")
    for words in (("-f", "tfrecord"), ("-f", "lmdb", "--seed", "4"), ("-f", "webdataset", "--split", "train=0.5,val=0.5")):
      words = ("--samples-per-shard", "7", *words)
      with self.subTest(words=words):
        self.pack("build", "packed", "-o", "one", "-q", *words)
        self.pack("plan", "packed", "--write", "other", "-q", *words)
        self.work("--shards", "2", plan="other")
        self.work("--join", plan="other")
        self.commit()
        self.assertEqual(self.contents("one"), self.contents("out"))
      for folder in ("one", "out"):
        shutil.rmtree(self.folder / folder, ignore_errors=True)
      (self.folder / "other").unlink(missing_ok=True)

  def test_status_when_all_workers_have_died(self):
    """On other machines, where no lock tells."""
    self.work("--shards", "0")
    (self.out / ".pack/lease/000/000003.1").write_text(cluster.ELSEWHERE)
    beat = {"beat": 3, "seconds": 30.0, "shards": 1, "rows": 2, "shard_seconds": 1.0, "ended": False, "building": [[3, 1.0]]}
    owners = self.out / ".pack/owners"
    for path in owners.iterdir():
      path.unlink()  # those of this machine have ended
    (owners / cluster.ELSEWHERE).write_text(json.dumps(beat) + "\n")
    self.assertNotIn("stale", self.pack("status", "out", expect=7).stdout)
    long_ago = time.time() - 600
    os.utime(owners / cluster.ELSEWHERE, (long_ago, long_ago))
    before = self.contents()
    self.assertRegex(self.pack("status", "out", expect=7).stdout, r"stale    3  elsewhere-1, no beat for 10:0")
    self.assertEqual(before, self.contents(), "status leaves nothing behind")

  def test_status_of_another_plan(self):
    self.pack("plan", "src", "--samples-per-shard", "2", "--seed", "9", "--write", "other", "-q")
    self.work("--join")
    for _ in range(2):  # built, then published
      self.pack("status", "out", "--plan", "plan", "-q")
      refused = self.pack("status", "out", "--plan", "other", expect=5).stderr
      self.assertIn("another plan than other", refused)
      self.assertIn("seed", refused)
      self.pack("status", "out", "--plan", "other", "--wait", expect=5, timeout=60)
      self.pack("status", "out", "--plan", "nowhere", "--wait", expect=2, timeout=60)
      self.pack("commit", "out", "-q")
    waits = self.start("status", "later", "--plan", "other", "--wait")  # before a worker has begun
    self.pack("build", "--plan", "plan", "-o", "later", "-q", "--shards", "0")
    self.assertEqual(5, waits.wait(timeout=60))
    waits.communicate()

  def test_a_range_the_wrong_way_round(self):
    self.assertIn("the range ends before it begins; expected 7-9", self.pack(*self.words("--shards", "3,9-7"), expect=2).stderr)
    self.assertIn("as in 3,7-9", self.pack(*self.words("--shards", "3,9-x"), expect=2).stderr)

  def test_words_that_do_not_go_together(self):
    for words in (["--worker", "1/2", "--shards", "3"], ["--join", "--shards", "3"], ["--worker", "0/2"], ["--worker", "3/2"],
                  ["--shards", "3-1"], ["--shards", "40"], ["--shards", "0,99"], ["--takeover", "now"], ["--no-wait"],
                  ["--join", "--overwrite"], ["--join", "--max-skip", "1%"], ["--stale-after", "0", "--join"]):
      self.pack(*self.words(*words), expect=2)
      self.assertFalse(self.out.exists(), words)
    for words in (["--join"], ["--worker", "1/2"], ["--shards", "3,4"]):
      self.assertIn("--plan", self.pack("build", "src", "-o", "out", *words, expect=2).stderr)
    self.pack("build", "src", "-o", "out", "--shards", "0", expect=2)
    self.pack("build", "src", "-o", "out", "--shards", "7", "-q")  # how many, without a plan
    self.assertEqual(7, len(self.manifest()["shards"]))

  def test_more_workers_than_shards(self):
    workers = [self.worker("--worker", f"{n}/100", "-j", "1") for n in range(1, 101, 9)]
    for each in workers:
      self.ends(each)
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_skipped_inputs_are_the_commits_affair(self):
    self.write("src/cat/bad.jpg", b"no image")
    (self.folder / "plan").unlink()
    self.pack("plan", "src", "--samples-per-shard", "2", "--write", "plan", "-q")
    for words in (["--worker", "1/2"], ["--worker", "2/2"], ["--join"], ["--shards", "0-39"]):
      self.work(*words)
    self.assertIn("bad.jpg", self.commit(expect=4))
    done = self.pack("commit", "out", "--max-skip", "10%", expect=3)
    self.assertTrue(re.search(r"dataset xxh3:[0-9a-f]{32}", done.stdout))


if __name__ == "__main__":
  command.main()
