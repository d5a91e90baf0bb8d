"""`pack dups`."""

import io
import json
import os
import tarfile

import command
import foreign_shards
from command import TESTDATA, jpeg


class DupsTest(command.PackTest):

  def dups(self, *words, **options):
    return json.loads(self.pack("dups", *words, "--json", **options).stdout)

  def keys(self):
    mark, dataset, count, *keys = (self.folder / "keys.txt").read_text().splitlines()
    self.assertTrue(mark.startswith("# pack dups"))
    self.assertTrue(dataset.startswith("# of the dataset xxh3:"))
    self.assertEqual(f"# keys: {len(keys)}", count)
    return keys

  def test_exact_copies_within_and_across(self):
    self.source(count=20)
    self.pack("src", "-o", "clean")
    self.pack("dups", "clean", "--check")
    self.write("src/cat/again.jpg", jpeg(0))
    self.write("src/dog/conflict.jpg", jpeg(2))
    self.pack("src", "-o", "one")
    lines = self.pack("dups", "one", "--check", expect=8).stdout.splitlines()
    self.assertEqual("copies, label conflict", lines[0])
    self.assertEqual({"  train  cat  cat/good-0002", "  train  dog  dog/conflict"}, set(lines[1:3]))
    self.assertEqual("copies", lines[3])
    self.assertIn("copies    2 groups, 2 more than one of each; 1 with a label conflict, 0 with leakage; of 22 samples", lines)
    # Another dataset, of another format.
    self.write("more/dog/x.jpg", jpeg(5))
    self.write("more/cat/y.jpg", jpeg(100))
    self.pack("more", "-o", "two", "-f", "tfrecord")
    found = self.dups("one", "two", "--write-list", "keys.txt")
    self.assertEqual([True, False, False], [group["label_conflict"] for group in found["exact"]][:3])
    across = [group for group in found["exact"] if group["leak"]]
    self.assertEqual([(0, "dog/good-0005"), (1, "dog/x")], [(each["dataset"], each["key"]) for each in across[0]["samples"]])
    keys = set(self.keys())
    self.assertEqual({"cat/good-0002", "dog/conflict", "dog/good-0005"}, keys - {"cat/again", "cat/good-0000"})
    self.assertEqual(4, len(keys))

  def test_copies_of_another_split_are_leakage(self):
    for split, count in (("train", 10), ("val", 3)):
      for i in range(count):
        self.write(f"src/{split}/cat/{i}.jpg", jpeg(i if split == "train" else 7 + i))
    self.pack("src", "-o", "out")
    found = self.dups("out")
    self.assertEqual(3, len(found["exact"]))
    self.assertTrue(all(group["leak"] for group in found["exact"]))
    self.pack("dups", "out", "--write-list", "keys.txt")
    # What is in val stays there.
    keys = self.keys()
    splits = {row["key"]: row["split"] for row in self.rows("out")}
    self.assertEqual({"train"}, {splits[key] for key in keys})
    self.assertEqual(3, len(keys))

  def test_what_is_measured_on_stays(self):
    # val is larger than train here.
    for split, numbers in (("train", range(3)), ("val", range(5))):
      for i in numbers:
        self.write(f"src/{split}/cat/{split}{i}.jpg", jpeg(i))
    self.pack("src", "-o", "out")
    self.pack("dups", "out", "--write-list", "keys.txt")
    self.assertEqual(["cat/train0", "cat/train1", "cat/train2"], sorted(key[key.index("cat"):] for key in self.keys()))

  def test_names_are_not_compared_with_numbers(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    shard = next((self.folder / "out").glob("*.tar"))
    self.write("x.tar", shard.read_bytes())
    self.assertIn("only numbers in x.tar: label conflicts between them are not looked for", self.pack("dups", "out", "x.tar").stderr)
    self.pack("convert", "out", "-o", "other", "-f", "tfrecord")
    self.assertNotIn("only numbers", self.pack("dups", "out", "other").stderr)

  def foreign(self, name, *samples):
    """A tar of other tools: the key, the image, and what the other members hold by their ending."""
    with tarfile.open(self.folder / name, "w") as archive:
      for key, image, others in samples:
        for ending, data in {"jpg": image, **others}.items():
          info = tarfile.TarInfo(f"{key}.{ending}")
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))

  def test_labels_that_are_not_read(self):
    self.foreign("x.tar", ("a", jpeg(0), {"cls": b"cat"}), ("b", jpeg(0), {"cls": b"dog"}), ("c", jpeg(1), {"cls": b"dog"}))
    done = self.pack("dups", "x.tar", "--write-list", "keys.txt")
    self.assertIn("copies, labels not read", done.stdout)
    self.assertIn("1 group has samples whose label is a text in cls, which this does not read", done.stderr)
    self.assertEqual(["a", "b"], self.list_of("keys.txt"))
    self.assertEqual([True], [group["unread_labels"] for group in self.dups("x.tar")["exact"]])
    # Nothing is lost where the texts are one.
    for others in ({"cls": b"cat"}, {}):
      self.foreign("y.tar", ("a", jpeg(0), others), ("b", jpeg(0), others))
      self.assertNotIn("label", self.pack("dups", "y.tar", "--write-list", "keys.txt").stderr)
      self.assertEqual(["b"], self.list_of("keys.txt"))

  def list_of(self, name):
    return [line for line in (self.folder / name).read_text().splitlines() if not line.startswith("# ")]

  def test_one_group_of_much_is_said(self):
    photo = next(path for path in sorted(TESTDATA.glob("*.jpg")) if path.name.startswith("baseline"))
    for i in range(30):
      self.write(f"src/a/{i}.jpg", jpeg(i, photo.name))
    self.pack("src", "-o", "out")
    self.assertIn("one group of images that look alike has 30 of 30 samples", self.pack("dups", "out", "--near").stderr)
    self.assertNotIn("one group", self.pack("dups", "out").stderr)

  def test_names_that_differ_are_said(self):
    self.source(count=6)
    self.pack("src", "-o", "one")
    self.source("more", count=6, classes=("dog", "feline"))
    self.pack("more", "-o", "two")
    done = self.pack("dups", "one", "two")
    self.assertIn("names of classes differ between one (only it has cat) and two (only it has feline)", done.stderr)
    self.assertIn("label conflict", done.stdout)
    (self.folder / "src/dog").rename(self.folder / "src/owl")
    self.pack("src", "-o", "three")
    self.source("both", count=6, classes=("cat", "dog", "owl"))
    self.pack("both", "-o", "four")
    self.assertIn("three (no class of its own) and four (only it has dog)", self.pack("dups", "three", "four").stderr)

  def test_names_of_any_bytes(self):
    odd = (b"<script>", b"\"'", b"\xff\xfe", b"line\nend", b"\xe2\x80\xaegnp", b"\x1b[1m")
    for i, name in enumerate(odd):
      self.write(b"src/" + name + b"/" + name + b".jpg", jpeg(0))
    self.pack("src", "-o", "out")
    text = self.pack("dups", "out").stdout
    for raw in ("\x1b", "\u202e", "line\nend", os.fsdecode(b"\xff")):
      self.assertNotIn(raw, text)
    self.assertIn("<script>", text)
    self.pack("dups", "out", "--write-list", "keys.txt")
    self.assertEqual({row["key"] for row in self.rows("out")}, set(self.keys()))

  def test_what_is_left_of_a_damaged_dataset(self):
    self.source(count=12)
    self.write("src/cat/again.jpg", jpeg(1))
    self.pack("src", "-o", "out", "--shards", "4")
    whole = self.dups("out")
    self.assertEqual((1, False, [], []), (len(whole["exact"]), whole["damaged"], whole["damaged_files"], whole["not_looked_at"]))
    shards = {sample["shard"] for sample in whole["exact"][0]["samples"]}
    # Without its shard, a sample is in the index.
    shard = sorted(shards)[0]
    (self.folder / "out" / shard).unlink()
    done = self.pack("dups", "out", "--check", expect=4)
    self.assertIn(shard, done.stderr)
    self.assertIn("cat/again", done.stdout)
    left = json.loads(self.pack("dups", "out", "--json", expect=4).stdout)
    self.assertEqual((1, True, 1, 13), (len(left["exact"]), left["damaged"], len(left["damaged_files"]), left["samples"]))
    self.assertEqual(whole["datasets"], left["datasets"])
    self.pack("dups", "out", "--write-list", "keys.txt", expect=4)
    self.assertTrue((self.folder / "keys.txt").exists())
    # Without its index, nobody knows.
    (self.folder / "out" / shard).with_suffix(".pidx").unlink()
    left = json.loads(self.pack("dups", "out", "--near", "--json", expect=4).stdout)
    self.assertEqual((1, 1), (len(left["not_looked_at"]), len(left["damaged_files"])))
    self.assertEqual(1, self.pack("dups", "out", expect=4).stderr.count(".pidx"))
    self.assertLess(left["samples"], 13)
    self.assertEqual(whole["datasets"][0]["dataset"], left["datasets"][0]["dataset"])
    done = self.pack("dups", "out", "--write-list", "more.txt", expect=4)
    self.assertIn("no list is written", done.stderr)
    self.assertFalse((self.folder / "more.txt").exists())

  def test_quietly_the_groups_alone(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    self.assertEqual("", self.pack("dups", "out", "-q").stdout)
    self.write("src/dog/again.jpg", jpeg(0))
    self.pack("src", "-o", "twice")
    done = self.pack("dups", "twice", "-q", "--check", expect=8)
    self.assertEqual(["copies, label conflict", "  train  cat  cat/good-0000", "  train  dog  dog/again"],
                     [done.stdout.splitlines()[0], *sorted(done.stdout.splitlines()[1:])])

  def test_near_copies(self):
    photos = sorted(path for path in TESTDATA.glob("*.jpg") if path.name.startswith("baseline"))
    self.assertTrue(photos)
    self.write("src/a/photo.jpg", photos[0].read_bytes())
    self.write("src/a/comment.jpg", jpeg(1, photos[0].name))
    self.write("src/b/white.png", command.png(64, 64))
    self.pack("src", "-o", "out")
    self.assertEqual([], self.dups("out")["exact"])
    found = self.dups("out", "--near", "--distance", "0")
    self.assertEqual([["a/comment", "a/photo"]], [sorted(each["key"] for each in group["samples"]) for group in found["near"]])
    self.assertEqual((2, 1, 0), (found["hashed"], found["flat"], found["undecodable"]["count"]))
    text = self.pack("dups", "out", "--near", "--check", expect=8).stdout
    self.assertIn("alike", text)
    self.assertIn("distance 0", text)
    self.assertIn("1 of nearly one color left out", text)
    foreign = sorted(str(path) for path in (self.folder / "out").glob("*.tar"))
    self.assertEqual(1, len(self.dups(*foreign, "--near")["near"]))

  def test_every_thread_count_finds_the_same(self):
    self.source(count=60)
    self.pack("src", "-o", "out", "--samples-per-shard", "7")
    one = self.pack("dups", "out", "--near", "--json", "-j", "1").stdout
    self.assertEqual(one, self.pack("dups", "out", "--near", "--json", "-j", "5").stdout)

  def test_what_cannot_be_read(self):
    self.source(count=4)
    self.write("src/cat/again.jpg", jpeg(0))
    self.write("src/cat/bad.jpg", jpeg(9)[:-200] + b"\xff\xd9")
    self.pack("src", "-o", "out")
    done = self.pack("dups", "out", "--near")
    self.assertIn("cannot be decoded", done.stderr + done.stdout)
    shard = next((self.folder / "out").glob("*.tar"))
    data = bytearray(shard.read_bytes())
    for at in range(1, len(data)):
      if data[at - 1:at + 1] == b"\xff\xd9":
        data[at - 40] ^= 1
    shard.write_bytes(data)
    self.assertIn("could not be read", self.pack("dups", "out", expect=4).stderr)
    # An image that has no copy is read for --near alone.
    self.source("single", count=3)
    self.pack("single", "-o", "one")
    shard = next((self.folder / "one").glob("*.tar"))
    data = bytearray(shard.read_bytes())
    data[data.index(b"number 1")] ^= 1
    shard.write_bytes(data)
    self.pack("dups", "one")
    done = self.pack("dups", "one", "--near", expect=4)
    self.assertIn("of which 1 cannot be read", done.stdout)
    self.assertEqual(1, done.stderr.count(" record "), done.stderr)
    # Of many, the first are named, and the rest are counted.
    for i in range(25):
      self.write(f"many/cat/{i}.jpg", jpeg(i)[:-200] + b"\xff\xd9")
    self.pack("many", "-o", "bad")
    said = self.pack("dups", "bad", "--near").stderr
    self.assertEqual(20, said.count(" record "), said)
    self.assertIn("and 5 more", said)
    for words in ([], ["nowhere"], ["out", "--distance", "3"], ["out", "--near", "--distance", "17"]):
      self.pack("dups", *words, expect=2)

  def test_where_the_list_goes(self):
    self.source(count=4)
    self.write("src/cat/again.jpg", jpeg(0))
    self.pack("src", "-o", "out")
    self.write("keys.txt", b"# pack dups: keys to leave out, one a line\n" + b"what was there\n" * 100)
    before = self.contents("out")
    shard = next((self.folder / "out").glob("*.tar"))
    foreign = self.write("x.tar", shard.read_bytes())
    for place in ("out/manifest.json", "out/keys.txt", "src", "/dev/null"):
      self.pack("dups", "out", "--write-list", place, expect=2)
    self.assertIn("one of the inputs", self.pack("dups", "x.tar", "--write-list", "./x.tar", expect=2).stderr)
    self.assertEqual(shard.read_bytes(), foreign.read_bytes())
    self.assertEqual(before, self.contents("out"))
    self.pack("dups", "out", "--write-list", "keys.txt")
    self.assertEqual(1, len(self.keys()))
    self.assertEqual(["keys.txt", "out", "src", "x.tar"], sorted(path.name for path in self.folder.iterdir()))

  def test_samples_that_keys_cannot_name(self):
    image = str(self.write("image.jpg", jpeg(1)))
    other = str(self.write("other.jpg", jpeg(2)))
    foreign_shards.tfrecord(str(self.folder / "no.tfrecord"), [("", image, 1), ("", other, 1), ("", image, 1)])
    text = self.pack("dups", "no.tfrecord").stdout
    self.assertIn("no.tfrecord record 0\n", text)
    self.assertIn("no.tfrecord record 2\n", text)
    foreign_shards.tfrecord(str(self.folder / "less.tfrecord"), [("", other, 1)])
    self.assertIn("- no.tfrecord record 0 ", self.pack("diff", "no.tfrecord", "less.tfrecord", "--by", "hash").stdout)
    said = self.pack("dups", "no.tfrecord", "--write-list", "keys.txt", expect=2).stderr
    self.assertIn("record 2 of no.tfrecord has no key", said)
    # Keys that begin again in the second shard: "b" is a copy here, and another sample there.
    def tar(name, *samples):
      foreign_shards.tar(["tar"], str(self.folder / name), [(key, path, 1) for key, path in samples])
    tar("s0.tar", ("a", image), ("b", image))
    tar("s1.tar", ("b", other))
    said = self.pack("dups", "s0.tar", "s1.tar", "--write-list", "keys.txt", expect=2).stderr
    self.assertIn("the key b is that of a copy, record 1 of s0.tar, and of another sample, record 0 of s1.tar", said)
    self.assertFalse((self.folder / "keys.txt").exists())
    # Both go.
    tar("s1.tar", ("b", image))
    self.pack("dups", "s0.tar", "s1.tar", "--write-list", "keys.txt")
    self.assertEqual(["b", "b"], self.keys())
    tar("s1.tar", ("#b", image))
    self.pack("dups", "s0.tar", "s1.tar", "--write-list", "keys.txt")
    self.assertEqual(["b", "%23b"], self.keys())

  def test_the_same_dataset_twice(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    (self.folder / "link").symlink_to("out")
    for again in ("out", "./out/", "link"):
      self.assertIn("are the same; name it once", self.pack("dups", "out", again, "--check", expect=2).stderr)


class ExcludeKeysTest(command.PackTest):
  """The list of dups, used by convert."""

  def listed(self):
    self.source(count=12)
    self.write("src/cat/again.jpg", jpeg(0))
    self.write("src/dog/conflict.jpg", jpeg(2))
    self.write(b"src/cat/#\xff 50%.jpg", jpeg(3))
    self.pack("src", "-o", "out", "--split", "train=0.7,val=0.3")
    self.pack("dups", "out", "--check", "--write-list", "keys.txt", expect=8)
    return [line for line in (self.folder / "keys.txt").read_text().splitlines() if not line.startswith("# ")]

  def test_round_trip(self):
    keys = self.listed()
    self.assertEqual(5, len(keys))
    before = {row["key"]: row for row in self.rows("out")}
    for name, words in (("webdataset", []), ("lmdb", ["--shuffle"]), ("tfrecord", ["--split", "train=1"])):
      made = self.pack("convert", "out", "-o", name, "-f", name, "--exclude-keys", "keys.txt", "--json", *words)
      counts = json.loads(made.stdout)["counts"]
      self.assertEqual((15, 10, 5), (counts["seen"], counts["packed"], counts["filtered"]))
      self.pack("dups", name, "--check")
      after = {row["key"]: row for row in self.rows(name)}
      self.assertEqual(set(keys), set(before) - set(after))
      if not words:
        self.assertEqual({key: before[key]["split"] for key in after}, {key: row["split"] for key, row in after.items()})
      removed = json.loads(self.pack("diff", "out", name, "--json").stdout)["counts"]
      self.assertEqual((5, 0, 0, 0), (removed["removed"], removed["added"], removed["content"], removed["relabelled"]))
      self.pack("validate", name, "--level", "full")
    # The same again has nothing to do; without the list it is another dataset.
    self.assertIn("nothing to do", self.pack("convert", "out", "-o", "webdataset", "--exclude-keys", "keys.txt").stderr)
    self.pack("convert", "out", "-o", "webdataset", expect=5)
    # By workers of a plan.
    self.pack("plan", "out", "--input-format", "dataset", "--no-shuffle", "--exclude-keys", "keys.txt", "--write", "plan", "-q")
    (self.folder / "keys.txt").rename(self.folder / "kept.txt")
    self.pack("build", "--plan", "plan", "-o", "planned", "-q")
    self.pack("diff", "webdataset", "planned", "--check")

  def test_repaired_from_what_it_was_made_of(self):
    self.listed()
    self.pack("convert", "out", "-o", "less", "--exclude-keys", "keys.txt")
    want = self.contents("less")
    shard = next((self.folder / "less").glob("*.tar"))
    shard.unlink()
    self.pack("repair", "less", "--from", "out")
    self.assertEqual(want, self.contents("less"))

  def refused(self, says, *words):
    self.assertIn(says, self.pack(*words, expect=2).stderr)
    self.assertFalse((self.folder / "new").exists())

  def test_what_is_no_list_for_it(self):
    self.listed()
    convert = ("convert", "out", "-o", "new", "--exclude-keys")
    self.refused("nowhere.txt", *convert, "nowhere.txt")
    self.pack("convert", "out", "-o", "clean", "--exclude-keys", "keys.txt")
    self.write("none.txt", b"# mine\n")
    self.refused("none.txt has no key: there is nothing to leave out", *convert, "none.txt")
    # Of another dataset, though it has the same keys.
    self.refused("keys.txt is of the dataset xxh3:", "convert", "clean", "-o", "new", "--exclude-keys", "keys.txt")
    # Made by hand.
    self.write("some.txt", b"cat/good-0000\ncat/nobody\ndog/nobody\n")
    self.refused("2 of its 3 keys name no sample of this dataset:\n  cat/nobody\n  dog/nobody", *convert, "some.txt")
    self.write("all.txt", "".join(row["key"] + "\n" for row in self.rows("out")[1:]).encode())
    self.pack("convert", "out", "-o", "odd", "--exclude-keys", "all.txt")
    self.assertEqual(1, len(self.rows("odd")))
    self.write("all.txt", b"".join(row["key"].encode() + b"\n" for row in self.rows("odd")))
    self.refused("names every sample", "convert", "odd", "-o", "new", "--exclude-keys", "all.txt")
    self.write("bad.txt", b"50%\n")
    self.refused("bad.txt line 1: 50% is not a key as pack dups writes it", *convert, "bad.txt")
    self.refused("names samples of a packed dataset", "plan", "src", "-o", "new", "--exclude-keys", "keys.txt")

  def test_no_copies(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    self.pack("dups", "out", "--write-list", "keys.txt")
    done = self.pack("convert", "out", "-o", "new", "--exclude-keys", "keys.txt")
    self.assertIn("keys.txt has no key: nothing is left out", done.stderr)
    self.pack("diff", "out", "new", "--check")
    # It is what it would be without the list.
    self.assertIn("nothing to do", self.pack("convert", "out", "-o", "new").stderr)

  def test_names_classes_without_samples(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    dogs = [row["key"] for row in self.rows("out") if row["key"].startswith("dog/")]
    for keys, lost in ((dogs[1:], False), (dogs, True)):
      self.write("keys.txt", "\n".join(keys).encode())
      done = self.pack("convert", "out", "-o", f"new-{lost}", "--exclude-keys", "keys.txt")
      self.assertEqual(lost, "keys.txt leaves out every sample of the class dog;" in done.stderr, done.stderr)

  def test_names_with_control_characters(self):
    self.write("src/new\nline/a.jpg", jpeg(1))
    self.write("src/esc\x1b[31mred/a.jpg", jpeg(2))
    self.pack("src", "-o", "out")
    for label in ("newline", "esc[31mred"):
      said = self.pack("ls", "out", "--label", label, expect=2).stderr
      self.assertIn("did you mean", said)
      self.assertNotIn("\x1b", said)
      self.assertNotIn("new\nline", said)

  def test_shards_of_other_tools(self):
    image, other = str(self.write("image.jpg", jpeg(1))), str(self.write("other.jpg", jpeg(2)))
    foreign_shards.tar(["tar"], str(self.folder / "x.tar"), [("a", image, 1), ("b", other, 1), ("c", image, 1)])
    self.pack("dups", "x.tar", "--write-list", "keys.txt")
    self.pack("convert", "x.tar", "-o", "out", "--exclude-keys", "keys.txt")
    self.assertEqual(["a", "b"], [row["key"] for row in self.rows("out")])


if __name__ == "__main__":
  command.main()
