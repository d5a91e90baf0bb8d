"""Where labels could become those of other pictures, or lose their names, pack says so or refuses."""

import io
import json
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
    self.assertIn("the paths of the source and the names of the classes would be lost", said)
    self.assertEqual(lost, self.contents("out"))
    self.pack("repair", "out", "--from", "copy")
    self.assertEqual(whole, self.contents("out"))

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
