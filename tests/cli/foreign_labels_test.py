"""Shards of other tools: their labels and splits are what the shards say, or a message tells what is not."""

import io
import os
import shlex
import shutil
import tarfile

import command
from command import jpeg


class ForeignTest(command.PackTest):

  def tar(self, name, labels, first=0):
    """A shard of images with these .cls; None for a sample without one."""
    path = self.write(name)
    with tarfile.open(path, "w") as archive:
      for i, label in enumerate(labels):
        for ending, data in (("jpg", jpeg(first + i)), ("cls", label)):
          if data is None:
            continue
          info = tarfile.TarInfo(f"{first + i:03}.{ending}")
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))
    return name

  def labels(self, *words):
    return {row["key"] or row["path"]: row["label"] for row in self.rows(*words)}


class SplitsTest(ForeignTest):

  def test_convert_takes_the_splits_that_index_takes(self):
    for i in range(8):
      self.write(f"src/{'train' if i < 5 else 'val'}/cat/{i}.jpg", jpeg(i))
    for number, words in enumerate(((), ("-f", "tfrecord"), ("-f", "lmdb"), ("-f", "hdf5"), ("-f", "tfrecord", "--layout", "tfds"))):
      with self.subTest(words):
        out, bare = f"out{number}", f"bare{number}"
        self.pack("src", "-o", out, *words)
        shards = []
        for shard in self.manifest(out)["shards"]:
          there, here = self.folder / out / shard["name"], self.folder / bare / shard["name"]
          here.parent.mkdir(exist_ok=True)
          (shutil.copytree if there.is_dir() else shutil.copyfile)(there, here)
          shards.append(f"{bare}/{shard['name']}")
        self.pack("convert", *shards, "-o", f"made{number}")
        self.assertEqual({"train": 5, "val": 3}, self.manifest(f"made{number}")["splits"])
        self.assertEqual(3, len(self.rows(*shards, "--split", "val")))
        self.pack("convert", shards[1] + ("/" if words == ("-f", "lmdb") else ""), "-o", f"lone{number}")
        self.assertEqual({"val": 3}, self.manifest(f"lone{number}")["splits"])
        self.pack("index", *shards, "-o", f"index{number}")
        self.assertEqual({"train": 5, "val": 3}, self.manifest(f"index{number}")["splits"])

  def test_names_that_tell_only_some(self):
    shards = [self.tar("bare/val-0.tar", [b"0"] * 2), self.tar("bare/x.tar", [b"1"] * 2, first=2)]
    for verb, *words in (("convert",), ("index",)):
      done = self.pack(verb, *shards, "-o", verb, *words)
      self.assertIn("some names of shards tell a split and some do not", done.stderr)
      self.assertEqual({"train": 4}, self.manifest(verb)["splits"])
    self.pack("convert", shards[1], "-o", "one")
    self.assertEqual({"train": 2}, self.manifest("one")["splits"])

  def test_a_manifest_beside_goes_before_names(self):
    shard = self.tar("bare/val-0.tar", [b"0"] * 2)
    self.pack("index", shard, "--split", "fit")
    self.pack("convert", shard, "-o", "out")
    self.assertEqual({"fit": 2}, self.manifest()["splits"])
    # A shard that nothing tells of is in none of those, as for pack index.
    other = self.tar("other/x.tar", [b"1"] * 2, first=2)
    self.pack("convert", shard, other, "-o", "both")
    self.assertEqual({"fit": 2, "train": 2}, self.manifest("both")["splits"])

  def test_a_damaged_manifest_beside_shards_is_not_that_of_another_tool(self):
    self.source(count=6)
    self.pack("src", "-o", "own")
    shards = [f"own/{shard['name']}" for shard in self.manifest("own")["shards"]]
    manifest = self.folder / "own/manifest.json"
    whole = manifest.read_bytes()
    for damaged in (whole[:-40], b""):
      manifest.write_bytes(damaged)
      before = self.contents("own")
      for verb in ("convert", "index"):
        refused = self.pack(verb, *shards, "-o", "out", expect=4).stderr
        self.assertIn("own/manifest.json", refused)
        self.assertIn("repair", refused)
        self.assertIn("mv -n -- ", refused)
        self.assertEqual(before, self.contents("own"))
      self.assertEqual(6, len(self.rows(*shards)))
    for index in (self.folder / "own").glob("*.pidx"):
      index.unlink()
    self.pack("convert", *shards, "-o", "out")

  def test_a_folder_of_shards_is_told_to_be_named_or_indexed(self):
    self.tar("some shards/val-0.tar", [b"0"] * 2)
    self.write("some shards/a-note", b"")
    for verb, *words in (("convert", "-o", "out"), ("ls",)):
      refused = self.pack(verb, "some shards", *words, expect=2).stderr
      self.assertIn("name them, as in 'some shards'/*.tar, or", refused)
      self.assertIn("index 'some shards'", refused)
    self.write("neither/a.txt", b"text")
    self.assertIn("is not a shard", self.pack("ls", "neither", expect=2).stderr)
    self.pack("index", "some shards")
    self.pack("convert", "some shards", "-o", "out")


class LabelsFromOneTest(ForeignTest):

  def setUp(self):
    super().setUp()
    self.source(count=6, classes=("bird", "cat", "dog"))
    self.pack("src", "-o", "own", "-f", "tfrecord", "--layout", "imagenet", "--key", "index")
    self.want = {os.path.basename(row["path"]): row["label"] for row in self.rows("own")}
    os.mkdir(self.folder / "bare")
    self.shard = "bare/train-00000-of-00001"
    shutil.copy(self.folder / "own/train-00000-of-00001", self.folder / self.shard)

  def found(self, *words):
    return {os.path.basename(row["path"]): row["label"] for row in self.rows(*words)}

  def test_labels_stay_over_many_converts(self):
    self.assertEqual({0, 1, 2}, set(self.want.values()))
    self.assertEqual(self.want, self.found(self.shard))
    shard = self.shard
    for step in ("a", "b"):
      self.pack("convert", shard, "-o", step, "-f", "tfrecord", "--layout", "imagenet", "--key", "index")
      self.assertEqual(self.want, self.found(step))
      os.mkdir(self.folder / f"bare-{step}")
      shard = f"bare-{step}/train-00000-of-00001"
      shutil.copy(self.folder / step / "train-00000-of-00001", self.folder / shard)
    # A lone shard has no names of classes to keep; beside that nothing changes.
    self.assertEqual((self.folder / "bare-a/train-00000-of-00001").read_bytes(), (self.folder / shard).read_bytes())
    self.pack("convert", self.shard, "-o", "tar", "--key", "index")
    self.assertEqual(self.want, self.found("tar"))

  def test_the_index_of_an_older_version(self):
    self.pack("index", "bare")
    manifest = self.folder / "bare/manifest.json"
    whole = manifest.read_text()
    self.assertIn('"label_base": 1,', whole)
    manifest.write_bytes(self.sealed(whole.replace('"label_base": 1,', '"label_base": 0,')))
    refused = self.pack("index", "bare", expect=5).stderr
    self.assertIn("labels count from 1, its index took them as counting from 0, so that each is 1 too high", refused)
    self.pack(*shlex.split(refused.splitlines()[-1])[1:])
    self.assertEqual(whole, manifest.read_text())
    self.pack("index", "bare")

  def test_by_way_of_an_index(self):
    self.write("names.txt", b"bird\ncat\ndog\n")
    self.pack("index", "bare", "--classes", "names.txt")
    self.assertEqual(1, self.manifest("bare")["label_base"])
    self.assertEqual(self.want, self.found("bare"))
    self.pack("validate", "bare")
    self.pack("index", "bare", "--classes", "names.txt")
    self.pack("convert", "bare", "-o", "again", "-f", "tfrecord", "--layout", "imagenet", "--key", "index")
    self.assertEqual((self.folder / self.shard).read_bytes(), (self.folder / "again/train-00000-of-00001").read_bytes())
    (self.folder / "bare/train-00000-of-00001.pidx").unlink()
    self.pack("repair", "bare")
    self.pack("validate", "bare")

  def test_what_has_labels_from_zero_stays(self):
    self.pack("src", "-o", "zero", "-f", "tfrecord")
    shutil.copy(self.folder / "zero/train-00000-of-00001.tfrecord", self.folder / "bare/zero.tfrecord")
    self.assertEqual(self.want, self.found("bare/zero.tfrecord"))
    refused = self.pack("index", self.shard, "bare/zero.tfrecord", "-o", "both", expect=2).stderr
    self.assertIn("stores 1 for its first class", refused)
    self.assertIn("bare/zero.tfrecord stores 0", refused)
    # Without labels there is nothing to differ.
    self.pack("src", "-o", "none", "-f", "tfrecord", "--label-from", "none")
    shutil.copy(self.folder / "none/train-00000-of-00001.tfrecord", self.folder / "bare/none.tfrecord")
    self.pack("index", self.shard, "bare/none.tfrecord", "-o", "some")
    self.pack("validate", "some")


class TextLabelsTest(ForeignTest):

  def test_the_sample_with_the_text_is_the_one_that_is_named(self):
    for bad, text in ((0, b"cat"), (57, b"1.0"), (199, b"")):
      with self.subTest(bad):
        labels = [b"%d" % (i % 3) for i in range(200)]
        labels[bad] = text
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        done = self.pack("convert", self.tar("a.tar", labels), "-o", "out", expect=3)
        self.assertIn(f"the .cls of {bad:03} is not a number: {text.decode()}", done.stderr)
        self.assertNotIn("lacks its part", done.stderr)
        self.assertEqual({f"a.tar/{bad:09}": "bad-label"}, self.skips())
        self.assertEqual({f"{i:03}": i % 3 for i in range(200) if i != bad}, self.labels("out"))

  def test_samples_without_a_label_among_others_are_counted(self):
    done = self.pack("convert", self.tar("a.tar", [b"0", None, b"-1", b"1"]), "-o", "out")
    self.assertIn("2 of 4 samples have no .cls, or a number below 0, and are packed without a label", done.stderr)
    self.assertEqual({"000": 0, "001": None, "002": None, "003": 1}, self.labels("out"))
    self.assertNotIn("without a label", self.pack("convert", "out", "-o", "again").stderr)
    self.assertNotIn("without a label", self.pack("convert", self.tar("b.tar", [None, None]), "-o", "none").stderr)

  def test_one_number_among_texts(self):
    labels = [b"cat"] * 20
    labels[7] = b"7"
    done = self.pack("convert", self.tar("a.tar", labels), "-o", "out", expect=4)
    self.assertIn("19 of 20", done.stderr)
    self.assertIn("the .cls of 000 is not a number: cat", done.stderr)
    self.assertIn("--missing-part keep", done.stderr)
    self.assertIn("the .cls of 000 is not a number",
                  self.pack("convert", "a.tar", "-o", "out", "--missing-part", "error", expect=2).stderr)
    self.pack("convert", "a.tar", "-o", "kept", "--missing-part", "keep")
    self.assertEqual({None, 7}, set(self.labels("kept").values()))

  def test_texts_alone_are_warned_of_with_the_way_to_take_them(self):
    self.tar("a.tar", [b"cat", b"dog", b"cat"])
    self.pack("index", "a.tar", "-o", "indexed")
    for number, source in enumerate(("a.tar", "indexed")):
      with self.subTest(source):
        done = self.pack("convert", source, "-o", f"out{number}")
        self.assertIn("3 samples have a .cls that is not a number", done.stderr)
        self.assertIn("--label-from cls takes these texts as classes", done.stderr)
        self.assertNotIn("find ", done.stderr)
        self.pack("convert", source, "-o", f"made{number}", "--label-from", "cls")
        self.assertEqual(["cat", "dog"], self.manifest(f"made{number}")["classes"])
        self.assertEqual({"000": "cat", "001": "dog", "002": "cat"}, self.classes(f"made{number}"))

  def classes(self, *words):
    return {row["key"]: row["class"] for row in self.rows(*words)}

  HOSTILE = ("cat", "../dog", "a b", "-rf", "x/y", "/abs", ".hidden", "..", ".", "$(touch pwned)", "`touch pwned`", "a'b\"c", "*", "~",
             "caf\u00e9", "a\\b", "NaN", "%41", " padded ", "CON", "x" * 255)

  def test_hostile_texts_are_classes_by_the_letter(self):
    texts = [text.encode() for text in self.HOSTILE] + [b"caf\xe9"]
    self.tar("-a b.tar", texts * 2)
    done = self.pack("convert", "--label-from", "cls", "-o", "out", "--", "-a b.tar")
    self.assertIn("classes", done.stderr)
    want = sorted(text.strip() for text in texts)
    self.assertEqual(len(want), len(self.manifest()["classes"]))
    self.assertEqual({f"{i:03}": want.index(texts[i % len(texts)].strip()) for i in range(2 * len(texts))}, self.labels("out"))
    self.pack("validate", "out")
    before = self.contents(".")
    for number, form in enumerate(("tfrecord", "lmdb", "hdf5")):
      self.pack("convert", "out", "-o", f"as{number}", "-f", form)
      self.assertEqual(self.classes("out"), self.classes(f"as{number}"))
    # Nothing is written by the name of a class.
    self.pack("extract", "out", "-o", "files")
    self.assertEqual(before, {name: data for name, data in self.contents(".").items() if not name.startswith(("as", "files/"))})
    self.assertEqual([], list(self.folder.rglob("pwned")))
    # What a class is called is what a repair of lost bytes packs again.
    shard = next((self.folder / "out").glob("*.tar"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-2000])
    self.pack("repair", "out")
    self.assertEqual(whole, shard.read_bytes())

  def test_texts_that_are_no_class(self):
    labels = [b"cat", b"", b" \n", b"cat\ndog", b"x" * 300, b"dog\0", None, b"7", b"dog"]
    self.tar("a.tar", labels)
    done = self.pack("convert", "a.tar", "-o", "out", "--label-from", "cls", "--max-skip", "90%", expect=3)
    self.assertEqual({"000": "cat", "007": "7", "008": "dog"}, self.classes("out"))
    self.assertEqual(6, len(self.skips()))
    self.assertEqual({"bad-label"}, set(self.skips().values()))
    for why in ("the .cls of 001 is empty", "the .cls of 003 has control characters", "the .cls of 004 has 300 bytes", "it has no .cls"):
      self.assertIn(why, (self.folder / "out/skipped.jsonl").read_text())
    self.assertIn("packed    3 of 9 images", done.stderr)
    self.assertIn("not a name of a class: cat\\x0adog", done.stderr)
    self.assertIn("is empty", self.pack("convert", "a.tar", "-o", "x", "--label-from", "cls", "--missing-part", "error", expect=2).stderr)
    self.pack("convert", "a.tar", "-o", "kept", "--label-from", "cls", "--missing-part", "keep")
    self.assertEqual(6, sum(label is None for label in self.classes("kept").values()))

  def test_classes_that_are_given_keep_their_numbers(self):
    self.tar("a.tar", [b"dog", b"cat"])
    self.write("names", b"bird\ndog\ncat\n")
    words = ("convert", "a.tar", "--label-from", "cls", "--classes", "names", "-o")
    self.pack(*words, "out")
    self.assertEqual(["bird", "dog", "cat"], self.manifest()["classes"])
    self.assertEqual({"000": 1, "001": 2}, self.labels("out"))
    self.pack(*words, "out")
    self.write("names", b"bird\nDog\ncat\n")
    refused = self.pack(*words, "new", expect=2).stderr
    self.assertIn('the .cls "dog" is not among the classes of --classes (there is "Dog")', refused)

  def test_where_there_are_no_texts(self):
    self.tar("a.tar", [b"0", b"1"])
    self.assertIn("leave it out", self.pack("convert", "a.tar", "-o", "out", "--label-from", "cls", expect=2).stderr)
    for words in (("--label-from", "dir"), ("--classes", "a.tar")):
      self.pack("convert", "a.tar", "-o", "out", *words, expect=2)
    self.source(count=2)
    self.write("src/a.csv", b"path,label\ncat/good-0000.jpg,1\n")
    for source in ("src", "src/a.csv"):
      self.assertIn("--label-from cls is for shards", self.pack(source, "-o", "out", "--label-from", "cls", expect=2).stderr)


if __name__ == "__main__":
  command.main()
