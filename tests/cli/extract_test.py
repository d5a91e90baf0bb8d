"""`pack extract`: what was packed comes out again, every field of it, and nothing is written elsewhere."""

import io
import json
import os
import resource
import shutil
import tarfile

import command
from command import jpeg

ESCAPED = b"\n" * 250
NO_BIG_FILE = [(resource.RLIMIT_FSIZE, 100_000)]


class ExtractTest(command.PackTest):

  def make_source(self):
    """Images with captions, masks and json beside them."""
    for i in range(8):
      stem = f"src/{'cat' if i % 2 else 'dog'}/a.{i}"
      self.write(stem + ".jpg", jpeg(i))
      self.write(stem + ".txt", b"caption %d\r\n" % i if i else b"")
      self.write(stem + ".png", bytes(range(i, i + 9)))
      self.write(stem + ".mask.PNG", b"mask %d" % i)
      self.write(stem + ".json", b'{"a":  %d}\n' % i)

  def test_every_field_of_every_format(self):
    self.make_source()
    parts = "txt,png:small,mask.PNG,json"
    for name, *flags in (("webdataset",), ("webdataset", "--layout", "pax"), ("tfrecord",), ("hdf5",),
                         ("hdf5", "--layout", "vlen")):
      with self.subTest(name, flags=flags):
        for folder in ("out", "again", "other", "once-more"):
          shutil.rmtree(self.folder / folder, ignore_errors=True)
        self.pack("src", "-o", "out", "-f", name, *flags, "--fields", parts, "--shards", "2", "--key", "index")
        done = self.pack("extract", "out", "again", "--json")
        self.assertEqual(self.contents("src"), self.contents("again"))
        result = json.loads(done.stdout)
        self.assertEqual((40, 0, 0), (result["files"], result["withheld"], result["renamed"]))
        self.assertEqual({"image": 8, "txt": 8, "small": 8, "mask.png": 8, "json": 8}, result["fields"])
        self.assertEqual(sum(map(len, self.contents("src").values())), result["bytes"])
        self.assertIn("extracted 40 files", done.stderr)
        self.assertIn("8 images, 8 json, 8 mask.png, 8 small, 8 txt", done.stderr)
        # And by way of another format.
        self.pack("convert", "out", "-o", "other", "-f", "tfrecord" if name != "tfrecord" else "hdf5")
        self.pack("extract", "other", "once-more")
        self.assertEqual(self.contents("src"), self.contents("once-more"))

  def test_what_was_extracted_in_part_is_no_source(self):
    self.source(count=20)
    self.pack("src", "-o", "out")
    self.pack("extract", "out", "again")
    mark = self.write("again/.pack-extract", b"shardpack extract, version 1\nthe rest")
    self.assertIn("again holds a build or an extraction of pack that has not ended", self.pack("again", "-o", "b", expect=2).stderr)
    self.source("above", count=6)
    (self.folder / "again").rename(self.folder / "above/again")
    self.assertIn("warning: left out again, which pack has written", self.pack("above", "-o", "c").stderr)
    (self.folder / "above/again").rename(self.folder / "again")
    mark.write_text("a file of another program")
    self.pack("again", "-o", "d")
    mark.unlink()
    os.mkfifo(mark)
    self.pack("again", "-o", "e")

  def test_what_with_json_made_is_no_file_of_the_source(self):
    self.source()
    self.pack("src", "-o", "out", "--with-json")
    self.pack("extract", "out", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))

  def test_shards_of_another_tool(self):
    files = {}
    with tarfile.open(self.folder / "foreign.tar", "w") as archive:
      for i in range(3):
        for ending, data in (("jpg", jpeg(i)), ("cls", b"%d" % i), ("txt", b"text"), ("seg.png", b"%d" % i)):
          files[f"a/{i}.{ending}"] = data
          info = tarfile.TarInfo(f"a/{i}.{ending}")
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))
    self.pack("extract", "foreign.tar", "-o", "again")
    self.assertEqual(files, self.contents("again"))
    self.pack("index", "foreign.tar", "-o", "indexed")
    self.pack("extract", "indexed", "-o", "once-more")
    self.assertEqual(files, self.contents("once-more"))

  def shard(self, name, labels):
    """A shard of a third-party tool; answers its files."""
    files = {}
    with tarfile.open(self.folder / name, "w") as archive:
      for i, label in enumerate(labels):
        for ending, data in (("jpg", jpeg(i)), ("cls", label), ("txt", b"text")):
          files[f"{i}.{ending}"] = data
          info = tarfile.TarInfo(f"{i}.{ending}")
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))
    return files

  def test_labels_come_back_as_they_were_written(self):
    files = self.shard("foreign.tar", [b"-1", b"007", b"+3", b"5\n", b" 6 ", b"0", b"-0", b"9" * 25, b"cat"])
    self.pack("extract", "foreign.tar", "-o", "again")
    self.assertEqual(files, self.contents("again"))
    self.pack("index", "foreign.tar", "-o", "indexed")
    self.pack("extract", "indexed", "-o", "once-more")
    self.assertEqual(files, self.contents("once-more"))

  def test_labels_that_are_text(self):
    self.shard("text.tar", [b"cat", b"dog"])
    self.pack("convert", "text.tar", "-o", "kept")  # a field like others, where nothing else is the label
    self.assertEqual("cat", self.pack("cat", "kept", "0", "--field", "cls").stdout)
    self.shard("mixed.tar", [b"7", b"dog"])  # a number is the label, not a field
    self.pack("convert", "mixed.tar", "-o", "mixed", "--missing-part", "keep")
    self.assertEqual(["7", None], [row["class"] for row in sorted(self.rows("mixed"), key=lambda row: row["key"])])
    self.assertEqual("dog", self.pack("cat", "mixed", "1", "--field", "cls").stdout)

  def test_sidecars_that_are_labels(self):
    for name, text in (("a", b"007"), ("b", b"+3"), ("c", b"-1")):
      self.write(f"src/{name}.jpg", jpeg(ord(name)))
      self.write(f"src/{name}.cls", text)
      self.write(f"classed/x/{name}.jpg", jpeg(ord(name)))
      self.write(f"classed/x/{name}.cls", text)
    done = self.pack("classed", "-o", "out", "--fields", "cls", expect=2)
    self.assertIn('cls: x/a.jpg: it has two fields "cls"; --fields cls:other packs these files under another name', done.stderr)
    done = self.pack("src", "-o", "out", "--fields", "cls", expect=2)
    self.assertIn("give the field another name", done.stderr)
    for source in ("src", "classed"):
      self.pack(source, "-o", source + "-out", "--fields", "cls:other")
      self.pack("extract", source + "-out", source + "-again")
      self.assertEqual(self.contents(source), self.contents(source + "-again"))

  def test_where_the_files_go(self):
    self.source()
    self.pack("src", "-o", "out")
    self.pack("extract", "out", "-o", "again")
    self.pack("extract", *sorted(str(path) for path in (self.folder / "out").glob("*.tar")), "-o", "lone")
    self.assertEqual(len(self.contents("src")), len([name for name in self.contents("lone") if name.endswith(".jpg")]))
    self.assertEqual(self.contents("src"), self.contents("again"))
    done = self.pack("extract", "out", "new/deep/er")
    self.assertIn("made      the folder new, which was not there", done.stderr)
    self.assertNotIn("made ", self.pack("extract", "out", "new/deep/too").stderr)
    self.assertIn("pack extract out -o again", self.pack("extract", "out", expect=2).stderr)

  def test_files_that_are_there_are_kept(self):
    self.source()
    self.pack("src", "-o", "out")
    self.write("again/cat/good-0000.jpg", b"mine")
    for words in (["out", "again"], ["out", "-o", "again"]):
      self.assertIn("is not empty", self.pack("extract", *words, expect=5).stderr)
    self.assertEqual({"cat/good-0000.jpg": b"mine"}, self.contents("again"))

  def test_a_folder_of_a_dataset(self):
    self.source()
    self.pack("src", "-o", "out")
    self.pack("src", "-o", "other")
    before = self.contents("out"), self.contents("other")
    for out in ("out", "other", "out/again", "out/new/../again"):
      with self.subTest(out):
        self.assertRegex(self.pack("extract", "out", "-o", out, expect=2).stderr, "dataset.*; extract into another folder")
    self.assertEqual(before, (self.contents("out"), self.contents("other")))

  def test_the_same_command_goes_on(self):
    self.big_source()
    self.pack("src", "-o", "out", "--no-shuffle")
    unfinished, image = self.folder / "again/.pack-extract", self.folder / "again/cat/good-0000.jpg"
    done = self.pack("extract", "out", "again", expect=6, limits=NO_BIG_FILE)
    self.assertIn("What is written is kept. To go on, run again:\n  ", done.stderr)
    self.assertTrue(unfinished.exists())
    image.write_bytes(b"mine")
    refused = self.pack("extract", "out", "again", expect=5).stderr
    self.assertIn("again/cat/good-0000.jpg is there, and is not what the dataset has under this name", refused)
    self.assertEqual(b"mine", image.read_bytes())
    image.unlink()
    self.assertIn("holds what an unfinished run", self.pack("extract", "out", "again", "--limit", "1", expect=5).stderr)
    self.pack("extract", "out", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))
    self.assertFalse(unfinished.exists())
    # It is finished: nobody writes into it any more.
    for words in ((), ("--limit", "1")):
      self.assertIn("is not empty", self.pack("extract", "out", "again", *words, expect=5).stderr)

  def test_a_file_called_as_what_extract_notes_is_kept(self):
    self.source()
    self.pack("src", "-o", "out")
    mine = b"".join(b"%d\n" % i for i in range(50))
    for name, files in (("alone", {}), ("others", {"notes": b"mine"}), ("part", {".pack-extract-part": b"mine"})):
      files = {**files, ".pack-extract": mine}
      for path, data in files.items():
        self.write(f"{name}/{path}", data)
      self.assertIn(f"{name}/.pack-extract is not a file that this version of pack extract has made; move it away",
                    self.pack("extract", "out", "-o", name, expect=5).stderr)
      self.assertEqual(files, self.contents(name))
    files = {".pack-extract": b"", ".pack-extract-part": b"mine"}
    for path, data in files.items():
      self.write(f"empty/{path}", data)
    self.assertIn("is not empty", self.pack("extract", "out", "-o", "empty", expect=5).stderr)
    self.assertEqual(files, self.contents("empty"))

  def big_source(self):
    self.source()
    self.write("src/last/big.jpg", jpeg(99) + bytes(200_000))

  def test_lone_shards_are_known_by_what_they_hold(self):
    self.big_source()
    self.pack("src", "-o", "out", "--no-shuffle", "--shards", "1")
    (self.folder / "out/manifest.json").unlink()
    (self.folder / "elsewhere").mkdir()
    self.pack("extract", "out/train-000000.tar", "-o", "again", expect=6, limits=NO_BIG_FILE)
    before = self.contents("again")
    # Another shard of that name.
    self.write("src/cat/good-0000.jpg", jpeg(1000))
    self.pack("src", "-o", "other", "--no-shuffle", "--shards", "1")
    shutil.copy(self.folder / "out/train-000000.tar", self.folder / "kept.tar")
    shutil.copy(self.folder / "other/train-000000.tar", self.folder / "out/train-000000.tar")
    done = self.pack("extract", "out/train-000000.tar", "-o", "again", expect=5)
    self.assertIn("holds what an unfinished run of pack extract has written of out/train-000000.tar (xxh3:", done.stderr)
    self.assertEqual(before, self.contents("again"))
    # The same, by another path.
    shutil.copy(self.folder / "kept.tar", self.folder / "elsewhere/train-000000.tar")
    self.pack("extract", "elsewhere/train-000000.tar", "-o", "again")
    self.assertEqual(len(self.contents("src")), len([name for name in self.contents("again") if name.endswith(".jpg")]))

  def test_what_another_run_would_meet_again_is_not_said_to_go_on(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "2")
    index = self.folder / "out/train-000001.pidx"
    index.write_bytes(bytes(len(index.read_bytes())))
    done = self.pack("extract", "out", "again", expect=4)
    self.assertNotIn("To go on", done.stderr)

  def test_a_name_that_is_written_otherwise_is_listed(self):
    self.source(count=10)
    self.write(b"src/cat/odd\nname.jpg", jpeg(70))
    self.pack("src", "-o", "out")
    done = self.pack("extract", "out", "again", expect=3)
    self.assertIn("cat/odd\\x0aname.jpg is written as cat/odd%0Aname.jpg", done.stderr)

  def test_a_name_that_is_too_long_is_shortened_and_the_others_are_written(self):
    self.source(count=10)
    for ending, data in ((b".jpg", jpeg(50)), (b".txt", b"text")):
      self.write(b"src/cat/" + ESCAPED + ending, data)
    for i in range(10):
      self.write(f"src/{('cat', 'dog')[i % 2]}/good-{i:04}.txt", b"caption")
    self.pack("src", "-o", "out", "--no-shuffle", "--fields", "txt", "--key", "index")
    done = self.pack("extract", "out", "again", "--json", expect=3)
    want, got = self.contents("src"), self.contents("again")
    self.assertEqual(sorted(want.values()), sorted(got.values()))
    odd = sorted(set(got) - set(want))
    self.assertEqual([".jpg", ".txt"], [os.path.splitext(name)[1] for name in odd])
    self.assertEqual(*[os.path.splitext(name)[0] for name in odd])
    self.assertIn(odd[0], done.stderr)
    self.assertEqual(2, json.loads(done.stdout)["renamed"])

  def test_two_samples_that_want_one_file(self):
    self.write("src/a.jpg", jpeg(1))
    self.write("src/a.jpeg", jpeg(2))
    self.write("src/a.txt", b"of both")
    self.pack("src", "-o", "out", "--fields", "txt", "--key", "index", "--label-from", "none")
    self.pack("extract", "out", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))

  def tar(self, name, samples):
    with tarfile.open(self.folder / name, "w") as archive:
      for key, parts in samples.items():
        for ending, data in parts.items():
          info = tarfile.TarInfo(f"{key}.{ending}")
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))
    return name

  def test_the_files_of_a_sample_whose_key_repeats_stay_together(self):
    first = {"jpg": jpeg(1), "txt": b"one", "cls": b"0"}
    for name, change in (("all", {"jpg": jpeg(2), "txt": b"two", "cls": b"1"}), ("image", {"jpg": jpeg(2)}),
                         ("text", {"txt": b"two"}), ("label", {"cls": b"5"})):
      with self.subTest(name):
        second = {**first, **change}
        self.tar("a.tar", {"000": first, "001": first})
        self.tar("b.tar", {"000": second})
        done = self.pack("extract", "a.tar", "b.tar", "-o", name, "--json", expect=3)
        files = self.contents(name)
        result = json.loads(done.stdout)
        self.assertEqual((9, {"image": 3, "txt": 3, "cls": 3}, 3), (result["files"], result["fields"], result["renamed"]))
        self.assertEqual(9, len(files))
        stems = {path.rsplit(".", 1)[0] for path in files}
        self.assertEqual(3, len(stems), files.keys())
        renamed = (stems - {"000", "001"}).pop()
        self.assertEqual(second, {ending: files[f"{renamed}.{ending}"] for ending in second})
        self.assertEqual(first, {ending: files[f"000.{ending}"] for ending in first})

  def test_a_sample_that_is_there_twice_is_counted_once(self):
    for name in ("a.tar", "b.tar"):
      self.tar(name, {"000": {"jpg": jpeg(1), "txt": b"one"}, name[0]: {"jpg": jpeg(1)}})
    result = json.loads(self.pack("extract", "a.tar", "b.tar", "-o", "again", "--json").stdout)
    self.assertEqual((4, {"image": 3, "txt": 1}), (result["files"], result["fields"]))
    self.assertEqual(4, len(self.contents("again")))
    # What an unfinished run has left is counted as this one's.
    self.tar("b.tar", {"000": {"jpg": jpeg(1), "txt": b"one"}, "b": {"jpg": jpeg(1) + bytes(200_000)}})
    self.pack("extract", "a.tar", "b.tar", "-o", "cut", "--json", expect=6, limits=NO_BIG_FILE)
    result = json.loads(self.pack("extract", "a.tar", "b.tar", "-o", "cut", "--json").stdout)
    self.assertEqual(4, result["files"])

  def test_labels_that_are_no_folders_are_told(self):
    for name in ("cat/1.jpg", "dog/2.jpg", "dog/3.jpg"):
      self.write("src/" + name, jpeg(int(name[4])))
    self.write("list.csv", b"cat/1.jpg,dog\ndog/2.jpg,cat\ndog/3.jpg,dog\n")
    self.pack("list.csv", "--root", "src", "-o", "out", "--columns", "path=0,label=1")
    done = self.pack("extract", "out", "-o", "again")
    self.assertIn("the labels of 2 samples are not the folders of their paths", done.stderr)
    self.assertIn(" extract out -o again-labelled --list again-labelled.csv\n", done.stderr)
    self.pack("extract", "out", "-o", "again-labelled", "--list", "again-labelled.csv")
    self.pack("again-labelled.csv", "--root", "again-labelled", "--classes", "again-labelled.csv.classes", "-o", "OUT")
    self.assertEqual({"cat/1.jpg": "dog", "dog/2.jpg": "cat", "dog/3.jpg": "dog"}, {row["path"]: row["class"] for row in self.rows("OUT")})
    for words in (["src", "-o", "folders"], ["src", "-o", "none", "--label-from", "none"], ["src", "-o", "deep", "--label-from", "dir"]):
      self.pack(*words)
      self.assertNotIn("not the folder", self.pack("extract", words[2], words[2] + "-again").stderr)

  def test_a_damaged_field_does_not_take_the_others_along(self):
    self.make_source()
    self.pack("src", "-o", "out", "--fields", "txt,png:small,mask.PNG,json", "--shards", "1", "--key", "index", "-q")
    shard = self.folder / "out/train-000000.tar"
    with tarfile.open(shard) as archive:
      member = next(each for each in archive if each.name.endswith(".txt") and each.size)
    shard.chmod(0o644)
    with open(shard, "r+b") as file:
      file.seek(member.offset_data)
      file.write(b"C")
    done = self.pack("extract", "out", "again", expect=3)
    self.assertIn("withheld", done.stderr)
    self.assertEqual(39, len(self.contents("again")))


if __name__ == "__main__":
  command.main()
