"""`pack diff`."""

import json
import os
import shutil

import command
import foreign_shards
from command import jpeg


class DiffTest(command.PackTest):

  def diff(self, *words, **options):
    return json.loads(self.pack("diff", *words, "--json", **options).stdout)

  def test_the_same_samples_in_every_format(self):
    self.source()
    self.pack("src", "-o", "wds")
    for name in ("tfrecord", "lmdb", "hdf5"):
      self.pack("convert", "wds", "-o", name, "-f", name, "-q")
      done = self.pack("diff", "wds", name, "--check")
      self.assertIn("no sample differs; 20 are the same", done.stdout)
      self.assertIn(f"option format  webdataset -> {name}", done.stdout)
    (self.folder / "alone").mkdir()
    shard = next((self.folder / "wds").glob("*.tar"))
    shutil.copy(shard, self.folder / "alone/x.tar")
    done = self.pack("diff", "wds", "alone/x.tar", "--check")
    self.assertIn("no sample differs", done.stdout)
    self.assertIn("not compared: names of classes", done.stdout)

  def test_each_change_is_a_line(self):
    self.source()
    self.pack("src", "-o", "one", "--no-shuffle")
    self.write("src/dog/good-0001.jpg", jpeg(500))
    (self.folder / "src/cat/good-0000.jpg").rename(self.folder / "src/dog/good-0000.jpg")
    (self.folder / "src/cat/good-0002.jpg").unlink()
    self.write("src/bird/new.jpg", jpeg(501))
    self.pack("src", "-o", "two", "--no-shuffle")
    self.pack("diff", "one", "two")
    lines = self.pack("diff", "one", "two", "--check", expect=8).stdout.splitlines()
    self.assertEqual("added 1, removed 1, content 1, relabelled 1, renamed 1; 17 are the same", lines[0])
    self.assertIn("+ bird/new  train  bird", lines)
    self.assertIn("- cat/good-0002  train  cat", lines)
    self.assertTrue(any(line.startswith("M dog/good-0001  ") for line in lines), lines)
    self.assertIn("L cat/good-0000  cat -> dog", lines)
    self.assertIn("R cat/good-0000 -> dog/good-0000", lines)
    self.assertIn("class + bird (0)", lines)
    self.assertIn("class cat  0 -> 1", lines)
    diff = self.diff("one", "two")
    self.assertEqual({"added": 1, "removed": 1, "content": 1, "relabelled": 1, "moved": 0, "renamed": 1, "fields": 0}, diff["counts"])
    self.assertEqual((20, 20, 17, True), (diff["samples_was"], diff["samples"], diff["same"], diff["differs"]))
    self.assertEqual(4, len(diff["changes"]))
    # By source path and by bytes.
    self.assertEqual(2, self.diff("one", "two", "--by", "path")["counts"]["added"] + self.diff("one", "two", "--by", "path")["counts"]["content"])
    self.assertEqual(2, self.diff("one", "two", "--by", "hash")["counts"]["added"] + self.diff("one", "two", "--by", "hash")["counts"]["content"])

  def test_what_is_left_of_a_damaged_dataset(self):
    self.source()
    self.pack("src", "-o", "one", "--shards", "4")
    shutil.copytree(self.folder / "one", self.folder / "left")
    (self.folder / "left/train-000001.tar").unlink()
    done = self.pack("diff", "one", "left", "--check", expect=4)
    self.assertIn("no sample differs; 20 are the same", done.stdout)
    self.assertIn("train-000001.tar", done.stderr)
    (self.folder / "left/train-000001.pidx").unlink()
    for words, which in ((("one", "left"), "first"), (("left", "one"), "second")):
      done = self.pack("diff", *words, "--check", expect=4)
      self.assertIn("no sample differs; 15 are the same", done.stdout)
      self.assertIn(f"not compared: 5 of the {which} dataset's samples", done.stdout)
      diff = self.diff(*words, expect=4)
      self.assertEqual((False, True, 1), (diff["differs"], diff["damaged"], len(diff["not_looked_at"])))
      self.assertEqual(diff["was"], diff["now"])
    for index in (self.folder / "left").glob("*.pidx"):
      shutil.copy(index, self.folder / index.name)
      index.unlink()
    self.assertEqual("no sample was compared", self.pack("diff", "one", "left", expect=4).stdout.splitlines()[0])
    for index in self.folder.glob("*.pidx"):
      shutil.move(index, self.folder / "left" / index.name)
    # What is surely other is still said.
    self.write("src/cat/good-0000.jpg", jpeg(700))
    self.write("src/cat/good-0002.jpg", jpeg(701))
    self.write("src/cat/new.jpg", jpeg(1))
    self.pack("src", "-o", "two")
    diff = self.diff("one", "two")
    self.assertEqual((1, 2, 0), tuple(diff["counts"][kind] for kind in ("added", "content", "renamed")))
    known = {row["key"] for row in self.rows("one", "-l") if row["shard"] != "train-000001.tar"}
    diff = self.diff("left", "two", expect=4)
    self.assertEqual((0, 0, len(known & {"cat/good-0000", "cat/good-0002"})),
                     tuple(diff["counts"][kind] for kind in ("added", "removed", "content")))
    self.assertIn("6 of the second dataset's samples", diff["not_compared"][0])
    self.assertEqual((1, 0), (self.diff("two", "one")["counts"]["removed"], self.diff("two", "left", expect=4)["counts"]["removed"]))

  def test_copies_that_were_renamed_keep_their_class(self):
    self.source(count=10)
    self.write("src/dog/a.jpg", jpeg(0))
    self.pack("src", "-o", "one")
    for i in range(10):
      name = f"{('cat', 'dog')[i % 2]}/"
      self.write(f"other/{name}r_{i}.jpg", (self.folder / f"src/{name}good-{i:04}.jpg").read_bytes())
    self.pack("other", "-o", "two")
    lines = self.pack("diff", "one", "two").stdout.splitlines()
    self.assertEqual("removed 1, renamed 10; 0 are the same", lines[0])
    self.assertIn("- dog/a  train  dog", lines)

  def test_names_that_are_numbers_are_compared_with_numbers(self):
    # The class "10" is number 2.
    for i in range(8):
      self.write(f"src/{(0, 1, 2, 10)[i % 4]}/{i}.jpg", jpeg(i))
    self.pack("src", "-o", "one")
    foreign_shards.tar(["tar"], str(self.folder / "x.tar"),
                       [(f"{label}/{i}", str(self.folder / f"src/{label}/{i}.jpg"), label)
                        for i, label in enumerate((0, 1, 2, 10) * 2)])
    done = self.pack("diff", "one", "x.tar", "--check")
    self.assertIn("no sample differs; 8 are the same", done.stdout)
    self.assertIn("they are numbers, which the other's labels are taken for", done.stdout)
    # The labels of a shard alone are numbers of classes, whatever their names.
    shard = next(name for name in sorted(os.listdir(self.folder / "one")) if name.endswith(".tar"))
    (self.folder / "alone.tar").write_bytes((self.folder / "one" / shard).read_bytes())
    done = self.pack("diff", "one", "alone.tar", "--check")
    self.assertIn("no sample differs; 8 are the same", done.stdout)
    self.assertIn("labels are compared as numbers", done.stdout)
    # Where one is a name, the lines say what was compared.
    (self.folder / "src/2").rename(self.folder / "src/02")
    self.pack("src", "-o", "two")
    text = self.pack("diff", "two", "x.tar", "--by", "hash").stdout
    self.assertIn("labels are compared as numbers", text)
    self.assertIn("L 10/3  3 -> 10", text)
    self.assertNotIn("L 10/3  10 -> 10", text)
    diff = self.diff("two", "x.tar", "--by", "hash")
    self.assertTrue(diff["labels_by_number"])
    self.assertIn((3, 10), [(each["was"]["label"], each["now"]["label"]) for each in diff["changes"]])

  def test_renamed_copies_in_two_classes_without_names(self):
    for path in ("src/cat/a.jpg", "src/dog/b.jpg"):
      self.write(path, jpeg(0))
    self.pack("src", "-o", "one")
    images = [("p", str(self.folder / "src/cat/a.jpg"), 1), ("q", str(self.folder / "src/dog/b.jpg"), 0)]
    foreign_shards.tar(["tar"], str(self.folder / "x.tar"), images)
    self.assertIn("renamed 2; 0 are the same", self.pack("diff", "one", "x.tar").stdout)

  def test_splits_and_fields(self):
    self.source()
    for i in range(20):
      self.write(f"src/{('cat', 'dog')[i % 2]}/good-{i:04}.txt", b"words %d" % i)
    self.pack("src", "-o", "one", "--fields", "txt", "--split", "train=0.5,val=0.5", "--split-by", "random")
    self.write("src/cat/good-0004.txt", b"other words")
    self.pack("src", "-o", "two", "--fields", "txt", "--split", "train=0.5,val=0.5", "--split-by", "random", "--seed", "1")
    split = {name: {row["key"]: row["split"] for row in self.rows(name)} for name in ("one", "two")}
    moved = sum(split["one"][key] != split["two"][key] for key in split["one"])
    diff = self.diff("one", "two")
    self.assertEqual((moved, 1), (diff["counts"]["moved"], diff["counts"]["fields"]))
    self.assertEqual([{"name": "txt", "lost": 0, "gained": 0, "changed": 1}], diff["fields"])
    self.assertIn({"name": "seed", "was": "0", "now": "1"}, diff["options"])
    self.assertIn("F cat/good-0004  txt", self.pack("diff", "one", "two").stdout)
    self.pack("src", "-o", "three", "--split", "train=0.5,val=0.5", "--split-by", "random", "--seed", "1")
    self.assertEqual(20, self.diff("two", "three")["fields"][0]["lost"])

  def test_many_changes_and_odd_names(self):
    for i in range(30):
      self.write(b"src/cat/\xff%d\x1b.jpg" % i, jpeg(i))
    self.write("other/cat/a.jpg", jpeg(900))
    self.write("other/cat/b.jpg", jpeg(901))
    self.pack("src", "-o", "one")
    self.pack("other", "-o", "two")
    text = self.pack("diff", "one", "two").stdout
    self.assertIn("and 10 more removed; --json has them all", text)
    self.assertIn("none is in both; --by hash compares by bytes", text)
    self.assertNotIn("\x1b", text)
    self.assertEqual(32, len(self.diff("one", "two")["changes"]))

  def test_quietly_what_differs_alone(self):
    self.source(count=4)
    self.pack("src", "-o", "one")
    self.pack("convert", "one", "-o", "two", "-f", "tfrecord", "-q")
    self.assertEqual("", self.pack("diff", "one", "two", "-q").stdout)
    self.write("src/dog/more.jpg", jpeg(9))
    self.pack("src", "-o", "three")
    self.assertEqual("+ dog/more  train  dog\n", self.pack("diff", "one", "three", "-q", "--check", expect=8).stdout)

  def test_what_cannot_be_compared(self):
    self.source(count=4)
    self.pack("src", "-o", "one")
    for words in (["one"], ["one", "nowhere"], ["one", "src"], ["one", "one", "one"], ["one", "one", "--by", "name"]):
      self.pack("diff", *words, expect=2)
    index = next((self.folder / "one").glob("*.pidx"))
    index.write_bytes(index.read_bytes()[:-1] + b"x")
    self.pack("diff", "one", "one", expect=4)


if __name__ == "__main__":
  command.main()
