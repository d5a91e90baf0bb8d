"""What the loader delivers of datasets in every format, compared with the source files by this program.

PACK and REFERENCE_CONSUMER name the programs (default: as Bazel's tests see them).
"""

import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

PACK = os.path.abspath(os.environ.get("PACK", "cli/pack"))
CONSUMER = os.path.abspath(os.environ.get("REFERENCE_CONSUMER", "tests/loading/reference_consumer"))
# Format, layout, fields: what each can hold.
FORMATS = (("webdataset", "", "image,json"), ("webdataset", "pax", "image,json"), ("tfrecord", "", "image,json"),
           ("lmdb", "caffe", "image"), ("lmdb", "raw", "image"), ("lmdb", "pickle", "image"), ("hdf5", "", "image,json"),
           ("hdf5", "vlen", "image,json"))


class LoadingTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    sample_images.write_class_folders(self.folder / "src", ROOT / "testdata" / "images", count=300, classes=5, seed=6)
    chance = random.Random(7)
    for image in sorted((self.folder / "src").rglob("*.jpg")):
      image.with_suffix(".json").write_text(json.dumps({"name": image.name, "x": "y" * chance.randrange(50)}))

  def run_program(self, *words, expect=0):
    done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, check=False)
    self.assertEqual(expect, done.returncode, done.stderr + done.stdout)
    return done

  def pack(self, out, *words):
    self.run_program(PACK, "src", "-o", out, "-q", "--shards", "3", "--max-skip", "0", *words)

  def source_of(self, out):
    """By id: label, and CRC-32 of image and json, from the source files alone."""
    rows = [json.loads(line) for line in self.run_program(PACK, "ls", out, "--json").stdout.splitlines()]
    classes = sorted(path.name for path in (self.folder / "src").iterdir())
    facts = {}
    for row in rows:
      image = self.folder / "src" / (row["path"] or row["key"] + ".jpg")
      part = image.with_suffix(".json")
      facts[row["id"]] = (classes.index(image.parent.name), zlib.crc32(image.read_bytes()),
                          zlib.crc32(part.read_bytes()) if part.exists() else None)
    return facts

  def listed(self, out, fields, *words):
    self.run_program(CONSUMER, out, "--fields", fields, "--epochs", 3, "--batch", 28, "--list", "list.tsv", *words)
    facts = {}
    for line in (self.folder / "list.tsv").read_text().splitlines():
      number, label, image, *part = line.split("\t")
      facts[int(number)] = (int(label), int(image), None if part in ([], ["-"]) else int(part[0]))
    return facts

  def test_every_format_delivers_the_source(self):
    for name, layout, fields in FORMATS:
      with self.subTest(format=name, layout=layout):
        out = f"{name}{layout}"
        self.pack(out, "-f", name, *(["--fields", "json"] if "json" in fields else []),
                  *(["--layout", layout] if layout else []))
        want = self.source_of(out)
        self.assertEqual(300, len(want))
        if "json" not in fields:
          want = {number: (label, image, None) for number, (label, image, _) in want.items()}
        for order, world in (("shuffle", 1), ("sequential", 2), ("blocks", 4)):
          self.assertEqual(want, self.listed(out, fields, "--order", order, "--world-size", world))

  def test_shards_indexed_in_place_some_of_whose_samples_lack_a_field(self):
    for part in sorted((self.folder / "src").rglob("*.json"))[::3]:
      part.unlink()
    classes = sorted(path.name for path in (self.folder / "src").iterdir())
    with tarfile.open(self.folder / "foreign.tar", "w") as archive:
      for image in sorted((self.folder / "src").rglob("*.jpg")):
        name = str(image.relative_to(self.folder / "src").with_suffix(""))
        label = str(classes.index(image.parent.name)).encode()
        members = [(".jpg", image.read_bytes()), (".cls", label)]
        if image.with_suffix(".json").exists():
          members.append((".json", image.with_suffix(".json").read_bytes()))
        for suffix, data in members:
          info = tarfile.TarInfo(name + suffix)
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))
    self.run_program(PACK, "index", "foreign.tar", "-o", "indexed", "-q")
    want = self.source_of("indexed")
    self.assertEqual(100, sum(part is None for _, _, part in want.values()))
    self.assertEqual(want, self.listed("indexed", "image,json"))

  def test_what_fills_no_batch_is_dropped(self):
    self.pack("out")
    done = self.run_program(CONSUMER, "out", "--batch", 64, "--drop", "--epochs", 1)
    self.assertIn("epoch 0: 256 samples", done.stdout)

  def test_memory_is_flat(self):
    self.pack("out")
    done = self.run_program(CONSUMER, "out", "--epochs", 60)
    kilobytes = [int(line.split()[-2]) for line in done.stdout.splitlines()]
    self.assertLessEqual(max(kilobytes[2:]), kilobytes[2] * 1.02 + 512, kilobytes)

  def test_a_flipped_bit_is_found(self):
    self.pack("out", "--no-shuffle")
    shard = sorted((self.folder / "out").glob("*.tar"))[1]
    data = bytearray(shard.read_bytes())
    row = [json.loads(line) for line in self.run_program(PACK, "ls", "out", "--json").stdout.splitlines()][150]
    image = (self.folder / "src" / row["path"]).read_bytes()
    data[data.index(image) + len(image) // 2] ^= 1
    shard.write_bytes(data)
    done = self.run_program(CONSUMER, "out", expect=1)
    for word in (shard.name, row["key"], "hash"):
      self.assertIn(word, done.stderr)

  def test_an_index_of_another_dataset_is_refused(self):
    self.pack("out")
    self.pack("other", "--seed", "9")
    index = sorted((self.folder / "other").glob("*.pidx"))[0]
    (self.folder / "out" / index.name).write_bytes(index.read_bytes())
    done = self.run_program(CONSUMER, "out", expect=1)
    self.assertIn(index.name, done.stderr)

  def test_a_manifest_of_a_newer_version_is_refused(self):
    self.pack("out")
    path = self.folder / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["schema"] = 99
    path.write_text(json.dumps(manifest))
    done = self.run_program(CONSUMER, "out", expect=1)
    self.assertIn("99", done.stderr)

  def test_a_huge_sample_among_small_ones(self):
    image = sorted(path for path in (self.folder / "src").rglob("*.jpg"))[0]
    with open(image, "ab") as file:  # bytes after the end of a JPEG are kept
      file.truncate(300 << 20)
    self.pack("out", "--max-file-size", "400MiB", "--verify", "header")
    done = self.run_program(CONSUMER, "out", "--epochs", 3)
    self.assertIn("epoch 2: 900 samples", done.stdout)


if __name__ == "__main__":
  unittest.main()
