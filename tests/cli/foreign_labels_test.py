"""Shards of other tools: their labels and splits are what the shards say, or a message tells what is not."""

import io
import os
import shlex
import shutil
import subprocess
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
        program = self.folder / "bin/pack"
        program.parent.mkdir(exist_ok=True)
        program.exists() or program.symlink_to(command.PACK)
        typed = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ")]
        self.assertEqual(3, len(typed), done.stderr)
        typed[0] = typed[0].replace(command.PACK, "pack")
        typed[2] = typed[2].replace(command.PACK, "pack")
        for line in typed:
          subprocess.run(line, shell=True, check=True, cwd=self.folder, stderr=subprocess.DEVNULL,
                         env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"})
        self.assertEqual(["cat", "dog"], self.manifest("OUT")["classes"])
        self.assertEqual({"cat": 2, "dog": 1}, {name: sum(row["class"] == name for row in self.rows("OUT")) for name in ("cat", "dog")})
        for folder in ("again", "classes", "OUT"):
          shutil.rmtree(self.folder / folder)


if __name__ == "__main__":
  command.main()
