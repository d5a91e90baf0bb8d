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
        done = self.pack("src", "-o", "out", "-f", name, *flags, "--sidecars", "txt,mask.npy", "--missing-part", "keep",
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
    self.pack("plan", "src", "--sidecars", "txt,mask.npy", "--missing-part", "keep", "--shards", "3", "--write", "p")
    self.pack("build", "--plan", "p", "-o", "out", "--shards-range", "0-1")
    self.pack("build", "--plan", "p", "-o", "out", "--shards-range", "2-2")
    self.pack("commit", "out")
    self.pack("extract", "out", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))
    flags = ["--sidecars", "txt,mask.npy", "--missing-part", "keep", "--shards", "3"]
    self.pack("src", "-o", "one", *flags, "-j", "1")
    self.pack("src", "-o", "many", *flags, "-j", "8")
    self.assertEqual(self.contents("one"), self.contents("many"))

  def test_formats_that_cannot_say_so_before_work_starts(self):
    for layout in ("packed", "vlen"):
      done = self.pack("src", "-o", "out", "-f", "hdf5", "--layout", layout, "--sidecars", "txt", "--missing-part", "keep", expect=2)
      self.assertIn("some samples lack it", done.stderr)
      self.assertIn("--missing-part skip", done.stderr)
      self.assertFalse((self.folder / "out").exists())
    self.pack("src", "-o", "out", "-f", "lmdb", "--sidecars", "txt", "--missing-part", "keep", expect=2)
    self.pack("src", "-o", "out", "-f", "hdf5", "--sidecars", "txt", "--missing-part", "keep", "--drop-fields")
    # Where all have it there is nothing to refuse.
    for path in (self.folder / "src").rglob("*.jpg"):
      path.with_suffix(".txt").write_bytes(b"caption")
    self.pack("src", "-o", "whole", "-f", "hdf5", "--sidecars", "txt", "--missing-part", "keep")

  def test_from_lists_and_archives(self):
    paths = sorted(name for name in self.contents("src") if name.endswith(".jpg"))
    self.write("src/list.txt", "\n".join(paths).encode())
    self.pack("src/list.txt", "-o", "listed", "--sidecars", "txt,mask.npy", "--missing-part", "keep")
    with tarfile.open(self.folder / "all.tgz", "w:gz") as archive:
      for name in ("cat", "dog"):
        archive.add(self.folder / "src" / name, arcname=name)
    self.pack("all.tgz", "-o", "unpacked", "--sidecars", "txt,mask.npy", "--missing-part", "keep")
    (self.folder / "src/list.txt").unlink()
    for out in ("listed", "unpacked"):
      self.pack("extract", out, out + "-again")
      self.assertEqual(self.contents("src"), self.contents(out + "-again"))

  def test_a_part_that_cannot_be_read_is_not_taken_for_missing(self):
    (self.folder / "src/cat/01.txt").chmod(0)
    paths = sorted(name for name in self.contents_names("src") if name.endswith(".jpg"))
    self.write("list.txt", "\n".join(f"src/{path}" for path in paths).encode())
    for source, out in (("src", "out"), ("list.txt", "listed")):
      self.pack(source, "-o", out, "--sidecars", "txt", "--missing-part", "keep", "--max-skip", "20%", expect=3,
                unprivileged=True)
      self.assertEqual(["permission"], list(self.skips(out).values()))

  def contents_names(self, folder):
    top = self.folder / folder
    return [str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()]

  def test_an_empty_part_is_a_part(self):
    self.write("src/dog/00.txt")
    self.write("src/dog/00.mask.npy")
    self.pack("src", "-o", "out", "--sidecars", "txt,mask.npy", "--missing-part", "keep")
    self.pack("extract", "out", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))

  def test_the_other_ways(self):
    done = self.pack("src", "-o", "out", "--sidecars", "txt", expect=4)
    self.assertIn("it lacks its part txt", done.stderr)
    done = self.pack("src", "-o", "out", "--sidecars", "txt", "--missing-part", "error", expect=2)
    self.assertIn("keep packs them without it", done.stderr)
    done = self.pack("src", "-o", "dropped", "--sidecars", "txt", "--missing-part", "drop")
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


if __name__ == "__main__":
  command.main()
