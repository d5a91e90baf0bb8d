"""Labels are never guessed wrong in silence: splits in folders, shards of several datasets, columns of numbers."""


import os
import re
import shlex
import shutil
import subprocess
import tarfile
import zipfile

import command
from command import jpeg


def commands(text):
  """The commands that a message tells the user to type, without the program."""
  return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  ")]


def empty_lmdb(path):
  """Leaves the two meta pages, and in both of them databases without a page (struct MDB_meta of mdb.c)."""
  os.truncate(path, 8192)
  with open(path, "r+b") as data:
    for page in (0, 1):
      for database in (0, 1):
        data.seek(page * 4096 + 16 + 24 + database * 48 + 6)
        data.write(bytes(2 + 4 * 8) + b"\xff" * 8)  # depth, four counts; the root
      data.write((1).to_bytes(8, "little"))  # the last page


class SplitFolderTest(command.PackTest):

  def tree(self, *folders, each=3, root="src"):
    for number, folder in enumerate(folders):
      for i in range(each):
        self.write(f"{root}/{folder}/{i}.jpg", jpeg(100 * number + i))
    return root

  def classes_of(self, out="out"):
    return {row["path"]: row.get("class") for row in self.rows(out)}

  def test_split_folders_are_splits(self):
    self.tree("train/cat", "train/dog", "val/cat", "val/dog")
    done = self.pack("src", "-o", "out")
    self.assertIn("--split-by none", done.stderr)
    manifest = self.manifest()
    self.assertEqual(["cat", "dog"], manifest["classes"])
    self.assertEqual({"train": 6, "val": 6}, manifest["splits"])
    self.assertEqual("cat", self.classes_of()["train/cat/0.jpg"])
    self.pack("validate", "out", "--against", "src")
    # The same as when asked for, so that either command resumes the other.
    self.pack("src", "-o", "asked", "--split-by", "dir")
    self.assertEqual(self.contents("asked"), self.contents("out"))
    self.assertIn("complete", self.pack("src", "-o", "out", "--split-by", "dir").stderr)
    self.pack("src", "-o", "classes", "--split-by", "none")
    self.assertEqual(["train", "val"], self.manifest("classes")["classes"])
    self.assertEqual({"train": 12}, self.manifest("classes")["splits"])
    self.pack("src", "-o", "top", "--label-from", "dir:0")
    self.assertEqual(["train", "val"], self.manifest("top")["classes"])
    self.pack("convert", "out", "-o", "records", "-f", "tfrecord")
    self.assertEqual({"train": 6, "val": 6}, self.manifest("records")["splits"])

  def test_other_spellings(self):
    for number, (first, second) in enumerate((("Train", "TEST"), ("training", "validation"), ("dev", "valid"), ("train2017", "val2017"))):
      self.tree(f"{first}/cat", f"{second}/dog", root=f"src{number}")
      self.pack(f"src{number}", "-o", f"out{number}")
      self.assertEqual(["cat", "dog"], self.manifest(f"out{number}")["classes"])
      self.assertEqual({first: 3, second: 3}, self.manifest(f"out{number}")["splits"])

  def test_a_plan_knows_too(self):
    self.tree("train/cat", "train/dog", "val/cat", "val/dog")
    self.pack("plan", "src", "--write", "the.plan")
    self.pack("build", "--plan", "the.plan", "-o", "out")
    self.assertEqual({"train": 6, "val": 6}, self.manifest()["splits"])
    self.pack("src", "-o", "direct")
    self.assertEqual(self.manifest("direct")["shards"], self.manifest()["shards"])

  def test_images_right_under_a_split_have_no_label(self):
    self.tree("train/cat", "train/dog", "val/dog", "test")
    done = self.pack("src", "-o", "out")
    self.assertIn("test holds no class folders, so that 3 images have no label", done.stderr)
    self.assertEqual({"test": 3, "train": 6, "val": 3}, self.manifest()["splits"])
    found = self.classes_of()
    self.assertIn(found["test/0.jpg"], (None, ""))
    self.assertEqual("dog", found["val/0.jpg".replace("val", "val/dog")])
    self.write("src/val/stray.jpg", jpeg(999))
    self.assertIn("val/stray.jpg", self.pack("src", "-o", "o2", expect=2).stderr)

  def test_images_alone(self):
    self.tree("train", "val")
    done = self.pack("src", "-o", "out")
    self.assertIn("6 images have no label", done.stderr)
    self.assertEqual([], self.manifest()["classes"])
    self.assertEqual({"train": 3, "val": 3}, self.manifest()["splits"])
    self.pack("src", "-o", "classes", "--split-by", "none")
    self.assertEqual(["train", "val"], self.manifest("classes")["classes"])

  def test_another_folder_beside_them(self):
    self.tree("train/cat", "train/dog", "val/cat", "extra/cat")
    refused = self.pack("src", "-o", "out", expect=2)
    self.assertFalse((self.folder / "out").exists())
    offered = commands(refused.stderr)
    self.assertEqual(3, len(offered), refused.stderr)
    for number, (words, classes, splits) in enumerate(zip(offered, (["cat", "dog"], ["extra", "train", "val"], ["cat", "dog"]),
                                                          ({"extra": 3, "train": 6, "val": 3}, {"train": 12}, {"train": 6, "val": 3}))):
      shutil.rmtree(self.folder / "out", ignore_errors=True)
      self.pack(*words)
      self.assertEqual((classes, splits), (self.manifest()["classes"], self.manifest()["splits"]), words)

  def test_a_train_among_vehicles_is_a_class(self):
    self.tree("train", "bus", "car")
    self.pack("src", "-o", "out")
    self.assertEqual(["bus", "car", "train"], self.manifest()["classes"])

  def test_fractions_of_a_source_that_is_divided(self):
    self.tree("train/cat", "val/cat")
    self.assertIn("--split-by hash", self.pack("src", "-o", "out", "--split", "a=0.5,b=0.5", expect=2).stderr)
    self.pack("src", "-o", "out", "--split", "a=0.5,b=0.5", "--split-by", "random")
    self.assertEqual(["train", "val"], self.manifest()["classes"])
    self.pack("src", "-o", "o2", "--split", "a=0.5,b=0.5", "--split-by", "none", expect=2)

  def test_archives_and_lists_of_paths(self):
    self.tree("train/cat", "val/dog")
    with tarfile.open(self.folder / "all.tar", "w") as archive:
      archive.add(self.folder / "src", ".")
    with zipfile.ZipFile(self.folder / "all.zip", "w") as archive:
      for path in sorted((self.folder / "src").rglob("*.jpg")):
        archive.write(path, path.relative_to(self.folder / "src"))
    paths = "".join(f"{path.relative_to(self.folder / 'src')}\n" for path in sorted((self.folder / "src").rglob("*.jpg")))
    self.write("src/all.txt", paths.encode())
    for number, source in enumerate((["all.tar", "--input-format", "archive"], ["all.zip"], ["src/all.txt"])):
      self.pack(*source, "-o", f"out{number}")
      self.assertEqual(["cat", "dog"], self.manifest(f"out{number}")["classes"], source)
      self.assertEqual({"train": 3, "val": 3}, self.manifest(f"out{number}")["splits"], source)

  def test_a_dataset_has_its_splits(self):
    self.tree("train/cat", "val/dog")
    self.pack("src", "-o", "out")
    self.assertIn("--split train=1", self.pack("convert", "out", "-o", "one", "--split-by", "none", expect=2).stderr)
    self.pack("convert", "out", "-o", "one", "--split", "train=1")
    self.assertEqual({"train": 6}, self.manifest("one")["splits"])


class SeveralDatasetsTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source("a", classes=("cat", "dog"))
    self.source("b", classes=("bird", "frog"))
    for name in "ab":
      self.pack(name, "-o", f"{name}o", "--shards", "2")

  def shards(self, *folders, glob="*.tar"):
    return [str(path.relative_to(self.folder)) for folder in folders for path in sorted((self.folder / folder).glob(glob))]

  def test_cat_is_never_merged_with_bird(self):
    for words in (["convert", *self.shards("ao", "bo"), "-o", "ab"], ["index", *self.shards("ao", "bo"), "-o", "ab"]):
      refused = self.pack(*words, expect=2)
      self.assertIn("class 0 is cat in", refused.stderr)
      self.assertIn("bird", refused.stderr)
      self.assertFalse((self.folder / "ab").exists())

  def test_one_datasets_shards_keep_names_and_splits(self):
    self.pack("a", "-o", "split", "--split", "fit=0.5,check=0.5", "--split-by", "random")
    for verb in ("convert", "index"):
      self.pack(verb, *self.shards("split"), "-o", verb)
      self.assertEqual(["cat", "dog"], self.manifest(verb)["classes"])
      self.assertEqual({"fit": 10, "check": 10}, self.manifest(verb)["splits"])
    self.assertEqual({"cat", "dog"}, {row["class"] for row in self.rows(self.shards("ao")[0])})

  def test_datasets_of_equal_classes_can_be_joined(self):
    self.source("c", classes=("cat", "dog"))
    self.pack("c", "-o", "co", "--key", "index")
    self.pack("convert", *self.shards("ao", "co"), "-o", "ac", "-f", "tfrecord")
    self.assertEqual(["cat", "dog"], self.manifest("ac")["classes"])
    self.assertEqual(40, self.manifest("ac")["counts"]["packed"])

  def test_one_label_of_many_shards(self):
    self.assertEqual({"cat"}, {row["class"] for row in self.rows(*self.shards("ao"), "--label", "cat")})
    self.pack("extract", *self.shards("ao"), "--label", "cat", "-o", "cats")
    self.assertEqual(10, sum(name.endswith(".jpg") for name in self.contents("cats")))
    for label in ("cat", "0"):
      for words in (["ls"], ["extract", "-o", "mixed"]):
        self.assertIn("class 0 is cat in", self.pack(*words, *self.shards("ao", "bo"), "--label", label, expect=2).stderr)
    self.assertFalse((self.folder / "mixed").exists())
    self.write("lone.tar", (self.folder / self.shards("ao")[0]).read_bytes())
    self.assertIn("give its number", self.pack("ls", "lone.tar", "--label", "cat", expect=2).stderr)

  def test_shards_that_nothing_explains(self):
    os.mkdir(self.folder / "lone")
    shutil.copy(self.folder / self.shards("bo")[0], self.folder / "lone/x.tar")
    refused = self.pack("convert", self.shards("ao")[0], "lone/x.tar", "-o", "ab", expect=2)
    self.assertIn("lone/x.tar", refused.stderr)
    self.assertIn("--classes", refused.stderr)
    self.pack("convert", "lone/x.tar", "-o", "alone")
    self.assertEqual(["0", "1"], self.manifest("alone")["classes"])
    self.write("names.txt", b"cat\ndog\n")
    self.pack("index", "lone/x.tar", "--classes", "names.txt")
    self.pack("convert", self.shards("ao")[0], "lone/x.tar", "-o", "ab", "--key", "index")

  def test_a_damaged_manifest_is_no_missing_one(self):
    path = self.folder / "ao/manifest.json"
    path.write_text(path.read_text().replace('"dog"', '"cow"'))
    self.pack("convert", *self.shards("ao"), "-o", "out", expect=4)
    self.assertFalse((self.folder / "out").exists())
    self.pack("ls", *self.shards("ao"))

  def test_a_manifest_of_other_shards(self):
    """The name alone does not prove that a manifest's classes are those of a shard."""
    shards = self.shards("ao")
    os.mkdir(self.folder / "stale")
    for folder in ("bo", "ao"):  # the shards of ao, the manifest of bo
      for path in (self.folder / folder).iterdir():
        if path.is_file() and (folder == "ao") == (path.suffix == ".tar"):
          shutil.copy(path, self.folder / "stale" / path.name)
    stale = self.shards("stale")
    for words in (["convert", *stale, "-o", "out"], ["index", *stale, "-o", "out"]):
      refused = self.pack(*words, expect=4)
      self.assertIn("--classes FILE", refused.stderr)
      self.assertFalse((self.folder / "out").exists())
    self.assertEqual({"0", "1"}, {row["class"] for row in self.rows(*stale)})  # read they can be, by number
    with open(self.folder / stale[0], "ab") as shard:  # of another size
      shard.write(bytes(512))
    for verb in ("convert", "index"):
      self.assertIn("by the manifest in", self.pack(verb, *stale, "-o", "out", expect=4).stderr)
    self.write("names.txt", b"cat\ndog\n")
    self.pack("index", *shards, "--classes", "names.txt", "-o", "named")

  def test_a_manifest_that_cannot_be_read_is_no_missing_one(self):
    (self.folder / "ao/manifest.json").chmod(0)
    for words in (["ls", *self.shards("ao")], ["convert", *self.shards("ao"), "-o", "out"]):
      done = self.pack(*words, expect=6, unprivileged=True)
      self.assertIn("ao/manifest.json", done.stderr)

  def test_a_shard_that_is_given_twice(self):
    one = self.shards("ao")[0]
    shutil.copy(self.folder / one, self.folder / "copy.tar")
    (self.folder / "link.tar").symlink_to(one)
    for verb in ("convert", "index"):
      for other in (one, "./" + one, "link.tar"):
        done = self.pack(verb, one, other, "-o", "out", expect=2)
        self.assertIn("is given twice", done.stderr)
    os.remove(self.folder / "ao/manifest.json")
    self.assertIn(f"copy.tar is a copy of {one}", self.pack("convert", one, "copy.tar", "-o", "out", expect=2).stderr)
    self.assertFalse((self.folder / "out").exists())

  def test_numbers_of_several_folders(self):
    for folder in ("ao", "bo"):
      os.remove(self.folder / folder / "manifest.json")
    done = self.pack("convert", *self.shards("ao", "bo"), "-o", "out", "--key", "index")
    self.assertRegex(done.stderr, "label 0 of .*ao and label 0 of .*bo become one class")
    self.assertNotIn("become one class", self.pack("convert", *self.shards("ao"), "-o", "one").stderr)

  def test_two_folders(self):
    for words in (["convert", "ao", "bo", "-o", "ab"], ["info", "ao", "bo"], ["ls", "ao", "bo"], ["extract", "ao", "bo", "files"],
                  ["validate", "ao", "bo"], ["bench", "ao", "bo"]):
      refused = self.pack(*words, expect=2)
      self.assertIn("ao and bo are folders, and one dataset is taken at a time", refused.stderr)
    self.assertIn("bo is a folder and", self.pack("info", self.shards("ao")[0], "bo", expect=2).stderr)

  def test_shards_that_are_folders(self):
    self.pack("a", "-o", "l", "-f", "lmdb", "--shards", "2")
    shards = self.shards("l", glob="*.lmdb")
    self.assertEqual(2, len(shards))
    for verb in ("validate", "info", "ls"):
      self.pack(verb, *shards)
    self.pack("convert", *shards, "-o", "again")
    self.assertEqual(["cat", "dog"], self.manifest("again")["classes"])
    self.pack("extract", *shards, "files")
    self.assertEqual(20, len(self.contents("files")))


class ListLabelTest(command.PackTest):

  def rows_of(self, labels, name="train.csv", head="path,label"):
    for i in range(len(labels)):
      self.write(f"{i}.jpg", jpeg(i))
    self.write(name, (head + "\n" + "".join(f"{i}.jpg,{label}\n" for i, label in enumerate(labels))).encode())
    return name

  def test_measurements_are_no_classes(self):
    for labels, line, first in ((["0.25", "0.5", "1.25", "2"], 2, "0.25"), (["1", "2", "1.5"], 4, "1.5"), (["1e-3", "nan", "2"], 2, "1e-3"),
                                (["2024-05-31", "2024-06-01T10:00:00"], 2, "2024-05-31")):
      self.rows_of(labels, head="path,target")
      refused = self.pack("train.csv", "-o", "out", expect=2)
      self.assertIn(f"train.csv:{line}: the label {first} of the column target", refused.stderr)
      for flag in ("--columns label=NAME", "--label-from none", "--label-from column"):
        self.assertIn(flag, refused.stderr)
      self.assertFalse((self.folder / "out").exists())
    self.pack("train.csv", "-o", "out", "--label-from", "column")
    self.assertEqual(["2024-05-31", "2024-06-01T10:00:00"], self.manifest()["classes"])
    self.pack("train.csv", "-o", "none", "--label-from", "none")
    self.assertEqual([], self.manifest("none")["classes"])

  def test_of_every_kind_of_list(self):
    self.rows_of(["0.5", "1.5"])
    self.write("a.jsonl", b'{"path": "0.jpg", "label": 0.5}\n{"path": "1.jpg", "label": 1.5}\n')
    self.write("a.lst", b"0\t0.500000\t0.jpg\n1\t1.500000\t1.jpg\n")
    self.write("a.txt", b"0.jpg 0.5\n1.jpg 1.5\n")
    for name, line in (("a.jsonl", "a.jsonl:1: the label 0.5 of the column label"), ("a.lst", "a.lst:1: the label 0.500000 is"), ("a.txt", "a.txt:1: the label 0.5 is")):
      self.assertIn(line, self.pack(name, "-o", "out", expect=2).stderr)
    self.write("a.lst", b"0\t0.000000\t0.jpg\n1\t1.000000\t1.jpg\n")
    self.assertNotIn("warning", self.pack("a.lst", "-o", "out").stderr)

  def test_names_that_may_be_slips(self):
    for labels, why in ((["cat", "Cat", "dog", "dog "], 'differ in case or blanks alone: "Cat" and "cat", "dog" and "dog "'),
                        (["cat", "dog", "nan", "None"], 'a.csv have classes named "nan" (line 4), "None" (line 5), as programs write'),
                        ([" cat", " dog", " dog"], 'names of classes begin or end with a blank: " cat", " dog"'),
                        ([f"cap {i}" for i in range(20)], "each of the 20 samples of a.csv has a label of its own"),
                        ([str(i) for i in range(20)], "each of the 20 samples of a.csv has a label of its own"),
                        (["cat", "NULL"], 'a class named "NULL" (line 3)')):
      self.rows_of(labels, name="a.csv")
      done = self.pack("a.csv", "-o", "out", "--overwrite")
      self.assertIn(why, done.stderr)
      self.assertEqual(1, done.stderr.count("warning:"), done.stderr)
      self.pack("a.csv", "-o", "out", expect=0)
    self.rows_of(["1", "2", "a", "b", "c", "d"], name="a.csv")
    self.assertNotIn("warning", self.pack("a.csv", "-o", "mixed").stderr)
    self.source("src", classes=("Cat", "cat", "none"))
    self.assertIn('"Cat" and "cat"', self.pack("src", "-o", "folders").stderr)

  def test_a_text_among_numbers(self):
    """It would number all classes anew."""
    for labels, why in ((["0", "1", "2", "x", "2"], 'the labels of a.csv are whole numbers but for "x" (line 5). Correct the list;'),
                        (["0", "1", "null"], 'but for "null" (line 4)'), (["0", "1", "1 ", "10"], 'but for "1 " (line 4)')):
      self.rows_of(labels, name="a.csv")
      self.assertIn(why, self.pack("a.csv", "-o", "out", expect=2).stderr)
      self.pack("a.csv", "-o", "named", "--label-from", "column", "--overwrite", "--max-skip", "100%")
      self.assertEqual(sorted(set(labels)), self.manifest("named")["classes"])
    self.write("a.txt", b"0.jpg 0\n1.jpg 1\n2.jpg 10\ngone.jpg unknown\n")
    self.assertIn("whole numbers but for", self.pack("a.txt", "-o", "out", expect=2).stderr)
    # What was packed is compared with the list as it is.
    self.rows_of(["0", "1", "2", "3"], name="b.csv")
    self.pack("b.csv", "-o", "b")
    self.rows_of(["0", "1", "2", "x"], name="b.csv")
    self.pack("validate", "b", "--against", "b.csv", expect=4)

  def test_names_stay_names(self):
    for number, labels in enumerate((["0.5", "cat"], ["v1.2.3", "v1.2.4"], ["2024-05-31", "cat"], ["1.2.3", "1.2.4"])):
      self.rows_of(labels)
      self.pack("train.csv", "-o", f"out{number}")
      self.assertEqual(sorted(labels), self.manifest(f"out{number}")["classes"])
    self.rows_of(["0.5", "1.5"])
    self.write("names.txt", b"1.5\n0.5\n")
    self.pack("train.csv", "-o", "named", "--classes", "names.txt")
    self.assertEqual(["1.5", "0.5"], self.manifest("named")["classes"])

  def test_numbers_without_0_or_with_gaps(self):
    self.rows_of(["1", "2", "3"])
    done = self.pack("train.csv", "-o", "out")
    self.assertIn("class 0 has no sample; --classes FILE", done.stderr)
    self.rows_of(["0", "5", "2"])
    self.assertIn("3 of the numbers 0 to 5: class 1 is the first without a sample", self.pack("train.csv", "-o", "gaps").stderr)
    self.write("names.txt", b"0\n2\n5\n")
    done = self.pack("train.csv", "-o", "named", "--classes", "names.txt")
    self.assertNotIn("warning", done.stderr)
    self.assertEqual(["0", "2", "5"], self.manifest("named")["classes"])
    self.write("a.lst", b"0\t5.000000\t0.jpg\n1\t2.000000\t1.jpg\n")
    self.pack("a.lst", "-o", "lst", "--classes", "names.txt")
    self.assertEqual({"0.jpg": "5", "1.jpg": "2"}, {row["path"]: row["class"] for row in self.rows("lst")})
    self.rows_of(["0", "1", "2"])
    self.assertNotIn("warning", self.pack("train.csv", "-o", "whole").stderr)

  def test_the_columns_that_were_guessed(self):
    self.rows_of(["cat", "dog"], head="file,class")
    self.assertIn("columns path=file label=class", self.pack("train.csv", "-o", "out").stderr)
    self.assertNotIn("columns path", self.pack("train.csv", "-o", "o2", "--columns", "path=file,label=class").stderr)
    said = self.pack("train.csv", "-o", "unlabelled", "--label-from", "none").stderr
    self.assertIn("columns path=file; not taken: class", said)
    self.write("a.jsonl", b'{"image": "0.jpg", "category": "x"}\n')
    self.assertIn("columns path=image label=category", self.pack("a.jsonl", "-o", "o3").stderr)

  def test_blanks_in_a_header(self):
    self.source(count=2)
    self.write("a.csv", b"path, label\ncat/good-0000.jpg, wolf\ndog/good-0001.jpg, ape\n")
    for number, flags in enumerate(((), ("--columns", "path=path,label=label"), ("--columns", "path=path,label= label"))):
      done = self.pack("a.csv", "--root", "src", "-o", f"out{number}", *flags)
      self.assertEqual({"cat/good-0000.jpg": "wolf", "dog/good-0001.jpg": "ape"}, {row["path"]: row["class"] for row in self.rows(f"out{number}")})
      self.assertIn('have blanks around them: " label"', done.stderr)
    self.write("b.csv", b"label, path\nwolf, cat/good-0000.jpg\n")
    self.pack("b.csv", "--root", "src", "-o", "b")
    self.write("c.csv", b"path,label\ncat/good-0000.jpg,wolf\n")
    self.assertNotIn("blanks", self.pack("c.csv", "--root", "src", "-o", "c").stderr)

  def test_a_header_that_is_taken_for_a_row(self):
    self.rows_of(["tabby", "zorro"], head="filename,breed")
    refused = self.pack("train.csv", "-o", "out", "--columns", "path=0,label=1", "--max-skip", "90%", expect=2)
    self.assertIn("train.csv:1: there is no such file, and it reads like a header", refused.stderr)
    self.pack("train.csv", "-o", "named", "--columns", "path=filename,label=breed")
    self.assertEqual(["tabby", "zorro"], self.manifest("named")["classes"])
    self.write("a.txt", b"image label\n0.jpg 0\n1.jpg 1\n")
    self.assertIn("a.txt:1: there is no such file", self.pack("a.txt", "-o", "text", "--max-skip", "90%", expect=2).stderr)

  def test_a_row_without_a_file_makes_no_class(self):
    self.rows_of(["cat", "dog", "bird"])
    (self.folder / "2.jpg").unlink()
    done = self.pack("train.csv", "-o", "out", "--max-skip", "90%", expect=3)
    self.assertEqual(["cat", "dog"], self.manifest()["classes"])
    self.assertIn("labelled bird, which gets no number; --classes FILE", done.stderr)
    self.write("names.txt", b"bird\ncat\ndog\n")
    self.pack("train.csv", "-o", "kept", "--max-skip", "90%", "--classes", "names.txt", expect=3)
    self.assertEqual(["bird", "cat", "dog"], self.manifest("kept")["classes"])

  def test_a_column_of_splits(self):
    self.source(count=2)
    self.write("l.csv", b"filename,label,split\ncat/good-0000.jpg,cat,train\ndog/good-0001.jpg,dog,val\n")
    done = self.pack("l.csv", "--root", "src", "-o", "out")
    self.assertIn("warning: the column split of l.csv reads like splits, and is not taken as such", done.stderr)

  def test_other_separators(self):
    self.rows_of(["cat"])
    self.write("a.csv", b"filename;label\n0.jpg;cat\n")
    self.assertIn("semicolons, which are not taken", self.pack("a.csv", "-o", "out", "--columns", "path=filename", expect=2).stderr)
    self.write("b.csv", b"filename\tlabel\n0.jpg\tcat\n")
    self.assertIn("--input-format tsv", self.pack("b.csv", "-o", "out", expect=2).stderr)
    self.pack("b.csv", "-o", "out", "--input-format", "tsv")

  def test_the_same_list_again_on_standard_input(self):
    self.source(count=4)
    self.write("src/cat/bad.jpg", b"no image")
    paths = "".join(f"{path.relative_to(self.folder)}\n" for path in sorted((self.folder / "src").rglob("*.jpg")))
    with open(self.write("list", paths.encode())) as stdin:
      refused = self.pack("-", "-o", "out", stdin=stdin, expect=4)
    self.assertIn("Give the same list on standard input to one of:", refused.stderr)

  def test_a_part_of_a_source_numbers_its_classes_anew(self):
    self.source(classes=("cat", "dog", "emu"), count=9)
    self.write("keys.txt", b"emu/good-0002.jpg\ndog/good-0001.jpg\n")
    done = self.pack("keys.txt", "--root", "src", "-o", "part")
    self.assertIn("2 of 3 class folders", done.stderr)
    self.assertIn("dog is 0, of all it would be 1; --classes FILE", done.stderr)
    self.write("names.txt", b"cat\ndog\nemu\n")
    done = self.pack("keys.txt", "--root", "src", "-o", "kept", "--classes", "names.txt")
    self.assertNotIn("warning", done.stderr)
    self.assertEqual({"dog", "emu"}, {row["class"] for row in self.rows("kept")})
    self.write("all.txt", b"cat/good-0000.jpg\nemu/good-0002.jpg\ndog/good-0001.jpg\n")
    self.assertNotIn("warning", self.pack("all.txt", "--root", "src", "-o", "all").stderr)


class FolderMeaningTest(command.PackTest):

  def test_one_class_with_sub_folders(self):
    self.source("wrapped/s")
    done = self.pack("wrapped", "-o", "out")
    self.assertIn("one class s with 2 sub-folders (cat, dog); --label-from dir:1 takes those as classes, as packing", done.stderr)
    done = self.pack("wrapped", "-o", "dir1", "--label-from", "dir:1")
    self.assertEqual(["cat", "dog"], self.manifest("dir1")["classes"])
    self.assertNotIn("sub-folders", done.stderr)
    self.pack("wrapped/s", "-o", "inner")
    self.assertEqual(["cat", "dog"], self.manifest("inner")["classes"])
    self.write("wrapped/s/own.jpg", jpeg(99))  # s is a class of its own
    self.assertNotIn("sub-folders", self.pack("wrapped", "-o", "own").stderr)

  def test_images_and_masks(self):
    for i in range(5):
      self.write(f"two words/images/{i}.jpg", jpeg(i))
      self.write(f"two words/masks/{i}.png", command.png(2, 2 + i))
    done = self.pack("two words", "-o", "out")
    self.assertIn("images and masks hold files of the same names", done.stderr)
    os.mkdir(self.folder / "bin")
    (self.folder / "bin/pack").symlink_to(command.PACK)
    typed = "\n".join(line for line in done.stderr.splitlines() if line.startswith("  "))
    subprocess.run(["sh", "-ec", typed], cwd=self.folder, check=True, capture_output=True,
                   env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
    self.assertEqual(5, self.manifest("OUT")["counts"]["packed"])
    key = self.rows("OUT")[0]
    self.assertTrue(self.pack("cat", "OUT", key["key"], "--field", "mask", text=False).stdout.startswith(b"\x89PNG"))
    self.source("pets", classes=("images", "dogs"))
    self.assertNotIn("same names", self.pack("pets", "-o", "pets-out").stderr)

  def typed(self, text):
    """Types the lines that a message shows, as a user would."""
    (self.folder / "bin").mkdir(exist_ok=True)
    if not (self.folder / "bin/pack").exists():
      (self.folder / "bin/pack").symlink_to(command.PACK)
    lines = "\n".join(line for line in text.splitlines() if line.startswith("  "))
    self.assertTrue(lines, text)
    return subprocess.run(["sh", "-ec", lines], cwd=self.folder, check=True, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})

  def warnings(self, done):
    return [line for line in done.stderr.splitlines() if line.startswith("warning:")]

  def archives(self, name):
    """The folder as a tar and as a zip."""
    with tarfile.open(self.folder / f"{name}.tar", "w") as archive:
      archive.add(self.folder / name, ".")
    with zipfile.ZipFile(self.folder / f"{name}.zip", "w") as archive:
      for path in sorted((self.folder / name).rglob("*.*")):
        archive.write(path, path.relative_to(self.folder / name))
    return f"{name}.tar", f"{name}.zip"

  def test_hidden_folders_and_files_are_left_out(self):
    self.source(count=4)
    for path in (".ipynb_checkpoints/0-checkpoint.jpg", "cat/.ipynb_checkpoints/1.jpg", "__MACOSX/cat/._good-0000.jpg",
                 "cat/._good-0000.jpg", "dog/._good-0001.jpg"):
      self.write(f"src/{path}", jpeg(77))
    for source in ("src", *self.archives("src")):
      done = self.pack(source, "-o", source + "-out")
      self.assertEqual(["cat", "dog"], self.manifest(source + "-out")["classes"], source)
      self.assertEqual((4, 4), tuple(self.manifest(source + "-out")["counts"][name] for name in ("seen", "packed")))
      self.assertIn("note: left out as hidden: the folders .ipynb_checkpoints, __MACOSX, cat/.ipynb_checkpoints; "
                    "2 files of macOS (the first is cat/._good-0000.jpg)", done.stderr)
      self.assertIn("ignored   2 files by extension: 2 ._*\n", done.stderr)
    self.pack("validate", "src-out", "--against", "src")
    done = self.pack("src", "-o", "excluded", "--exclude", "__MACOSX/", "--exclude", ".ipynb_checkpoints/", "--exclude", "._*")
    self.assertNotIn("hidden", done.stderr)
    self.assertEqual([], self.warnings(done))
    self.pack("src/.ipynb_checkpoints", "-o", "itself")  # a source that is named is packed
    shutil.rmtree(self.folder / "src/cat")
    shutil.rmtree(self.folder / "src/dog")
    self.assertIn("left out as hidden: the folders", self.pack("src", "-o", "none", expect=2).stderr)

  def test_splits_below_the_classes(self):
    for name in ("cat", "dog"):
      for split in ("train", "val"):
        self.write(f"two words/{name}/{split}/{split}-{name}.jpg", jpeg(len(name + split)))
    done = self.pack("two words", "-o", "out")
    self.assertIn("the class folders hold folders named like splits (train, val)", done.stderr)
    self.typed(done.stderr[done.stderr.index("warning:"):done.stderr.index("\npacked ")])
    self.assertEqual((["cat", "dog"], {"train": 2, "val": 2}), (self.manifest("OUT")["classes"], self.manifest("OUT")["splits"]))
    for source in self.archives("two words"):
      done = self.pack(source, "-o", source + "-out")
      self.assertIn("named like splits (train, val)", done.stderr)
      self.assertNotIn("ln -s", done.stderr)
    self.assertEqual([], self.warnings(self.pack("two words", "-o", "none", "--split-by", "none")))

  def test_folders_of_the_same_names(self):
    for number, (first, second) in enumerate((("train_data", "test_data"), ("fold1", "fold2"))):
      for top in (first, second):
        for name in ("bird", "cat"):
          self.write(f"src{number}/{top}/{name}/{top}.jpg", jpeg(len(top + name)))
      done = self.pack(f"src{number}", "-o", f"out{number}")
      self.assertIn("hold folders of the same names (bird, cat), as splits do; --split-by dir", done.stderr)
      self.pack(f"src{number}", "-o", f"dir{number}", "--split-by", "dir")
      self.assertEqual((["bird", "cat"], {first: 2, second: 2}),
                       (self.manifest(f"dir{number}")["classes"], self.manifest(f"dir{number}")["splits"]))
      self.assertEqual([], self.warnings(self.pack(f"src{number}", "-o", f"none{number}", "--split-by", "none")))
    for name in ("cat/a", "cat/b", "dog/c", "dog/d"):
      self.write(f"deep/{name}/1.jpg", jpeg(ord(name[-1])))
    self.assertEqual([], self.warnings(self.pack("deep", "-o", "deep-out")))

  def test_splits_below_one_top_folder(self):
    for name in ("train/cat", "val/dog"):
      self.write(f"src/data/{name}/1.jpg", jpeg(len(name)))
    done = self.pack("src", "-o", "out")
    self.assertNotIn("--label-from dir:1", done.stderr)
    self.typed(done.stderr[done.stderr.index("warning:"):done.stderr.index("\npacked ")])
    self.assertEqual((["cat", "dog"], {"train": 1, "val": 1}), (self.manifest("OUT")["classes"], self.manifest("OUT")["splits"]))
    for source in self.archives("src"):
      done = self.pack(source, "-o", source + "-out")
      self.assertIn("named like splits", done.stderr)
      self.assertNotIn(f"{source}/data", done.stderr)
    self.source("wrapped/s")
    for source in self.archives("wrapped"):
      self.assertNotIn("as packing", self.pack(source, "-o", source + "-out").stderr)

  def test_masks_wherever_they_lie(self):
    layouts = {
        "beside": ("cat/{}.jpg", "cat/{}_mask.jpg"),
        "splits": ("train/images/{}.jpg", "train/masks/{}.png"),
        "inner": ("images/train/{}.jpg", "masks/train/{}.png"),
        "below": ("cat/images/{}.jpg", "cat/masks/{}.png"),
        "named": ("imgs/{}.jpg", "annotations/{}_mask.png"),
        "flat": ("{}.jpg", "{}-mask.png"),
    }
    for layout, (image, mask) in layouts.items():
      for i in range(3):
        self.write(f"{layout}/{image.format(i)}", jpeg(i))
        self.write(f"{layout}/{mask.format(i)}", command.png(2, 2 + i))
      found = [line for line in self.warnings(self.pack(layout, "-o", layout + "-out", expect=None)) if "mask" in line]
      self.assertEqual(1, len(found), layout)
      self.assertIn(mask.format(0), found[0])
    for i, name in enumerate(("0", "-rf 1", "$(touch pwned)")):
      self.write(f"it's/cat/{name}.jpg", jpeg(i))
      self.write(f"it's/cat/{name}_mask.png", command.png(2, 2 + i))
    done = self.pack("it's", "-o", "typed-out")
    self.typed(done.stderr[done.stderr.index("3 images are named like the mask"):done.stderr.index("\npacked ")])
    self.assertEqual((3, ["cat"]), (self.manifest("OUT")["counts"]["packed"], self.manifest("OUT")["classes"]))
    self.assertTrue(self.pack("cat", "OUT", "cat/0", "--field", "mask", text=False).stdout.startswith(b"\x89PNG"))
    self.assertEqual([], list(self.folder.rglob("pwned")))

  def test_a_printed_command_holds_no_part_of_a_name(self):
    for i in range(3):
      self.write(f"evil/images/{i}.jpg", jpeg(i))
      self.write(f"evil/masks/{i}.$(touch pwned)", command.png(2, 2 + i))
    done = self.pack("evil", "-o", "out", "--ext", "any")
    self.assertIn("hold files of the same names", done.stderr)
    self.assertNotIn("ln -s", done.stderr)
    for i in range(3):
      self.write(f"mixed/images/{i}.jpg", jpeg(i))
      self.write(f"mixed/masks/{i}.{'PNG' if i == 1 else 'png'}", command.png(2, 2 + i))
    for source in ("mixed", *self.archives("mixed")):
      done = self.pack(source, "-o", source + "-out")
      self.assertIn("hold files of the same names", done.stderr)
      self.assertNotIn("ln -s", done.stderr)

  def test_commas_in_patterns_are_recorded(self):
    self.source(count=4)
    self.write("src/Smith, John/1.jpg", jpeg(50))
    self.pack("src", "-o", "out", "--exclude", "Smith, John/", "--exclude", "*.gif")
    self.assertEqual(4, self.manifest()["counts"]["packed"])
    self.pack("validate", "out", "--against", "src")
    self.pack("src", "-o", "plain", "--exclude", "Smith*/", "--exclude", "*.gif")
    self.assertEqual("Smith*/,*.gif", self.manifest("plain")["options"]["exclude"])
    self.pack("validate", "plain", "--against", "src")

  def test_a_complete_dataset_claims_no_more_than_was_looked_at(self):
    self.source("my src", count=4)
    self.pack("my src", "-o", "out")
    path = next((self.folder / "my src").rglob("*.jpg"))
    times = os.stat(path)
    path.write_bytes(path.read_bytes().replace(b"number", b"NUMBER"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    done = self.pack("my src", "-o", "out")
    self.assertNotIn("no source file was changed", done.stderr)
    self.assertIn(f"bytes are compared by {command.PACK} validate out --against '", done.stderr)
    typed = re.search(r"bytes are compared by (.*)\)", done.stderr)[1]
    self.assertEqual(4, subprocess.run(["sh", "-c", typed], cwd=self.folder, capture_output=True, check=False).returncode)

  def test_copies_with_other_fields_and_in_other_splits(self):
    for path in ("train/cat/1.jpg", "train/cat/2.jpg", "val/cat/3.jpg", "val/cat/4.jpg"):
      self.write(f"src/{path}", jpeg(4 if "4" in path else 1))
      self.write(f"src/{path[:-4]}.txt", b"two" if "2" in path else b"one")
    for mode in ("report", "drop"):
      done = self.pack("src", "-o", mode, "--dedupe", mode, "--fields", "txt")
      self.assertIn("2 inputs are copies", done.stderr)
      self.assertIn("; 1 lies in another split, the first is val/cat/3.jpg of train/cat/1.jpg", done.stderr)
      self.assertIn("; 1 has other fields, the first is train/cat/2.jpg of train/cat/1.jpg", done.stderr)
    self.assertNotIn("other fields", self.pack("src", "-o", "images", "--dedupe", "drop").stderr)

  def test_patterns_that_match_nothing(self):
    self.source()
    done = self.pack("src", "-o", "out", "--exclude", "cat", "--include", "*.jpg", "--include", "dgo/*", "--exclude", "tmp/")
    for line in ("--include dgo/* matches no image", "--exclude cat matches no image; --exclude cat/ leaves out a folder",
                 "--exclude tmp/ matches no folder"):
      self.assertIn("warning: " + line, done.stderr)
    self.assertEqual(3, done.stderr.count("warning:"))
    self.assertNotIn("warning", self.pack("src", "-o", "dogs", "--exclude", "cat/", "--include", "*.jpg").stderr)
    with tarfile.open(self.folder / "a.tar", "w") as archive:
      archive.add(self.folder / "src", ".")
    self.assertIn("--exclude cat matches no image", self.pack("a.tar", "-o", "tar", "--exclude", "cat").stderr)

  def test_sidecars_in_upper_case(self):
    self.source(count=4)
    paths = sorted((self.folder / "src").rglob("*.jpg"))
    for path in paths[1:]:
      path.with_suffix(".txt").write_bytes(b"caption")
    paths[0].with_suffix(".TXT").write_bytes(b"caption")
    with tarfile.open(self.folder / "a.tar", "w") as archive:
      archive.add(self.folder / "src", ".")
    for source in ("src", "a.tar"):
      done = self.pack(source, "-o", source + "-out", "--fields", "txt", "--missing-part", "keep")
      self.assertIn("cat/good-0000.TXT is not taken, being written in another case than --fields has", done.stderr)
    for path in paths[1:]:
      path.with_suffix(".txt").rename(path.with_suffix(".TXT"))
    done = self.pack("src", "-o", "none", "--fields", "txt", "--missing-part", "keep")
    self.assertIn("4 files, the first of them cat/good-0000.TXT, are not taken", done.stderr)
    self.pack("src", "-o", "all", "--fields", "TXT:txt")
    self.pack("extract", "all", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))


class EmptyShardTest(command.PackTest):

  def test_an_emptied_shard_among_others(self):
    self.source()
    for form in ("tfrecord", "lmdb", "webdataset"):
      self.pack("src", "-o", form, "-f", form, "--shards", "3")
      shards = sorted(path for path in (self.folder / form).iterdir() if path.suffix in (".tfrecord", ".lmdb", ".tar"))
      self.assertEqual(3, len(shards))
      os.mkdir(self.folder / f"{form}-lone")
      for shard in shards:
        shutil.move(shard, self.folder / f"{form}-lone" / shard.name)
      lone = [f"{form}-lone/{shard.name}" for shard in shards]
      emptied = self.folder / lone[1]
      if form == "lmdb":
        empty_lmdb(emptied / "data.mdb")
      elif form == "webdataset":
        emptied.write_bytes(bytes(10240))
      else:
        emptied.write_bytes(b"")
      for verb in (["convert", *lone, "-o", f"{form}-out"], ["index", *lone, "-o", f"{form}-out"], ["convert", lone[1], "-o", f"{form}-out"],
                   ["validate", *lone]):
        refused = self.pack(*verb, expect=4)
        self.assertIn(shards[1].name, refused.stderr + refused.stdout, verb)
      self.assertFalse((self.folder / f"{form}-out").exists())
      if form == "tfrecord":
        self.assertIn("shard-empty", self.pack("validate", *lone, "--level", "quick", expect=4).stdout)


class ClassGapsTest(command.PackTest):

  def test_a_class_that_the_split_train_lacks(self):
    self.source("src/train", count=4)
    self.source("src/val", count=6, classes=("cat", "dog", "emu"))
    for words in (("plan", "src"), ("src", "-o", "out")):
      self.assertIn("the class emu has samples, but none in the split train", self.pack(*words).stderr)
    self.write("src/train/emu/1.jpg", jpeg(9))
    self.assertNotIn("none in the split", self.pack("src", "-o", "all").stderr)

  def test_a_class_of_which_nothing_could_be_packed(self):
    self.source(count=10)
    self.write("src/auk/1.jpg", b"no image")
    said = self.pack("src", "-o", "out", "--max-skip", "50%", expect=3).stderr
    self.assertIn("the class auk has no sample in the dataset", said)
    self.write("src/auk/2.jpg", jpeg(99))
    self.assertNotIn("has no sample", self.pack("src", "-o", "two", "--max-skip", "50%", expect=3).stderr)

  def test_no_classes(self):
    self.source(count=4)
    self.assertIn("the folders below the source would name them", self.pack("src/cat", "-o", "flat").stderr)
    self.assertNotIn("--label-from", self.pack("src/cat", "-o", "flat2").stderr)
    said = self.pack("src", "-o", "none", "--label-from", "none").stderr
    self.assertIn("none: the samples have no label\n", said)
    said = self.pack("convert", "none", "-o", "converted", "-f", "tfrecord").stderr
    self.assertIn("none: the samples have no label\n", said)

  def test_a_class_with_a_blank(self):
    self.source(count=4)
    self.write("names", b"cat \nDog\n")
    said = self.pack("src", "-o", "out", "--classes", "names", expect=2).stderr
    self.assertIn('the folder "cat" is not among the classes of --classes (there is "cat "); add it there', said)
    self.write("src/a.csv", b"path,label\ncat/good-0000.jpg,Cat\n")
    self.assertIn('(there is "cat ")', self.pack("src/a.csv", "-o", "out", "--classes", "names", expect=2).stderr)


if __name__ == "__main__":
  command.main()
