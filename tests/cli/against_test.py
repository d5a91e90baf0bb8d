"""pack validate --against: what differs between a dataset and the source as it is now."""

import json
import os
import re
import shlex
import shutil
import tarfile
import zipfile

import command
from command import jpeg


class AgainstTest(command.PackTest):

  def findings(self, out="out", against="src", expect=4):
    found = json.loads(self.pack("validate", out, "--against", against, "--json", expect=expect).stdout)
    return sorted((each["id"], each["detail"]) for each in found["findings"] if each["id"].startswith("source-")), found["not_checked"]

  def captions(self):
    self.captions_of("src")

  def captions_of(self, root):
    for path in sorted((self.folder / root).rglob("*.jpg")):
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
    self.assertEqual([("source-extra", "dog/new.jpg"), ("source-extra", "new/new%0A.png")], self.findings()[0])
    self.assertIn("not in the dataset", self.pack("validate", "out", "--against", "src", expect=4).stdout)
    # Classes that were given do not excuse a difference.
    self.write("names", b"dog\ncat\nnew\n")
    self.pack("src", "-o", "named", "--classes", "names", "--max-skip", "50%", expect=3)
    self.assertEqual([], self.findings("named", expect=0)[0])
    self.write("src/newer/1.png", command.png(3, 3))
    self.assertEqual([("source-extra", "newer/1.png")], self.findings("named")[0])

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
        self.pack("src", "-o", carrier, "-f", carrier, "--fields", "txt,png:mask,cls:kind", "--missing-part", "keep")
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
          ("source-field-mismatch", "cat/good-0002.cls: the source differs from its byte 0 on"),
          ("source-field-mismatch", "cat/good-0004.txt: the source differs from its byte 23 on"),
          ("source-field-mismatch", "dog/good-0001.txt: the source differs from its byte 0 on"),
          ("source-field-mismatch", "dog/good-0003.png: the source differs from its byte 21 on"),
      ], [each for each in found if each[0] == "source-field-mismatch"])
      self.assertEqual(["dog/good-0005.txt"], [detail.split(":")[0] for id, detail in found if id == "source-field-missing"])
      self.assertEqual(["cat/good-0006.cls"], [detail for id, detail in found if id == "source-field-extra"])
      self.assertEqual(6, len(found))
    # Pixels that were changed on purpose say nothing of captions.
    self.pack("src", "-o", "small", "--resize", "shortest", "--size", "8", "--fields", "png:mask")
    self.assertEqual([], self.findings("small", expect=0)[0])
    self.write("src/dog/good-0003.png", b"mask")
    self.assertEqual(1, len(self.findings("small")[0]))

  def test_a_sidecar_that_may_not_be_read_is_no_sidecar_that_is_not_there(self):
    self.source(count=4)
    self.write("src/dog/good-0001.txt", b"a dog")
    self.pack("src", "-o", "out", "--fields", "txt", "--missing-part", "keep")
    self.assertEqual(0, self.pack("validate", "out", "--against", "src").returncode)
    self.write("src/cat/good-0000.txt", b"a caption").chmod(0)
    found = json.loads(self.pack("validate", "out", "--against", "src", "--json", expect=4, unprivileged=True).stdout)
    errors = [each for each in found["findings"] if each["severity"] == "error"]
    self.assertEqual(["source-unreadable"], [each["id"] for each in errors])
    self.assertIn("ermission denied", errors[0]["detail"])

  def test_an_image_that_lies_in_another_class_now(self):
    self.source(count=10)
    self.pack("src", "-o", "out")
    (self.folder / "src/cat/good-0004.jpg").rename(self.folder / "src/dog/good-0004.jpg")
    self.write("src/dog/good-0006.jpg", jpeg(600))  # of that name, but another image
    (self.folder / "src/cat/good-0006.jpg").unlink()
    found, _ = self.findings()
    self.assertEqual([("source-class-mismatch", "dog/good-0004.jpg: packed from cat/good-0004.jpg as cat, now dog"),
                      ("source-extra", "dog/good-0006.jpg")],
                     [each for each in found if each[0] != "source-missing"])
    self.assertEqual(2, sum(each[0] == "source-missing" for each in found))

  def test_an_image_that_lies_in_another_folder_of_its_class_now(self):
    self.write("src/cat/a/1.jpg", jpeg(1))
    self.write("src/dog/2.jpg", jpeg(2))
    self.pack("src", "-o", "out")
    (self.folder / "src/cat/a").rename(self.folder / "src/cat/b")
    found, _ = self.findings()
    self.assertEqual([("source-moved", "cat/b/1.jpg: packed from cat/a/1.jpg")], [each for each in found if each[0] != "source-missing"])
    self.assertEqual(1, sum(each[0] == "source-missing" for each in found))

  def test_an_image_of_other_bytes(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    self.write("src/cat/good-0000.jpg", jpeg(9))
    self.assertEqual(["source-bytes-mismatch"], [id for id, _ in self.findings()[0]])

  def archives(self):
    """The source in each kind of archive, one after the other."""
    for ending, mode in (("tar", "w"), ("tar.gz", "w:gz")):
      with tarfile.open(self.folder / f"a.{ending}", mode) as archive:
        for child in sorted((self.folder / "src").iterdir()):
          archive.add(child, child.name)
      yield f"a.{ending}"
    with zipfile.ZipFile(self.folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
      for path in sorted((self.folder / "src").rglob("*.*")):
        archive.write(path, path.relative_to(self.folder / "src"))
    yield "a.zip"

  def test_archives(self):
    self.source(count=6)
    self.captions()
    self.write("src/cat/bad.jpg", b"no image")
    for archive in self.archives():
      self.pack(archive, "-o", f"{archive}.out", "--fields", "txt", "--missing-part", "keep", "--max-skip", "50%", expect=3)
    self.pack("src", "-o", "folder.out", "--fields", "txt", "--missing-part", "keep", "--max-skip", "50%", expect=3)
    for archive in self.archives():
      for out in (f"{archive}.out", "folder.out"):
        found, gaps = self.findings(out, against=archive, expect=0)
        self.assertEqual([], found)
        self.assertFalse([gap for gap in gaps if "source" in gap], gaps)
    # Unpacked, it is the same source.
    self.assertEqual([], self.findings("a.zip.out", expect=0)[0])
    (self.folder / "src/cat/good-0000.jpg").unlink()
    (self.folder / "src/dog/good-0001.txt").unlink()
    (self.folder / "src/cat/good-0002.jpg").rename(self.folder / "src/dog/good-0002.jpg")
    (self.folder / "src/cat/good-0002.txt").rename(self.folder / "src/dog/good-0002.txt")
    self.write("src/dog/good-0003.jpg", jpeg(33))
    self.write("src/dog/good-0005.txt", b"caption of good-0005.jpG")
    self.write("src/dog/new.jpg", jpeg(44))
    for archive in self.archives():
      for out in (f"{archive}.out", "folder.out"):
        with self.subTest(archive=archive, out=out):
          found, _ = self.findings(out, against=archive)
          self.assertEqual([("source-bytes-mismatch", "dog/good-0003.jpg"), ("source-class-mismatch", "dog/good-0002.jpg"),
                            ("source-extra", "dog/new.jpg"), ("source-field-mismatch", "dog/good-0005.txt"),
                            ("source-field-missing", "dog/good-0001.txt"), ("source-missing", "cat/good-0000.jpg"),
                            ("source-missing", "cat/good-0002.jpg")],
                           [(id, detail.split(":")[0]) for id, detail in found if not detail.startswith("cat/good-0000.txt")])

  def test_the_archive_that_a_rerun_names(self):
    self.source(count=4)
    archive = next(self.archives())
    self.pack(archive, "-o", "out")
    os.utime(self.folder / archive, (1, 1))
    said = self.pack(archive, "-o", "out", expect=5).stderr
    typed = next(line for line in said.splitlines() if " validate " in line)
    self.pack(*shlex.split(typed)[1:])
    (self.folder / archive).write_bytes((self.folder / archive).read_bytes()[:-3000])
    self.assertEqual(4, self.pack("validate", "out", "--against", archive, expect=None).returncode)

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
    self.assertEqual(sorted([("source-class-mismatch", f"{paths[1]}: packed as tabby, now beagle"), ("source-extra", "cat/new.jpg")]),
                     self.findings(against="src/a.csv")[0])

  def lists(self, root="A"):
    """A csv and a COCO json of the folder's images."""
    paths = sorted(path for path in self.contents(root) if path.endswith(".jpg"))
    self.write(f"{root}/l.csv", ("path,label\n" + "".join(f"{path},{path[:3]}\n" for path in paths)).encode())
    self.write(f"{root}/c.json", json.dumps(self.coco(paths)).encode())
    return paths

  def coco(self, paths):
    return {"images": [{"id": i, "file_name": path, "width": 40, "height": 24} for i, path in enumerate(paths)],
            "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 4} for i in range(len(paths))],
            "categories": [{"id": 1, "name": "x"}]}

  def test_the_images_of_the_list_that_is_named(self):
    self.source("A", count=6)
    self.lists()
    for name in ("l.csv", "c.json"):
      self.pack(f"A/{name}", "-o", "out-" + name[0])
    shutil.copytree(self.folder / "A", self.folder / "B")
    self.write("B/cat/good-0000.jpg", jpeg(9))
    (self.folder / "B/dog/good-0001.jpg").unlink()
    for name in ("l.csv", "c.json"):
      with self.subTest(name):
        self.assertEqual([], self.findings("out-" + name[0], f"A/{name}", expect=0)[0])
        self.assertEqual([("source-bytes-mismatch", "cat/good-0000.jpg"), ("source-missing", "dog/good-0001.jpg")],
                         [(id, detail.split(":")[0]) for id, detail in self.findings("out-" + name[0], f"B/{name}")[0]])
    # With none of the images beside it, the list is not compared with those of another one.
    shutil.rmtree(self.folder / "B/cat")
    shutil.rmtree(self.folder / "B/dog")
    for name in ("l.csv", "c.json"):
      said = self.pack("validate", "out-" + name[0], "--against", f"B/{name}", expect=2).stderr
      self.assertIn("none of the 6 images", said)
      self.assertIn("takes no flags for the source", said)

  def test_a_list_whose_images_lie_elsewhere(self):
    self.source("A", count=6)
    self.lists()
    for name in ("l.csv", "c.json"):
      with self.subTest(name):
        os.makedirs(self.folder / "lists", exist_ok=True)
        os.rename(self.folder / "A" / name, self.folder / "lists" / name)
        self.pack(f"lists/{name}", "--root", "A", "-o", "out-" + name[0])
        found, gaps = self.findings("out-" + name[0], f"lists/{name}", expect=0)
        self.assertEqual([], found)
        self.assertTrue(any(f"those of {self.folder / 'A'} were read" in gap for gap in gaps), gaps)
    self.write("A/cat/good-0000.jpg", jpeg(9))
    self.assertEqual(1, len(self.findings("out-l", "lists/l.csv")[0]))

  def test_images_that_the_list_no_longer_names(self):
    self.source("A", count=6)
    self.captions_of("A")
    paths = self.lists()
    self.pack("A/l.csv", "-o", "out-l", "--fields", "txt")
    self.pack("A/c.json", "-o", "out-c")
    self.write("A/l.csv", ("path,label\n" + "".join(f"{path},{path[:3]}\n" for path in paths[:2] + paths[3:])).encode())
    self.write("A/c.json", json.dumps(self.coco(paths[:2] + paths[3:])).encode())
    for name in ("l.csv", "c.json"):
      with self.subTest(name):
        self.assertEqual([("source-missing", paths[2] + ": the list does not name it")], self.findings("out-" + name[0], f"A/{name}")[0])

  def test_columns_that_were_given(self):
    self.source(count=4)
    paths = sorted(self.contents("src"))
    for header, row, columns in (("path,label,real", "{0},same,{1}", "path=path,label=real"),
                                 ("file,label,real", "{0},{0},{1}", "path=file,label=real"),
                                 ("where,x,what", "{0},{0},{1}", "path=where,label=what"),
                                 ("", "{0},{0},{1}", "path=0,label=2")):
      with self.subTest(columns):
        def write(last):
          lines = [row.format(path, path[:3]) for path in paths[:-1]] + [row.format(paths[-1], last)]
          self.write("src/a.csv", ("\n".join([header, *lines] if header else lines) + "\n").encode())
        write("dog")
        self.pack("src/a.csv", "-o", "out", "--columns", columns)
        self.assertEqual(columns, self.manifest()["options"]["columns"])
        self.assertEqual([], self.findings(against="src/a.csv", expect=0)[0])
        write("cat")
        self.assertEqual([("source-class-mismatch", f"{paths[-1]}: packed as dog, now cat")], self.findings(against="src/a.csv")[0])
        shutil.rmtree(self.folder / "out")

  def test_columns_that_were_not_recorded(self):
    self.source(count=4)
    self.write("src/a.csv", ("where,label\n" + "".join(f"{path},{path[:3]}\n" for path in sorted(self.contents("src")))).encode())
    self.pack("src/a.csv", "-o", "out", "--columns", "path=where")
    text = (self.folder / "out/manifest.json").read_text()
    self.write("out/manifest.json", self.sealed(re.sub(r"\s*" + re.escape('"columns": "path=where",'), "", text)))
    self.assertIn("records no --columns", self.pack("validate", "out", "--against", "src/a.csv", expect=2).stderr)

  def test_skipped_inputs_that_are_good_now(self):
    self.source(count=6)
    self.write("src/cat/bad.jpg", b"no image")
    self.write("src/cat/cut.jpg", jpeg(50)[:-40])
    self.write("src/dog/empty.jpg", b"")
    self.write("src/l.csv", ("path,label\n" + "".join(f"{path},{path[:3]}\n" for path in sorted(self.contents("src")))).encode())
    self.pack("src", "-o", "out", "--max-skip", "90%", expect=3)
    self.pack("src/l.csv", "-o", "listed", "--max-skip", "90%", expect=3)
    self.assertEqual([], self.findings(expect=0)[0])
    self.write("src/cat/bad.jpg", jpeg(60))
    self.write("src/dog/empty.jpg", jpeg(61))
    now = [("source-extra", f"{path}: skipped when it was packed, and usable now") for path in ("cat/bad.jpg", "dog/empty.jpg")]
    self.assertEqual(now, self.findings()[0])
    self.assertEqual(now, self.findings("listed", "src/l.csv")[0])

  def test_that_changed_pixels_are_not_compared_is_said_once(self):
    self.source(count=6)
    self.pack("src", "-o", "small", "--resize", "shortest", "--size", "8", "--shards", "3")
    self.write("src/cat/good-0000.jpg", jpeg(9))
    found, gaps = self.findings("small", expect=0)
    self.assertEqual([], found)
    self.assertEqual(1, sum("pixels were changed on purpose" in gap for gap in gaps), gaps)

  def test_datasets_without_source_paths(self):
    self.source(count=4)
    self.pack("src", "-o", "made")
    for name in sorted(self.contents("made")):
      if name.endswith(".tar"):
        self.write(f"place/{name}", (self.folder / "made" / name).read_bytes())
    self.pack("index", "place")
    said = self.pack("validate", "place", "--against", "src", expect=2).stderr
    self.assertIn("no paths of source files", said)
    self.assertEqual(1, len(said.splitlines()), said)
    # What was converted from it: the path that is refused is not the one to name.
    self.pack("convert", "place", "-o", "tfrecord", "-f", "tfrecord")
    refused = self.pack("validate", "tfrecord", "--against", "place", expect=2).stderr
    self.assertIn("names a dataset", refused)
    self.assertNotIn("--against /", refused)
    self.pack("convert", "made", "-o", "again", "-f", "tfrecord")
    self.assertIn(f"--against {self.folder / 'src'}", self.pack("validate", "again", "--against", "made", expect=2).stderr)
    self.pack("validate", "again", "--against", "src")

  def test_an_archive_in_place_of_a_list(self):
    self.source(count=4)
    self.write("src/l.csv", ("path,label\n" + "".join(f"{path},{path[:3]}\n" for path in sorted(self.contents("src")))).encode())
    self.pack("src/l.csv", "-o", "out")
    said = self.pack("validate", "out", "--against", next(self.archives()), expect=2).stderr
    self.assertIn("is not text", said)
    self.assertNotIn("x00", said)

  def test_an_archive_in_place_of_a_plain_list(self):
    self.source(count=4)
    self.write("l.txt", "".join(f"src/{path}\n" for path in sorted(self.contents("src"))).encode())
    self.pack("l.txt", "-o", "out", "--label-from", "none")
    said = self.pack("validate", "out", "--against", next(self.archives()), expect=2).stderr
    self.assertIn("is not text", said)
    self.assertNotIn("x00", said)

  def test_added_files_that_cannot_be_packed(self):
    self.source(count=6)
    self.pack("src", "-o", "out")
    self.write("src/cat/empty.jpg")
    for against in ("src", *self.archives()):
      self.assertEqual([("source-extra", "cat/empty.jpg")], self.findings(against=against)[0])
    (self.folder / "src/cat/link.jpg").symlink_to("nothing")
    self.assertEqual([("source-extra", "cat/empty.jpg"), ("source-extra", "cat/link.jpg")], self.findings()[0])
    # What was left out, and named, when it was packed is not news.
    self.pack("src", "-o", "again", "--max-skip", "50%", expect=3)
    self.assertEqual([], self.findings("again", expect=0)[0])

  def test_what_messages_say_of_damage_and_of_loss(self):
    self.source(count=4)
    archive = next(self.archives())
    whole = (self.folder / archive).read_bytes()
    for cut in (700, 1030, len(whole) // 2, len(whole) // 2 + 30):
      (self.folder / archive).write_bytes(whole[:cut])
      self.assertNotIn("offset -", self.pack(archive, "-o", "out", expect=None).stderr)
    paths = sorted(self.contents("src"))
    self.write("src/l.csv", ("path,label\n" + "".join(f"{path},{path[:3]}\n" for path in paths)).encode())
    self.pack("src/l.csv", "-o", "listed")
    (self.folder / "src" / paths[0]).unlink()
    self.assertIn(f"{paths[0]} was packed and is gone", self.pack("src/l.csv", "-o", "listed", expect=5).stderr)

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


class Compared:
  """A rerun whose source has other times than when it was packed; FORMAT: what it is packed in."""

  FORMAT = ()
  PARTS = ("--fields", "txt", "--missing-part", "keep")

  def setUp(self):
    super().setUp()
    self.WORDS = ("-o", "out", *self.FORMAT, "--shuffle", *self.PARTS, "--max-skip", "50%")
    self.source(count=6)
    for path in sorted((self.folder / "src").rglob("*.jpg")):
      path.with_suffix(".txt").write_bytes(b"a cat")
    self.write("src/cat/bad.jpg", bytes(len(jpeg(9))))
    self.write("src/cat/bad.txt", b"a cat")
    self.pack("src", *self.WORDS, expect=3)
    self.before = self.contents()
    self.touch()

  def touch(self):
    for path in (self.folder / "src").rglob("*.*"):
      os.utime(path, (1, 1))

  def test_an_input_that_cannot_be_read(self):
    path = self.folder / "src/cat/good-0000.jpg"
    path.chmod(0)
    refused = self.pack("src", *self.WORDS, "--compare", expect=5, unprivileged=True).stderr
    self.assertIn("cat/good-0000.jpg: permission", refused)
    self.assertNotIn("other bytes", refused)
    self.assertNotIn("--overwrite", refused)
    self.assertEqual(self.before, self.contents())

  def test_an_input_that_could_not_be_read_when_it_was_packed(self):
    path = self.folder / "src/dog/good-0001.jpg"
    path.chmod(0)
    shutil.rmtree(self.folder / "out")
    self.pack("src", *self.WORDS, expect=3, unprivileged=True)
    path.chmod(0o644)
    for each in (self.folder / "src").rglob("*.*"):
      os.utime(each, (2, 2))
    refused = self.pack("src", *self.WORDS, "--compare", expect=5).stderr
    self.assertIn("1 input of the source was left out when it was packed, and can be packed now:\n  dog/good-0001.jpg", refused)
    self.assertNotIn("other bytes", refused)

  def test_a_source_of_other_times_and_the_same_bytes(self):
    refused = self.pack("src", *self.WORDS, expect=5).stderr
    typed = [shlex.split(line)[1:] for line in refused.splitlines() if line.endswith(" --compare")]
    self.assertEqual(1, len(typed), refused)
    self.assertEqual(self.before, self.contents())
    done = self.pack(*typed[0], expect=3)
    self.assertIn("every byte of the source is the one that was packed", done.stderr)
    after = self.contents()
    was, now = (json.loads(files.pop("manifest.json")) for files in (self.before, after))
    self.assertEqual(self.before, after)
    self.assertNotEqual(was["source"].pop("times"), now["source"].pop("times"))
    differing = {name for name in was if was[name] != now[name]}
    self.assertLessEqual(len(differing), 1, differing)  # its own hash
    self.assertIn("out is complete", self.pack("src", *self.WORDS, expect=3).stderr)
    self.assertEqual([], list((self.folder / "out").glob(".*")))
    self.pack("validate", "out", "--against", "src")

  def test_the_source_in_another_place(self):
    shutil.copytree(self.folder / "src", self.folder / "copy", copy_function=shutil.copyfile)
    self.pack("copy", *self.WORDS, expect=5)
    self.pack("copy", *self.WORDS, "--compare", expect=3)
    self.assertIn("out is complete", self.pack("copy", *self.WORDS, expect=3).stderr)
    manifest = json.loads((self.folder / "out/manifest.json").read_bytes())
    self.assertTrue(manifest["source"]["root"].endswith("/copy"), manifest["source"])

  def test_other_bytes_of_the_same_size(self):
    for path, data, named in (("cat/good-0002.txt", b"a dog", "cat/good-0002.jpg"), ("cat/good-0000.jpg", jpeg(7), "cat/good-0000.jpg"),
                              ("cat/bad.jpg", jpeg(9), "cat/bad.jpg"), ("dog/good-0001.jpg", bytes(len(jpeg(1))), "dog/good-0001.jpg")):
      if path.endswith(".txt") and not self.PARTS:
        continue
      with self.subTest(path):
        whole = (self.folder / "src" / path).read_bytes()
        self.assertEqual(len(whole), len(data))
        self.write(f"src/{path}", data)
        self.touch()
        refused = self.pack("src", *self.WORDS, "--compare", expect=5).stderr
        what = "was left out when it was packed, and can be packed now" if "bad" in path else "has other bytes than were packed"
        self.assertIn(f"1 input of the source {what}:\n  {named}", refused)
        self.assertIn(" --overwrite", refused.splitlines()[-1])
        self.assertNotIn("--compare", refused.splitlines()[-1])
        self.assertEqual(self.before, self.contents())
        self.write(f"src/{path}", whole)
    self.touch()
    self.pack("src", *self.WORDS, "--compare", expect=3)

  def test_times_that_say_nothing(self):
    # Bytes that changed although the times did not.
    self.pack("src", *self.WORDS, "--compare", expect=3)
    self.write("src/cat/good-0000.jpg", jpeg(7))
    self.touch()
    self.assertIn("out is complete", self.pack("src", *self.WORDS, expect=3).stderr)
    self.assertIn("cat/good-0000.jpg", self.pack("src", *self.WORDS, "--compare", expect=5).stderr)


class CompareTest(Compared, command.PackTest):

  def test_sources_that_are_not_folders(self):
    with tarfile.open(self.folder / "a.tar.gz", "w:gz") as archive:
      archive.add(self.folder / "src", "src")
    self.write("src/a.csv", b"path,label,text\ncat/good-0000.jpg,tabby,one\ndog/good-0001.jpg,pug,two\n")
    for source, words in (("a.tar.gz", ("--fields", "txt", "--missing-part", "keep", "--max-skip", "50%")),
                          ("src/a.csv", ("--columns", "path=path,label=label,txt=text"))):
      with self.subTest(source):
        code = self.pack(source, "-o", "other", *words, expect=None).returncode
        for path in [*self.folder.glob("a.*"), *(self.folder / "src").rglob("*.*")]:
          os.utime(path, (2, path.stat().st_mtime + 1))
        self.pack(source, "-o", "other", *words, expect=5)
        self.pack(source, "-o", "other", *words, "--compare", expect=code)
        self.assertIn("other is complete", self.pack(source, "-o", "other", *words, expect=code).stderr)
        shutil.rmtree(self.folder / "other")

  def test_what_cannot_be_compared(self):
    self.pack("src", "-o", "small", "--resize", "shortest", "--size", "4", "--max-skip", "50%", expect=3)
    os.utime(self.folder / "src/cat/good-0000.jpg", (5, 5))
    words = ("src", "-o", "small", "--resize", "shortest", "--size", "4", "--max-skip", "50%")
    self.assertNotIn("--compare", self.pack(*words, expect=5).stderr)
    self.assertIn("pixels were changed", self.pack(*words, "--compare", expect=2).stderr)
    self.assertIn("--overwrite", self.pack("src", *self.WORDS, "--compare", "--overwrite", expect=2).stderr)
    self.pack("plan", "src", "--write", "p")
    self.pack("build", "--plan", "p", "-o", "planned", "--max-skip", "50%", expect=3)
    self.touch()
    refused = self.pack("build", "src", "--plan", "p", "-o", "planned", "--compare", expect=2).stderr
    self.assertIn("with the flags of the plan", refused)
    self.pack(*shlex.split(refused.splitlines()[-1])[1:], "--max-skip", "50%", expect=3)
    # Where nothing is packed yet there is nothing to compare.
    self.pack("src", "-o", "fresh", "--max-skip", "50%", "--compare", expect=3)

  def test_a_copy_of_an_archive(self):
    for path in (self.folder / "src").rglob("*.*"):
      os.utime(path)  # a zip knows no time before 1980
    for ending in ("tar", "zip"):
      shutil.make_archive(str(self.folder / "a"), ending, self.folder, "src")
      with self.subTest(ending):
        words = ("-o", f"of-{ending}", "--fields", "txt", "--missing-part", "keep", "--max-skip", "50%")
        self.pack(f"a.{ending}", *words, expect=3)
        shutil.copyfile(self.folder / f"a.{ending}", self.folder / f"copy.{ending}")
        os.utime(self.folder / f"copy.{ending}", (7, 7))
        refused = self.pack(f"copy.{ending}", *words, expect=5).stderr
        self.assertIn(f"the archive {self.folder}/copy.{ending} has its members with their names and sizes", refused)
        self.assertNotIn("were changed", refused)
        typed = next(line for line in refused.splitlines() if line.endswith(" --compare"))
        self.pack(*shlex.split(typed)[1:], expect=3)
        self.assertIn("is complete", self.pack(f"copy.{ending}", *words, expect=3).stderr)

  def test_inputs_of_other_sizes(self):
    for path, data in (("cat/good-0000.jpg", jpeg(1000)), ("dog/good-0001.jpg", jpeg(2000))):
      self.write(f"src/{path}", data)
    for words in ((), ("--compare",)):
      refused = self.pack("src", *self.WORDS, *words, expect=5).stderr
      self.assertIn("all inputs are packed again, not those alone that have changed", refused)
      self.assertEqual(self.before, self.contents())
    typed = refused.splitlines()[-1]
    self.assertNotIn("--compare", typed)
    self.pack(*shlex.split(typed)[1:], expect=3)


class CompareTfrecordTest(Compared, command.PackTest):
  FORMAT = ("-f", "tfrecord")


class CompareLmdbTest(Compared, command.PackTest):
  FORMAT = ("-f", "lmdb")
  PARTS = ()  # an LMDB holds image and label alone


class CompareHdf5Test(Compared, command.PackTest):
  FORMAT = ("-f", "hdf5")


class CompareNpyTest(command.PackTest):

  def test_what_holds_pixels_cannot_be_compared(self):
    self.source(count=4)
    words = ("src", "-o", "out", "-f", "npy", "--encode", "raw", "--color", "rgb", "--resize", "exact", "--size", "8x8")
    self.pack(*words)
    before = self.contents()
    os.utime(self.folder / "src/cat/good-0000.jpg", (5, 5))
    self.assertNotIn("--compare", self.pack(*words, expect=5).stderr)
    refused = self.pack(*words, "--compare", expect=2).stderr
    self.assertIn("no hash of the source's images was kept", refused)
    self.assertEqual(before, self.contents())
    against, typed = [line for line in refused.splitlines() if line.startswith("  ")]
    self.pack(*shlex.split(against)[1:])
    self.assertTrue(typed.endswith(" --overwrite"), typed)
    self.pack(*shlex.split(typed)[1:])
    self.assertIn("out is complete", self.pack(*words).stderr)


if __name__ == "__main__":
  command.main()
