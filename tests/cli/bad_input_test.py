"""Every row of docs/integrity.md's table of bad inputs that concerns sources, OUT and the run itself.

Where the table says SKIP: the input is left out and listed with its reason, the exit code is 3, and all else is packed.
"""

import json
import os
import resource
import shutil
import socket
import stat
import struct
import tarfile
import time

import command
from command import TESTDATA, jpeg, png, png_chunk, with_exif

ANY_SKIPS = ["--max-skip", "100%"]


def jpeg_of_size(width, height):
  """The baseline JPEG with other numbers in its frame header."""
  data = bytearray(jpeg(0))
  at = data.index(b"\xff\xc0")
  data[at + 5:at + 9] = struct.pack(">HH", height, width)
  return bytes(data)


class SkipTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=20)

  def expect_skips(self, want, *flags, **options):
    """Packs, and compares what was left out; everything else must be in the dataset."""
    done = self.pack("src", "-o", "out", *ANY_SKIPS, *flags, expect=3 if want else 0, **options)
    self.assertEqual(want, self.skips())
    counts = self.manifest()["counts"]
    self.assertEqual(counts["seen"], counts["packed"] + counts["filtered"] + counts["skipped"] + counts["failed"])
    self.assertEqual(len(want), counts["skipped"])
    if not options and not flags:
      self.pack("validate", "out", "--against", "src", expect=0)
    return done

  def test_no_images(self):
    self.write("src/cat/zero.jpg")
    self.write("src/cat/one.jpg", b"\xff")
    self.write("src/cat/page.jpg", b"<!DOCTYPE html><html>404</html>")
    self.expect_skips({"cat/zero.jpg": "empty", "cat/one.jpg": "not-an-image", "cat/page.jpg": "not-an-image"})

  def cut(self):
    whole = jpeg(5)
    scan = whole.index(b"\xff\xda")
    self.write("src/cat/before-scan.jpg", whole[:scan - 4])
    self.write("src/cat/in-scan.jpg", whole[:scan + 30])
    self.write("src/cat/no-eoi.jpg", whole[:-2])
    return {f"cat/{name}.jpg": "truncated" for name in ("before-scan", "in-scan", "no-eoi")}

  def test_cut_jpegs(self):
    self.expect_skips(self.cut())

  def test_cut_jpegs_by_request(self):
    self.cut()
    done = self.pack("src", "-o", "out", "--allow-truncated", *ANY_SKIPS, expect=None)
    self.assertIn(done.returncode, (0, 3))
    packed = {row["path"] for row in self.rows("out")}
    self.assertLessEqual({"cat/in-scan.jpg", "cat/no-eoi.jpg"}, packed)

  def test_damaged_pngs(self):
    whole = png(16, 16)
    broken = bytearray(whole)
    broken[-20] ^= 1  # in the checksum of IDAT or its data
    self.write("src/cat/crc.png", bytes(broken))
    self.write("src/cat/cut.png", whole[:-12])
    self.write("src/cat/whole.png", whole)
    self.expect_skips({"cat/crc.png": "bad-crc", "cat/cut.png": "truncated"})

  def test_a_png_named_jpeg(self):
    data = png(16, 16)
    self.write("src/cat/really.JPEG", data)
    self.expect_skips({})
    row = next(row for row in self.rows("out") if row["path"] == "cat/really.JPEG")
    self.assertEqual("png", row["image"])
    self.assertIn("cat/really.png", self.member_names())

  def test_every_kind_of_image_is_packed_untouched(self):
    images = sorted(path for path in TESTDATA.iterdir() if path.suffix in (".jpg", ".png", ".webp", ".gif", ".bmp", ".tif"))
    self.assertGreater(len(images), 40)
    for number, path in enumerate(images):
      self.write(f"src/odd/{number:03}{path.suffix}", path.read_bytes())
    for name in ("webdataset", "tfrecord"):
      shutil.rmtree(self.folder / "out", ignore_errors=True)
      shutil.rmtree(self.folder / "again", ignore_errors=True)
      self.expect_skips({}, "-f", name)
      self.pack("extract", "out", "again")
      self.assertEqual(self.contents("src"), self.contents("again"))

  def test_pixel_bombs(self):
    self.write("src/cat/bomb.png", png(30000, 30000, rows=bytes(1000)))
    self.write("src/cat/header.jpg", jpeg_of_size(65500, 65500))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    self.expect_skips({"cat/bomb.png": "pixel-limit", "cat/header.jpg": "pixel-limit"})
    self.assertLess(max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss), 300_000)  # KiB
    self.pack("src", "-o", "more", "--max-pixels", "10000000000", *ANY_SKIPS, expect=None)

  def test_large_files(self):
    sparse = self.write("src/cat/sparse.jpg")
    os.truncate(sparse, 1 << 40)
    self.write("src/cat/limit.jpg", jpeg(1) + bytes(5_000_000))  # bytes after the end matter only to --max-file-size
    begin = time.monotonic()
    self.expect_skips({"cat/sparse.jpg": "too-large"})
    self.assertLess(time.monotonic() - begin, 30)
    self.pack("src", "-o", "small", "--max-file-size", "1MB", *ANY_SKIPS, expect=3)
    self.assertEqual({"cat/sparse.jpg": "too-large", "cat/limit.jpg": "too-large"}, self.skips("small"))

  def test_hostile_but_whole_images(self):
    text = png_chunk(b"tEXt", b"note\0" + bytes(60_000_000))
    self.write("src/cat/text.png", png(4, 4, extra=text))
    progressive = (TESTDATA / "progressive.jpg").read_bytes()
    scan = progressive.rindex(b"\xff\xda")
    self.write("src/cat/scans.jpg", progressive[:-2] + progressive[scan:-2] * 5000 + b"\xff\xd9")
    begin = time.monotonic()
    self.expect_skips({})
    self.assertLess(time.monotonic() - begin, 20)

  def test_exif(self):
    loop = b"II*\0\x08\0\0\0" + b"\0\0" + struct.pack("<I", 8)  # the next directory is this one
    huge = b"II*\0\x08\0\0\0" + b"\xff\xff" + bytes(40)
    inner = b"II*\0\xff\xff\xff\xff"
    for name, tiff in (("loop", loop), ("huge", huge), ("outside", inner)):
      self.write(f"src/cat/exif-{name}.jpg", with_exif(tiff))
    self.expect_skips({})

  def test_bytes_after_the_end_and_a_thumbnail(self):
    self.write("src/cat/after.jpg", jpeg(1) + b"and more")
    self.write("src/cat/two.jpg", jpeg(2) + jpeg(3))
    self.write("src/cat/thumbnail.jpg", (TESTDATA / "thumbnail.jpg").read_bytes())
    self.expect_skips({})
    # The EOI of the thumbnail is not that of the image.
    self.write("src/cat/cut.jpg", (TESTDATA / "thumbnail.jpg").read_bytes()[:-2])
    shutil.rmtree(self.folder / "out")
    self.expect_skips({"cat/cut.jpg": "truncated"})

  def test_what_is_no_file(self):
    want = {}
    os.mkfifo(self.folder / "src/cat/fifo.jpg")
    want["cat/fifo.jpg"] = "not-regular"
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(self.folder / "src/cat")  # the path of a socket is short
    server.bind("socket.jpg")
    os.chdir(here)
    want["cat/socket.jpg"] = "not-regular"
    try:
      os.mknod(self.folder / "src/cat/device.jpg", stat.S_IFCHR | 0o666, os.makedev(1, 5))
      want["cat/device.jpg"] = "not-regular"
    except PermissionError:
      pass
    begin = time.monotonic()
    self.expect_skips(want)
    self.assertLess(time.monotonic() - begin, 10)
    server.close()

  def test_links(self):
    self.write("elsewhere/far.jpg", jpeg(100))
    self.write("elsewhere/more/farther.jpg", jpeg(101))
    cat = self.folder / "src/cat"
    (cat / "loop.jpg").symlink_to("loop.jpg")
    (cat / "dangling.jpg").symlink_to("nowhere.jpg")
    (cat / "outside.jpg").symlink_to("../../elsewhere/far.jpg")
    (cat / "inside.jpg").symlink_to("../dog/good-0001.jpg")
    skipped = {"cat/loop.jpg": "symlink-loop", "cat/dangling.jpg": "dangling", "cat/outside.jpg": "outside-root"}
    self.expect_skips(skipped)
    self.assertIn("cat/inside.jpg", {row["path"] for row in self.rows("out")})
    del skipped["cat/outside.jpg"]
    (cat / "folder").symlink_to("../../elsewhere/more")
    (cat / "round").symlink_to("../cat")
    self.pack("src", "-o", "followed", "--follow", *ANY_SKIPS, expect=3)
    packed = {row["path"] for row in self.rows("followed")}
    self.assertLessEqual({"cat/outside.jpg", "cat/folder/farther.jpg"}, packed)
    self.assertIn("symlink-loop", self.skips("followed").values())

  def test_a_read_error(self):
    # Reading the start of this file is an I/O error on every Linux.
    (self.folder / "src/cat/unreadable.jpg").symlink_to("/proc/self/mem")
    self.pack("src", "-o", "out", "--follow", *ANY_SKIPS, expect=3)
    self.assertIn(self.skips()["cat/unreadable.jpg"], ("io-error", "empty"))

  def test_what_changes_between_plan_and_build(self):
    for name in ("grows", "shrinks", "goes", "fifo", "same"):
      self.write(f"src/cat/{name}.jpg", jpeg(50))
    self.pack("plan", "src", "--write", "the.plan")
    cat = self.folder / "src/cat"
    (cat / "grows.jpg").write_bytes(jpeg(50) + b"x")
    (cat / "shrinks.jpg").write_bytes(jpeg(50)[:-1])
    (cat / "goes.jpg").unlink()
    (cat / "fifo.jpg").unlink()
    os.mkfifo(cat / "fifo.jpg")
    begin = time.monotonic()
    self.pack("build", "--plan", "the.plan", "-o", "out", *ANY_SKIPS, expect=3)
    self.assertLess(time.monotonic() - begin, 10)
    self.assertEqual({"cat/grows.jpg": "changed", "cat/shrinks.jpg": "changed", "cat/goes.jpg": "vanished",
                      "cat/fifo.jpg": "not-regular"}, self.skips())

  def test_all_bad(self):
    for path in (self.folder / "src").rglob("*.jpg"):
      path.write_bytes(b"")
    self.pack("src", "-o", "out", *ANY_SKIPS, expect=4)
    self.assert_nothing_published()

  def test_strict(self):
    self.source(count=300)
    self.write("src/cat/zero.jpg")
    self.pack("src", "-o", "out", "--strict", expect=4)
    self.assert_nothing_published()
    self.pack("src", "-o", "out", expect=3)

  def test_all_that_a_refusal_does_not_name_are_listed(self):
    names = [f"cat/no-{n}.jpg" for n in range(9)]
    for name in names:
      self.write(f"src/{name}", b"text")
    said = self.pack("src", "-o", "out", expect=4).stderr
    listed = self.folder / "out/.pack/skipped.jsonl"
    self.assertIn("\n  ... and 4 more; all: out/.pack/skipped.jsonl\n", said)
    self.assertEqual(names, [json.loads(line)["path"] for line in listed.read_text().splitlines()])
    lines = listed.read_bytes()
    listed.write_text("a user's notes\n")
    self.assertNotIn("; all: ", self.pack("src", "-o", "out", expect=4).stderr)
    self.assertEqual("a user's notes\n", listed.read_text())
    listed.unlink()
    self.pack("src", "-o", "out", *ANY_SKIPS, expect=3)
    self.assertEqual(lines, (self.folder / "out/skipped.jsonl").read_bytes())
    self.assertFalse((self.folder / "out/.pack").exists())

  def test_no_permission(self):
    secret = self.write("src/cat/secret.jpg", jpeg(77))
    secret.chmod(0)
    self.expect_skips({"cat/secret.jpg": "permission"}, unprivileged=True)
    shutil.rmtree(self.folder / "out")
    self.write("src/hidden/one.jpg", jpeg(78))
    (self.folder / "src/hidden").chmod(0)
    # Nobody knows how many images such a folder holds: no budget covers it.
    refused = self.pack("src", "-o", "out", "--max-skip", "99%", unprivileged=True, expect=4)
    self.assertIn("hidden", refused.stderr)
    self.assertIn("2 of 22 inputs cannot be packed (9.09 %), among them a folder that could not be listed", refused.stderr)
    self.assertIn("a class that has no other folder is then missing", refused.stderr)
    typed = refused.stderr.splitlines()[-2:]  # to pack all is offered first
    self.assertTrue(typed[0].endswith(" --overwrite") and typed[1].endswith(" 100%"), typed)
    self.assert_nothing_published()
    self.pack("src", "-o", "out", *ANY_SKIPS, unprivileged=True, expect=3)
    self.assertEqual({"cat/secret.jpg": "permission", "hidden": "permission"}, self.skips())

  def test_a_link_at_the_place_of_a_class_folder(self):
    self.write("away/cat/one.jpg", jpeg(78))
    self.write("links/ant/one.jpg", jpeg(79))
    self.write("links/dog/one.jpg", jpeg(80))
    link = self.folder / "links/cat"
    for target, reason in (("../away/cat", "outside-root"), ("nowhere", "dangling")):
      link.symlink_to(target)
      refused = self.pack("links", "-o", reason, "--max-skip", "99%", expect=4).stderr
      self.assertIn("a link in a folder's place that is not followed (cat): nobody knows how many images it holds", refused)
      self.assertIn("the labels after it have other numbers", refused)
      self.assertIn("or remove the links", refused)
      self.assertEqual(reason == "outside-root", "--follow" in refused, refused)
      self.assert_nothing_published(reason)
      self.assertRegex(self.pack("plan", "links").stderr.replace("\n", " "), "warning: cat: a link .* the labels are numbered without it")
      link.unlink()
    self.pack("links", "-o", "linked")
    link.symlink_to("../away/cat")
    refused = self.pack("links", "-o", "linked", "--overwrite", expect=4).stderr
    self.assertIn("cat", refused)
    self.pack("links", "-o", "linked", "--overwrite", "--follow")
    self.assertEqual(["ant", "cat", "dog"], self.manifest("linked")["classes"])
    link.unlink()
    # Within a class, too.
    (self.folder / "links/dog/more").symlink_to("../../away/cat")
    self.assertIn("(dog/more)", self.pack("links", "-o", "inner", expect=4).stderr)
    self.pack("links", "-o", "inner", *ANY_SKIPS, expect=3)
    self.assertEqual({"dog/more": "outside-root"}, self.skips("inner"))


class NameTest(command.PackTest):

  def test_odd_names(self):
    names = [b"caf\xe9.jpg", "café.jpg".encode(), b"new\nline.jpg", b"\x1b[31mred\x1b[0m.jpg", b"-rf.jpg", b"a b.jpg", b"50%.jpg",
             b"quote'.jpg", b"back\\slash.jpg", b"x" * 251 + b".jpg", b"{1..3}.jpg", b"$HOME.jpg", b" .jpg", b"...jpg"]
    for number, name in enumerate(names):
      self.write(b"src/odd/" + name, jpeg(number))
    self.write(b"src/odd/zero\x1b[5m.jpg")
    done = self.pack("src", "-o", "out", "--max-skip", "50%", expect=3)
    self.assertNotIn("\x1b", done.stderr)
    self.assertIn("zero\\x1b[5m.jpg", done.stderr)
    for verb in (["ls", "out"], ["info", "out"], ["validate", "out"], ["ls", "out", "--json"]):
      self.assertNotIn("\x1b", self.pack(*verb).stdout)
    rows = self.rows("out")
    self.assertEqual(len(names), len(rows))
    # %XX in the JSON is reversible.
    import urllib.parse
    self.assertEqual(sorted(b"odd/" + name for name in names), sorted(urllib.parse.unquote_to_bytes(row["path"]) for row in rows))
    self.pack("extract", "out", "again", expect=3)  # some under another name, and named
    self.assertEqual(sorted(self.contents("src").values()), sorted([*self.contents("again").values(), b""]))
    self.pack("validate", "out", "--against", "src")

  def test_names_that_webdataset_would_merge_or_hide(self):
    for number, name in enumerate(("cat/b.v2.jpg", "cat/b.v3.jpg", "cat/.hidden.jpg", "__x__/1.jpg", "cat/plain.jpg")):
      self.write(f"src/{name}", jpeg(number))
    self.pack("src", "-o", "out")
    keys = []
    for name in self.member_names():
      folder, _, base = name.rpartition("/")
      self.assertFalse(base.startswith((".", "__")), name)
      self.assertFalse(name.startswith("__"), name)
      if name.endswith(".jpg"):
        keys.append(f"{folder}/{base.split('.')[0]}")
    self.assertEqual(5, len(set(keys)))

  def test_keys_that_collide(self):
    self.write("src/cat/a.jpg", jpeg(1))
    self.write("src/cat/a.JPG", jpeg(2))
    refused = self.pack("src", "-o", "out", "--on-duplicate-key", "error", expect=5)
    self.assertIn("cat/a.JPG", refused.stderr)
    self.assertIn("--on-duplicate-key", refused.stderr)
    self.assertFalse((self.folder / "out").exists())
    self.assertIn("cat/a.jpg is cat/a_2", self.pack("src", "-o", "auto", expect=0).stderr)
    self.pack("extract", "auto", "again")
    self.assertEqual(self.contents("src"), self.contents("again"))
    self.pack("src", "-o", "suffix", "--on-duplicate-key", "suffix", expect=0)
    self.pack("src", "-o", "skip", "--on-duplicate-key", "skip", "--max-skip", "50%", expect=3)
    self.assertEqual(["duplicate-key"], list(self.skips("skip").values()))
    self.pack("src", "-o", "index", "--key", "index", expect=0)
    self.assertEqual(2, len(self.rows("index")))

  def test_one_odd_name_among_many(self):
    self.source(count=50)
    self.write("src/cat/jack-o'-lantern.JPEG", jpeg(100))
    self.write("src/cat/" + "x" * 200 + ".jpg", jpeg(101))
    for form in ("webdataset", "lmdb", "tfrecord", "hdf5"):
      done = self.pack("src", "-o", form, "-f", form)
      self.assertIn("2 keys are not as the path", done.stderr)
      self.assertIn("--key path", done.stderr)
      keys = {row["path"]: row["key"] for row in self.rows(form)}
      self.assertEqual("cat/good-0000", keys["cat/good-0000.jpg"])
      self.assertEqual("cat/jack-o=27-lantern", keys["cat/jack-o'-lantern.JPEG"])
      self.assertEqual(52, len(set(keys.values())))
      self.pack("validate", form, "--against", "src")
      self.pack("extract", form, f"{form}-again")
      self.assertEqual(self.contents("src"), self.contents(f"{form}-again"))

  def test_masks_beside_images(self):
    for i in range(3):
      self.write(f"src/cat/{i}.jpg", jpeg(i))
      self.write(f"src/cat/{i}.png", png(8, 8 + i))
    refused = self.pack("src", "-o", "out", expect=5)
    self.assertIn("--fields png:mask", refused.stderr)
    self.pack("src", "-o", "out", "--fields", "png:mask", expect=0)
    self.assertEqual(3, len(self.rows("out")))
    self.pack("src", "-o", "images", "--on-duplicate-key", "suffix", expect=0)
    self.assertEqual(6, len(self.rows("images")))

  def test_unicode_twins(self):
    self.write("src/cat/caf\u00e9.jpg", jpeg(1))
    self.write("src/cat/cafe\u0301.jpg", jpeg(2))
    self.pack("src", "-o", "path", "--key", "path", "--on-duplicate-key", "error", expect=5)
    self.pack("src", "-o", "out", expect=0)
    self.assertEqual({"cat/caf=C3=A9", "cat/cafe=CC=81"}, {row["key"] for row in self.rows("out")})
    self.pack("src", "-o", "index", "--key", "index", expect=0)

  def test_a_path_beyond_4096_bytes(self):
    # Such a path can only be made step by step.
    here = os.getcwd()
    (self.folder / "src").mkdir()
    os.chdir(self.folder / "src")
    for _ in range(25):
      os.mkdir("d" * 200)
      os.chdir("d" * 200)
    with open("deep.jpg", "wb") as file:
      file.write(jpeg(1))
    os.chdir(here)
    self.write("src/cat/near.jpg", jpeg(2))
    self.pack("src", "-o", "out", "--label-from", "none")
    self.assertIn(25 * 201 + len("deep.jpg"), {len(row["path"]) for row in self.rows("out")})

  def test_class_files(self):
    self.source(count=6)
    self.write("bom.txt", b"\xef\xbb\xbfdog\r\ncat\r\n")
    self.pack("src", "-o", "out", "--classes", "bom.txt")
    self.assertEqual(["dog", "cat"], self.manifest()["classes"])
    self.write("nul.txt", b"dog\0\ncat\n")
    self.assertIn("nul.txt", self.pack("src", "-o", "o2", "--classes", "nul.txt", expect=2).stderr)
    self.write("less.txt", b"dog\n")
    self.assertIn("cat", self.pack("src", "-o", "o3", "--classes", "less.txt", expect=2).stderr)
    self.pack("src", "-o", "o4", "--classes", "nowhere.txt", expect=2)


class SourceTest(command.PackTest):

  def test_no_source(self):
    (self.folder / "empty").mkdir()
    self.write("file.dat", b"cat/1.jpg\n")
    self.write("texts/readme.txt", b"no image")
    (self.folder / "link").symlink_to("nowhere")
    for source in ("nowhere", "empty", "file.dat", "texts", "link", "/dev/null", ""):
      refused = self.pack(source, "-o", "out", expect=2)
      self.assertTrue(refused.stderr.startswith("pack: error:"), refused.stderr)
      self.assertFalse((self.folder / "out").exists(), source)
    self.assertIn("--ext", self.pack("texts", "-o", "out", expect=2).stderr)

  def test_source_and_out_in_each_other(self):
    self.source()
    (self.folder / "link").symlink_to("src/cat")
    for source, out in (("src", "src/out"), ("src", "src"), ("src/", "./src"), ("src/cat", "src"), ("src", "link/deep/er"),
                        ("src", "src/../src/x"), ("src", ".")):
      self.assertIn("-o", self.pack(source, "-o", out, expect=2).stderr)
    self.assertEqual(["cat", "dog"], sorted(os.listdir(self.folder / "src")))
    self.pack("src", "-o", "src-shards", expect=0)  # the same beginning is not the same folder

  def test_other_files_are_counted(self):
    self.source()
    self.write("src/cat/notes.txt", b"x")
    self.write("src/README", b"x")
    done = self.pack("src", "-o", "out", expect=0)
    self.assertIn("2 files by extension", done.stderr)
    self.assertEqual({"txt": 1, "": 1}, self.manifest()["counts"]["ignored"])

  def test_what_the_user_leaves_out_is_no_loss(self):
    self.source()
    self.pack("src", "-o", "out", "--limit", "7", expect=0)
    self.assertEqual((7, 13), (self.manifest()["counts"]["packed"], self.manifest()["counts"]["filtered"]))
    self.write("src/cat/tiny.png", png(2, 2))
    self.pack("src", "-o", "small", "--min-size", "20", expect=0)
    self.assertEqual((20, 1), (self.manifest("small")["counts"]["packed"], self.manifest("small")["counts"]["filtered"]))
    self.pack("src", "-o", "none", "--min-size", "1000", expect=2)
    self.write("src/cat/zz-copy.jpg", (self.folder / "src/cat/good-0000.jpg").read_bytes())
    self.pack("src", "-o", "once", "--dedupe", "drop", expect=0)
    self.assertEqual((21, 1), (self.manifest("once")["counts"]["packed"], self.manifest("once")["counts"]["filtered"]))


class OutTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source()

  def test_out_that_cannot_be_one(self):
    self.write("file", b"mine")
    (self.folder / "dangling").symlink_to("nowhere")
    self.pack("src", "-o", "file", expect=2)
    self.pack("src", "-o", "dangling", expect=2)
    self.assertEqual(b"mine", (self.folder / "file").read_bytes())
    self.pack("src", "-o", "not/there/yet", expect=0)

  def test_out_of_somebody_else(self):
    self.write("out/mine.txt", b"mine")
    for flags in ([], ["--overwrite"]):
      self.pack("src", "-o", "out", *flags, expect=5)
      self.assertEqual({"mine.txt": b"mine"}, self.contents())

  def test_out_read_only(self):
    (self.folder / "closed").mkdir(mode=0o555)
    for out in ("closed", "closed/out"):
      refused = self.pack("src", "-o", out, unprivileged=True, expect=6)
      self.assertIn("closed", refused.stderr)
    (self.folder / "closed").chmod(0o777)
    self.pack("src", "-o", "closed", unprivileged=True, expect=0)

  def test_file_size_limit(self):
    self.source(count=400)
    refused = self.pack("src", "-o", "out", "--samples-per-shard", "100", limits=[(resource.RLIMIT_FSIZE, 100_000)], expect=6)
    self.assertIn("pack src -o out", refused.stderr)
    self.assertIn("ulimit -f", refused.stderr)
    self.assert_nothing_published()
    self.pack("src", "-o", "out", "--samples-per-shard", "100", expect=0)
    self.pack("src", "-o", "want", "--samples-per-shard", "100", expect=0)
    self.assertEqual(self.contents("want"), self.contents("out"))

  def test_few_descriptors(self):
    done = self.pack("src", "-o", "out", limits=[(resource.RLIMIT_NOFILE, 24)], expect=None)
    self.assertIn(done.returncode, (0, 6), done.stderr)
    self.pack("src", "-o", "out", expect=0)

  def test_little_memory(self):
    done = self.pack("src", "-o", "out", limits=[(resource.RLIMIT_AS, 600 << 20)], expect=None)
    self.assertIn(done.returncode, (0, 6), done.stderr)
    self.pack("src", "-o", "out", "--memory", "1MB", expect=0)


class ValidateTest(command.PackTest):

  def test_what_is_no_shard(self):
    import random
    rng = random.Random(3)
    for name in ("none", "random.tar", "random.tfrecord", "image.tar"):
      self.write(name, b"")
    self.write("one.tar", b"\0")
    self.write("random.tar", rng.randbytes(1 << 20))
    self.write("random.tfrecord", rng.randbytes(1 << 20))
    self.write("image.tar", jpeg(1))
    for name in ("none", "one.tar", "random.tar", "random.tfrecord", "image.tar", "/dev/null", "nowhere"):
      done = self.pack("validate", name, expect=None)
      self.assertIn(done.returncode, (2, 4), (name, done.stdout, done.stderr))
      for verb in (["info"], ["ls"]):
        self.assertIn(self.pack(*verb, name, expect=None).returncode, (2, 4), (verb, name))

  def test_an_unfinished_build(self):
    self.source(count=30)
    self.write("src/cat/zero.jpg")
    self.pack("src", "-o", "out", expect=4)
    done = self.pack("validate", "out", expect=4)
    self.assertIn("manifest-missing", done.stdout)
    for verb in ("info", "ls"):
      self.assertRegex(self.pack(verb, "out", expect=4).stderr,
                       r"its build has not finished, or the file was lost. What to do is told by\n  \S*pack validate out\n")

  def test_a_truncated_shard_is_found(self):
    self.source(count=30)
    self.pack("src", "-o", "out")
    shard = next((self.folder / "out").glob("*.tar"))
    os.truncate(shard, shard.stat().st_size - 1)
    for level in ("quick", "full"):
      self.pack("validate", "out", "--level", level, expect=4)
    self.pack("ls", "out", expect=4)
    self.pack("extract", "out", "again", expect=4)


if __name__ == "__main__":
  command.main()
