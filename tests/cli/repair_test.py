"""`pack repair`: what is missing or damaged comes back byte for byte, as a user meets it.

SHARDPACK_REPAIR_ROUNDS sets how many random damages each format takes from each kind of source; SHARDPACK_REPAIR_SEED
makes other ones.
"""

import fcntl
import json
import os
import random
import re
import resource
import shutil
import tarfile

import command
from command import jpeg, png

ROUNDS = int(os.environ.get("SHARDPACK_REPAIR_ROUNDS", "4"))
SEED = int(os.environ.get("SHARDPACK_REPAIR_SEED", "1"))
RAW = ("--encode", "raw", "--resize", "exact", "--size", "8", "--color", "rgb")
# Name -> flags of the dataset, and the formats of its copies.
KINDS = {
    "webdataset": (("-f", "webdataset", "--sidecar-index", "dali", "--sha256"), ("tfrecord", "lmdb")),
    "webdataset json": (("-f", "webdataset", "--with-json", "--sidecar-index", "wids"), ("hdf5", "tfrecord")),
    "webdataset pax": (("-f", "webdataset", "--layout", "pax", "--sidecar-index", "energon", "--sidecar-index", "openclip",
                        "--sidecar-index", "timm"), ("lmdb", "hdf5")),
    "tfrecord": (("-f", "tfrecord", "--sidecar-index", "dali"), ("webdataset", "hdf5")),
    "tfrecord imagenet": (("-f", "tfrecord", "--layout", "imagenet"), ("lmdb", "webdataset")),
    "tfrecord tfds": (("-f", "tfrecord", "--layout", "tfds"), ("hdf5", "webdataset")),
    "lmdb raw": (("-f", "lmdb", "--layout", "raw"), ("webdataset", "tfrecord")),
    "lmdb caffe": (("-f", "lmdb", "--layout", "caffe"), ("tfrecord", "webdataset")),
    "lmdb pickle": (("-f", "lmdb", "--layout", "pickle"), ("hdf5", "tfrecord")),
    "hdf5 packed": (("-f", "hdf5", "--layout", "packed"), ("webdataset", "lmdb")),
    "hdf5 vlen": (("-f", "hdf5", "--layout", "vlen"), ("lmdb", "tfrecord")),
    "hdf5 decoded": (("-f", "hdf5", "--layout", "decoded", *RAW), ("npy",)),
    "npy": (("-f", "npy", *RAW), ("hdf5",)),
}
COUNTS = os.environ.get("SHARDPACK_REPAIR_COUNTS")  # a file that gains a row a kind: what was healed


class RepairTest(command.PackTest):

  def source(self, name="src", count=60, classes=("cat", "dog")):
    """Images whose pixels differ, too."""
    for i in range(count):
      rows = b"".join(b"\0" + bytes((i * 7 + x * y) % 256 for x in range(9)) for y in range(8))
      data = jpeg(i) if i % 3 == 0 else png(9, 8, rows=rows)
      self.write(f"{name}/{classes[i % len(classes)]}/good-{i:04}.{'jpg' if i % 3 == 0 else 'png'}", data)
    return name

  def make(self, kind, *more, source="src", out="out"):
    flags, copy_format = KINDS[kind]
    self.pack(source, "-o", out, "--shards", "4", "--no-fsync", *flags, *more)
    return self.contents(out), copy_format[0]

  def copy(self, copy_format, out="out", copy="copy"):
    flags = ()
    if self.manifest(out)["options"].get("encode") == "raw":
      flags = RAW if copy_format == "npy" else ("--layout", "decoded", *RAW)
    self.pack("convert", out, "-o", copy, "-f", copy_format, "--shards", "3", "--no-fsync", *flags)
    return copy

  def damage(self, rng, names, out="out"):
    """Something happens to some files; the names of those that differ."""
    before = {name: (self.folder / out / name).read_bytes() for name in names}
    for name in rng.sample(names, min(len(names), rng.randint(1, 3))):
      path = self.folder / out / name
      data = path.read_bytes() if path.exists() else b""
      what = rng.choice(("flip", "cut", "delete", "swap", "grow", "zero"))
      if what == "delete" or not data:
        path.unlink(missing_ok=True)
        if path.parent != self.folder / out and rng.random() < 0.5:
          shutil.rmtree(path.parent, ignore_errors=True)
      elif what == "flip":
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
      elif what == "cut":
        path.write_bytes(data[:rng.randrange(len(data))])
      elif what == "grow":
        path.write_bytes(data + b"more")
      elif what == "zero":
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes(len(data[at:at + 4096])) + data[at + 4096:])
      else:
        other = self.folder / out / rng.choice(names)
        if other.exists():
          theirs = other.read_bytes()
          other.write_bytes(data)
          path.write_bytes(theirs)
    now = self.contents(out)
    return {name for name in names if now.get(name) != before[name]}

  def heal(self, want, out, words, damaged, lost=(), foreseen=True):
    """Repairs; what differed must be as it was, but for `lost`, which must be listed."""
    planned = json.loads(self.pack("repair", out, *words, "--json", "--dry-run", "--no-fsync", expect=None).stdout)
    done = self.pack("repair", out, *words, "--json", "--no-fsync", expect=3 if lost else 0)
    report = json.loads(done.stdout)
    self.assertEqual(damaged, {row["name"] for row in report["files"]})
    self.assertEqual(set(lost), {row["name"] for row in report["files"] if not row["repaired"]}, report)
    if foreseen:
      self.assertEqual(set(lost), {row["name"] for row in planned["files"] if not row["repairable"]}, planned)
    now = self.contents(out)
    self.assertEqual(want.keys() - set(lost), now.keys() - set(lost))
    for name, data in want.items():
      if name not in lost:
        self.assertTrue(data == now[name], f"{name} differs")
    return report

  def names(self, want):
    return [name for name in want if name != "manifest.json"]

  def heal_at_random(self, name, words_of):
    """Each kind takes ROUNDS damages to its shards, indexes and other files, the manifest among them: of that one a copy
    of the file alone is kept. `words_of(out, round)` says where the rest comes from."""
    for kind in KINDS:
      rng = random.Random(f"{name} {kind} {SEED}")
      out = kind.replace(" ", "-")
      want, _ = self.make(kind, out=out)
      self.write(f"{out}-kept/manifest.json", want["manifest.json"])
      identity = self.pack("repair", out, "--level", "quick").stdout.split()[1]
      healed, files = 0, 0
      for number in range(ROUNDS):
        with self.subTest(kind, round=number):
          damaged = self.damage(rng, list(want), out)
          words = words_of(kind, out, number)
          if "manifest.json" in damaged:
            words += ("--from", out + "-kept", "--expect", identity)
            # What nobody can tell from a file of the user's is to be moved away first, as the message says.
            tried = self.pack("repair", out, *words, "--dry-run", expect=None)
            if "move it away and run again" in tried.stderr and tried.returncode == 4:
              os.rename(self.folder / out / "manifest.json", self.folder / "moved-away")
          self.heal(want, out, words, damaged)
          healed, files = healed + 1, files + len(damaged)
        if healed <= number:  # the next round begins with a whole dataset
          shutil.rmtree(self.folder / out)
          for each, data in want.items():
            self.write(f"{out}/{each}", data)
      if COUNTS:
        with open(COUNTS, "a", encoding="utf-8") as counts:
          counts.write(f"| {kind} | {name} | {ROUNDS} | {files} | {healed} |\n")

  def test_random_damage_is_healed_from_the_source(self):
    self.source()
    self.heal_at_random("source", lambda kind, out, number: ("--from", "src"))

  def test_random_damage_is_healed_from_a_copy_in_another_format(self):
    self.source()
    copies = {}

    def words_of(kind, out, number):
      formats = KINDS[kind][1]
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

  def check(self, out, words=(), lost=(), names=None, rounds=3, wanted=None):
    """Loses every kind of file of the dataset in turn, then all of them."""
    want = wanted or self.contents(out)
    names = names or self.names(want)
    shard = self.manifest(out)["shards"][0]
    alone = {name for name in names if name.startswith(shard["name"])}
    index = shard["index"]["name"]
    rng = random.Random(SEED)
    for gone in [{*alone, index}, {index}, alone, set(names), *({name} for name in rng.sample(names, min(rounds, len(names))))]:
      with self.subTest(gone=sorted(gone)):
        for name in gone:
          (self.folder / out / name).unlink(missing_ok=True)
        self.heal(want, out, words, gone, set(lost) & gone)
        for name, data in want.items():
          self.write(f"{out}/{name}", data)
    self.pack("validate", out)

  def test_inputs_that_were_skipped(self):
    self.source()
    self.write("src/cat/broken-1.jpg", jpeg(1)[:200])
    self.write("src/dog/broken-2.png", b"no image")
    self.write("src/dog/empty.jpg", b"")
    for kind in ("webdataset", "hdf5 packed", "hdf5 vlen", "lmdb raw", "lmdb caffe", "npy"):
      with self.subTest(kind):
        out = kind.replace(" ", "-")
        flags, (copy_format, *_) = KINDS[kind]
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

  def lose(self, out="out", number=0):
    """Deletes a shard and its index; their names."""
    shard = self.manifest(out)["shards"][number]
    for name in (shard["name"], shard["index"]["name"]):
      (self.folder / out / name).unlink()
    return shard["name"], shard["index"]["name"]

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
    # By size: they come back by their indexes; without these the source gives another plan, and that is said.
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

  def test_nothing_is_damaged(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.rmtree(self.folder / "src")
    before = {path: path.stat().st_mtime_ns for path in (self.folder / "out").rglob("*")}
    for folder in (self.folder / "out",):
      folder.chmod(0o555)
    done = self.pack("repair", "out", unprivileged=True)
    self.assertIn("nothing is damaged", done.stderr)
    self.assertEqual(before, {path: path.stat().st_mtime_ns for path in (self.folder / "out").rglob("*")})
    self.assertRegex(done.stdout, r"\Adataset xxh3:[0-9a-f]{32}\n\Z")

  def test_a_dry_run_writes_nothing(self):
    self.source()
    self.make("webdataset")
    self.lose()
    before = self.contents()
    done = self.pack("repair", "out", "-n")
    self.assertIn("would rebuild train-000000.tar (missing) from", done.stderr)
    self.assertEqual(before, self.contents())

  def test_out_is_read_only_or_the_disk_full(self):
    self.source()
    want, _ = self.make("webdataset")
    lost = self.lose()
    (self.folder / "out").chmod(0o555)
    done = self.pack("repair", "out", expect=6, unprivileged=True)
    self.assertIn("ermission denied", done.stderr)
    (self.folder / "out").chmod(0o755)
    self.pack("repair", "out", expect=6, limits=[(resource.RLIMIT_FSIZE, 4096)])
    self.assertFalse((self.folder / "out" / ".pack").exists())
    self.heal(want, "out", (), set(lost))

  def test_what_may_not_be_read_is_damaged(self):
    """It does not stand in the way of the others."""
    self.source()
    want, _ = self.make("webdataset")
    (self.folder / "out/train-000000.tar").unlink()
    for name in ("train-000001.tar", "train-000002.pidx"):
      (self.folder / "out" / name).chmod(0)
    done = self.pack("repair", "out", "--dry-run", unprivileged=True)
    self.assertRegex(done.stderr, r"would rebuild train-000001.tar \(open .*ermission denied\) from")
    self.pack("repair", "out", unprivileged=True)
    self.assertEqual(want, self.contents())

  def test_one_repair_at_a_time(self):
    self.source()
    want, _ = self.make("webdataset")
    self.lose()
    (self.folder / "out" / ".pack").mkdir()
    with open(self.folder / "out/.pack/lock", "wb") as lock:
      fcntl.lockf(lock, fcntl.LOCK_EX)
      self.assertIn("locked by another run", self.pack("repair", "out", expect=5).stderr)
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())

  def test_what_a_killed_repair_left_is_taken_away(self):
    self.source()
    want, _ = self.make("webdataset")
    self.lose()
    self.write("out/.pack/stage/rebuilt", b"half")
    self.write("out/.pack/stage/build/train-000000.tar", b"half")
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())
    self.write("out/.pack/stage/rebuilt", b"half")
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())

  def test_a_dry_run_does_not_promise_what_the_source_has_no_more(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "4")
    name = self.rows("out")[0]["path"]
    path = self.folder / "src" / name
    path.write_bytes(path.read_bytes()[:-1] + b"Q")
    (self.folder / "out/train-000000.tar").unlink()
    (self.folder / "out/train-000001.tar").unlink()
    for words in (["--dry-run"], []):
      done = self.pack("repair", "out", *words, expect=3)
      self.assertIn(f"of {name}) are nowhere", done.stderr.replace("\n", " "))
      self.assertIn("rebuild 1 of 2" if words else "rebuilt 1 of 2", done.stderr)

  def test_a_manifest_alone_does_not_keep_the_source_away(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "4")
    want = self.contents()
    expect = re.search("xxh3:[0-9a-f]{32}", self.pack("info", "out").stdout).group(0)
    (self.folder / "kept").mkdir()
    shutil.move(self.folder / "out/manifest.json", self.folder / "kept/manifest.json")
    (self.folder / "out/train-000001.tar").unlink()
    self.pack("repair", "out", "--from", "kept", "--expect", expect)
    self.assertEqual(want, self.contents())

  def test_a_shard_that_may_not_be_read_and_a_source_that_lacks_files(self):
    self.source()
    for kind in ("wids", "dali"):
      self.pack("src", "-o", "out", "--shards", "4", "--sidecar-index", kind)
      lost = self.rows("out")[0]["path"]
      shutil.copytree(self.folder / "src", self.folder / "less")
      (self.folder / "less" / lost).unlink()
      for path in [*(self.folder / "out").glob("*.idx"), self.folder / "out/train.json"]:
        path.unlink(missing_ok=True)
      (self.folder / "out/train-000000.tar").chmod(0)
      (self.folder / "out/train-000001.tar").unlink()
      done = self.pack("repair", "out", "--from", "less", "--json", unprivileged=True, expect=3)
      files = {file["name"]: file["repairable"] for file in json.loads(done.stdout)["files"]}
      self.assertTrue(files["train-000001.tar"], files)
      self.assertFalse(files["train-000000.tar"], files)
      shutil.rmtree(self.folder / "less")
      shutil.rmtree(self.folder / "out")

  def delete(self, *names, out="out"):
    for name in names:
      (self.folder / out / name).unlink(missing_ok=True)

  def test_an_input_that_may_not_be_read_has_not_changed(self):
    self.source()
    want, _ = self.make("webdataset")
    shard = {row["path"]: row["shard"] for row in self.rows("out")}["cat/good-0000.jpg"]
    index = shard[:-len(".tar")] + ".pidx"
    (self.folder / "src/cat/good-0000.jpg").chmod(0)
    for names in ([shard], [shard, index]):
      self.delete(*names)
      done = self.pack("repair", "out", expect=3, unprivileged=True).stderr.replace("\n", " ")
      self.assertIn("1 input of ", done)
      self.assertIn("cannot be read: cat/good-0000.jpg: permission", done)
      self.assertNotIn("has changed", done)
      self.assertNotIn("nowhere", done)
      self.assertEqual(len(names) == 1, "src/cat/good-0000.jpg: Permission denied" in done, done)
      for name in names:
        self.write(f"out/{name}", want[name])
    (self.folder / "src/cat/good-0000.jpg").chmod(0o644)
    (self.folder / "src/cat").chmod(0)
    for flags in ([], ["--dry-run"]):
      self.delete(shard, index)
      done = self.pack("repair", "out", *flags, expect=3, unprivileged=True).stderr.replace("\n", " ")
      self.assertIn("cannot be read: cat: permission", done)
      self.assertNotIn("has changed", done)
      for name in (shard, index):
        self.write(f"out/{name}", want[name])

  def test_a_recorded_source_that_may_not_be_read(self):
    self.source()
    want, _ = self.make("webdataset")
    (self.folder / "src").chmod(0)
    self.delete("train-000000.pidx", "train-000001.tar", "train-000001.pidx")
    done = self.pack("repair", "out", expect=3, unprivileged=True).stderr.replace("\n", " ")
    self.assertIn("the source that it was packed from cannot be read: ", done)
    self.assertIn("Permission denied", done)
    (self.folder / "src").chmod(0o755)
    self.pack("repair", "out")
    self.assertEqual(want, self.contents("out"))

  def test_one_of_several_sources_that_cannot_be_used(self):
    self.source()
    want, copy_format = self.make("webdataset")
    self.copy(copy_format)
    self.copy(copy_format, copy="damaged")
    manifest = self.folder / "damaged/manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-30])
    shutil.copytree(self.folder / "copy", self.folder / "closed")
    (self.folder / "closed").chmod(0)
    shutil.copytree(self.folder / "copy", self.folder / "unread")
    (self.folder / "unread/manifest.json").chmod(0)
    said = {"nowhere": "--from nowhere does not exist", "damaged": "damaged/manifest.json: ",
            "closed": "closed/manifest.json: Permission denied", "unread": "unread/manifest.json: Permission denied"}
    for bad, why in said.items():
      for good in ("src", "copy"):
        for words in ([bad, good], [good, bad]):
          with self.subTest(words):
            self.delete("train-000000.tar", "train-000001.tar", "train-000001.pidx")
            words = [word for name in words for word in ("--from", name)]
            done = self.pack("repair", "out", *words, unprivileged=True).stderr.replace("\n", " ")
            self.assertIn(why, done)
            self.assertIn("this source is left out, the others are used", done)
            self.assertEqual(want, self.contents("out"))
    self.delete("train-000000.tar")
    for bad, code in {"nowhere": 2, "damaged": 4, "closed": 6, "unread": 6}.items():
      self.assertIn(said[bad], self.pack("repair", "out", "--from", bad, expect=code, unprivileged=True).stderr)

  def test_a_manifest_from_one_of_several_copies(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    shutil.copytree(self.folder / "out", self.folder / "unread")
    (self.folder / "unread/manifest.json").chmod(0)
    self.delete("manifest.json", "train-000000.pidx")
    refused = self.pack("repair", "out", "--from", "unread", expect=6, unprivileged=True).stderr
    self.assertIn("open unread/manifest.json: Permission denied", refused)
    self.pack("repair", "out", "--from", "unread", "--from", "copy", unprivileged=True)
    self.assertEqual(want, self.contents("out"))

  def test_a_copy_of_which_a_file_may_not_be_read(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    (self.folder / "copy/train-000000.tar").chmod(0)
    (self.folder / "empty").mkdir()
    self.delete("train-000000.tar")
    done = self.pack("repair", "out", "--from", "copy", "--from", "empty", expect=3, unprivileged=True).stderr
    self.assertIn("copy/train-000000.tar: Permission denied", done.replace("\n", " "))
    self.pack("repair", "out", "--from", "copy", "--from", "src", unprivileged=True)
    self.assertEqual(want, self.contents("out"))

  def test_what_is_not_a_file_is_left_alone(self):
    self.source()
    want, _ = self.make("webdataset")
    shard, index = self.lose()
    (self.folder / "out" / shard / "mine").mkdir(parents=True)
    os.symlink(self.write("mine.txt", b"mine"), self.folder / "out" / index)
    done = self.pack("repair", "out", expect=3)
    self.assertIn(f"{shard} is not a file", done.stderr)
    self.assertTrue((self.folder / "out" / shard / "mine").is_dir())
    # The link is replaced, not what it points to.
    self.assertEqual((b"mine", want[index]), ((self.folder / "mine.txt").read_bytes(), (self.folder / "out" / index).read_bytes()))
    self.assertFalse((self.folder / "out" / index).is_symlink())
    # Nothing is written behind a link either.
    self.make("lmdb raw", out="lmdb")
    folder = self.folder / "lmdb" / self.manifest("lmdb")["shards"][0]["name"]
    shutil.rmtree(folder)
    (self.folder / "mine").mkdir()
    os.symlink(self.folder / "mine", folder)
    self.assertIn("is a link or a file", self.pack("repair", "lmdb", expect=3).stderr)
    self.assertEqual([], list((self.folder / "mine").iterdir()))

  def test_a_damaged_manifest_is_not_guessed(self):
    self.source()
    want, _ = self.make("webdataset")
    path = self.folder / "out/manifest.json"
    for text in (b"", b"{}", want["manifest.json"].replace(b"train-000000.tar", b"../../src/cat.ta"),
                 want["manifest.json"][:-9], want["manifest.json"].replace(b'"dog"', b'"cow"')):
      path.write_bytes(text)
      self.assertIn("restore the file from a copy", self.pack("repair", "out", expect=4).stderr)
    path.unlink()
    self.assertIn("no manifest.json", self.pack("repair", "out", expect=4).stderr)
    self.assertEqual({k: v for k, v in want.items() if k != "manifest.json"}, self.contents())

  def test_a_manifest_comes_from_a_copy_that_is_the_same_dataset(self):
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    self.make("webdataset", "--seed", "7", out="other")
    identity = self.pack("repair", "copy").stdout.split()[1]
    path = self.folder / "out/manifest.json"
    path.write_bytes(want["manifest.json"][:100])
    self.assertIn("is another dataset", self.pack("repair", "out", "--from", "other", expect=4).stderr)
    self.assertIn("would rebuild manifest.json", self.pack("repair", "out", "-n", "--from", "copy").stderr)
    self.assertNotEqual(want, self.contents())
    self.pack("repair", "out", "--from", "other", "--from", "copy")
    self.assertEqual(want, self.contents())
    # With a shard lost too only the user knows.
    self.lose()
    path.unlink()
    done = self.pack("repair", "out", "--from", "copy", expect=4)
    self.assertIn(f"Only if out was that very dataset before it was damaged, add --expect {identity}",
                  done.stderr.replace("\n", " "))
    self.pack("repair", "out", "--from", "copy", "--expect", identity)
    self.assertEqual(want, self.contents())

  def test_shards_of_another_dataset_are_not_replaced(self):
    """What their indexes prove, --expect cannot deny."""
    self.source()
    for kind in ("webdataset", "tfrecord", "lmdb raw", "npy"):
      with self.subTest(kind):
        mine, theirs = "mine-" + kind.replace(" ", "-"), "theirs-" + kind.replace(" ", "-")
        self.make(kind, out=mine)
        self.make(kind, "--seed", "7", out=theirs)
        identity = self.pack("repair", theirs).stdout.split()[1]
        shutil.move(self.folder / mine / "manifest.json", self.folder / "kept.json")
        before = self.contents(mine)
        for words in ((), ("--expect", identity), ("--expect", identity, "-n")):
          done = self.pack("repair", mine, "--from", theirs, *words, expect=4).stderr.replace("\n", " ")
          self.assertIn("is another dataset", done)
          self.assertNotIn("add --expect", done)
          self.assertEqual(before, self.contents(mine))
        # Shards that have changed their places are of the same dataset.
        shutil.move(self.folder / "kept.json", self.folder / mine / "manifest.json")
        want = self.contents(mine)
        self.write("kept/manifest.json", want["manifest.json"])
        identity = self.pack("repair", mine).stdout.split()[1]
        (self.folder / mine / "manifest.json").unlink()
        shards = self.manifest("kept")["shards"]
        for first, second in ((shards[0]["index"]["name"], shards[1]["index"]["name"]),):
          self.write(f"{mine}/{first}", want[second])
          self.write(f"{mine}/{second}", want[first])
        self.pack("repair", mine, "--from", "kept", "--expect", identity)
        self.assertEqual(want, self.contents(mine))

  def test_a_manifest_of_another_program_stays(self):
    """Web programs write a manifest.json, too."""
    theirs = b'{\n "name": "gallery", "icons": []\n}\n'
    self.source()
    want, _ = self.make("webdataset")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    identity = self.pack("repair", "copy").stdout.split()[1]
    for name in want:
      if name.startswith("train-000000."):
        self.write(f"src/{name}", want[name])
    self.write("src/manifest.json", theirs)
    before = self.contents("src")
    for words in ((), ("-n",)):
      done = self.pack("repair", "src", "--from", "copy", "--expect", identity, *words, expect=4)
      self.assertIn("was not written by pack", done.stderr)
      self.assertEqual(before, self.contents("src"))
    # Nor one that has a member of ours.
    for theirs in (b'{"tool": "mine", "xxh3_128": "abc"}', b'{"plan_digest": "abc"}'):
      self.write("copied/manifest.json", theirs)
      done = self.pack("repair", "copied", "--from", "copy", "--expect", identity, expect=4)
      self.assertIn("was not written by pack", done.stderr)
      self.assertEqual({"manifest.json": theirs}, self.contents("copied"))
    # Beside images it says nothing about them.
    lost = self.lose()
    self.heal(want, "out", (), set(lost))
    lost = self.lose()
    self.heal(want, "out", ("--from", "src"), set(lost))

  def test_what_is_left_of_a_manifest_is_replaced(self):
    self.source()
    want, _ = self.make("tfrecord")
    shutil.copytree(self.folder / "out", self.folder / "copy")
    whole = want["manifest.json"]
    shard = want[self.manifest()["shards"][0]["name"]]  # files may change their places
    for left in (b"", b"{\n ", shard, whole[:9], whole[:-1], bytes(len(whole)), bytes(64) + whole[64:], b"#" + whole[1:]):
      with self.subTest(left[:20]):
        self.write("out/manifest.json", left)
        self.pack("repair", "out", "--from", "copy")
        self.assertEqual(want, self.contents())

  def test_names_and_levels(self):
    self.source()
    want, _ = self.make("webdataset")
    first, second = self.lose(number=0), self.lose(number=1)
    self.write("out/train-000002.tar", want["train-000002.tar"][:5000] + b"x" + want["train-000002.tar"][5001:])
    self.pack("repair", "out", first[0])  # with its index
    self.assertEqual(want.keys() - set(second), self.contents().keys())
    self.pack("repair", "out", second[0], second[1], "--level", "quick")
    self.pack("repair", "out", "--level", "quick")
    self.assertNotEqual(want, self.contents())
    self.pack("repair", "out")
    self.assertEqual(want, self.contents())

  def test_words_that_cannot_be(self):
    self.source()
    self.make("webdataset")
    for words in (("nothing",), ("out", "train-9.tar"), ("out", "manifest.json"), ("out", "--from", "nothing"),
                  ("out", "--from", ""), ("out", "--level", "deep"), (), ("src",)):
      with self.subTest(words):
        self.pack("repair", *words, expect=4 if words == ("src",) else 2)
    self.pack("repair", "out", "--expect", "xxh3:" + "0" * 32, expect=4)

  def test_validate_says_how(self):
    self.source()
    want, _ = self.make("webdataset", out="my out")
    name = "train-000001.tar"
    self.write(f"my out/{name}", want[name][:700] + b"x" + want[name][701:])
    done = self.pack("validate", "my out", expect=4)
    self.assertRegex(done.stdout, r"run `\S*pack repair 'my out'`")
    self.write("lone.tar", (self.folder / "my out" / name).read_bytes())
    alone = self.pack("validate", "lone.tar", expect=4).stdout
    self.assertIn("restore the file from a good copy", alone)
    self.assertNotIn("repair", alone)
    self.pack("repair", "my out")
    self.pack("validate", "my out")
    self.write("copy/manifest.json", want["manifest.json"])
    for damage in (None, b"{}", want["manifest.json"].replace(b'"dog"', b'"cow"')):
      (self.folder / "my out/manifest.json").unlink()
      if damage is not None:
        self.write("my out/manifest.json", want["manifest.json"][:50] if damage == b"{}" else damage)
      self.assertRegex(self.pack("validate", "my out", expect=4).stdout, r"`\S*pack repair 'my out' --from COPY`")
      self.pack("repair", "my out", "--from", "copy")
    self.pack("validate", "my out")

  def test_datasets_without_planned_records_open_and_heal(self):
    """Manifests of before: what a shard was planned for is not in them, the source tells it."""
    self.source()
    self.write("src/cat/broken-1.jpg", jpeg(1)[:200])
    self.pack("src", "-o", "out", "--shards", "3", "-f", "hdf5", "--max-skip", "50%", expect=3)
    self.assertEqual(1, sum("planned" in shard for shard in self.manifest()["shards"]))
    self.make("hdf5 packed", out="whole", source="src/dog")
    self.assertFalse(any("planned" in shard for shard in self.manifest("whole")["shards"]))


if __name__ == "__main__":
  command.main()
