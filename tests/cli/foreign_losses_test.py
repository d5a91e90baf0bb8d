"""What of the shards of other tools has no place in a sample, or is hard to find in them, is taken or named, never lost."""

import io
import json
import os
import struct
import subprocess
import tarfile

import command
import foreign_shards
from command import jpeg

MAKE_ARRAYS = """
import h5py, numpy, sys
n = 3
images = numpy.arange(n * 48, dtype="u1").reshape(n, 4, 4, 3)
arrays = {"labels": numpy.arange(n), "attributes": numpy.ones((n, 40), "i1"), "bbox": numpy.ones((n, 4), "f4"), "targets": numpy.arange(n) + 5}
if sys.argv[1].endswith(".h5"):
  with h5py.File(sys.argv[1], "w") as file:
    file["images"] = images
    file["masks"] = images[..., 0] + 0
    for name, array in arrays.items():
      file[name] = array
    file["linked"] = h5py.SoftLink("/labels")
else:
  numpy.save(sys.argv[1] + "/images.npy", images)
  for name, array in arrays.items():
    numpy.save(f"{sys.argv[1]}/{name}.npy", array)
"""


def tar(members, ends=True):
  out = io.BytesIO()
  with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
    for name, data in members:
      info = tarfile.TarInfo(name)
      info.size = len(data)
      archive.addfile(info, io.BytesIO(data))
    end = archive.offset
  return out.getvalue() if ends else out.getvalue()[:end]


def pairs(first, count):
  return [member for i in range(first, first + count) for member in ((f"s{i:03}.jpg", jpeg(i)), (f"s{i:03}.json", b"{}"))]


def feature(name, kind, values):
  field = foreign_shards.field
  return field(1, field(1, name) + field(2, field(kind, values)))


def record(*features):
  example = foreign_shards.field(1, b"".join(features))
  length = struct.pack("<Q", len(example))
  crc = foreign_shards.masked_crc32c
  return length + crc(length) + example + crc(example)


def image(number):
  return feature(b"image/encoded", 1, foreign_shards.field(1, jpeg(number)))


class ForeignLossesTest(command.PackTest):

  def left_out(self, done):
    lines = [line for line in done.stderr.splitlines() if "a sample cannot hold it: " in line]
    return lines[0].split("cannot hold it: ")[1].split(", ") if lines else []

  def test_archives_behind_each_other(self):
    self.write("c.tar", tar(pairs(0, 3)) + tar(pairs(3, 4)) + tar(pairs(7, 1)))
    at = len(tar(pairs(0, 3)))
    said = f"trailing-data c.tar at offset {at}"
    done = self.pack("convert", "c.tar", "-o", "out", "--no-shuffle")
    self.assertIn(said, done.stderr)
    self.assertEqual([f"s{i:03}" for i in range(8)], [row["key"] for row in self.rows("out")])
    self.assertIn(said, self.pack("stats", "c.tar").stderr)
    done = self.pack("index", "c.tar", "-o", "in-place")
    self.assertIn(said, done.stderr)
    self.assertIn("trailing-data", self.pack("validate", "in-place").stdout)
    self.assertEqual(jpeg(7), self.pack("cat", "in-place", "s007", text=False).stdout)

  def test_samples_of_one_key_in_two_archives_stay_two(self):
    self.write("c.tar", tar(pairs(0, 1)) + tar(pairs(0, 1)))
    self.assertEqual(2, len(self.rows("c.tar")))

  def test_what_follows_an_archive_and_is_none_is_said(self):
    self.write("c.tar", tar(pairs(0, 3)) + b"more")
    done = self.pack("convert", "c.tar", "-o", "out")
    self.assertIn("trailing-data c.tar at offset", done.stderr)

  def test_many_warnings_are_counted(self):
    names = [f"{i:02}.tar" for i in range(14)]
    for i, name in enumerate(names):
      self.write(name, tar(pairs(i, 1)) + b"more")
    done = self.pack("convert", *names, "-o", "out")
    self.assertEqual(10, done.stderr.count("trailing-data"))
    self.assertIn("and 4 more warnings", done.stderr)

  def test_a_rare_warning_is_not_hidden_by_others(self):
    self.write("cut.tar", tar(pairs(0, 2)) + tar(pairs(2, 2)) + tar(pairs(4, 2)) + tar(pairs(6, 4)[:-1], ends=False))
    self.write("names.tar", b"".join(tar(pairs(i, 1)) for i in range(4)) + tar([(f"image_{i}", jpeg(i)) for i in range(50)]))
    for expect, *words in ((3, "convert", "--max-skip", "10%"), (0, "index")):
      done = self.pack(*words, "cut.tar", "-o", f"{words[0]}-cut", expect=expect)
      self.assertRegex(done.stderr, r"trailing-data cut.tar .*; 2 more like this")
      self.assertRegex(done.stderr, r"tar-no-end cut.tar record 9 key s009 .*the last sample may lack members and is left out")
      done = self.pack(words[0], "names.tar", "-o", f"{words[0]}-names")
      self.assertRegex(done.stderr, r"wds-no-extension names.tar .*50 members, the first one here")

  def test_the_sample_at_the_cut_counts_as_skipped(self):
    self.write("whole.tar", tar(pairs(0, 2)))
    self.write("cut.tar", tar(pairs(2, 4)[:-1], ends=False))
    both = ("cut.tar", "whole.tar")
    for words in (("--strict",), ()):
      done = self.pack("convert", *both, "-o", "refused", *words, expect=4)
      self.assertIn("s005", done.stderr)
    self.pack("convert", *both, "-o", "out", "--max-skip", "20%", expect=3)
    counts = self.manifest()["counts"]
    self.assertEqual((6, 5, 1), tuple(counts[name] for name in ("seen", "packed", "skipped")))
    self.assertEqual({"cut.tar/000000003": "truncated"}, self.skips("out"))
    self.assertIn("record 3 key s005", (self.folder / "out/skipped.jsonl").read_text())

  def test_a_second_image_of_the_images_name(self):
    self.write("c.tar", tar([("0.img", jpeg(1)), ("0.image", jpeg(2)), ("0.cls", b"0")]))
    self.pack("index", "c.tar", "-o", "in-place")
    self.pack("validate", "in-place")
    self.assertEqual(jpeg(2), self.pack("cat", "in-place", "0", text=False).stdout)
    self.assertEqual(jpeg(1), self.pack("cat", "in-place", "0", "--field", "img", text=False).stdout)

  def test_shards_that_count_their_classes_otherwise(self):
    label = b"image/class/label"
    synset = feature(b"image/class/synset", 1, foreign_shards.field(1, b"n01"))
    self.write("from-1.tfrecord", record(image(1), feature(label, 3, foreign_shards.field(1, bytes([1]))), synset))
    self.write("from-0.tfrecord", record(image(2), feature(label, 3, foreign_shards.field(1, bytes([1])))))
    both = ("from-1.tfrecord", "from-0.tfrecord")
    for words in (("ls", *both), ("convert", *both, "-o", "out"), ("index", *both, "-o", "in-place"), ("stats", *both)):
      done = self.pack(*words, expect=2)
      self.assertIn("from-1.tfrecord stores 1 for its first class, from-0.tfrecord stores 0", done.stderr)

  def test_names_of_classes_and_second_paths(self):
    text = lambda name, value: feature(name, 1, foreign_shards.field(1, value))
    label = feature(b"image/class/label", 3, foreign_shards.field(1, bytes([0])))
    self.write("a.tfrecord", record(image(1), label, text(b"image/class/text", b"tench"), text(b"image/filename", b"a.jpg"), text(b"file_name", b"b.jpg")))
    self.write("classes.txt", b"fish\n")
    for verb in ("convert", "index"):
      self.assertEqual(["file_name", "image/class/text"], self.left_out(self.pack(verb, "a.tfrecord", "-o", verb)))
    done = self.pack("index", "a.tfrecord", "-o", "named", "--classes", "classes.txt")
    self.assertEqual(["file_name"], self.left_out(done))

  def test_labels_that_are_no_integers_are_said_once(self):
    self.write("c.tar", tar([("a.jpg", jpeg(1)), ("a.cls", b"cat")]))
    done = self.pack("convert", "c.tar", "-o", "out")
    self.assertEqual(1, done.stderr.count("warning: "), done.stderr)

  def test_the_last_sample_of_a_tar_without_an_end(self):
    self.write("more.tar", tar(pairs(0, 3) + [("s002.txt", b"t")], ends=False))
    done = self.pack("convert", "more.tar", "-o", "more", "--missing-part", "keep")
    self.assertNotIn("left out", done.stderr)
    self.assertEqual(3, len(self.rows("more")))  # it has all that the others have
    self.write("cut.tar", tar(pairs(0, 3)[:-1], ends=False))
    for expect, *words in ((4, "convert", "cut.tar", "-o", "cut"), (0, "index", "cut.tar", "-o", "in-place")):
      done = self.pack(*words, expect=expect)
      self.assertRegex(done.stderr, r"tar-no-end cut.tar record 2 key s002 .*the last sample may lack members and is left out")

  def test_members_of_no_sample_are_counted(self):
    self.write("c.tar", tar(pairs(0, 2) + [("n01/img_1", jpeg(5)), ("n01/img_2", jpeg(6)), (".hidden", b"x")]))
    for words in (("convert", "c.tar", "-o", "out"), ("index", "c.tar", "-o", "in-place")):
      done = self.pack(*words)
      self.assertRegex(done.stderr, r"wds-no-extension c.tar .*2 members, the first one here")

  def test_hidden_samples_are_counted(self):
    hidden = [(f".{name}", data) for name, data in pairs(5, 2)]
    self.write("c.tar", tar(pairs(0, 2) + hidden + [("._s000.jpg", b"x"), (".DS_Store", b"x"), ("__meta__/a.json", b"{}")]))
    for words in (("convert", "c.tar", "-o", "out"), ("index", "c.tar", "-o", "in-place"), ("stats", "c.tar")):
      self.assertRegex(self.pack(*words).stderr, r"wds-hidden-name c.tar at offset \d+: .*4 members, the first one here: \.s005\.jpg")
    self.write("folder.tar", tar([(f"cat/{name}", data) for name, data in pairs(0, 2) + hidden]))
    self.assertRegex(self.pack("stats", "folder.tar").stderr, r"4 members, the first one here: cat/\.s005\.jpg")
    self.write("none.tar", tar(hidden))
    self.assertIn("4 members, the first one here", self.pack("stats", "none.tar").stderr)
    self.write("usual.tar", tar(pairs(0, 2) + [("._s000.jpg", b"x"), (".DS_Store", b"x"), ("__meta__/a.json", b"{}")]))
    self.assertNotIn("wds-hidden-name", self.pack("stats", "usual.tar").stderr)

  def test_a_second_image_that_others_have(self):
    self.write("c.tar", tar([("a.jpg", jpeg(1)), ("a.png", jpeg(2)), ("b.jpeg", jpeg(3)), ("b.jpg", jpeg(4))]))
    done = self.pack("convert", "c.tar", "-o", "out", "--missing-part", "error", expect=2)
    self.assertRegex(done.stderr, r"lacks its part jpg, a second image; --missing-part")

  def make_arrays(self, path):
    subprocess.run(["/usr/bin/python3", "-c", MAKE_ARRAYS, str(self.folder / path)], check=True)

  def test_datasets_of_hdf5(self):
    self.make_arrays("a.h5")
    done = self.pack("convert", "a.h5", "-o", "out", "-f", "hdf5", "--layout", "decoded", expect=None)
    self.assertEqual(["attributes", "bbox", "linked", "targets"], self.left_out(done), done.stderr)
    done = self.pack("index", "a.h5", "-o", "in-place")
    self.assertEqual(["attributes", "bbox", "linked", "targets"], self.left_out(done))
    self.assertEqual([0, 1, 2], [row["label"] for row in self.rows("in-place")])

  def test_arrays_beside_images(self):
    os.mkdir(self.folder / "a")
    self.make_arrays("a")
    done = self.pack("index", "a", "-o", "in-place")
    self.assertEqual(["attributes.npy", "bbox.npy", "targets.npy"], self.left_out(done))

  def test_labels_and_images_of_several_values(self):
    label = b"image/class/label"
    self.write("a.tfrecord", record(image(1), feature(label, 3, foreign_shards.field(1, bytes([3, 17, 40])))))
    done = self.pack("convert", "a.tfrecord", "-o", "a")
    self.assertEqual(["image/class/label (all but its first value)"], self.left_out(done))
    self.assertEqual([3], [row["label"] for row in self.rows("a")])
    self.write("b.tfrecord", record(image(1), feature(label, 2, foreign_shards.field(1, struct.pack("<f", 4)))))
    self.assertEqual(["image/class/label"], self.left_out(self.pack("convert", "b.tfrecord", "-o", "b")))

  def test_more_fields_than_an_index_has(self):
    fields = [(f"x.{i:04}.txt", b"%d" % i) for i in range(260)]
    self.write("c.tar", tar([("x.jpg", jpeg(1)), *fields]))
    done = self.pack("index", "c.tar", "-o", "in-place")
    self.assertEqual([f"{i:04}.txt" for i in range(255, 260)], self.left_out(done))
    self.pack("validate", "in-place")
    self.assertEqual(5, len(self.left_out(self.pack("convert", "c.tar", "-o", "out"))))

  def test_images_behind_another_first_field_are_decoded(self):
    damaged = jpeg(1)[:-300]
    self.write("c.tar", tar([("dataset.json", b'{"a": 1}'), ("0001.jpg", jpeg(2)), ("0001.json", b"{}"), ("0002.jpg", damaged), ("0002.json", b"{}")]))
    self.pack("index", "c.tar", "-o", "in-place")
    found = json.loads(self.pack("validate", "in-place", "--level", "deep", "--json").stdout)["findings"]
    images = [(each["id"], each["key"], each["field"]) for each in found if "image" in each["id"] and "field" in each]
    self.assertEqual([("image-damaged", "0002", "image")], images)


if __name__ == "__main__":
  command.main()
