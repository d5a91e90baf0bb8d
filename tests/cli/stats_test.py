"""`pack stats` and what `pack info` counts."""

import io
import json
import shutil
import tarfile

import command
from command import jpeg


class StatsTest(command.PackTest):

  def stats(self, *words, **options):
    return json.loads(self.pack("stats", *words, "--json", **options).stdout)

  def words(self, text):
    return [" ".join(line.split()) for line in text.splitlines()]

  def test_of_a_dataset(self):
    self.source(count=30)
    self.write("src/cat/broken.jpg", b"")
    self.pack("src", "-o", "out", "--split", "train=0.8,val=0.2", "--max-skip", "10%", expect=3)
    stats = self.stats("out")
    rows = self.rows("out")
    self.assertEqual((30, 1), (stats["samples"], stats["skipped_inputs"]["count"]))
    self.assertEqual(self.manifest()["splits"], {split["name"]: split["samples"] for split in stats["splits"]})
    for each in stats["classes"]:
      for split, count in each["splits"].items():
        self.assertEqual(count, sum(row["class"] == each["name"] and row["split"] == split for row in rows))
    self.assertEqual(max(row["bytes"] for row in rows), stats["bytes"]["quantiles"]["100"])
    self.assertEqual({"jpg": 30}, stats["images"]["formats"])
    self.assertEqual(stats["dataset"], json.loads(self.pack("info", "out", "--json").stdout)["dataset"])
    text = self.words(self.pack("stats", "out", env={"LC_ALL": "C"}).stdout)
    self.assertIn("samples 30 in 2 shards of webdataset, layout ustar", text)
    self.assertIn("class train val samples share", text)
    self.assertIn(f"cat {stats['classes'][0]['splits']['train']} {stats['classes'][0]['splits']['val']} 15 50.0 % " + 24 * "#", text)
    self.assertIn("skipped 1: 1 empty; listed in skipped.jsonl", text)
    self.assertIn("width 40 40 40 40 40 40 40 40 40 #", text)

  def test_info_leaves_counting_of_many_samples_to_stats(self):
    self.source(count=8)
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    whole = (self.folder / "out/manifest.json").read_text()
    self.assertIn("classes 2: cat 4, dog 4", self.words(self.pack("info", "out").stdout))
    for most, expect in ((10_000_001, 0), (10_000_000, 4)):
      text = whole
      for name in ("packed", "seen", "train"):
        self.assertEqual(1, text.count(f'"{name}": 8'))
        text = text.replace(f'"{name}": 8', f'"{name}": {most}')
      head, _, tail = text.rpartition('"records": 4')
      self.write("out/manifest.json", self.sealed(f'{head}"records": {most - 4}{tail}'))
      # The second index has four samples: it is not read, or refused.
      said = self.words(self.pack("info", "out", expect=expect).stdout)
      self.assertIn("classes 2: cat, dog" + ("; pack stats counts them" if expect == 0 else ""), said)
      # A failure is an object of its own, in the line after.
      counts = json.loads(self.pack("info", "out", "--json", expect=expect).stdout.splitlines()[0])["class_counts"]
      self.assertEqual(None if expect == 0 else [], counts)

  def test_every_format_and_foreign_shards_say_the_same(self):
    self.source()
    self.pack("src", "-o", "wds")
    expected = self.stats("wds")
    same = ("samples", "classes", "bytes", "width", "aspect", "copies", "notes")
    for name in ("tfrecord", "lmdb", "hdf5"):
      self.pack("convert", "wds", "-o", name, "-f", name, "-q")
      got = self.stats(name)
      self.assertEqual({key: expected[key] for key in same}, {key: got[key] for key in same}, name)
    shards = sorted(str(path) for path in (self.folder / "wds").glob("*.tar"))
    for path in (self.folder / "wds").glob("*"):
      if path.suffix != ".tar":
        path.unlink()
    foreign = self.stats(*shards)
    self.assertFalse(foreign["manifest"])
    self.assertEqual(expected["bytes"], foreign["bytes"])
    self.assertEqual(expected["width"], foreign["width"])
    self.assertEqual(expected["images"]["pixels"], foreign["images"]["pixels"])
    self.assertEqual([10, 10], [each["samples"] for each in foreign["classes"]])

  def test_what_is_suspicious(self):
    self.source(count=40)
    self.pack("src", "-o", "clean")
    self.pack("stats", "clean", "--check")
    # A class of one image, a class folder within another, an image under two classes.
    self.write("src/rare/1.jpg", jpeg(100))
    self.write("src/cat/dog/2.jpg", jpeg(101))
    self.write("src/dog/copy.jpg", jpeg(0))
    self.pack("src", "-o", "out")
    done = self.pack("stats", "out", "--check", expect=8)
    for line in ("look at 1 image is packed under several classes", "look at 1 sample of class cat lies in a folder called dog",
                 "look at 1 class of a single sample: rare", "copies 1 sample is a copy of another; pack dups names them"):
      self.assertIn(line, self.words(done.stdout))
    ids = [note["id"] for note in self.stats("out")["notes"]]
    self.assertEqual(["label-conflict", "folder-of-another-class", "single-sample-class"], ids)
    self.pack("stats", "out")

  def test_images_that_are_none(self):
    images = [jpeg(0), b"no image at all", b"", jpeg(1)[:-300]]
    with tarfile.open(self.folder / "x.tar", "w", format=tarfile.USTAR_FORMAT) as shard:
      for i, data in enumerate(images):
        member = tarfile.TarInfo(f"{i}.jpg")
        member.size = len(data)
        shard.addfile(member, io.BytesIO(data))
    notes = {note["id"]: note["names"] for note in self.stats("x.tar", "--check", expect=8)["notes"]}
    self.assertEqual({"unknown-image": ["1"], "empty-image": ["2"], "truncated-image": ["3"]}, notes)
    # Images whose facts the index holds are known.
    self.source("good", count=4)
    self.pack("good", "-o", "made")
    (self.folder / "shards").mkdir()
    next((self.folder / "made").glob("*.tar")).rename(self.folder / "shards/a.tar")
    self.pack("index", "shards")
    self.pack("stats", "shards", "--check")

  def test_images_that_show_nothing(self):
    self.source(count=6)
    self.write("src/cat/dot.png", command.png(1, 1))
    for i in range(7):
      self.write(f"src/dog/black{i}.png", command.png(64, 64, command.png_chunk(b"tEXt", b"n\0%d" % i)))
    self.write("src/dog/broken.jpg", jpeg(9)[:-200] + b"\xff\xd9")
    self.pack("src", "-o", "out")
    lines = self.words(self.pack("stats", "out").stdout)
    self.assertEqual(["look at 1 image has fewer than 16 pixels in all: cat/dot"], [line for line in lines if line.startswith("look at")])
    done = self.pack("stats", "out", "--decode", "-q", "--check", expect=8)
    self.assertEqual(["look at 1 image has fewer than 16 pixels in all: cat/dot", "look at 1 image does not decode: dog/broken"],
                     self.words(done.stdout)[:2])
    self.assertRegex(done.stdout, r"8 images are of nearly one color: .*(dog/black\d, ){3}.*, \.\.\.\n")
    ids = [note["id"] for note in self.stats("out", "--decode")["notes"]]
    self.assertEqual(["tiny-image", "undecodable-image", "one-color-image"], ids)

  def test_a_class_folder_in_another_one(self):
    for split, count in (("train", 20), ("val", 4)):
      for i in range(count):
        self.write(f"src/{split}/{('cat', 'dog')[i % 2]}/{split}{i}.jpg", jpeg(i + (0 if split == "train" else 1000)))
    (self.folder / "src/train/cat").rename(self.folder / "src/train/dog/cat")
    self.pack("src", "-o", "out")
    self.assertIn("look at 10 samples of class dog lie in a folder called cat", self.words(self.pack("stats", "out").stdout))
    # Where no other split makes it a class.
    shutil.copytree(self.folder / "src/train", self.folder / "more", dirs_exist_ok=True)
    for i in range(5):
      self.write(f"more/ship/{i}.jpg", jpeg(5000 + i))
    self.pack("more", "-o", "more-out")
    self.assertIn("look at 10 samples of class dog lie in subfolders of its folder, such as cat; the others lie directly in it",
                  self.words(self.pack("stats", "more-out").stdout))

  def test_of_a_damaged_dataset(self):
    self.source(count=12)
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    want = self.stats("out")
    shards = sorted((self.folder / "out").glob("*.tar"))
    shards[0].unlink()
    shards[1].write_bytes(shards[1].read_bytes()[:-512])
    done = self.pack("stats", "out", "--json", expect=4)
    for shard, why in zip(shards, ("is missing: the manifest lists it", "bytes, the manifest says")):
      self.assertRegex(done.stderr, f"{shard.name}.*{why}")
    got = json.loads(done.stdout)
    self.assertEqual((True, 2), (got["damaged"], len(got["damaged_files"])))
    same = [key for key in want if key not in ("damaged", "damaged_files")]
    self.assertEqual({key: want[key] for key in same}, {key: got[key] for key in same})
    self.assertIn("warning: 4 images cannot be read", self.pack("stats", "out", "--decode", expect=4).stderr)
    # Without its index nobody knows what a shard held.
    index = sorted((self.folder / "out").glob("*.pidx"))[0]
    index.unlink()
    done = self.pack("stats", "out", "--check", expect=4)
    self.assertIn("not in the numbers, so that there are no notes and no copies", done.stderr)
    self.assertIn("samples 8 in 2 shards of webdataset, layout ustar; not looked at: 1 shard", self.words(done.stdout))
    self.assertEqual(1, done.stderr.count(".pidx"), done.stderr)
    got = self.stats("out", expect=4)
    self.assertEqual(8, sum(each["samples"] for each in got["classes"]))
    self.assertEqual((8, 2, 8, None), (got["samples"], got["shards"], sum(each["samples"] for each in got["splits"]), got["copies"]["groups"]))
    for index in (self.folder / "out").glob("*.pidx"):
      index.unlink()
    got = self.stats("out", expect=4)
    self.assertEqual([None] * 4, [got[name] for name in ("samples", "classes", "unlabelled", "images")])
    (self.folder / "out/manifest.json").write_bytes(b"{}")
    self.pack("stats", "out", expect=4)

  def foreign(self, name, *samples):
    """A tar of other tools: of each sample, names of members and their bytes."""
    with tarfile.open(self.folder / name, "w") as archive:
      for members in samples:
        for member, data in members.items():
          info = tarfile.TarInfo(member)
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))

  def test_labels_that_are_text(self):
    self.foreign("x.tar", *({f"{i}.jpg": jpeg(i), f"{i}.cls": label} for i, label in enumerate((b"0", b"1", b"cat", b"2\0"))))
    notes = {note["id"]: note for note in self.stats("x.tar", "--check", expect=8)["notes"]}
    self.assertEqual((2, ["2", "3"]), (notes["unread-label"]["count"], notes["unread-label"]["names"]))
    self.assertNotIn("partial-field", notes)
    # A sample that has neither lacks the field.
    self.foreign("y.tar", {"0.jpg": jpeg(0), "0.cls": b"cat"}, {"1.jpg": jpeg(1), "1.cls": b"1"}, {"2.jpg": jpeg(2)})
    notes = {note["id"]: note for note in self.stats("y.tar")["notes"]}
    self.assertEqual((1, ["cls"]), (notes["partial-field"]["count"], notes["partial-field"]["names"]))

  def test_copies_without_a_label(self):
    self.foreign("x.tar", *({f"{i}.jpg": jpeg(0)} for i in range(2)))
    notes = self.stats("x.tar")["notes"]
    self.assertEqual(["1 image is in one split more than once, not all with a label that is known"], [note["text"] for note in notes])
    self.assertEqual(["copies-without-label"], [note["id"] for note in notes])

  def test_no_image_at_all(self):
    self.foreign("x.tar", *({f"{i}.v0.jpg": jpeg(i), f"{i}.cls": b"1"} for i in range(2)))
    notes = {note["id"]: note["text"] for note in self.stats("x.tar", "--check", expect=8)["notes"]}
    self.assertEqual("none of 2 samples has an image; a key ends at the first dot of a name, so that v0.jpg is a field", notes["no-image"])
    self.foreign("y.tar", {"0.txt": b"words"})
    self.assertIn("the only sample has no image", [note["text"] for note in self.stats("y.tar")["notes"]])

  def test_quietly_notes_alone(self):
    self.source(count=8)
    self.pack("src", "-o", "out")
    for verb in ("stats", "info"):
      done = self.pack(verb, "out", "-q")
      self.assertEqual(("", ""), (done.stdout, done.stderr))
    self.pack("info", "nowhere", "-q", expect=2)
    self.write("src/rare/1.jpg", jpeg(100))
    self.pack("src", "-o", "more")
    self.assertEqual(["look at 1 class of a single sample: rare"], self.words(self.pack("stats", "more", "-q").stdout))

  def test_odd_names_and_many_classes(self):
    for i in range(25):
      self.write(f"src/class {i:02}/x.jpg", jpeg(i))
    self.write(b"src/\xff<script>\x1b[1m/x.jpg", jpeg(100))
    self.pack("src", "-o", "out")
    text = self.pack("stats", "out").stdout
    self.assertIn("and 6 smaller classes; --json has them all", text)
    self.assertNotIn("\x1b", text)
    self.assertEqual(26, len(self.stats("out")["classes"]))
    self.assertIn("%FF<script>%1B[1m", [each["name"] for each in self.stats("out")["classes"]])

  def test_what_cannot_be_looked_at(self):
    self.source()
    self.pack("src", "-o", "out")
    index = next((self.folder / "out").glob("*.pidx"))
    whole = index.read_bytes()
    index.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    self.assertIn(index.name, self.pack("stats", "out", expect=4).stderr)
    self.pack("info", "out", "--json", expect=4)  # it needs the fields of the first shard
    self.pack("stats", "nowhere", expect=2)
    self.pack("stats", "src", expect=2)
    self.pack("stats", expect=2)


if __name__ == "__main__":
  command.main()
