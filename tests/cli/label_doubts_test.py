"""Where labels could become those of other pictures, or lose their names, pack says so or refuses."""

import io
import json
import re
import shlex
import shutil
import tarfile

import command
from command import jpeg


class LabelDoubtsTest(command.PackTest):

  def flat(self, images=3, classes=("airplane", "bird", "cat")):
    for number, name in enumerate(classes):
      for i in range(images):
        self.write(f"src/{name}/{i}.jpg", jpeg(number * 100 + i))
    self.write("flat.csv", b"file,label\n" + b"".join(b"%d.jpg,cat\n" % i for i in range(images)))
    self.write("flat.json", json.dumps({
        "images": [{"id": i, "file_name": f"{i}.jpg", "width": 1, "height": 1} for i in range(images)],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": [0, 0, 1, 1], "area": 1} for i in range(images)]}).encode())

  def test_no_root_is_advised_where_several_fit(self):
    self.flat()
    for source in ("flat.csv", "flat.json"):
      said = self.pack(source, "--root", "src", "-o", "out", expect=2).stderr
      self.assertNotIn("Type:", said)
      for name in ("airplane", "bird", "cat"):
        self.assertIn(f"src/{name}", said)
    # What is left out of packing is not a candidate; the one that has all images is advised.
    shutil.rmtree(self.folder / "src/airplane")
    (self.folder / "src/bird").rename(self.folder / "src/.ipynb_checkpoints")
    for source in ("flat.csv", "flat.json"):
      self.assertRegex(self.pack(source, "--root", "src", "-o", "out", expect=2).stderr, "Type:\n  .*--root .*src/cat\n")

  def test_no_root_is_advised_that_lacks_an_image(self):
    self.flat()
    for name in ("bird", "cat"):
      (self.folder / f"src/{name}/2.jpg").unlink()
    for source in ("flat.csv", "flat.json"):
      said = self.pack(source, "--root", "src", "-o", "out", expect=2).stderr
      self.assertRegex(said, "Type:\n  .*--root .*src/airplane\n")
    (self.folder / "src/airplane/2.jpg").unlink()
    for source in ("flat.csv", "flat.json"):
      said = self.pack(source, "--root", "src", "-o", "out", expect=2).stderr
      self.assertNotIn("Type:", said)
      self.assertNotIn("src/airplane", said.replace("would be", ""))

  def test_labels_that_count_from_one(self):
    for name in ("airplane", "cat"):
      self.write(f"{name}/1.jpg", jpeg(len(name)))
    self.write("l.csv", b"path,label\nairplane/1.jpg,1\ncat/1.jpg,3\n")
    self.write("names", b"airplane\nbird\ncat\ndog\n")
    said = self.pack("l.csv", "-o", "out", "--classes", "names").stderr
    self.assertIn("no sample of l.csv has the label 0, which is airplane", said)
    self.assertIn("2 samples of l.csv lie in a folder that is named as another class, the first: airplane/1.jpg has the label 1, "
                  "which --classes calls bird", said)
    self.write("right.csv", b"path,label\nairplane/1.jpg,0\ncat/1.jpg,2\n")
    self.assertNotIn("warning", self.pack("right.csv", "-o", "right", "--classes", "names").stderr)
    self.tar("t/a.tar", [b"1", b"3"])
    self.assertIn("no sample has the label 0, which is airplane", self.pack("index", "t", "--classes", "names").stderr)
    self.tar("u/a.tar", [b"0", b"3"])
    self.assertNotIn("label 0", self.pack("index", "u", "--classes", "names").stderr)

  def tar(self, name, labels, first=0):
    (self.folder / name).parent.mkdir(exist_ok=True)
    with tarfile.open(self.folder / name, "w") as archive:
      for i, label in enumerate(labels):
        for ending, data in (("jpg", jpeg(first + i)), ("cls", label)):
          info = tarfile.TarInfo(f"{first + i}.{ending}")
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))

  def test_the_advice_on_splits_names_the_classes(self):
    self.source(count=2)
    self.write("l.csv", b"filename,label,split\ncat/good-0000.jpg,cat,train\ndog/good-0001.jpg,dog,val\n")
    self.assertIn("with the same --classes FILE", self.pack("l.csv", "--root", "src", "-o", "out").stderr)

  def test_classes_in_another_order_are_named(self):
    self.source(classes=("cat", "dog", "emu"))
    self.write("l.csv", b"path,label\ncat/good-0000.jpg,cat\ndog/good-0001.jpg,dog\nemu/good-0002.jpg,emu\n")
    self.write("a", b"cat\ndog\nemu\n")
    self.write("b", b"cat\nemu\ndog\n")
    for number, source in enumerate((["src"], ["l.csv", "--root", "src"])):
      out = f"out{number}"
      self.pack(*source, "-o", out, "--classes", "a")
      for flags in ((), ("--compare",)):
        said = self.pack(*source, "-o", out, "--classes", "b", *flags, expect=5).stderr
        self.assertIn("the classes have another order (--classes, --class-order): class 1 was dog, is emu", said)
        self.assertNotIn("the source's files differ", said)

  def test_against_a_folder_labels_of_a_list_are_not_compared(self):
    self.flat()
    self.write("l.csv", b"path,label\nairplane/0.jpg,cat\ncat/0.jpg,cat\n")
    self.pack("l.csv", "--root", "src", "-o", "out")
    done = self.pack("validate", "out", "--against", "src")
    self.assertIn("not checked: labels, and which files of the source are not in the dataset", done.stdout)

  def test_against_a_list_of_another_kind(self):
    self.flat()
    self.write("a.lst", b"0\t1\tcat/0.jpg\n")
    self.write("a.csv", b"path,label\ncat/0.jpg,1\n")
    self.pack("a.lst", "--root", "src", "-o", "lst")
    self.assertIn("a.csv is csv by its name, and was read as list, which the dataset was packed from",
                  self.pack("validate", "lst", "--against", "a.csv", expect=2).stderr)
    self.pack("flat.json", "--root", "src/cat", "-o", "coco")
    self.assertIn("a.csv is csv by its name, and was read as coco", self.pack("validate", "coco", "--against", "a.csv", expect=2).stderr)
    self.pack("src", "-o", "folder")
    self.assertIn("packed from one or from an archive of it", self.pack("validate", "folder", "--against", "a.csv", expect=2).stderr)

  def test_a_damaged_manifest_beside_shards(self):
    self.source(count=12)
    self.pack("src", "-o", "out", "--shards", "2")
    self.pack("src", "-o", "copy", "--shards", "2")
    shards = [f"out/train-{i:06}.tar" for i in range(2)]
    manifest = self.folder / "out/manifest.json"
    whole = manifest.read_bytes()
    for cut in (whole[:700], b"", b"[]", b"\0" * len(whole)):
      manifest.write_bytes(cut)
      for words in (["convert", *shards, "-o", "X"], ["index", shards[0], "-o", "X"], ["extract", *shards, "-o", "X", "--list", "X.csv"],
                    ["ls", *shards, "--label", "cat"]):
        said = self.pack(*words, expect=4).stderr
        self.assertIn("the meaning of the labels of the shards beside it is unknown", said)
        self.assertIn("repair", said)
      self.assertFalse((self.folder / "X").exists())
      for words in (["ls", *shards], ["info", *shards]):
        self.assertIn("labels are numbers without names: ", self.pack(*words).stderr)
    self.pack("repair", "out", "--from", "copy")
    self.assertEqual(whole, manifest.read_bytes())
    # Another tool's file of that name says nothing about labels.
    self.tar("other/a.tar", [b"0", b"1"])
    self.write("other/manifest.json", b'{"name": "of a third-party tool"}')
    self.pack("convert", "other/a.tar", "-o", "other-out")
    self.assertNotIn("warning", self.pack("ls", "other/a.tar").stderr)

  def test_a_lost_manifest_is_not_replaced_by_an_index(self):
    self.source(count=12)
    self.pack("src", "-o", "out", "--shards", "2")
    self.pack("src", "-o", "copy", "--shards", "2")
    whole = self.contents("out")
    (self.folder / "out/manifest.json").unlink()
    lost = self.contents("out")
    said = self.pack("index", "out", expect=4).stderr
    self.assertIn("repair out --from COPY", said)
    self.assertNotIn("Type:", said)
    self.assertIn("would lose the paths of the source, the names of the classes", said)
    self.assertEqual(lost, self.contents("out"))
    # Nor with --overwrite, which the advice of repair must not lead to.
    shards = sorted(f"out/{name}" for name in lost if name.endswith(".tar"))
    for words in (["out"], [*shards, "-o", "out"]):
      self.assertIn("repair out --from COPY", self.pack("index", *words, "--overwrite", expect=4).stderr)
      self.assertEqual(lost, self.contents("out"))
    self.assertNotIn("--overwrite", self.pack("repair", "out", expect=4).stderr)
    self.pack("repair", "out", "--from", "copy")
    self.assertEqual(whole, self.contents("out"))

  def damaged(self, out="out", **options):
    """A dataset with a flipped byte in an image, which no rule of the container sees."""
    self.source(**options)
    self.pack("src", "-o", out, "--shards", "2")
    shard = sorted(self.folder.glob(f"{out}/*.tar"))[1]
    bad = bytearray(shard.read_bytes())
    bad[bad.index(b"\xff\xda") + 20] ^= 1  # in the coded pixels
    shard.write_bytes(bad)
    return f"{out}/{shard.name}"

  def test_a_damaged_shard_that_is_named_is_found_by_the_manifest_beside_it(self):
    bad = self.damaged()
    good = bad.replace("000001", "000000")
    for words in ([bad], [good, bad], [bad, "--level", "deep"]):
      said = self.pack("validate", *words, expect=4).stdout
      self.assertIn("error file-hash " + bad, said)
      self.assertIn(str(self.folder / "out"), said)
      typed = re.search(r"`\S*pack (repair \S+)`", said)
      self.assertIn("repair", typed[1])
    self.assertIn("0 errors", self.pack("validate", good).stdout)
    for words in (["cat", bad, "--record", "1"], ["extract", bad, "-o", "files"]):
      self.assertIn("other bytes than the manifests beside them say", self.pack(*words).stderr)
    said = self.pack("convert", good, bad, "-o", "made", expect=4).stderr
    # What it says is right when typed.
    self.write("names.txt", b"cat\ndog\n")
    validate = re.search(r"pack (validate .+)", said)[1]
    self.assertIn("error file-hash", self.pack(*shlex.split(validate), expect=4).stdout)
    index = re.search(r"pack (index SHARDS .+)", said)[1]
    words = index.replace("SHARDS", f"{good} {bad}").replace("OTHER", "other").replace("FILE", "names.txt")
    self.pack(*shlex.split(words))
    self.pack("convert", "other", "-o", "made")
    self.assertEqual(["cat", "dog"], self.manifest("made")["classes"])

  def test_bench_of_a_damaged_dataset_is_no_success(self):
    self.damaged()
    done = self.pack("bench", "out", "--epochs", "1", "-b", "4", expect=4)
    self.assertIn("differ from those that were packed", done.stderr)
    self.assertIn("epoch", done.stdout)

  def test_damage_is_said_where_labels_have_no_names(self):
    self.tar("sh/a.tar", [b"3", b"5"])
    self.pack("index", "sh")
    self.tar("sh/a.tar", [b"3", b"6"])
    self.assertIn("other bytes", self.pack("extract", "sh/a.tar", "-o", "files").stderr)
    self.assertIn("other bytes", self.pack("convert", "sh/a.tar", "-o", "made", expect=4).stderr)

  def test_samples_without_a_label_are_counted(self):
    self.tar("sh/a.tar", [b"0", b"-1", b"-1", b"1"])
    self.assertIn("the labels of 2 of 4 records", self.pack("validate", "sh/a.tar").stdout)
    self.assertIn("2 samples have no label, or -1", self.pack("index", "sh").stderr)

  def test_a_changed_shard_may_be_a_damaged_one(self):
    self.tar("sh/a.tar", [b"3", b"5"])
    self.pack("index", "sh")
    self.tar("sh/a.tar", [b"3", b"6"])
    said = self.pack("index", "sh", expect=5).stderr
    self.assertIn("a.tar has changed", said)
    self.assertIn("they are damaged: first compare them with a good copy", said)
    said = self.pack("validate", "sh", expect=4).stdout
    self.assertIn("with --from COPY takes a shard from a good copy", said)
    self.assertNotIn("from the source", said)

  def test_shards_that_were_changed_after_they_were_indexed(self):
    self.tar("sh/a.tar", [b"3", b"5"])
    self.tar("sh/b.tar", [b"1", b"2"], first=10)
    self.pack("index", "sh")
    self.pack("convert", "sh", "-o", "before")
    self.tar("sh/b.tar", [b"7", b"2"], first=10)
    for words in (["convert", "sh", "-o", "after"], ["extract", "sh", "-o", "after", "--list", "after.csv"], ["plan", "sh"]):
      said = self.pack(*words, expect=4).stderr
      self.assertIn("sh/b.tar was changed after it was indexed", said)
      self.assertIn("validate sh", said)
    self.assertFalse((self.folder / "after").exists())
    self.pack("index", "sh", "--overwrite")
    self.pack("convert", "sh", "-o", "after")
    self.assertEqual([2, 3, 5, 7], sorted(row["label"] for row in self.rows("after")))


if __name__ == "__main__":
  command.main()
