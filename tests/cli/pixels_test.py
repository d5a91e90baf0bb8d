"""Changed pixels: the same bytes however they are made, accounting, memory, and what other verbs say of them."""

import io
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile

from PIL import Image

import command

DOCS = pathlib.Path("docs").resolve()
FORMATS = (("webdataset", ()), ("tfrecord", ()), ("hdf5", ()), ("hdf5", ("--layout", "vlen")), ("lmdb", ()))
PIXELS = ("--resize", "shortest", "--size", "24", "--encode", "jpg")


def photo(width, height, seed=0, kind="JPEG", mode="RGB", **options):
  """An encoded image that is smooth, and other for each seed."""
  small = Image.effect_noise((8, 8), 60).convert("L") if seed < 0 else Image.linear_gradient("L").rotate(seed * 7)
  image = small.resize((width, height), Image.Resampling.BICUBIC).convert(mode)
  out = io.BytesIO()
  image.save(out, kind, **options)
  return out.getvalue()


class PixelsTest(command.PackTest):

  def images(self, count=40, name="src"):
    for i in range(count):
      kind, ending = (("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp"))[i % 3]
      self.write(f"{name}/{'cat' if i % 2 else 'dog'}/{i:03}.{ending}", photo(50 + i, 70 - i % 30, i, kind))

  def shown(self, out="out"):
    """{member: image} of all tar shards."""
    images = {}
    for shard in sorted((self.folder / out).glob("*.tar")):
      with tarfile.open(shard) as archive:
        for member in archive:
          if not member.name.endswith(".cls"):
            images[member.name] = archive.extractfile(member).read()
    return images

  def test_the_same_bytes_with_any_number_of_threads_and_memory(self):
    self.images()
    for form, more in FORMATS:
      with self.subTest(form=form, more=more):
        words = ["src", "-f", form, *more, *PIXELS, "--samples-per-shard", "7", "-q"]
        self.pack(*words, "-o", "one", "-j", "1")
        self.pack(*words, "-o", "many", "-j", "64")
        self.pack(*words, "-o", "tight", "-j", "8", "--memory", "100KB")
        self.pack("validate", "one")
        one = self.contents("one")
        self.assertEqual(one, self.contents("many"))
        self.assertEqual(one, self.contents("tight"))
        for out in ("one", "many", "tight"):
          shutil.rmtree(self.folder / out)

  def test_a_profile_that_cannot_be_used_costs_no_image(self):
    self.images(6)
    data = photo(40, 30)
    body = b"ICC_PROFILE\0\1\1" + bytes(200)
    self.write("src/cat/odd.jpg", data[:2] + b"\xff\xe2" + (len(body) + 2).to_bytes(2, "big") + body + data[2:])
    done = self.pack("src", "-o", "out", *PIXELS)
    self.assertIn("icc-ignored 1", " ".join(done.stderr.split()))
    self.assertEqual(1, self.manifest()["facts"]["pixels"]["icc-ignored"])
    self.assertEqual(7, self.manifest()["counts"]["packed"])
    self.assertEqual({}, self.skips())
    done = self.pack("src", "-o", "srgb", "--icc", "srgb")
    self.assertEqual({"kept": 7, "icc-ignored": 1}, self.manifest("srgb")["facts"]["pixels"])

  def test_workers_make_the_same_bytes(self):
    self.images()
    for form in ("webdataset", "hdf5"):
      words = ["-f", form, *PIXELS, "--samples-per-shard", "7"]
      self.pack("src", "-o", f"whole-{form}", *words)
      self.pack("plan", "src", "--write", f"{form}.plan", *words)
      for part in ("3-5", "0-2"):
        self.pack("build", "--plan", f"{form}.plan", "-o", f"parts-{form}", "--shards-range", part)
      self.pack("commit", f"parts-{form}")
      self.assertEqual(self.contents(f"whole-{form}"), self.contents(f"parts-{form}"))

  def test_an_interrupted_run_goes_on_to_the_same_bytes(self):
    for i in range(300):
      self.write(f"src/cat/{i:03}.jpg", photo(640, 480, i % 50))
    for form in ("webdataset", "lmdb"):
      words = ["src", "-f", form, "--resize", "crop", "--size", "96", "--encode", "png", "--samples-per-shard", "20", "-q"]
      self.pack(*words, "-o", f"want-{form}")
      process = self.start(*words, "-o", f"out-{form}", "-j", "1")
      journal = self.folder / f"out-{form}" / ".pack" / "journal.jsonl"
      while process.poll() is None and not (journal.exists() and journal.stat().st_size > 100):
        pass
      process.send_signal(signal.SIGINT)
      process.communicate(timeout=5)
      self.assertEqual(130, process.returncode)
      self.assert_nothing_published(f"out-{form}")
      self.pack(*words, "-o", f"out-{form}")
      self.assertEqual(self.contents(f"want-{form}"), self.contents(f"out-{form}"))

  def differences(self, refused):
    """The lines of the message, each of which names a flag that there is."""
    flags = self.pack("man", "--as", "markdown").stdout
    lines = [line[2:] for line in refused.stderr.splitlines() if line.startswith("  --")]
    for line in lines:
      self.assertIn(line.split()[0], flags)
    return lines

  def test_other_pixels_are_another_plan(self):
    self.images()
    self.pack("src", "-o", "out", *PIXELS)
    refused = self.pack("src", "-o", "out", *PIXELS, "--quality", "80", expect=5)
    self.assertEqual(["--quality was 95, is 80"], self.differences(refused))
    refused = self.pack("src", "-o", "out", "--seed", "3", expect=5)
    self.assertEqual(["--encode was jpg, is keep", "--resize was shortest, is not given", "--seed was 0, is 3", "--size was 24, is not given"],
                     self.differences(refused))

  def test_what_needs_no_change_keeps_its_bytes(self):
    self.images(30)
    done = self.pack("src", "-o", "out", "--encode", "jpg", "--image-field", "img")
    self.assertIn("10 kept as-is, 20 re-encoded: format 20", done.stderr)
    pixels = self.manifest()["facts"]["pixels"]
    self.assertEqual({"kept": 10, "re-encoded": 20, "format": 20}, pixels)
    for name, data in self.shown().items():
      source = self.folder / "src" / (name[:-len(".img")] + ".jpg")
      self.assertEqual(b"\xff\xd8", data[:2])
      if source.exists():
        self.assertEqual(source.read_bytes(), data)
    # Nothing asked: nothing said.
    done = self.pack("src", "-o", "plain", "--image-field", "img")
    self.assertNotIn("kept as-is", done.stderr)
    self.assertNotIn("pixels", self.manifest("plain")["facts"])

  def test_a_decode_that_fails_midway_is_a_failed_sample(self):
    for i in range(200):
      self.write(f"src/cat/{i:03}.jpg", photo(120, 90, i % 50))
    whole = (self.folder / "src/cat/007.jpg").read_bytes()
    middle = len(whole) // 2
    # The structure is whole, the entropy-coded data are not.
    broken = whole[:middle] + b"\xff\xd3" + whole[middle + 2:]
    self.write("src/cat/007.jpg", broken)
    self.write("src/cat/009.jpg", whole[:middle])
    self.pack("src", "-o", "kept", "--max-skip", "5%", expect=3)
    self.assertEqual({"cat/009.jpg": "truncated"}, self.skips("kept"))
    done = self.pack("src", "-o", "out", *PIXELS, "--max-skip", "5%", expect=3)
    self.assertEqual({"cat/007.jpg": "decode-failed", "cat/009.jpg": "truncated"}, self.skips())
    counts = self.manifest()["counts"]
    self.assertEqual((200, 198, 1, 1), (counts["seen"], counts["packed"], counts["skipped"], counts["failed"]))
    self.assertIn("decode-failed", done.stderr)
    self.pack("validate", "out")
    self.pack("src", "-o", "strict", *PIXELS, "--strict", expect=4)
    self.assert_nothing_published("strict")

  def test_memory_holds_with_huge_images(self):
    for i in range(6):
      self.write(f"src/cat/{i}.jpg", photo(12000, 8400, i, progressive=i == 0))
    for i in range(60):
      self.write(f"src/dog/{i:02}.jpg", photo(300, 200, i))
    words = ["src", *PIXELS, "--max-pixels", "200000000", "--json", "-q"]
    done = self.pack(*words, "-o", "out", "-j", "8", "--memory", "700MB", timeout=300)
    peak = json.loads(done.stdout)["peak_memory_bytes"]
    print("peak memory of 100-megapixel images with --memory 700MB:", peak)
    # One progressive image takes more than the share of the samples; it goes alone.
    self.assertLess(peak, 1_300_000_000)
    self.assertEqual(66, self.manifest()["counts"]["packed"])
    self.pack(*words, "-o", "again", "-j", "1")
    self.assertEqual(self.contents("out"), self.contents("again"))

  def test_small_sources_that_become_large_wait_for_memory(self):
    for i in range(400):
      self.write(f"src/cat/{i:03}.png", photo(8, 8, i % 50, "PNG"))
    words = ["src", "--resize", "exact", "--size", "500", "--encode", "raw", "--json", "-q", "--samples-per-shard", "200"]
    done = self.pack(*words, "-o", "out", "-j", "4", "--memory", "40MB")
    peak = json.loads(done.stdout)["peak_memory_bytes"]
    print("peak memory of 300 MB of pixels with --memory 40MB:", peak)
    self.assertLess(peak, 100_000_000)
    self.pack(*words, "-o", "again", "-j", "1")
    self.assertEqual(self.contents("out"), self.contents("again"))

  def test_raw_pixels(self):
    self.images(9)
    crop = ("--resize", "crop", "--size", "16x12", "--color", "rgb")
    for form in ("webdataset", "hdf5", "lmdb", "tfrecord"):
      self.pack("src", "-f", form, "-o", f"raw-{form}", *crop, "--encode", "raw")
      self.pack("validate", f"raw-{form}")
      rows = self.rows(f"raw-{form}")
      self.assertEqual({16 * 12 * 3}, {row["bytes"] for row in rows})
      self.assertEqual({"raw"}, {row["image"] for row in rows})
      # Back to files: the same pixels as without the detour.
      self.pack("convert", f"raw-{form}", "-o", f"png-{form}", "-f", "webdataset", "--encode", "png")
    self.pack("src", "-o", "png", *crop, "--encode", "png")
    # convert keeps the order of its input
    want = {name: Image.open(io.BytesIO(data)).tobytes() for name, data in self.shown("png").items()}
    for form in ("webdataset", "hdf5", "tfrecord"):
      got = {name: Image.open(io.BytesIO(data)).tobytes() for name, data in self.shown(f"png-{form}").items()}
      self.assertEqual(want, got)

  def test_other_verbs_say_that_pixels_were_changed(self):
    self.images(9)
    self.pack("src", "-o", "out", *PIXELS)
    report = json.loads(self.pack("validate", "out", "--against", "src", "--json").stdout)
    self.assertTrue(any("pixels were changed on purpose" in gap for gap in report["not_checked"]), report)
    (self.folder / "src/dog/000.jpg").unlink()
    self.pack("validate", "out", "--against", "src", expect=4)
    self.pack("extract", "out", "again")
    names = sorted(path.name for path in (self.folder / "again").rglob("*") if path.is_file())
    self.assertEqual([f"{i:03}.jpg" for i in range(9)], names)
    for path in (self.folder / "again").rglob("*.jpg"):
      with Image.open(path) as image:
        self.assertEqual(("JPEG", 24), (image.format, min(image.size)))

  def test_filters_count_as_filtered(self):
    self.write("src/cat/small.png", photo(20, 90, 1, "PNG"))
    self.write("src/cat/long.png", photo(400, 40, 2, "PNG"))
    self.write("src/cat/good.png", photo(60, 50, 3, "PNG"))
    self.pack("src", "-o", "out", "--min-size", "30", "--max-aspect", "4", *PIXELS)
    counts = self.manifest()["counts"]
    self.assertEqual((3, 1, 2, 0), (counts["seen"], counts["packed"], counts["filtered"], counts["failed"]))

  def test_the_pictures_of_the_documentation_are_what_is_made(self):
    (self.folder / "pictures").mkdir()
    subprocess.run([sys.executable, DOCS / "update_pictures.py", command.PACK, self.folder / "pictures"], check=True)
    made = self.contents("pictures")
    kept = {path.name: path.read_bytes() for path in (DOCS / "pictures").iterdir()}
    self.assertEqual(sorted(made), sorted(kept))
    for name, data in made.items():
      self.assertEqual(data, kept[name], f"{name}: run docs/update_pictures.py")
    page = (DOCS / "pixels.md").read_text()
    for name in made:
      if name not in ("camera.png", "leaf.png"):
        self.assertIn(f"](pictures/{name})", page)

  def test_usage(self):
    self.images(3)
    for words, hint in (
        (("--resize", "crop"), "--size"),
        (("--size", "64"), "--resize"),
        (("--resize", "shortest", "--size", "64x32"), "one number"),
        (("--quality", "80"), "--encode"),
        (("--encode", "jpg", "--alpha", "keep"), "no alpha"),
        (("--alpha", "white"), "#ffffff"),
        (("--encode", "jpge"), "jpg"),
        (("--resize", "crop", "--size", "0"), "65535"),
        (("--encode", "jpg", "--quality", "101"), "100"),
    ):
      with self.subTest(words=words):
        self.assertIn(hint, self.pack("src", "-o", "out", *words, expect=2).stderr)
    self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
  command.main()
