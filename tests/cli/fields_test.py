"""What stands beside an image: captions, masks and columns; samples that lack them; copies that are left out."""

import json
import shutil
import tarfile

import command
from command import jpeg

CARRIERS = (("webdataset",), ("webdataset", "--layout", "pax"), ("tfrecord",), ("tfrecord", "--layout", "imagenet"))


class MissingPartTest(command.PackTest):

  def setUp(self):
    super().setUp()
    for i in range(12):
      stem = f"src/{'cat' if i % 2 else 'dog'}/{i:02}"
      self.write(stem + ".jpg", jpeg(i))
      if i % 3:
        self.write(stem + ".txt", b"caption %d" % i)
      if i % 4:
        self.write(stem + ".mask.npy", b"mask %d" % i)

  def fields(self, out):
    """{source path: names of its fields} as the index has them."""
    return {row["path"]: row.get("fields") for row in self.rows(out)}

  def test_a_field_is_written_where_it_is(self):
    want = self.contents("src")
    for name, *flags in CARRIERS:
      with self.subTest(name, flags=flags):
        for folder in ("out", "again", "other", "once-more"):
          shutil.rmtree(self.folder / folder, ignore_errors=True)
        done = self.pack("src", "-o", "out", "-f", name, *flags, "--fields", "txt,mask.npy", "--missing-part", "keep",
                         "--shards", "3")
        self.assertIn("4 of 12 samples are packed without the part txt", done.stderr)
        self.assertIn("3 of 12 samples are packed without the part mask.npy", done.stderr)
        self.assertEqual(12, self.manifest()["counts"]["packed"])
        for level in ("quick", "full", "deep"):
          self.pack("validate", "out", "--level", level, "--json")
        self.pack("extract", "out", "again")
        self.assertEqual(want, self.contents("again"))
        # Another format, without a word about parts: nothing is lost.
        self.pack("convert", "out", "-o", "other", "-f", "tfrecord" if name == "webdataset" else "webdataset")
        self.pack("extract", "other", "once-more")
        self.assertEqual(want, self.contents("once-more"))
        self.pack("validate", "other")

  def test_workers_and_a_second_run(self):
    self.pack("plan", "src", "--fields", "txt,mask.npy", "--missing-part", "keep", "--shards", "3", "--write", "p")
    self.pack("build", "--plan", "p", "-o", "out", "--shards-range", "0-1")
    self.pack("build", "--plan", "p", "-o", "out", "--shards-range", "2-2")
    self.pack("commit", "out")
    self.pack("extract", "out", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))
    flags = ["--fields", "txt,mask.npy", "--missing-part", "keep", "--shards", "3"]
    self.pack("src", "-o", "one", *flags, "-j", "1")
    self.pack("src", "-o", "many", *flags, "-j", "8")
    self.assertEqual(self.contents("one"), self.contents("many"))

  def test_formats_that_cannot_say_so_before_work_starts(self):
    for layout in ("packed", "vlen"):
      done = self.pack("src", "-o", "out", "-f", "hdf5", "--layout", layout, "--fields", "txt", "--missing-part", "keep", expect=2)
      self.assertIn("some samples lack it", done.stderr)
      self.assertIn("--missing-part skip", done.stderr)
      self.assertFalse((self.folder / "out").exists())
    self.pack("src", "-o", "out", "-f", "lmdb", "--fields", "txt", "--missing-part", "keep", expect=2)
    self.pack("src", "-o", "out", "-f", "hdf5", "--fields", "txt", "--missing-part", "keep", "--drop-fields")
    # Where all have it there is nothing to refuse.
    for path in (self.folder / "src").rglob("*.jpg"):
      path.with_suffix(".txt").write_bytes(b"caption")
    self.pack("src", "-o", "whole", "-f", "hdf5", "--fields", "txt", "--missing-part", "keep")

  def test_from_lists_and_archives(self):
    paths = sorted(name for name in self.contents("src") if name.endswith(".jpg"))
    self.write("src/list.txt", "\n".join(paths).encode())
    self.pack("src/list.txt", "-o", "listed", "--fields", "txt,mask.npy", "--missing-part", "keep")
    with tarfile.open(self.folder / "all.tgz", "w:gz") as archive:
      for name in ("cat", "dog"):
        archive.add(self.folder / "src" / name, arcname=name)
    self.pack("all.tgz", "-o", "unpacked", "--fields", "txt,mask.npy", "--missing-part", "keep")
    (self.folder / "src/list.txt").unlink()
    for out in ("listed", "unpacked"):
      self.pack("extract", out, out + "-again")
      self.assertEqual(self.contents("src"), self.contents(out + "-again"))

  def test_a_part_that_cannot_be_read_is_not_taken_for_missing(self):
    (self.folder / "src/cat/01.txt").chmod(0)
    paths = sorted(name for name in self.contents_names("src") if name.endswith(".jpg"))
    self.write("list.txt", "\n".join(f"src/{path}" for path in paths).encode())
    for source, out in (("src", "out"), ("list.txt", "listed")):
      self.pack(source, "-o", out, "--fields", "txt", "--missing-part", "keep", "--max-skip", "20%", expect=3,
                unprivileged=True)
      self.assertEqual(["permission"], list(self.skips(out).values()))

  def contents_names(self, folder):
    top = self.folder / folder
    return [str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()]

  def test_an_empty_part_is_a_part(self):
    self.write("src/dog/00.txt")
    self.write("src/dog/00.mask.npy")
    self.pack("src", "-o", "out", "--fields", "txt,mask.npy", "--missing-part", "keep")
    self.pack("extract", "out", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))

  def test_the_other_ways(self):
    done = self.pack("src", "-o", "out", "--fields", "txt", expect=4)
    self.assertIn("it lacks its part txt", done.stderr)
    done = self.pack("src", "-o", "out", "--fields", "txt", "--missing-part", "error", expect=2)
    self.assertIn("keep packs them without it", done.stderr)
    done = self.pack("src", "-o", "dropped", "--fields", "txt", "--missing-part", "drop")
    self.assertIn("--missing-part keep writes it for the others", done.stderr)


class DedupeTest(command.PackTest):

  def test_every_copy_is_listed(self):
    self.source(count=20)
    for i in range(30):
      self.write(f"src/{('cat', 'dog')[i % 2]}/x-{i:02}.jpg", jpeg(0))  # good-0000 is a cat
    self.write("src/dog/bad.jpg", b"no image")
    done = self.pack("src", "-o", "out", "--dedupe", "drop", "--max-skip", "10%", expect=3)
    counts = self.manifest()["counts"]
    self.assertEqual((51, 20, 30, 1, 0), tuple(counts[name] for name in ("seen", "packed", "filtered", "skipped", "failed")))
    lines = [json.loads(line) for line in (self.folder / "out/skipped.jsonl").read_text().splitlines()]
    copies = {line["path"]: line["detail"] for line in lines if line["reason"] == "duplicate"}
    self.assertEqual({f"{('cat', 'dog')[i % 2]}/x-{i:02}.jpg" for i in range(30)}, set(copies))
    self.assertEqual("the same bytes as cat/good-0000.jpg", copies["cat/x-00.jpg"])
    self.assertEqual("the same bytes as cat/good-0000.jpg, which has another label", copies["dog/x-01.jpg"])
    self.assertEqual(31, len(lines))
    self.assertIn("listed in skipped.jsonl", done.stderr)
    self.assertIn("15 have another label:", done.stderr)
    self.assertIn("dog/x-01.jpg (dog) is cat/good-0000.jpg (cat)", done.stderr)
    self.pack("validate", "out", "--against", "src")

  def test_copies_that_are_packed_are_no_loss_but_conflicts_are_named(self):
    self.source(count=4)
    self.write("src/dog/same.jpg", jpeg(0))
    done = self.pack("src", "-o", "out", "--dedupe", "report")
    self.assertIn("dog/same.jpg (dog) is cat/good-0000.jpg (cat)", done.stderr)
    self.assertFalse((self.folder / "out/skipped.jsonl").exists())
    self.assertEqual(5, self.manifest()["counts"]["packed"])

  def test_beside_other_filters_and_by_workers(self):
    self.source(count=20)
    for i in range(6):
      self.write(f"src/cat/x-{i}.jpg", jpeg(i))
      self.write(f"src/cat/small-{i}.png", command.png(2, 2))
    flags = ["--dedupe", "drop", "--min-size", "10", "--limit", "15"]
    self.pack("src", "-o", "out", *flags)
    self.assertEqual(({"duplicate"}, 6), (set(self.skips().values()), len(self.skips())))
    self.assertEqual((32, 15, 17), tuple(self.manifest()["counts"][name] for name in ("seen", "packed", "filtered")))
    self.pack("plan", "src", *flags, "--write", "p")
    self.pack("build", "--plan", "p", "-o", "parts", "--shards-range", "0-0")
    self.pack("commit", "parts")
    self.assertEqual(self.skips(), self.skips("parts"))


class ColumnsTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=6)
    self.paths = sorted(self.contents("src"))

  def table(self, name="a.csv", mark=","):
    rows = [mark.join(("file", "class", "caption", "age", "note"))]
    for i, path in enumerate(self.paths):
      rows.append(mark.join((path, ("tabby", "beagle")[i % 2], f"caf\u00e9 {i}", f"0{i}.50", "a b")))
    self.write(f"src/{name}", ("\n".join(rows) + "\n").encode())
    return f"src/{name}"

  def field(self, out, path, name):
    key = next(row["key"] for row in self.rows(out) if row["path"] == path)
    return self.pack("cat", out, key, "--field", name, text=False).stdout

  def test_columns_that_are_guessed_and_not_taken_are_named(self):
    done = self.pack(self.table(), "-o", "out")
    self.assertIn("columns path=file label=class; not taken: caption, age, note", done.stderr)
    done = self.pack(self.table(), "-o", "given", "--columns", "path=file,label=class")
    self.assertIn("not taken: caption, age, note", done.stderr)
    done = self.pack(self.table(), "-o", "all", "--columns", "path=file,label=class,txt=caption,json=*")
    self.assertNotIn("columns path", done.stderr)
    self.write("src/b.csv", b"path\n" + self.paths[0].encode())
    self.assertIn("columns path=path\n", self.pack("src/b.csv", "-o", "paths").stderr)
    lines = [json.dumps({"path": path, "label": i % 2, **({"score": 1} if i else {})}) for i, path in enumerate(self.paths)]
    self.write("src/a.jsonl", "\n".join(lines).encode())
    self.assertIn("columns path=path label=label; not taken: score", self.pack("src/a.jsonl", "-o", "lines").stderr)

  def test_as_text_and_json_in_every_format(self):
    for name, mark in (("a.csv", ","), ("a.tsv", "\t")):
      for number, (carrier, *flags) in enumerate((*CARRIERS, ("hdf5",), ("hdf5", "--layout", "vlen"))):
        out = f"{name}-{number}"
        with self.subTest(out, carrier=carrier, flags=flags):
          self.pack(self.table(name, mark), "-o", out, "-f", carrier, *flags, "--columns", "path=file,label=class,txt=caption,json=*")
          self.assertEqual("caf\u00e9 1".encode(), self.field(out, self.paths[1], "txt"))
          self.assertEqual(b'{"age":"01.50","note":"a b"}', self.field(out, self.paths[1], "json"))
          self.pack("extract", out, out + "-again")
          got = self.contents(out + "-again")
          self.assertEqual(18, len(got))
          stem = self.paths[2].removesuffix(".jpg")
          self.assertEqual("caf\u00e9 2".encode(), got[stem + ".txt"])
          self.assertEqual({"age": "02.50", "note": "a b"}, json.loads(got[stem + ".json"]))

  def test_named_ones_numbers_and_lines(self):
    self.pack(self.table(), "-o", "named", "--columns", "path=file,label=class,json=note,caption")
    self.assertEqual('{"caption":"caf\u00e9 0","note":"a b"}'.encode(), self.field("named", self.paths[0], "json"))
    self.write("src/n.csv", f"{self.paths[0]},3,words\n".encode())
    self.pack("src/n.csv", "-o", "numbers", "--columns", "path=0,label=1,txt=2,json=*")
    self.assertEqual(b"words", self.field("numbers", self.paths[0], "txt"))
    self.assertEqual(b"{}", self.field("numbers", self.paths[0], "json"))
    line = {"z": [1, 2.5, {"b": None}], "img": self.paths[0], "y": 1, "text": "hi", "a": "\u00e9", "big": 2**63}
    self.write("src/l.jsonl", json.dumps(line).encode())
    self.pack("src/l.jsonl", "-o", "lines", "--columns", "path=img,label=y,txt=text,json=*")
    self.assertEqual(b"hi", self.field("lines", self.paths[0], "txt"))
    self.assertEqual('{"a":"\u00e9","big":9223372036854775808,"z":[1,2.5,{"b":null}]}'.encode(), self.field("lines", self.paths[0], "json"))
    self.pack("src/l.jsonl", "-o", "again", "--columns", "path=img,label=y,txt=text,json=*", "-j", "1")
    self.assertEqual(self.contents("lines"), self.contents("again"))

  def test_a_member_that_only_some_lines_have(self):
    lines = [json.dumps({"path": path, "label": 0, **({"caption": "x"} if i % 2 else {"caption": None} if i else {})})
             for i, path in enumerate(self.paths)]
    self.write("src/a.jsonl", "\n".join(lines).encode())
    flags = ["--columns", "path=path,label=label,txt=caption"]
    self.assertIn("lacks its part txt", self.pack("src/a.jsonl", "-o", "out", *flags, expect=4).stderr)
    self.pack("src/a.jsonl", "-o", "out2", *flags, "--missing-part", "keep")
    self.pack("extract", "out2", "again")
    self.assertEqual(9, len(self.contents("again")))
    # Whoever converts it need not know how it was packed.
    self.pack("convert", "out2", "-o", "other", "-f", "tfrecord")
    self.pack("convert", "other", "-o", "back")
    self.pack("extract", "back", "once-more")
    self.assertEqual(self.contents("again"), self.contents("once-more"))

  def test_with_sidecars(self):
    for path in self.paths:
      self.write("src/" + path.replace(".jpg", ".mask"), b"mask of " + path.encode())
    self.pack(self.table(), "-o", "out", "--columns", "path=file,label=class,txt=caption", "--fields", "mask")
    self.assertEqual("caf\u00e9 3".encode(), self.field("out", self.paths[3], "txt"))
    self.assertEqual(b"mask of " + self.paths[3].encode(), self.field("out", self.paths[3], "mask"))
    done = self.pack(self.table(), "-o", "no", "--columns", "path=file,txt=caption", "--fields", "txt", expect=2)
    self.assertIn("both make the field txt", done.stderr)

  def test_a_changed_caption_is_another_plan(self):
    flags = ["--columns", "path=file,label=class,txt=caption"]
    self.pack(self.table(), "-o", "out", *flags)
    self.write("src/a.csv", (self.folder / "src/a.csv").read_bytes().replace(b"caf", b"tea"))
    self.pack("src/a.csv", "-o", "out", *flags, expect=5)

  def test_bad_columns(self):
    good = self.paths[0]
    for text, flags, why in (
        (b"path,c\n" + good.encode() + b",caf\xe9\n", "txt=c", "a.csv:2: the column c is not UTF-8"),
        (b"path,c\n" + good.encode() + b",caf\xe9\n", "json=*", "a.csv:2: the column c is not UTF-8"),
        (b"path,c\n" + good.encode() + b"," + b"x" * 70_000 + b"\n", "txt=c", "a.csv:2: the column c has 70000 bytes"),
        (b"path,c\n" + good.encode() + b",a\0b\n", "txt=c", "a.csv:2: a NUL byte"),
        (b"path,c\n" + good.encode() + b",x\n", "txt=d", "no column is named d"),
        (b"path,c\n" + good.encode() + b",x\n", "json=c,d", "no column is named d"),
        (b"path,c,c\n" + good.encode() + b",x,y\n", "txt=c", "two columns are named c"),
        (b"path,c,c\n" + good.encode() + b",x,y\n", "label=c", "a.csv:1: the columns 2 and 3 are both named c"),
    ):
      self.write("src/a.csv", text)
      self.assertIn(why, self.pack("src/a.csv", "-o", "out", "--columns", "path=path," + flags, expect=2).stderr)
    for line, flags, why in (
        ('"c": "a\\u0000b"', "txt=c", "a.jsonl:1: the column c holds a NUL"),
        ('"c": {"d": ["a\\u0000b"]}', "json=*", "a.jsonl:1: the column c holds a NUL"),
        ('"c": [1]', "txt=c", "a.jsonl:1: the member c is an array"),
        ('"c": 123456789012345678901234567890', "json=*", "a.jsonl:1: a whole number beyond 64 bits"),
        ('"c": 1e400', "json=*", "a.jsonl:1: "),
        ('"c": 1, "c": 2', "label=c", "a.jsonl:1: the member c occurs twice"),
        ('"c": {"d": 1, "d": 2}', "json=*", "a.jsonl:1: the member d occurs twice"),
    ):
      self.write("src/a.jsonl", ('{"path": "' + good + '", ' + line + "}").encode())
      self.assertIn(why, self.pack("src/a.jsonl", "-o", "out", "--columns", "path=path," + flags, expect=2).stderr)
    for flags in ("lable=c", "label=c,label=d", "txt=", "txt=a,b", "json=*,a", "txt=a,txt=b", "json", "path=0,txt=c", "image=c"):
      self.pack("src/a.csv", "-o", "out", "--columns", flags, expect=2)
    self.assertFalse((self.folder / "out").exists())

  def test_formats_without_room_and_workers_are_told_before_work_starts(self):
    flags = ["--columns", "path=file,label=class,txt=caption"]
    for carrier in ("lmdb",):
      done = self.pack(self.table(), "-o", "out", "-f", carrier, *flags, expect=2)
      self.assertIn("cannot hold a field", done.stderr)
      self.assertFalse((self.folder / "out").exists())
      self.pack(self.table(), "-o", "dropped", "-f", carrier, *flags, "--drop-fields")
    self.assertIn("columns of a list", self.pack("plan", self.table(), *flags, "--write", "p", expect=2).stderr)


class CocoTest(command.PackTest):

  def setUp(self):
    super().setUp()
    for i in range(4):
      self.write(f"src/{i}.jpg", jpeg(i))
    self.coco = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "height": 24, "width": 40, "date_captured": "2013-11-14", "license": i}
                   for i in range(4)],
        "annotations": [
            {"id": 1, "image_id": 0, "category_id": 7, "bbox": [1, 2.5, 5, 10], "area": 33.25, "iscrowd": 0,
             "segmentation": [[1.5, 2, 3, 4, 5, 6.125]], "attributes": {"occluded": False, "note": "\u00e9\n"},
             "keypoints": [1, 2, 2, 0, 0, 0], "num_keypoints": 1},
            {"id": 2, "image_id": 0, "category_id": 3, "bbox": [0, 0, 40, 24], "area": 900, "iscrowd": 1,
             "segmentation": {"counts": [10, 20], "size": [24, 40]}},
            {"id": 3, "image_id": 2, "category_id": 3, "bbox": [0, 0, 4, 4], "iscrowd": 0,
             "segmentation": {"counts": "a\\b`c", "size": [24, 40]}},
        ],
        "categories": [{"id": 7, "name": "cat"}, {"id": 3, "name": "dog"}],
    }
    self.captions = {
        "images": self.coco["images"],
        "annotations": [{"id": 10 + i, "image_id": i % 4, "caption": f"caption {i}"} for i in range(6)],
    }
    self.write("src/instances.json", json.dumps(self.coco, indent=1).encode())
    self.write("src/captions.json", json.dumps(self.captions).encode())

  def annotations(self, folder, *files):
    """What the files say of each image, as pycocotools would: by image id, whatever the spelling."""
    want = {}
    for image in self.coco["images"]:
      of_it = [each for file in files for each in file["annotations"] if each["image_id"] == image["id"]]
      want[image["id"]] = (image, of_it)
    got = {}
    for name, data in self.contents(folder).items():
      if name.endswith(".json"):
        fields = json.loads(data)
        self.assertEqual(fields["image_id"], fields["image"]["id"])
        got[fields["image_id"]] = (fields["image"], fields["annotations"])
    return want, got

  def test_annotations_come_out_whole(self):
    for number, carrier in enumerate(("webdataset", "tfrecord", "hdf5")):
      done = self.pack("src/instances.json", "-o", f"out{number}", "-f", carrier)
      self.assertIn("2 of 4 images have no object: they are packed as negatives", done.stderr)
      self.assertEqual({"0.jpg": 0, "1.jpg": None, "2.jpg": 0, "3.jpg": None},
                       {row["path"]: row["label"] for row in self.rows(f"out{number}")})
      self.pack("extract", f"out{number}", f"again{number}")
      want, got = self.annotations(f"again{number}", self.coco)
      self.assertEqual(want, got)
      boxes = json.loads(self.contents(f"again{number}")["0.json"])["boxes"]
      self.assertEqual([{"area": 33.25, "bbox": [1, 2.5, 5, 10], "category": "cat", "iscrowd": 0, "label": 1},
                        {"area": 900, "bbox": [0, 0, 40, 24], "category": "dog", "iscrowd": 1, "label": 0}], boxes)
      self.pack("validate", f"out{number}", "--against", "src")

  def test_further_files_are_joined(self):
    self.pack("src/instances.json", "--annotations", "src/captions.json", "-o", "out")
    self.pack("extract", "out", "again")
    want, got = self.annotations("again", self.coco, self.captions)
    self.assertEqual(want, got)
    self.pack("src/captions.json", "-o", "captions", "--label-from", "none")
    self.pack("extract", "captions", "only")
    want, got = self.annotations("only", self.captions)
    self.assertEqual(want, got)
    self.captions["annotations"][0]["image_id"] = 99
    self.write("src/bad.json", json.dumps(self.captions).encode())
    done = self.pack("src/instances.json", "--annotations", "src/bad.json", "-o", "bad", expect=2)
    self.assertIn("src/bad.json: an annotation has the image_id 99", done.stderr)
    swapped = dict(self.coco, categories=[dict(each, name=self.coco["categories"][i - 1]["name"]) for i, each in enumerate(self.coco["categories"])])
    self.write("src/bad.json", json.dumps(swapped).encode())
    done = self.pack("src/instances.json", "--annotations", "src/bad.json", "-o", "bad", expect=2)
    self.assertIn("in the file that is packed: its annotations would mean other classes", done.stderr)
    for text in (b"", b"[]", b"{}", b'{"annotations": [{}]}'):
      self.write("src/bad.json", text)
      self.assertIn("src/bad.json", self.pack("src/instances.json", "--annotations", "src/bad.json", "-o", "bad", expect=2).stderr)
    self.pack("src/instances.json", "--annotations", "nowhere.json", "-o", "bad", expect=2)
    self.pack("src/instances.json", "--annotations", "src/captions.json", "--coco", "boxes", "-o", "bad", expect=2)
    self.pack("src", "--annotations", "src/captions.json", "-o", "bad", expect=2)
    self.assertFalse((self.folder / "bad").exists())

  def test_annotations_of_other_images_are_refused(self):
    """Image ids are only unique within one file: the names tell."""
    joined = ["src/instances.json", "--annotations", "src/captions.json"]
    other = json.loads(json.dumps(self.captions))
    other["images"][2]["file_name"] = "other.jpg"
    self.write("src/captions.json", json.dumps(other).encode())
    done = self.pack(*joined, "-o", "out", expect=2)
    self.assertIn("src/captions.json: the image 2 is other.jpg, which is 2.jpg in the file that is packed", done.stderr)
    other["images"] = other["images"][:2]
    self.write("src/captions.json", json.dumps(other).encode())
    done = self.pack(*joined, "-o", "out", expect=2)
    self.assertIn("src/captions.json: an annotation has the image_id 2, which none of the file's own images has", done.stderr)
    other = json.loads(json.dumps(self.captions))
    for image in other["images"]:
      image["file_name"] = "train/" + image["file_name"]
    self.write("src/captions.json", json.dumps(other).encode())
    self.pack(*joined, "-o", "folders")
    # Of no image that is annotated: nothing is joined to it.
    other["images"].append({"id": 77, "file_name": "more.jpg"})
    self.write("src/captions.json", json.dumps(other).encode())
    self.pack(*joined, "-o", "more")

  def test_the_same_file_twice_is_refused(self):
    (self.folder / "src/link.json").symlink_to("captions.json")
    for words in (["src/captions.json", "src/captions.json"], ["src/captions.json", "src/../src/link.json"], ["src/instances.json"]):
      flags = [each for word in words for each in ("--annotations", word)]
      done = self.pack("src/instances.json", *flags, "-o", "out", expect=2)
      self.assertIn(f"--annotations {words[-1]} is the same file as", done.stderr)
    self.write("src/twice.json", b'{"images": [{"id": 1, "id": 2, "file_name": "0.jpg"}], "annotations": []}')
    done = self.pack("src/twice.json", "-o", "out", expect=2)
    self.assertIn("src/twice.json: the member id stands twice in one object", done.stderr)

  def test_boxes_alone_and_what_becomes_of_negatives(self):
    self.pack("src/instances.json", "-o", "boxes", "--coco", "boxes", "--max-skip", "100%", expect=3)
    self.assertEqual({"1.jpg": "unpaired", "3.jpg": "unpaired"}, self.skips("boxes"))
    self.assertEqual(["boxes", "image_id"], sorted(json.loads(self.pack("cat", "boxes", "2", "--field", "json").stdout)))
    self.pack("src/instances.json", "-o", "skip", "--missing-part", "skip", "--max-skip", "100%", expect=3)
    self.assertEqual(2, len(self.skips("skip")))
    self.pack("src/instances.json", "-o", "drop", "--missing-part", "drop")
    self.assertEqual(2, self.manifest("drop")["counts"]["filtered"])
    self.assertIn("keep packs", self.pack("src/instances.json", "-o", "error", "--missing-part", "error", expect=2).stderr)
    self.pack("src/instances.json", "-o", "keep", "--coco", "boxes", "--missing-part", "keep")
    self.assertEqual('{"boxes":[],"image_id":1}', self.pack("cat", "keep", "1", "--field", "json").stdout)

  def test_an_annotation_that_changes_is_no_resumed_run(self):
    self.pack("src/instances.json", "-o", "out")
    self.coco["annotations"][0]["attributes"]["occluded"] = True
    self.write("src/instances.json", json.dumps(self.coco).encode())
    self.pack("src/instances.json", "-o", "out", expect=5)


if __name__ == "__main__":
  command.main()
