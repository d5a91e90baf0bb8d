"""pack validate --against: what differs between a dataset and the source as it is now."""

import json

import command
from command import jpeg


class AgainstTest(command.PackTest):

  def findings(self, out="out", against="src", expect=4):
    found = json.loads(self.pack("validate", out, "--against", against, "--json", expect=expect).stdout)
    return sorted((each["id"], each["detail"]) for each in found["findings"] if each["id"].startswith("source-")), found["not_checked"]

  def captions(self):
    for path in sorted((self.folder / "src").rglob("*.jpg")):
      path.with_suffix(".txt").write_bytes(b"caption of " + path.name.encode())

  def test_files_that_the_dataset_lacks_are_named(self):
    self.source(count=10)
    self.write("src/cat/bad.jpg", b"no image")
    self.write("src/cat/copy.jpg", jpeg(0))
    self.write("src/cat/notes.txt", b"of another kind")
    self.pack("src", "-o", "out", "--max-skip", "50%", "--dedupe", "drop", expect=3)
    self.assertEqual([], self.findings(expect=0)[0])
    self.write("src/dog/new.jpg", jpeg(100))
    self.write("src/new/new\n.png", command.png(2, 2))
    self.assertEqual([("source-mismatch", "dog/new.jpg: not in the dataset"), ("source-mismatch", "new/new%0A.png: not in the dataset")], self.findings()[0])
    self.assertIn("not in the dataset", self.pack("validate", "out", "--against", "src", expect=4).stdout)
    # Classes as they were given are no reason to look away.
    self.write("names", b"dog\ncat\nnew\n")
    self.pack("src", "-o", "named", "--classes", "names", "--max-skip", "50%", expect=3)
    self.assertEqual([], self.findings("named", expect=0)[0])
    self.write("src/newer/1.png", command.png(3, 3))
    self.assertEqual([("source-mismatch", "newer/1.png: not in the dataset")], self.findings("named")[0])

  def test_what_was_left_out_as_asked_is_no_loss(self):
    self.source(count=10)
    self.captions()
    self.pack("src", "-o", "chosen", "--include", "cat/*")
    self.assertEqual([], self.findings("chosen", expect=0)[0])
    self.pack("src", "-o", "limited", "--limit", "7")
    found, gaps = self.findings("limited", expect=0)
    self.assertEqual([], found)
    self.assertTrue(any("3 files of the source" in gap for gap in gaps), gaps)
    self.write("src/dog/new.jpg", jpeg(100))
    self.assertEqual(1, len(self.findings("limited")[0]))

  def test_sidecars_are_compared(self):
    self.source(count=10)
    self.captions()
    for path in sorted((self.folder / "src").rglob("*.jpg")):
      path.with_suffix(".png").write_bytes(b"mask of " + path.name.encode())
    self.write("src/cat/good-0000.cls", b"0")
    self.write("src/cat/good-0002.cls", b"0")
    (self.folder / "src/dog/good-0001.txt").write_bytes(b"")
    for carrier in ("webdataset", "tfrecord"):
      with self.subTest(carrier):
        self.pack("src", "-o", carrier, "-f", carrier, "--sidecars", "txt,png:mask,cls:kind", "--missing-part", "keep")
        self.assertEqual([], self.findings(carrier, expect=0)[0])
    self.write("src/cat/good-0004.txt", b"caption of good-0004.jpG")
    self.write("src/dog/good-0001.txt", b"no longer empty")
    self.write("src/dog/good-0003.png", b"mask of good-0003.jpg ")
    self.write("src/cat/good-0002.cls", b"1")
    self.write("src/cat/good-0006.cls", b"1")
    (self.folder / "src/dog/good-0005.txt").unlink()
    for carrier in ("webdataset", "tfrecord"):
      found, _ = self.findings(carrier)
      self.assertEqual([
          ("source-mismatch", "cat/good-0002.cls: the source differs from its byte 0 on"),
          ("source-mismatch", "cat/good-0004.txt: the source differs from its byte 23 on"),
          ("source-mismatch", "cat/good-0006.cls: the source has it, the sample was packed without it"),
          ("source-mismatch", "dog/good-0001.txt: the source differs from its byte 0 on"),
          ("source-mismatch", "dog/good-0003.png: the source differs from its byte 21 on"),
      ], [each for each in found if each[0] == "source-mismatch"])
      self.assertEqual(["dog/good-0005.txt"], [detail.split(":")[0] for id, detail in found if id == "source-missing"])
    # Pixels that were changed on purpose say nothing of captions.
    self.pack("src", "-o", "small", "--resize", "shortest", "--size", "8", "--sidecars", "png:mask")
    self.assertEqual([], self.findings("small", expect=0)[0])
    self.write("src/dog/good-0003.png", b"mask")
    self.assertEqual(1, len(self.findings("small")[0]))

  def test_a_sidecar_that_may_not_be_read_is_no_sidecar_that_is_not_there(self):
    self.source(count=4)
    self.write("src/dog/good-0001.txt", b"a dog")
    self.pack("src", "-o", "out", "--sidecars", "txt", "--missing-part", "keep")
    self.assertEqual(0, self.pack("validate", "out", "--against", "src").returncode)
    self.write("src/cat/good-0000.txt", b"a caption").chmod(0)
    found = json.loads(self.pack("validate", "out", "--against", "src", "--json", expect=4, unprivileged=True).stdout)
    errors = [each for each in found["findings"] if each["severity"] == "error"]
    self.assertEqual(["read-error"], [each["id"] for each in errors])
    self.assertIn("ermission denied", errors[0]["detail"])

  def test_an_image_that_lies_in_another_class_now(self):
    self.source(count=10)
    self.pack("src", "-o", "out")
    (self.folder / "src/cat/good-0004.jpg").rename(self.folder / "src/dog/good-0004.jpg")
    self.write("src/dog/good-0006.jpg", jpeg(600))  # of that name, but another image
    (self.folder / "src/cat/good-0006.jpg").unlink()
    found, _ = self.findings()
    self.assertEqual([("source-mismatch", "dog/good-0004.jpg: packed from cat/good-0004.jpg as cat, now dog"),
                      ("source-mismatch", "dog/good-0006.jpg: not in the dataset")],
                     [each for each in found if each[0] == "source-mismatch"])
    self.assertEqual(2, sum(each[0] == "source-missing" for each in found))

  def test_lists(self):
    self.source(count=4)
    paths = sorted(self.contents("src"))
    lines = [f"{path},{'tabby' if i % 2 else 'beagle'},caption {i}" for i, path in enumerate(paths)]
    self.write("src/a.csv", ("\n".join(["path,label,text", *lines]) + "\n").encode())
    self.pack("src/a.csv", "-o", "out", "--columns", "path=path,label=label,txt=text")
    found, gaps = self.findings(expect=0)
    self.assertEqual([], found)
    self.assertTrue(any("--against with the list itself" in gap for gap in gaps), gaps)
    found, gaps = self.findings(against="src/a.csv", expect=0)
    self.assertEqual([], found)
    self.assertTrue(any("fields that come from columns" in gap for gap in gaps), gaps)
    lines[1] = lines[1].replace("tabby", "beagle")
    self.write("src/cat/new.jpg", jpeg(9))
    self.write("src/a.csv", ("\n".join(["path,label,text", *lines, "cat/new.jpg,tabby,new"]) + "\n").encode())
    self.assertEqual(sorted([("source-mismatch", f"{paths[1]}: packed as tabby, now beagle"), ("source-mismatch", "cat/new.jpg: not in the dataset")]),
                     self.findings(against="src/a.csv")[0])

  def test_what_is_no_source(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    self.assertIn("--against nowhere does not exist", self.pack("validate", "out", "--against", "nowhere", expect=2).stderr)
    self.write("file", b"x")
    self.assertIn("--against file is not a folder", self.pack("validate", "out", "--against", "file", expect=2).stderr)
    self.pack("src", "-o", "other")
    for dataset in ("out", "other"):
      refused = self.pack("validate", "out", "--against", dataset, expect=2).stderr
      self.assertIn(f"--against {dataset} names a dataset, not its source", refused)
      self.assertIn(f"--against {self.folder / 'src'}", refused)


if __name__ == "__main__":
  command.main()
