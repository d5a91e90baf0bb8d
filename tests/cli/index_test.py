"""`pack index`: shards of other tools become datasets where they lie, as a user meets it."""

import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tarfile
import time

import command
from command import jpeg, png

MAKERS = os.path.abspath("tests/cli/foreign_shards.py")
SUFFIXES = {"tfrecord": ".tfrecord", "lmdb datum": "", "lmdb raw": "", "h5py packed": ".h5", "h5py vlen": ".h5"}
NOTED = b"shardpack index run, version 1\n"  # the first line of .pack/index
KINDS = ("gnu tar", "pax tar", "bsdtar", *SUFFIXES)


class IndexTest(command.PackTest):

  def make(self, shard, kind="gnu tar", first=0, count=12):
    """A shard with these images; [(label, sha256)] in the order of the shard."""
    samples, want = [], []
    for i in range(first, first + count):
      image = self.write(f"images/{i:04}.png" if i % 3 == 0 else f"images/{i:04}.jpg",
                         png(3 + i % 5, 2, extra=command.png_chunk(b"tEXt", b"n\0%d" % i)) if i % 3 == 0 else jpeg(i))
      samples.append((f"s{i:04}", str(image), i % 4))
      want.append((-1 if kind == "lmdb raw" else i % 4, hashlib.sha256(image.read_bytes()).hexdigest()))
    (self.folder / shard).parent.mkdir(parents=True, exist_ok=True)
    # The distribution's Python, which has the distribution's lmdb and h5py.
    subprocess.run(["/usr/bin/python3", "-B", MAKERS, kind, str(self.folder / shard)], check=True,
                   input=json.dumps(samples).encode())
    return want

  def make_shards(self, kind="gnu tar", folder="in", count=3):
    suffix = SUFFIXES.get(kind, ".tar")
    return [self.make(f"{folder}/part-{i}{suffix}", kind, first=12 * i) for i in range(count)]

  def samples(self, *words):
    """[(label, sha256)] of a dataset or of shards, by number."""
    rows = self.rows(*words)
    return [(-1 if row["label"] is None else row["label"],
             hashlib.sha256(self.pack("cat", *words, "--record", str(i), text=False).stdout).hexdigest())
            for i, row in enumerate(rows)]

  def everything(self):
    return self.contents(".")

  def test_images_and_masks_in_any_order(self):
    """The image is that of the same extension in all samples. None has a label."""
    with tarfile.open(self.folder / "a.tar", "w") as tar:
      for number in range(4):
        members = [("jpg", jpeg(number)), ("png", png(3, 2))]
        for extension, data in members[::-1] if number % 2 else members:
          member = tarfile.TarInfo(f"k{number}.{extension}")
          member.size = len(data)
          tar.addfile(member, io.BytesIO(data))
    self.assertIn("warning: no sample has a label", self.pack("index", "a.tar", "-o", "out").stderr)
    self.assertEqual([jpeg(number) for number in range(4)], [self.pack("cat", "out", f"k{number}", text=False).stdout for number in range(4)])
    self.pack("validate", "out", "--level", "deep")
    self.pack("convert", "a.tar", "-o", "again")
    self.assertIn("fields    image 4, png 4", self.pack("stats", "again").stdout)

  def test_every_maker(self):
    for kind in KINDS:
      with self.subTest(kind):
        folder = kind.replace(" ", "-")
        want = sum(self.make_shards(kind, folder), [])
        before = self.contents(folder)
        done = self.pack("index", folder, "-o", f"{folder}-out")
        self.assertIn("36 samples in 3 shards", done.stderr)
        self.assertEqual(before, self.contents(folder))
        self.assertEqual(want, self.samples(f"{folder}-out"))
        checked = json.loads(self.pack("validate", f"{folder}-out", "--json").stdout)
        self.assertEqual((0, 36), (checked["errors"], checked["records"]["checked"]))
        self.pack("validate", f"{folder}-out", "--level", "quick")
        facts = json.loads(self.pack("info", f"{folder}-out", "--json").stdout)
        self.assertEqual({"jpg": 24, "png": 12}, facts["images"]["formats"])
        self.assertTrue(facts["adopted"])
        self.assertNotIn(None, [row["width"] for row in self.rows(f"{folder}-out")])
        # And beside the shards: the same dataset.
        self.assertEqual(done.stdout, self.pack("index", folder).stdout)
        self.assertEqual(want, self.samples(folder))
        self.pack("validate", folder)

  def test_converted_and_extracted_it_is_what_the_shards_are(self):
    for kind in ("pax tar", "tfrecord", "lmdb datum", "h5py vlen"):
      with self.subTest(kind):
        folder = kind.replace(" ", "-")
        want = sum(self.make_shards(kind, folder), [])
        self.pack("index", folder, "-o", f"{folder}-out")
        self.pack("convert", f"{folder}-out", "-o", f"{folder}-new", "-f", "hdf5")
        self.assertEqual(want, self.samples(f"{folder}-new"))
        self.pack("extract", f"{folder}-out", f"{folder}-files")
        written = self.contents(f"{folder}-files")
        self.assertEqual(kind == "pax tar", any(name.endswith(".cls") for name in written))
        files = [hashlib.sha256(data).hexdigest() for name, data in written.items() if not name.endswith(".cls")]
        self.assertEqual(sorted(sha256 for _, sha256 in want), sorted(files))

  def test_again_it_is_unchanged(self):
    self.make_shards()
    first = self.pack("index", "in")
    before = self.everything()
    again = self.pack("index", "in")
    self.assertIn("in is unchanged", again.stderr)
    self.assertEqual(first.stdout, again.stdout)
    self.assertTrue(json.loads(self.pack("index", "in", "--json").stdout)["unchanged"])
    self.assertEqual(before, self.everything())

  def test_one_shard_under_two_names(self):
    self.make("in/part-0.tar")
    os.link(self.folder / "in/part-0.tar", self.folder / "in/part-1.tar")
    self.assertIn("in/part-1.tar is given twice, the first time as in/part-0.tar", self.pack("index", "in", expect=2).stderr)

  def test_changed_shards(self):
    self.make_shards()
    self.pack("index", "in", "-o", "out")
    self.make("in/part-1.tar", first=50)
    before = self.everything()
    done = self.pack("index", "in", "-o", "out", expect=5)
    self.assertIn("part-1.tar has changed", done.stderr)
    self.assertIn("--overwrite", done.stderr)
    self.assertEqual(before, self.everything())
    self.assertIn("file-", self.pack("validate", "out", expect=4).stdout)
    typed = shlex.split(done.stderr.splitlines()[-1])
    self.assertEqual(["index", "in", "-o", "out", "--overwrite"], typed[1:])
    self.pack(*typed[1:])
    self.pack("validate", "out")
    # One bit in an image.
    shard = self.folder / "in/part-2.tar"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    self.assertIn("file-hash", self.pack("validate", "out", expect=4).stdout)
    shard.unlink()
    self.assertIn("file-missing", self.pack("validate", "out", expect=4).stdout)
    self.pack("ls", "out", expect=4)

  def test_damage_is_named_and_nothing_is_written(self):
    for kind in ("gnu tar", "tfrecord", "lmdb datum", "h5py packed"):
      with self.subTest(kind):
        folder = kind.replace(" ", "-")
        self.make_shards(kind, folder)
        name = "part-1" + SUFFIXES.get(kind, ".tar")
        shard = self.folder / folder / name
        shard = shard / "data.mdb" if shard.is_dir() else shard
        shard.write_bytes(shard.read_bytes()[:shard.stat().st_size * 2 // 3 - 100])
        before = self.everything()
        for words in ([], ["-o", "new"]):
          done = self.pack("index", folder, *words, expect=4)
          self.assertIn(name, done.stderr)
          self.assertIn("Nothing was written", done.stderr)
          self.assertNotIn("error: error", done.stderr)
          self.assertEqual(before, self.everything())
          self.assertFalse((self.folder / "new").exists())
        if kind in ("gnu tar", "tfrecord"):
          self.assertRegex(done.stderr, r" at offset \d+")
        if kind == "tfrecord":
          self.assertRegex(done.stderr, r" record \d+ at offset \d+")

  def test_a_shard_without_an_end_is_said(self):
    # Cut behind a whole sample, and between its two members.
    for shard, members, samples in (("whole", 10, 5), ("part", 9, 4)):
      self.make(f"{shard}/a.tar")
      with tarfile.open(self.folder / shard / "a.tar") as archive:
        end = archive.getmembers()[members].offset
      os.truncate(self.folder / shard / "a.tar", end)
      done = self.pack("index", shard)
      self.assertIn(f"warning: tar-no-end {shard}/a.tar", done.stderr)
      self.assertIn(f"{samples} samples", done.stderr)
      said = "the last sample may lack members and is left out" in done.stderr
      self.assertEqual(said, samples == 4, done.stderr)

  def make_tar(self, shard, members):
    path = self.write(shard)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
      for name, data in members:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))

  def test_labels_that_are_no_integers_are_said(self):
    labels = (b"3", b"0x3", b"3.0", b"", b"9223372036854775808", b"-9223372036854775808", b" 7\n")
    members = []
    for i, label in enumerate(labels):
      members += [(f"s{i}.jpg", jpeg(i)), (f"s{i}.cls", label)]
    self.make_tar("in/a.tar", members)
    self.make("in/b.tar", first=50)
    with tarfile.open(self.folder / "in/a.tar") as archive:
      offset = archive.getmember("s1.cls").offset_data
    err = self.pack("index", "in").stderr
    self.assertIn("4 of 7 samples", err)
    self.assertRegex(err, rf"warning: wds-label-not-integer in/a.tar record 1 at offset {offset}:")
    self.assertNotIn("b.tar", err)
    # A number below zero is shown as none, too.
    self.assertEqual([3, *[None] * 5, 7], [row["label"] for row in self.rows("in")][:7])

  def test_a_shard_without_a_sample_is_damage(self):
    self.make_shards()
    self.make_tar("in/empty.tar", [])
    before = self.everything()
    for words in (["in"], ["in/empty.tar"]):
      done = self.pack("index", *words, expect=4)
      self.assertIn("empty.tar holds no sample", done.stderr)
      self.assertEqual(before, self.everything())

  def test_what_is_left_out_is_named(self):
    self.make_shards()
    for i in range(7):
      self.write(f"in/note-{i}.txt", b"text")
    done = self.pack("index", "in", "-o", "out", "--json")
    self.assertEqual([f"in/note-{i}.txt" for i in range(7)], json.loads(done.stdout)["others"])
    self.assertIn("7 files that are not shards: in/note-0.txt", done.stderr)
    self.assertNotIn("note-5", done.stderr)
    (self.folder / "in/part-9.tar").symlink_to("../gone.tar")
    self.assertIn("in/part-9.tar", self.pack("index", "in", "-o", "new", expect=2).stderr)
    (self.folder / "in/part-9.tar").unlink()
    self.write("in/part-9.tar.gz", gzip.compress((self.folder / "in/part-0.tar").read_bytes()))
    self.assertIn("in/part-9.tar.gz is compressed", self.pack("index", "in", "-o", "new", expect=2).stderr)

  def test_what_has_no_extents_is_told_so(self):
    self.make_shards()
    self.make("in/a.h5", "h5py packed")
    done = self.pack("index", "in", expect=2)
    self.assertIn("a dataset has one format", done.stderr)
    tar = (self.folder / "in/part-0.tar").read_bytes()
    self.write("z/part-0.tar.gz", gzip.compress(tar))
    self.write("z/part-0.tar", gzip.compress(tar))
    self.write("z/data.txt", b"text")
    for name in ("part-0.tar.gz", "part-0.tar"):
      done = self.pack("index", f"z/{name}", expect=2)
      self.assertIn("compressed as a whole", done.stderr)
    self.assertIn("not a shard of any known format", self.pack("index", "z/data.txt", expect=2).stderr)
    self.make("t.tfrecord", "tfrecord")
    self.write("t.tfrecord", gzip.compress((self.folder / "t.tfrecord").read_bytes()))
    self.assertIn("compressed", self.pack("index", "t.tfrecord", expect=4).stderr)
    make_lzf = "import h5py,sys; f=h5py.File(sys.argv[1],'w'); f.create_dataset('images/data',(9,),'u1',compression='lzf')"
    subprocess.run(["/usr/bin/python3", "-c", make_lzf + "; f['images/offsets']=[0,9]", str(self.folder / "lzf.h5")], check=True)
    self.assertIn("lzf", self.pack("index", "lzf.h5", expect=2).stderr)
    self.pack("index", expect=2)
    self.pack("index", "nowhere", expect=2)
    os.mkdir(self.folder / "empty")
    self.pack("index", "empty", expect=2)

  def test_splits_classes_and_order(self):
    for i, name in enumerate(("val-0.tar", "train-1.tar", "train-0.tar")):
      self.make(f"in/{name}", first=12 * i)
    self.write("names.txt", b"ant\nbee\ncat\ndog\n")
    self.pack("index", "in", "-o", "out", "--classes", "names.txt")
    self.assertEqual({"train": 24, "val": 12}, self.manifest()["splits"])
    self.assertEqual(["train-0.tar", "train-1.tar", "val-0.tar"], [shard["name"] for shard in self.manifest()["shards"]])
    self.assertEqual(["ant", "bee", "cat", "dog"], self.manifest()["classes"])
    self.assertEqual(9, len(self.rows("out", "--label", "ant")))
    self.assertEqual(12, len(self.rows("out", "--split", "val")))
    self.pack("index", "in/val-0.tar", "in/train-0.tar", "-o", "two", "--split", "test")
    self.assertEqual({"test": 24}, self.manifest("two")["splits"])
    self.assertEqual("val-0.tar", self.manifest("two")["shards"][0]["name"])
    self.write("names.txt", b"ant\nbee\n")
    self.assertIn("has the label 2", self.pack("index", "in", "-o", "x", "--classes", "names.txt", expect=2).stderr)
    self.pack("index", "in", "-o", "x", "--classes", "none.txt", expect=2)
    self.pack("index", "in", "-o", "x", "--split", "a/b", expect=2)

  def test_repeated_keys_are_said(self):
    for name in ("train-0.tar", "val-0.tar"):
      self.make(f"in/{name}")
    done = self.pack("index", "in", "-o", "out")
    self.assertIn("12 samples have the key of another one, the first: key s0000", done.stderr)
    self.assertIn("key-duplicate", self.pack("validate", "out", expect=4).stdout)
    self.assertEqual(24, len(self.samples("out")))

  def test_shards_of_several_folders_and_odd_names(self):
    want = self.make("a/x y.tar") + self.make("b/x y.tar", first=12)
    self.assertIn("several folders", self.pack("index", "a/x y.tar", "b/x y.tar", expect=2).stderr)
    self.pack("index", "a/x y.tar", "b/x y.tar", "-o", "out")
    self.assertEqual(want, self.samples("out"))
    self.pack("index", "a")
    self.assertEqual(want[:12], self.samples("a"))
    self.pack("validate", "a")
    # Relative locations: both may move together, as long as they stay neighbours.
    os.mkdir(self.folder / "moved")
    for name in ("a", "b", "out"):
      os.rename(self.folder / name, self.folder / "moved" / name)
    self.assertEqual(want, self.samples("moved/out"))
    shutil.rmtree(self.folder / "moved/b")
    self.pack("info", "moved/out", expect=4)

  def test_shards_indexed_in_place_are_never_replaced(self):
    self.source()
    self.make_shards()
    self.pack("index", "in")
    before = self.contents("in")
    for words in (["src"], ["src", "--overwrite"], ["convert", "in", "--overwrite"]):
      self.pack(*words, "-o", "in", expect=None)
      self.assertEqual(before, self.contents("in"))
    self.pack("src", "-o", "packed")
    packed = self.contents("packed")
    for words in (["packed"], ["in", "-o", "packed"], ["in", "-o", "packed", "--overwrite"]):
      self.assertIn("pack has made", self.pack("index", *words, expect=None).stderr)
      self.assertEqual(packed, self.contents("packed"))

  def test_what_an_interrupted_index_leaves_is_no_leave_to_build(self):
    self.source()
    self.make("in/train-000000.tar")
    for name, data in (("lock", b""), ("stage/0.pidx", b"x"), ("index", NOTED + b"train-000000.pidx\n")):
      self.write(f"in/.pack/{name}", data)
      before = self.contents("in")
      for flags in ([], ["--overwrite"], [], ["--overwrite"]):
        self.assertIn("use another folder", self.pack("src", "-o", "in", *flags, expect=5).stderr)
        self.assertEqual(before, self.contents("in"))
    self.write("in/train-000000.pidx", b"SPKPIDX1 half")
    self.pack("index", "in")
    self.pack("validate", "in")
    self.assertFalse((self.folder / "in/.pack").exists())

  def test_a_damaged_manifest_is_not_overwritten(self):
    self.source()
    self.make_shards()
    self.pack("index", "in")
    text = (self.folder / "in/manifest.json").read_bytes()
    for damaged in (text[:-40], text.replace(b"adopted", b"nothing"), b""):
      self.write("in/manifest.json", damaged)
      before = self.contents("in")
      for flags in ([], ["--overwrite"]):
        done = self.pack("src", "-o", "in", *flags, expect=4)
        self.assertEqual(before, self.contents("in"))
    self.assertIn("by hand", done.stderr)

  def test_index_beside_a_damaged_manifest_says_what_to_type(self):
    for folder in ("in", "-odd one"):
      self.make_shards(folder=folder)
      self.pack("index", "--", folder)
      text = (self.folder / folder / "manifest.json").read_bytes()
      other = re.sub(rb'"schema": 1\b', b'"schema": 99', text)
      self.assertNotEqual(text, other)
      shards = [f"{folder}/part-{i}.tar" for i in range(3)]
      for damaged, why in ((text[:-40], "malformed JSON"), (b"", "is empty"), (b'{"name": 1}', "manifest.json"), (b"[]", "manifest.json"),
                           (other, "schema 99, expected 1"), (text.replace(b"adopted", b"nothing"), "manifest.json")):
        with self.subTest(folder=folder, damaged=damaged[:20]):
          self.write(f"{folder}/manifest.json", damaged)
          before = self.contents(folder)
          for words in (["--", folder], ["--overwrite", "--", folder], ["--", *shards]):
            refused = self.pack("index", *words, expect=4).stderr
            self.assertIn(f"{folder}/manifest.json", refused)
            self.assertIn(why, refused)
            self.assertIn("--from COPY", refused)
            self.assertEqual(before, self.contents(folder))
          move = refused.splitlines()[-1]
          subprocess.run(["sh", "-c", move], cwd=self.folder, check=True)
          done = self.pack("index", "--", folder)
          self.assertIn("manifest.json.damaged", done.stderr)
          self.assertEqual(text, (self.folder / folder / "manifest.json").read_bytes())
      # Each was moved to a name of its own.
      self.assertEqual(6, len(list((self.folder / folder).glob("manifest.json.damaged*"))))
    (self.folder / "in/manifest.json").unlink()
    (self.folder / "in/manifest.json").mkdir()
    self.assertIn("mv -n -- in/manifest.json", self.pack("index", "in", expect=2).stderr)

  def test_hidden_and_unlisted_shards_are_named(self):
    self.make_shards()
    whole = (self.folder / "in/part-0.tar").read_bytes()
    self.write("in/.x.tar", whole)
    self.write("in/.part-9.tar.Qz8", whole[:700])
    done = self.pack("index", "in", "--json")
    self.assertIn("left out  as hidden: in/.part-9.tar.Qz8, in/.x.tar", done.stderr)
    self.assertEqual(["in/.part-9.tar.Qz8", "in/.x.tar"], json.loads(done.stdout)["hidden"])
    self.write("in/late.tar", whole)
    named = "shards that manifest.json does not list, and that are left out: .part-9.tar.Qz8, .x.tar, late.tar"
    self.assertIn(f"not checked: {named}", self.pack("validate", "in").stdout)
    self.assertIn(f"warning: {named}", self.pack("convert", "in", "-o", "out").stderr)
    self.assertNotIn("manifest.json does not list", self.pack("convert", "out", "-o", "again").stderr)

  def test_links_in_place_of_the_folder_of_pack(self):
    self.source()
    self.make_shards()
    self.write("far/stage/precious", b"mine")
    (self.folder / "in/.pack").symlink_to("../far")
    os.mkdir(self.folder / "new")
    os.mkdir(self.folder / "new/.pack")
    (self.folder / "new/.pack/stage").symlink_to("../../far/stage")
    before = self.everything()
    for words in (["index", "in"], ["index", "in", "-o", "new"], ["src", "-o", "new"], ["src", "-o", "new", "--overwrite"]):
      self.assertIn("is a link", self.pack(*words, expect=5).stderr)
      self.assertEqual(before, self.everything())

  def test_a_foreign_index_is_not_replaced(self):
    self.make_shards()
    self.write("in/part-1.pidx", b"mine")
    self.write("in/.pack/lock")
    self.assertIn("part-1.pidx already exists", self.pack("index", "in", expect=5).stderr)
    self.assertEqual(b"mine", (self.folder / "in/part-1.pidx").read_bytes())
    refused = self.pack("index", "in", "--overwrite", expect=5).stderr
    self.assertIn("in/part-1.pidx already exists and is not an index made by pack, so it is not replaced; move it away", refused)
    self.assertEqual(b"mine", (self.folder / "in/part-1.pidx").read_bytes())
    # One that pack has made, of another shard.
    self.pack("index", "in/part-0.tar", "-o", "other")
    shutil.copy(self.folder / "other/part-0.pidx", self.folder / "in/part-1.pidx")
    self.assertIn("--overwrite replaces it", self.pack("index", "in", expect=5).stderr)
    self.pack("index", "in", "--overwrite")
    self.pack("validate", "in")

  def test_a_file_called_as_what_index_notes_is_kept(self):
    self.make_shards()
    def notes(path):
      self.write(path, b"part-0.pidx\nmine.pidx\n")
      return path + " is not what"
    def link(path):
      self.write("notes", b"mine")
      (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
      (self.folder / path).symlink_to(self.folder / "notes")
      return path + " is a link"
    def folder(path):
      self.write(path + "/notes", b"mine")
      return path + " is a link or a folder"
    self.write("in/mine.pidx", b"mine")
    self.write("in/part-0.pidx", b"mine")
    for i, make in enumerate((notes, link, folder)):
      for out in ("in", f"new-{i}", f"there-{i}"):
        if out.startswith("there"):
          self.pack("index", "in", "-o", out)
        said = make(f"{out}/.pack/index")
        before = self.everything()
        for flags in ([], ["--overwrite"]):
          refused = self.pack("index", "in", "-o", out, *flags, expect=5).stderr
          self.assertIn(said, refused)
          self.assertIn("move it away", refused)
          self.assertEqual(before, self.everything())
      path = self.folder / "in/.pack/index"
      shutil.rmtree(path) if make == folder else path.unlink()
    # The name that older versions wrote it under first; and what is not pack's is named.
    self.pack("index", "in", "-o", "out")
    for name in ("index.new", "stage/x", "lock"):
      self.write(f"out/.pack/{name}", b"mine")
    for flags in ([], ["--overwrite"]):
      kept = self.pack("index", "in", "-o", "out", *flags).stderr
      self.assertIn("kept      what pack has not made: .pack/index.new, .pack/lock, .pack/stage/x\n", kept)
      for name in ("index.new", "stage/x", "lock"):
        self.assertEqual(b"mine", (self.folder / f"out/.pack/{name}").read_bytes())

  def test_what_a_killed_run_has_noted_is_removed_only_if_it_is_an_index(self):
    self.make_shards()
    self.pack("index", "in", "-o", "out")
    shutil.copy(self.folder / "out/part-1.pidx", self.folder / "in/gone.pidx")
    self.write("in/mine.pidx", b"mine")
    self.write("in/.pack/index", NOTED + b"gone.pidx\nmine.pidx\npart-0.pidx\n")
    self.pack("index", "in")
    self.assertEqual(b"mine", (self.folder / "in/mine.pidx").read_bytes())
    self.assertFalse((self.folder / "in/gone.pidx").exists())
    self.assertFalse((self.folder / "in/.pack").exists())
    self.write("in/part-0.pidx", b"mine")
    (self.folder / "in/manifest.json").unlink()
    self.write("in/.pack/index", NOTED + b"part-0.pidx\n")
    self.assertIn("in/part-0.pidx already exists and is not an index made by pack", self.pack("index", "in", expect=5).stderr)
    self.assertEqual(b"mine", (self.folder / "in/part-0.pidx").read_bytes())

  def test_overwrite_of_an_older_versions_index_keeps_a_file_of_todays_name(self):
    self.make_shards(count=1)
    self.pack("index", "in")
    self.rename_index("in", "part-0.pidx", "part-0.tar.pidx")
    self.write("in/part-0.pidx", b"mine")
    before = self.contents("in")
    self.assertIn("in/part-0.pidx already exists and is not an index made by pack", self.pack("index", "in", "--overwrite", expect=5).stderr)
    self.assertEqual(before, self.contents("in"))
    (self.folder / "in/part-0.pidx").unlink()
    self.pack("index", "in", "--overwrite")
    self.assertEqual({"manifest.json", "part-0.tar", "part-0.pidx"}, self.contents("in").keys())

  def rename_index(self, folder, name, to):
    """As an older version called it, with a manifest that says so."""
    manifest = self.folder / folder / "manifest.json"
    facts = json.loads(manifest.read_text().replace(f'"{name}"', f'"{to}"'))
    facts["files"].sort(key=lambda file: file["name"])
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    manifest.write_text(text)
    (self.folder / folder / name).rename(self.folder / folder / to)
    # The manifest's own hash is told by the refusal.
    refused = self.pack("info", folder, expect=4).stderr
    right, wrong = re.search(r"self: expected (\w+), actual (\w+)", refused).groups()
    manifest.write_text(text.replace(wrong, right))
    self.pack("validate", folder)

  def test_an_index_without_its_manifest_is_made_again(self):
    self.make_shards()
    self.pack("index", "in", "-o", "out")
    self.pack("index", "in", "-o", "copy")
    want = self.contents("out")
    manifest = self.folder / "out/manifest.json"
    for damaged in (None, b"", want["manifest.json"][:-40], want["manifest.json"].replace(b"adopted", b"nothing"), bytes(500)):
      with self.subTest(damaged=damaged):
        def damage():
          manifest.unlink()
          if damaged is not None:
            manifest.write_bytes(damaged)
          return self.contents("out")
        for words in (["validate", "out"], ["repair", "out"], ["repair", "out", "--from", "copy"]):
          before = damage()
          done = self.pack(*words, expect=4)
          self.assertNotIn("json.exception", done.stdout + done.stderr)
          typed = re.search(r" (index SHARDS -o out --overwrite)", done.stdout + done.stderr)
          self.assertEqual(before, self.contents("out"))
          self.pack(*typed[1].replace("SHARDS", "in").split())
          self.assertEqual(want, self.contents("out"))
        before = damage()
        done = self.pack("index", "in", "-o", "out", expect=0 if damaged is None else 4)
        self.assertNotIn("json.exception", done.stderr)
        if damaged is not None:
          self.assertEqual(before, self.contents("out"))
          self.pack(*shlex.split(done.stderr.splitlines()[-1])[1:])
        self.assertEqual(want, self.contents("out"))
    # Not what may be a dataset that pack has built, or somebody else's folder.
    for name in ("part-0.tar", "notes"):
      manifest.write_bytes(b"")
      self.write(f"out/{name}", b"mine")
      before = self.contents("out")
      self.pack("index", "in", "-o", "out", "--overwrite", expect=4)
      self.assertEqual(before, self.contents("out"))
      (self.folder / f"out/{name}").unlink()
    self.write("site/manifest.json", b"{}")
    self.pack("index", "in", "-o", "site", "--overwrite", expect=4)
    self.assertEqual({"manifest.json": b"{}"}, self.contents("site"))

  def test_a_manifest_that_pack_has_not_written_is_not_replaced(self):
    self.make_shards()
    self.pack("index", "in", "-o", "out")
    want = self.contents("out")
    manifest = self.folder / "out/manifest.json"
    elsewhere = self.write("elsewhere.json", want["manifest.json"])
    mine = self.write("mine.json", b"mine")
    for data in (b'{"name": "my web app"}', b"dear diary", b'{"tool": "mine", "xxh3_128": "abc"}', elsewhere, mine):
      with self.subTest(data=data):
        manifest.unlink()
        if isinstance(data, bytes):
          manifest.write_bytes(data)
        else:
          manifest.symlink_to(data)
        before = self.contents("out")
        for flags in ([], ["--overwrite"]):
          if not flags and data == elsewhere:
            continue  # it is read, and the same
          refused = self.pack("index", "in", "-o", "out", *flags, expect=5).stderr
          self.assertIn("out/manifest.json", refused)
          self.assertIn("is not replaced; move it away and run again", refused)
          self.assertNotIn("--overwrite", refused)
          self.assertEqual(before, self.contents("out"))
          self.assertEqual(not isinstance(data, bytes), manifest.is_symlink())
    self.assertEqual(b"mine", mine.read_bytes())
    manifest.unlink()
    self.pack("index", "in", "-o", "out", "--overwrite")
    self.assertEqual(want, self.contents("out"))

  def test_what_is_no_index_stays_even_if_the_manifest_lists_it(self):
    self.make_shards()
    self.pack("index", "in", "-o", "out")
    index = self.folder / "out/part-1.pidx"
    whole = index.read_bytes()
    other = self.write("other", b"mine")
    for data in (b"mine", other):
      index.unlink()
      index.write_bytes(data) if isinstance(data, bytes) else index.symlink_to(data)
      before = self.contents("out")
      refused = self.pack("index", "in", "-o", "out", "--overwrite", expect=5).stderr
      self.assertIn("out/part-1.pidx already exists and is not an index made by pack, so it is not replaced; move it away", refused)
      self.assertEqual(before, self.contents("out"))
    # What damage leaves of one.
    for data in (b"", bytes(len(whole)), whole[:100]):
      index.unlink()
      index.write_bytes(data)
      self.pack("index", "in", "-o", "out", "--overwrite")
      self.assertEqual(whole, index.read_bytes())

  def test_an_interrupted_overwrite_leaves_no_index_behind(self):
    self.make_shards()
    self.pack("index", "in")
    # Right after the manifest was taken away.
    (self.folder / "in/manifest.json").unlink()
    self.write("in/.pack/lock")
    self.write("in/.pack/index", NOTED + b"part-0.pidx\npart-1.pidx\npart-2.pidx\n")
    (self.folder / "in/part-2.tar").unlink()
    self.pack("index", "in")
    self.assertEqual({"manifest.json", "part-0.tar", "part-0.pidx", "part-1.tar", "part-1.pidx"},
                     self.contents("in").keys())
    self.pack("validate", "in")

  def test_two_runs_side_by_side(self):
    self.make_shards()
    for flags in ([], ["--overwrite"]):
      for _ in range(5):
        (self.folder / "in/manifest.json").unlink(missing_ok=True)
        runs = [self.start("index", "in", *flags) for _ in range(3)]
        codes = []
        for run in runs:
          _, err = run.communicate(timeout=60)
          codes.append(run.returncode)
          self.assertIn(run.returncode, (0, 5, 6), err)
        self.assertIn(0, codes)
        self.pack("validate", "in")
        self.assertFalse((self.folder / "in/.pack").exists())

  def test_lock_files_of_other_readers_are_no_finding(self):
    self.source()
    self.pack("src", "-o", "packed", "-f", "lmdb")
    self.make_shards("lmdb raw")
    self.pack("index", "in")
    for folder in ("packed", "in"):
      for shard in self.manifest(folder)["shards"]:
        self.write(f"{folder}/{shard['name']}/lock.mdb", b"\0" * 8192)
        for level in ("quick", "full"):
          self.assertIn("0 errors, 0 warnings", self.pack("validate", folder, "--level", level).stdout)
    self.pack("index", "in")
    self.assertNotIn("lock.mdb", (self.folder / "in/manifest.json").read_text())
    # What nobody leaves there is one, and so is a lock file where no shard is.
    self.write(f"packed/{self.manifest('packed')['shards'][0]['name']}/other.mdb", b"x")
    self.write("packed/lock.mdb", b"x")
    self.assertEqual(2, self.pack("validate", "packed", "--level", "quick", expect=4).stdout.count("error file-extra"))

  def test_a_folder_in_an_indexs_place_stays(self):
    self.make("in/part-0.tar")
    self.write("in/part-0.pidx/mine.txt", b"mine")
    self.pack("index", "in", "--overwrite", expect=5)
    self.assertEqual(b"mine", (self.folder / "in/part-0.pidx/mine.txt").read_bytes())

  def test_a_shard_named_like_another_format_is_said(self):
    self.make("in/part-0.tar")
    shutil.copy(self.folder / "in/part-0.tar", self.folder / "x.tfrecord")
    shutil.copy(self.folder / "in/part-0.tar", self.folder / "x.bin")
    for level in ("quick", "full"):
      found = self.pack("validate", "x.tfrecord", "--level", level, expect=4).stdout
      self.assertIn("wrong-extension x.tfrecord", found)
      self.assertIn("expected a name of webdataset, actual one of tfrecord", found)
      self.pack("validate", "x.bin", "--level", level)  # a name that says nothing
    self.assertIn("x.tfrecord is webdataset, but named like tfrecord",
                  " ".join(self.pack("index", "x.tfrecord", "-o", "out").stderr.split()))

  def test_what_lies_elsewhere_is_not_said_to_be_repaired(self):
    self.make("shards/a.tar")
    self.make("shards/b.tar", first=50)
    self.pack("index", "shards/a.tar", "shards/b.tar", "-o", "out")
    (self.folder / "shards/a.tar").unlink()
    with open(self.folder / "shards/b.tar", "r+b") as shard:
      shard.seek(600)
      shard.write(b"damage")
    found = self.pack("validate", "out", expect=4).stdout
    self.assertIn("file-missing", found)
    self.assertIn("file-hash", found)
    self.assertNotIn("pack repair", found.replace(command.PACK, "pack"))
    self.assertIn("restore the file from a good copy", found)
    os.remove(self.folder / "out/b.pidx")  # lies in the dataset
    self.assertIn("repair out", self.pack("validate", "out", expect=4).stdout)

  def test_neighbours_of_shards_are_no_finding_but_stale_indexes_are(self):
    self.make_shards()
    self.write("in/README.md", b"of the other tool")
    done = self.pack("index", "in")
    self.assertIn("README.md", done.stderr)
    self.pack("validate", "in")
    self.write("in/old.tar.pidx", b"x")
    self.assertIn("file-extra", self.pack("validate", "in", expect=4).stdout)

  def test_a_hostile_manifest_does_not_lead_elsewhere(self):
    self.make_shards()
    self.pack("index", "in", "-o", "out")
    self.write("secret", b"x" * 61)
    text = (self.folder / "out/manifest.json").read_text()
    for location in ("../secret", "/etc/passwd", "../in/../../secret", ".."):
      self.write("out/manifest.json", text.replace("../in/part-0.tar", location).encode())
      self.pack("ls", "out", expect=4)  # its own hash is wrong
      self.pack("validate", "out", expect=4)

  def test_killed_it_leaves_nothing_that_opens(self):
    for i in range(40):
      self.make(f"in/part-{i:02}.tar", first=12 * i)
    for delay in (0.0, 0.005, 0.01, 0.02, 0.04):
      process = self.start("index", "in", "-q")
      time.sleep(delay)
      process.send_signal(signal.SIGKILL)
      process.communicate()
      done = self.pack("info", "in", expect=None)
      self.assertIn(done.returncode, (0, 2, 4))
    self.pack("index", "in")
    self.pack("validate", "in")
    self.assertFalse((self.folder / "in/.pack").exists())
    self.assertEqual(480, len(self.rows("in")))


if __name__ == "__main__":
  command.main()
