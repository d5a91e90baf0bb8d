"""`pack repair`: what is missing or damaged comes back byte for byte, from sources and copies of every kind."""

import json
import os
import re
import shutil
import tarfile

import command
from command import jpeg, png
import repairs


class HealingTest(repairs.RepairTest):

  def test_random_damage_is_healed_from_the_source(self):
    self.source()
    self.heal_at_random("source", lambda kind, out, number: ("--from", "src"))

  def test_random_damage_is_healed_from_a_copy_in_another_format(self):
    self.source()
    copies = {}

    def words_of(kind, out, number):
      formats = repairs.KINDS[kind][1]
      name = formats[number % len(formats)]
      copy = f"{out}-{name}"
      if copy not in copies:
        # The dataset is damaged by now: it is made once more.
        self.make(kind, out=out + "-whole")
        copies[copy] = self.copy(name, out + "-whole", copy)
        shutil.rmtree(self.folder / (out + "-whole"))
      return ("--from", copy)

    self.heal_at_random("copies in other formats", words_of)

  # --- What datasets are made of.

  def test_inputs_that_were_skipped(self):
    self.source()
    self.write("src/cat/broken-1.jpg", jpeg(1)[:200])
    self.write("src/dog/broken-2.png", b"no image")
    self.write("src/dog/empty.jpg", b"")
    for kind in ("webdataset", "hdf5 packed", "hdf5 vlen", "lmdb raw", "lmdb caffe", "npy"):
      with self.subTest(kind):
        out = kind.replace(" ", "-")
        flags, (copy_format, *_) = repairs.KINDS[kind]
        self.pack("src", "-o", out, "--shards", "4", "--max-skip", "50%", *flags, expect=3)
        self.assertIn("skipped.jsonl", self.contents(out))
        self.check(out)
        # Without the source: what the manifest says of the plan of each shard is enough, but for the list of the skips.
        copy = self.copy(copy_format, out, out + "-copy")
        if kind != "lmdb caffe":  # its keys are numbers in the plan
          shards = [name for name in self.names(self.contents(out)) if name != "skipped.jsonl" and ".pidx" not in name]
          self.check(out, ("--from", copy), names=shards)
        self.check(out, ("--from", copy), lost={"skipped.jsonl"}, names=["skipped.jsonl"])

  def test_images_that_were_changed(self):
    self.source()
    for name, flags in (("jpg", ("--encode", "jpg", "--resize", "shortest", "--size", "6")),
                        ("lmdb", ("-f", "lmdb", "--encode", "png")),
                        ("h5", ("-f", "hdf5", "--encode", "webp", "--compute-stats"))):
      with self.subTest(name):
        self.pack("src", "-o", name, "--shards", "3", *flags)
        self.check(name)
        self.pack("convert", name, "-o", name + "-copy", "-f", "tfrecord")
        self.check(name, ("--from", name + "-copy"))

  def test_fields_splits_orders_and_keys(self):
    self.source()
    for i, path in enumerate(sorted((self.folder / "src").rglob("good-*"))):
      path.with_suffix(".txt").write_text(f"caption {i}")
      path.with_suffix(".mask.png").write_bytes(png(3, 3))
    for name, flags in (("fields", ("--fields", "mask.png,txt", "--split", "train=0.7,val=0.3", "--seed", "5")),
                        ("h5", ("--fields", "txt", "-f", "hdf5", "--no-shuffle", "--exclude", "*.mask.png")),
                        ("tf", ("--fields", "txt:caption", "-f", "tfrecord", "--key", "index", "--with-json", "--exclude", "*.mask.png")),
                        ("lmdb", ("-f", "lmdb", "--key", "index", "--limit", "31")),
                        ("dups", ("--dedupe", "drop", "--image-field", "img")),
                        ("stratified", ("--split", "a=0.5,b=0.5", "--split-by", "stratified", "--label-from", "dir"))):
      with self.subTest(name):
        self.pack("src", "-o", name, "--shards", "4", *flags)
        self.check(name)

  def test_other_kinds_of_sources(self):
    self.source()
    files = sorted(path.relative_to(self.folder / "src") for path in (self.folder / "src").rglob("*.*g"))
    self.write("src.txt", "".join(f"{path} {path.parent}\n" for path in files).encode())
    with tarfile.open(self.folder / "src.tar", "w") as archive:
      archive.add(self.folder / "src", "src")
    images = [{"id": i, "file_name": str(path), "width": 9, "height": 8} for i, path in enumerate(files)]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 4} for i in range(len(files))]
    self.write("src.json", json.dumps({"images": images, "annotations": boxes,
                                       "categories": [{"id": 1, "name": "x"}]}).encode())
    self.pack("src", "-o", "first", "--shards", "2")
    for source, words in (("src.txt", ("--from", "src.txt", "--from", "src")), ("src.tar", ("--from", "src.tar")),
                          ("src.json", ("--from", "src.json", "--from", "src")), ("first", ())):
      with self.subTest(source):
        out = "of-" + source.replace(".", "-")
        more = ("--root", "src") if source in ("src.txt", "src.json") else ()
        self.pack("build", source, "-o", out, "--shards", "3", "--sha256", *more)
        self.check(out, words)

  def test_flags_that_the_source_needs(self):
    """Without indexes the plan is made again, from what the manifest records of the flags."""
    self.source()
    files = sorted(path.relative_to(self.folder / "src") for path in (self.folder / "src").rglob("*.jpg"))
    self.write("src/m.csv", ("file,label,real\n" + "".join(f"{path},{path},{path.parent}\n" for path in files)).encode())
    images = [{"id": i, "file_name": str(path), "width": 40, "height": 24} for i, path in enumerate(files)]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 4} for i in range(1, len(files))]
    self.write("src/c.json", json.dumps({"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "x"}]}).encode())
    self.write("src/caps, all.json", json.dumps({"images": images, "annotations": [{"id": 1, "image_id": 1, "caption": "one"}]}).encode())
    shutil.copytree(self.folder / "src", self.folder / "moved")
    for name, source, flags in (("columns", "m.csv", ("--columns", "path=file,label=real")),
                                ("text", "m.csv", ("--columns", "path=file,label=real,txt=label")),
                                ("numbers", "c.json", ("--label-from", "none", "--coco", "boxes")),
                                ("boxes", "c.json", ("--coco", "boxes", "--max-skip", "50%")),
                                ("negatives", "c.json", ("--coco", "boxes", "--missing-part", "keep")),
                                ("skipped", "c.json", ("--missing-part", "skip", "--max-skip", "50%")),
                                ("dropped", "c.json", ("--missing-part", "drop")),
                                ("captions", "c.json", ("--annotations", "src/caps, all.json"))):
      self.pack("src/" + source, "-o", name, "--shards", "3", *flags, expect=3 if name in ("boxes", "skipped") else 0)
      want = self.contents(name)
      for folder in ("src", "moved"):
        with self.subTest(name, folder=folder):
          lost = {*self.lose(name, 0), *self.lose(name, 1), *self.lose(name, 2)}
          self.heal(want, name, ("--from", f"{folder}/{source}"), lost)

  def test_flags_that_an_older_version_did_not_record(self):
    self.source()
    files = sorted(path.relative_to(self.folder / "src") for path in (self.folder / "src").rglob("*.jpg"))
    self.write("src/m.csv", ("file,label,real\n" + "".join(f"{path},{path},{path.parent}\n" for path in files)).encode())
    self.pack("src/m.csv", "-o", "out", "--columns", "path=file,label=real")
    text = (self.folder / "out/manifest.json").read_text()
    self.write("out/manifest.json", self.sealed(re.sub(r"\s*" + re.escape('"columns": "path=file,label=real",'), "", text)))
    self.lose()
    for more in ((), ("-n",)):
      self.assertIn("records no --columns", self.pack("repair", "out", "--from", "src/m.csv", *more, expect=3).stderr)

  def test_the_images_of_the_list_that_is_named(self):
    self.source("A")
    files = sorted(path.relative_to(self.folder / "A") for path in (self.folder / "A").rglob("*.jpg"))
    self.write("A/l.csv", ("path,label\n" + "".join(f"{path},{path.parent}\n" for path in files)).encode())
    self.pack("A/l.csv", "-o", "out", "--shards", "1")
    want = self.contents()
    shard = self.manifest()["shards"][0]["name"]
    shutil.copytree(self.folder / "A", self.folder / "B")
    changed = self.folder / "B" / files[3]
    changed.write_bytes(changed.read_bytes()[:-3] + bytes(3))
    (self.folder / "out" / shard).unlink()
    # Where the list's own folder has other bytes, those that were packed are looked for too.
    self.heal(want, "out", ("--from", "B/l.csv"), {shard})
    os.rename(self.folder / "A", self.folder / "gone")
    (self.folder / "out" / shard).unlink()
    for more in (("-n",), ()):
      done = self.pack("repair", "out", "--from", "B/l.csv", *more, expect=3)
      self.assertIn(str(files[3]), done.stderr)
      self.assertNotIn(" more", done.stderr)
    changed.write_bytes((self.folder / "gone" / files[3]).read_bytes())
    self.heal(want, "out", ("--from", "B/l.csv"), {shard})

  def test_shards_that_were_indexed_in_place(self):
    self.source()
    self.pack("src", "-o", "made", "--shards", "3")
    for name in self.contents("made"):
      if name.endswith(".tar"):
        self.write(f"place/{name}", (self.folder / "made" / name).read_bytes())
        self.write(f"copy/{name}", (self.folder / "made" / name).read_bytes())
    self.pack("index", "place")
    self.pack("index", "copy")
    want = self.contents("place")
    indexes = [name for name in want if name.endswith(".pidx")]
    for name in indexes:
      (self.folder / "place" / name).unlink()
    self.heal(want, "place", (), set(indexes))
    # The shards themselves only from a copy.
    shard = next(name for name in want if name.endswith(".tar"))
    self.write(f"place/{shard}", want[shard][:-1])
    self.heal(want, "place", (), {shard}, {shard})
    self.heal(want, "place", ("--from", "copy"), {shard})
    # Outside of the dataset's folder nothing is written.
    self.pack("index", "place", "-o", "elsewhere")
    self.write(f"place/{shard}", want[shard][:-1])
    done = self.pack("repair", "elsewhere", "--from", "copy", expect=3)
    self.assertIn("lies outside", done.stderr)
    self.assertEqual(want[shard][:-1], (self.folder / "place" / shard).read_bytes())

  # --- Sources that are not what they were.

  def test_a_source_that_has_changed(self):
    self.source()
    want, _ = self.make("webdataset")
    rows = self.rows("out", "--long")
    first = [row for row in rows if row["shard"] == "train-000000.tar"]
    victim = self.folder / "src" / first[0]["path"]
    data = victim.read_bytes()
    victim.write_bytes(data[:-3] + bytes(3))  # the same size, other bytes
    lost = {*self.lose(number=0), *self.lose(number=1)}
    # Of the same size: only building the shard tells.
    report = self.heal(want, "out", (), lost, {name for name in lost if "000000" in name}, foreseen=False)
    self.assertIn("has changed since it was packed", json.dumps(report))
    # The index alone tells which image it is.
    self.write("out/train-000000.pidx", want["train-000000.pidx"])
    done = self.pack("repair", "out", expect=3)
    self.assertIn(first[0]["path"], done.stderr)
    victim.unlink()
    self.pack("repair", "out", expect=3)
    victim.write_bytes(data)
    self.write("src/cat/new.png", png(5, 5))  # another plan, the same shards
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())

  def test_a_source_that_has_other_files(self):
    """What the page says of it: shards whose index is whole need their own files alone."""
    self.source()
    want, _ = self.make("webdataset")
    self.pack("src", "-o", "by-size", "--shard-size", "30KB", "--no-fsync")
    sized = self.contents("by-size")
    victim = self.rows("out", "--long")[0]
    self.assertEqual("train-000000.tar", victim["shard"])
    path = self.folder / "src" / victim["path"]
    path.write_bytes(path.read_bytes() + bytes(3000))
    # Of a fixed number: the others come back, with their indexes or without.
    lost = {*self.lose(number=0), *self.lose(number=1)}
    self.heal(want, "out", (), lost, {name for name in lost if "000000" in name}, foreseen=False)
    # By size: they come back by their indexes; without these the source gives another plan, and repair says so.
    self.assertNotIn(victim["path"], {row["path"] for row in self.rows("by-size/train-000001.tar")})
    shard, index = self.lose("by-size", 1)
    self.write(f"by-size/{index}", sized[index])
    self.heal(sized, "by-size", (), {shard})
    lost = self.lose("by-size", 1)
    report = self.heal(sized, "by-size", (), set(lost), set(lost), foreseen=False)
    self.assertIn("has changed since it was packed", json.dumps(report))

  def test_a_source_that_is_gone_or_moved(self):
    self.source()
    want, _ = self.make("tfrecord")
    os.rename(self.folder / "src", self.folder / "moved")
    lost = self.lose()
    done = self.pack("repair", "out", expect=3)
    self.assertRegex(done.stderr, r"packed from, \S*src, is not there; name where it is now, .*with --from")
    self.assertIn(lost[0], done.stderr)
    self.assertFalse((self.folder / "out" / ".pack").exists())
    self.pack("repair", "out", "--from", "src", expect=2)
    self.heal(want, "out", ("--from", "moved"), set(lost))

  def test_files_that_lie_about(self):
    """A shard under another name, and one that was kept without its dataset; the source is gone."""
    self.source()
    self.pack("src", "-o", "out", "--shards", "4")
    whole = self.contents("out")
    shutil.rmtree(self.folder / "src")
    out, kept = self.folder / "out", self.folder / "kept"
    kept.mkdir()
    (out / "train-000001.tar").rename(out / "x.tar")
    said = self.pack("repair", "out")
    self.assertIn("from out/x.tar", said.stderr)
    (out / "x.tar").unlink()
    self.assertEqual(whole, self.contents("out"))
    for name in ("train-000002.tar", "train-000003.pidx"):
      (out / name).rename(kept / name.replace("train", "old"))
    (kept / "old-000001.tar").write_bytes(bytes(len(whole["train-000002.tar"])))  # only of its size
    self.pack("repair", "out", "--from", "kept/old-000001.tar", expect=3)
    self.pack("repair", "out", "--from", "kept")
    self.assertEqual(whole, self.contents("out"))

  def test_a_copy_with_equal_images_under_other_keys(self):
    self.source()
    for i in range(12):
      self.write(f"src/cat/twin-{i}.png", png(4, 4))
      self.write(f"src/dog/twin-{i}.png", png(4, 4))
    for kind in ("webdataset", "npy", "lmdb caffe", "hdf5 packed"):
      with self.subTest(kind):
        out = kind.replace(" ", "-")
        _, copy_format = self.make(kind, out=out)
        self.check(out, ("--from", self.copy(copy_format, out, out + "-copy")))

  def test_a_copy_that_lacks_samples(self):
    self.source()
    want, _ = self.make("webdataset")
    self.pack("convert", "out", "-o", "copy", "-f", "tfrecord", "--limit", "59", "--no-shuffle")
    kept = {row["key"] for row in self.rows("copy")}
    lacking = next(row for row in self.rows("out", "--long") if row["key"] not in kept)
    number = int(lacking["shard"][6:12])
    lost = self.lose(number=number)
    self.heal(want, "out", ("--from", "copy"), set(lost), set(lost))
    self.write(f"out/{lost[1]}", want[lost[1]])
    done = self.pack("repair", "out", "--from", "copy", expect=3)
    self.assertIn(lacking["key"], done.stderr)
    self.heal(want, "out", ("--from", "copy", "--from", "src"), {lost[0]})

  def test_two_damaged_copies_heal_each_other(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    shutil.rmtree(self.folder / "src")
    for number in (0, 2):
      self.lose("out", number)
    for number in (1, 3):
      self.lose("copy", number)
    self.pack("repair", "out", "--from", "copy")
    self.pack("repair", "copy", "--from", "out")
    self.assertEqual(want, self.contents("out"))
    self.assertEqual(want, self.contents("copy"))

  # --- What else may stand in the way.


if __name__ == "__main__":
  command.main()
