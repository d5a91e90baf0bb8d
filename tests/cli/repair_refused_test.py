"""`pack repair` where something stands in the way: files that may not be read, lost manifests, other datasets, wrong words."""

import fcntl
import json
import os
import re
import resource
import shutil

import command
from command import jpeg
import repairs


class RefusedTest(repairs.RepairTest):

  def test_nothing_is_damaged(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.rmtree(self.folder / "src")
    before = {path: path.stat().st_mtime_ns for path in (self.folder / "out").rglob("*")}
    for folder in (self.folder / "out",):
      folder.chmod(0o555)
    done = self.pack("repair", "out", unprivileged=True)
    self.assertIn("nothing is damaged", done.stderr)
    self.assertEqual(before, {path: path.stat().st_mtime_ns for path in (self.folder / "out").rglob("*")})
    self.assertRegex(done.stdout, r"\Adataset xxh3:[0-9a-f]{32}\n\Z")

  def test_a_dry_run_writes_nothing(self):
    self.source()
    self.make("webdataset")
    self.lose()
    before = self.contents()
    done = self.pack("repair", "out", "-n")
    self.assertIn("would rebuild train-000000.tar (missing) from", done.stderr)
    self.assertEqual(before, self.contents())

  def test_out_is_read_only_or_the_disk_full(self):
    self.source()
    want, _ = self.make("webdataset")
    lost = self.lose()
    (self.folder / "out").chmod(0o555)
    done = self.pack("repair", "out", expect=6, unprivileged=True)
    self.assertIn("ermission denied", done.stderr)
    (self.folder / "out").chmod(0o755)
    self.pack("repair", "out", expect=6, limits=[(resource.RLIMIT_FSIZE, 4096)])
    self.assertFalse((self.folder / "out" / ".pack").exists())
    self.heal(want, "out", (), set(lost))

  def test_what_may_not_be_read_is_damaged(self):
    """It does not stand in the way of the others."""
    self.source()
    want, _ = self.make("webdataset")
    (self.folder / "out/train-000000.tar").unlink()
    for name in ("train-000001.tar", "train-000002.pidx"):
      (self.folder / "out" / name).chmod(0)
    done = self.pack("repair", "out", "--dry-run", unprivileged=True)
    self.assertRegex(done.stderr, r"would rebuild train-000001.tar \(open .*ermission denied\) from")
    self.pack("repair", "out", unprivileged=True)
    self.assertEqual(want, self.contents())

  def test_one_repair_at_a_time(self):
    self.source()
    want, _ = self.make("webdataset")
    self.lose()
    (self.folder / "out" / ".pack").mkdir()
    with open(self.folder / "out/.pack/lock", "wb") as lock:
      fcntl.lockf(lock, fcntl.LOCK_EX)
      self.assertIn("locked by another run", self.pack("repair", "out", expect=5).stderr)
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())

  def test_what_a_killed_repair_left_is_taken_away(self):
    self.source()
    want, _ = self.make("webdataset")
    self.lose()
    self.write("out/.pack/stage/rebuilt", b"half")
    self.write("out/.pack/stage/build/train-000000.tar", b"half")
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())
    self.write("out/.pack/stage/rebuilt", b"half")
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())

  def test_a_dry_run_does_not_promise_what_the_source_has_no_more(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "4")
    name = self.rows("out")[0]["path"]
    path = self.folder / "src" / name
    path.write_bytes(path.read_bytes()[:-1] + b"Q")
    (self.folder / "out/train-000000.tar").unlink()
    (self.folder / "out/train-000001.tar").unlink()
    for words in (["--dry-run"], []):
      done = self.pack("repair", "out", *words, expect=3)
      self.assertIn(f"of {name}) are nowhere", done.stderr.replace("\n", " "))
      self.assertIn("rebuild 1 of 2" if words else "rebuilt 1 of 2", done.stderr)

  def test_a_manifest_alone_does_not_keep_the_source_away(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "4")
    want = self.contents()
    expect = re.search("xxh3:[0-9a-f]{32}", self.pack("info", "out").stdout).group(0)
    (self.folder / "kept").mkdir()
    shutil.move(self.folder / "out/manifest.json", self.folder / "kept/manifest.json")
    (self.folder / "out/train-000001.tar").unlink()
    self.pack("repair", "out", "--from", "kept", "--expect", expect)
    self.assertEqual(want, self.contents())

  def test_a_shard_that_may_not_be_read_and_a_source_that_lacks_files(self):
    self.source()
    for kind in ("wids", "dali"):
      self.pack("src", "-o", "out", "--shards", "4", "--sidecar-index", kind)
      lost = self.rows("out")[0]["path"]
      shutil.copytree(self.folder / "src", self.folder / "less")
      (self.folder / "less" / lost).unlink()
      for path in [*(self.folder / "out").glob("*.idx"), self.folder / "out/train.json"]:
        path.unlink(missing_ok=True)
      (self.folder / "out/train-000000.tar").chmod(0)
      (self.folder / "out/train-000001.tar").unlink()
      done = self.pack("repair", "out", "--from", "less", "--json", unprivileged=True, expect=3)
      files = {file["name"]: file["repairable"] for file in json.loads(done.stdout)["files"]}
      self.assertTrue(files["train-000001.tar"], files)
      self.assertFalse(files["train-000000.tar"], files)
      shutil.rmtree(self.folder / "less")
      shutil.rmtree(self.folder / "out")

  def test_an_input_that_may_not_be_read_has_not_changed(self):
    self.source()
    want, _ = self.make("webdataset")
    shard = {row["path"]: row["shard"] for row in self.rows("out")}["cat/good-0000.jpg"]
    index = shard[:-len(".tar")] + ".pidx"
    (self.folder / "src/cat/good-0000.jpg").chmod(0)
    for names in ([shard], [shard, index]):
      self.delete(*names)
      done = self.pack("repair", "out", expect=3, unprivileged=True).stderr.replace("\n", " ")
      self.assertIn("1 input of ", done)
      self.assertIn("cannot be read: cat/good-0000.jpg: permission", done)
      self.assertNotIn("has changed", done)
      self.assertNotIn("nowhere", done)
      self.assertEqual(len(names) == 1, "src/cat/good-0000.jpg: Permission denied" in done, done)
      for name in names:
        self.write(f"out/{name}", want[name])
    (self.folder / "src/cat/good-0000.jpg").chmod(0o644)
    (self.folder / "src/cat").chmod(0)
    for flags in ([], ["--dry-run"]):
      self.delete(shard, index)
      done = self.pack("repair", "out", *flags, expect=3, unprivileged=True).stderr.replace("\n", " ")
      self.assertIn("cannot be read: cat: permission", done)
      self.assertNotIn("has changed", done)
      for name in (shard, index):
        self.write(f"out/{name}", want[name])

  def test_a_recorded_source_that_may_not_be_read(self):
    self.source()
    want, _ = self.make("webdataset")
    (self.folder / "src").chmod(0)
    self.delete("train-000000.pidx", "train-000001.tar", "train-000001.pidx")
    done = self.pack("repair", "out", expect=3, unprivileged=True).stderr.replace("\n", " ")
    self.assertIn("the source that it was packed from cannot be read: ", done)
    self.assertIn("Permission denied", done)
    (self.folder / "src").chmod(0o755)
    self.pack("repair", "out")
    self.assertEqual(want, self.contents("out"))

  def test_one_of_several_sources_that_cannot_be_used(self):
    self.source()
    want, copy_format = self.make("webdataset")
    self.copy(copy_format)
    self.copy(copy_format, copy="damaged")
    manifest = self.folder / "damaged/manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-30])
    shutil.copytree(self.folder / "copy", self.folder / "closed")
    (self.folder / "closed").chmod(0)
    shutil.copytree(self.folder / "copy", self.folder / "unread")
    (self.folder / "unread/manifest.json").chmod(0)
    said = {"nowhere": "--from nowhere does not exist", "damaged": "damaged/manifest.json: ",
            "closed": "closed/manifest.json: Permission denied", "unread": "unread/manifest.json: Permission denied"}
    for bad, why in said.items():
      for good in ("src", "copy"):
        for words in ([bad, good], [good, bad]):
          with self.subTest(words):
            self.delete("train-000000.tar", "train-000001.tar", "train-000001.pidx")
            words = [word for name in words for word in ("--from", name)]
            done = self.pack("repair", "out", *words, unprivileged=True).stderr.replace("\n", " ")
            self.assertIn(why, done)
            self.assertIn("this source is left out, the others are used", done)
            self.assertEqual(want, self.contents("out"))
    self.delete("train-000000.tar")
    for bad, code in {"nowhere": 2, "damaged": 4, "closed": 6, "unread": 6}.items():
      self.assertIn(said[bad], self.pack("repair", "out", "--from", bad, expect=code, unprivileged=True).stderr)

  def test_a_manifest_from_one_of_several_copies(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    shutil.copytree(self.folder / "out", self.folder / "unread")
    (self.folder / "unread/manifest.json").chmod(0)
    self.delete("manifest.json", "train-000000.pidx")
    refused = self.pack("repair", "out", "--from", "unread", expect=6, unprivileged=True).stderr
    self.assertIn("open unread/manifest.json: Permission denied", refused)
    self.pack("repair", "out", "--from", "unread", "--from", "copy", unprivileged=True)
    self.assertEqual(want, self.contents("out"))

  def test_a_copy_of_which_a_file_may_not_be_read(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    (self.folder / "copy/train-000000.tar").chmod(0)
    (self.folder / "empty").mkdir()
    self.delete("train-000000.tar")
    done = self.pack("repair", "out", "--from", "copy", "--from", "empty", expect=3, unprivileged=True).stderr
    self.assertIn("copy/train-000000.tar: Permission denied", done.replace("\n", " "))
    self.pack("repair", "out", "--from", "copy", "--from", "src", unprivileged=True)
    self.assertEqual(want, self.contents("out"))

  def test_what_is_not_a_file_is_left_alone(self):
    self.source()
    want, _ = self.make("webdataset")
    shard, index = self.lose()
    (self.folder / "out" / shard / "mine").mkdir(parents=True)
    os.symlink(self.write("mine.txt", b"mine"), self.folder / "out" / index)
    done = self.pack("repair", "out", expect=3)
    self.assertIn(f"{shard} is not a file", done.stderr)
    self.assertTrue((self.folder / "out" / shard / "mine").is_dir())
    # The link is replaced, not what it points to.
    self.assertEqual((b"mine", want[index]), ((self.folder / "mine.txt").read_bytes(), (self.folder / "out" / index).read_bytes()))
    self.assertFalse((self.folder / "out" / index).is_symlink())
    # Nothing is written behind a link either.
    self.make("lmdb raw", out="lmdb")
    folder = self.folder / "lmdb" / self.manifest("lmdb")["shards"][0]["name"]
    shutil.rmtree(folder)
    (self.folder / "mine").mkdir()
    os.symlink(self.folder / "mine", folder)
    self.assertIn("is a link or a file", self.pack("repair", "lmdb", expect=3).stderr)
    self.assertEqual([], list((self.folder / "mine").iterdir()))

  def test_a_damaged_manifest_is_not_guessed(self):
    self.source()
    want, _ = self.make("webdataset")
    path = self.folder / "out/manifest.json"
    for text in (b"", b"{}", want["manifest.json"].replace(b"train-000000.tar", b"../../src/cat.ta"),
                 want["manifest.json"][:-9], want["manifest.json"].replace(b'"dog"', b'"cow"')):
      path.write_bytes(text)
      self.assertIn("restore the file from a copy", self.pack("repair", "out", expect=4).stderr)
    path.unlink()
    self.assertIn("no manifest.json", self.pack("repair", "out", expect=4).stderr)
    self.assertEqual({k: v for k, v in want.items() if k != "manifest.json"}, self.contents())

  def test_a_manifest_comes_from_a_copy_that_is_the_same_dataset(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    self.make("webdataset", "--seed", "7", out="other")
    identity = self.pack("repair", "copy").stdout.split()[1]
    path = self.folder / "out/manifest.json"
    path.write_bytes(want["manifest.json"][:100])
    self.assertIn("is another dataset", self.pack("repair", "out", "--from", "other", expect=4).stderr)
    self.assertIn("would rebuild manifest.json", self.pack("repair", "out", "-n", "--from", "copy").stderr)
    self.assertNotEqual(want, self.contents())
    self.pack("repair", "out", "--from", "other", "--from", "copy")
    self.assertEqual(want, self.contents())
    # With a shard lost too only the user knows.
    self.lose()
    path.unlink()
    done = self.pack("repair", "out", "--from", "copy", expect=4)
    self.assertIn(f"Only if out was that very dataset before it was damaged, add --expect {identity}",
                  done.stderr.replace("\n", " "))
    self.pack("repair", "out", "--from", "copy", "--expect", identity)
    self.assertEqual(want, self.contents())

  def test_shards_of_another_dataset_are_not_replaced(self):
    """What their indexes prove, --expect cannot deny."""
    self.source()
    for kind in ("webdataset", "tfrecord", "lmdb raw", "npy"):
      with self.subTest(kind):
        mine, theirs = "mine-" + kind.replace(" ", "-"), "theirs-" + kind.replace(" ", "-")
        self.make(kind, out=mine)
        self.make(kind, "--seed", "7", out=theirs)
        identity = self.pack("repair", theirs).stdout.split()[1]
        shutil.move(self.folder / mine / "manifest.json", self.folder / "kept.json")
        before = self.contents(mine)
        for words in ((), ("--expect", identity), ("--expect", identity, "-n")):
          done = self.pack("repair", mine, "--from", theirs, *words, expect=4).stderr.replace("\n", " ")
          self.assertIn("is another dataset", done)
          self.assertNotIn("add --expect", done)
          self.assertEqual(before, self.contents(mine))
        # Shards that have changed their places are of the same dataset.
        shutil.move(self.folder / "kept.json", self.folder / mine / "manifest.json")
        want = self.contents(mine)
        self.write("kept/manifest.json", want["manifest.json"])
        identity = self.pack("repair", mine).stdout.split()[1]
        (self.folder / mine / "manifest.json").unlink()
        shards = self.manifest("kept")["shards"]
        for first, second in ((shards[0]["index"]["name"], shards[1]["index"]["name"]),):
          self.write(f"{mine}/{first}", want[second])
          self.write(f"{mine}/{second}", want[first])
        self.pack("repair", mine, "--from", "kept", "--expect", identity)
        self.assertEqual(want, self.contents(mine))

  def test_a_manifest_of_another_program_stays(self):
    """Web programs write a manifest.json, too."""
    theirs = b'{\n "name": "gallery", "icons": []\n}\n'
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    identity = self.pack("repair", "copy").stdout.split()[1]
    for name in want:
      if name.startswith("train-000000."):
        self.write(f"src/{name}", want[name])
    self.write("src/manifest.json", theirs)
    before = self.contents("src")
    for words in ((), ("-n",)):
      done = self.pack("repair", "src", "--from", "copy", "--expect", identity, *words, expect=4)
      self.assertIn("was not written by pack", done.stderr)
      self.assertEqual(before, self.contents("src"))
    # Nor one that has a member of ours.
    for theirs in (b'{"tool": "mine", "xxh3_128": "abc"}', b'{"plan_digest": "abc"}'):
      self.write("copied/manifest.json", theirs)
      done = self.pack("repair", "copied", "--from", "copy", "--expect", identity, expect=4)
      self.assertIn("was not written by pack", done.stderr)
      self.assertEqual({"manifest.json": theirs}, self.contents("copied"))
    # Beside images it says nothing about them.
    lost = self.lose()
    self.heal(want, "out", (), set(lost))
    lost = self.lose()
    self.heal(want, "out", ("--from", "src"), set(lost))

  def test_what_is_left_of_a_manifest_is_replaced(self):
    self.source()
    want, _ = self.make("tfrecord")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    whole = want["manifest.json"]
    shard = want[self.manifest()["shards"][0]["name"]]  # files may change their places
    for left in (b"", b"{\n ", shard, whole[:9], whole[:-1], bytes(len(whole)), bytes(64) + whole[64:], b"#" + whole[1:]):
      with self.subTest(left[:20]):
        self.write("out/manifest.json", left)
        self.pack("repair", "out", "--from", "copy")
        self.assertEqual(want, self.contents())

  def test_names_and_levels(self):
    self.source()
    want, _ = self.make("webdataset")
    first, second = self.lose(number=0), self.lose(number=1)
    self.write("out/train-000002.tar", want["train-000002.tar"][:5000] + b"x" + want["train-000002.tar"][5001:])
    self.pack("repair", "out", first[0])  # with its index
    self.assertEqual(want.keys() - set(second), self.contents().keys())
    self.pack("repair", "out", second[0], second[1], "--level", "quick")
    self.pack("repair", "out", "--level", "quick")
    self.assertNotEqual(want, self.contents())
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())

  def test_words_that_cannot_be(self):
    self.source()
    self.make("webdataset")
    for words in (("nothing",), ("out", "train-9.tar"), ("out", "manifest.json"), ("out", "--from", "nothing"),
                  ("out", "--from", ""), ("out", "--level", "deep"), (), ("src",)):
      with self.subTest(words):
        self.pack("repair", *words, expect=4 if words == ("src",) else 2)
    self.pack("repair", "out", "--expect", "xxh3:" + "0" * 32, expect=4)

  def test_validate_says_how(self):
    self.source()
    want, _ = self.make("webdataset", out="my out")
    name = "train-000001.tar"
    self.write(f"my out/{name}", want[name][:700] + b"x" + want[name][701:])
    done = self.pack("validate", "my out", expect=4)
    self.assertRegex(done.stdout, r"run `\S*pack repair 'my out'`")
    self.write("lone.tar", (self.folder / "my out" / name).read_bytes())
    alone = self.pack("validate", "lone.tar", expect=4).stdout
    self.assertIn("restore the file from a good copy", alone)
    self.assertNotIn("repair", alone)
    self.pack("repair", "my out")
    self.pack("validate", "my out")
    self.write("copy/manifest.json", want["manifest.json"])
    for damage in (None, b"{}", want["manifest.json"].replace(b'"dog"', b'"cow"')):
      (self.folder / "my out/manifest.json").unlink()
      if damage is not None:
        self.write("my out/manifest.json", want["manifest.json"][:50] if damage == b"{}" else damage)
      self.assertRegex(self.pack("validate", "my out", expect=4).stdout, r"`\S*pack repair 'my out' --from COPY`")
      self.pack("repair", "my out", "--from", "copy")
    self.pack("validate", "my out")

  def test_datasets_without_planned_records_open_and_heal(self):
    """Manifests of before: what a shard was planned for is not in them, the source tells it."""
    self.source()
    self.write("src/cat/broken-1.jpg", jpeg(1)[:200])
    self.pack("src", "-o", "out", "--shards", "3", "-f", "hdf5", "--max-skip", "50%", expect=3)
    self.assertEqual(1, sum("planned" in shard for shard in self.manifest()["shards"]))
    self.make("hdf5 packed", out="whole", source="src/dog")
    self.assertFalse(any("planned" in shard for shard in self.manifest("whole")["shards"]))


if __name__ == "__main__":
  command.main()
