"""Sets of pixels of one shape: NumPy and h5py see what was packed; mean and deviation are NumPy's; runs repeat."""

import glob
import json
import os
import random
import shutil
import signal
import subprocess

import h5py
import numpy as np
from PIL import Image

import command

SHAPE = ("--encode", "raw", "--resize", "crop", "--size", "24x16", "--color")


class ArraysTest(command.PackTest):

  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(5)
    self.labels = {}
    for number in range(230):
      name = f"src/{('cat', 'dog', 'emu')[number % 3]}/{number:04}.jpg"
      # Noise over a slope, so that channels differ.
      base = np.linspace((10, 60, 120), (90, 200, 250), 48)[:, None, :] + rng.normal(0, 25, (48, 60, 3))
      path = self.write(name)
      Image.fromarray(base.clip(0, 255).astype(np.uint8)).save(path, quality=90)
      self.labels[name[4:]] = number % 3

  def manifest(self, out):
    return json.loads((self.folder / out / "manifest.json").read_text())

  def paths(self, out):
    """Source paths in the order of the shards."""
    return [row["source"] for row in self.rows(out)]

  def rows(self, out):
    lines = self.pack("ls", out, "--json").stdout.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]

  def arrays(self, out, layout):
    """All images and labels of the dataset."""
    images, labels = [], []
    if layout == "npy":
      for shard in sorted(glob.glob(str(self.folder / out / "*.npy"))):
        images.append(np.load(shard + "/images.npy", mmap_mode="r"))
        labels.append(np.load(shard + "/labels.npy", mmap_mode="r"))
        self.assertIsInstance(images[-1], np.memmap)
    else:
      for shard in sorted(glob.glob(str(self.folder / out / "*.h5"))):
        with h5py.File(shard, "r") as h5:
          self.assertIsNone(h5["images"].chunks)
          images.append(h5["images"][:])
          labels.append(h5["labels"][:])
    return np.concatenate(images), np.concatenate(labels)

  def check_stats(self, out, pixels):
    """`pixels`: (any number, channels)."""
    stats = self.manifest(out)["facts"]["pixel_stats"]
    for name, want in (("mean", pixels.mean(0)), ("std", pixels.std(0))):
      got = np.array([float(word) for word in stats[name].split(",")])
      self.assertEqual(got.shape, want.shape)
      np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)

  def test_numpy_and_h5py_see_the_same_pixels(self):
    seen = {}
    for layout, options in (("npy", ["-f", "npy"]), ("h5", ["-f", "hdf5", "--layout", "decoded"])):
      for color, channels in (("rgb", 3), ("gray", 1)):
        out = f"{layout}-{color}"
        self.pack("src", "-o", out, *options, *SHAPE, color, "--compute-stats", "--shards", "3")
        images, labels = self.arrays(out, layout)
        self.assertEqual(images.shape, (230, 16, 24, channels))
        self.assertEqual(images.dtype, np.uint8)
        self.assertEqual(sorted(labels.tolist()), sorted(self.labels.values()))
        self.check_stats(out, images.reshape(-1, channels) / 255)
        self.pack("validate", out, "--level", "deep")
        seen[out] = (images, labels)
    for color in ("rgb", "gray"):
      for a, b in zip(seen["npy-" + color], seen["h5-" + color]):
        np.testing.assert_array_equal(a, b)

  def test_a_compressed_copy_is_made_as_the_page_says(self):
    self.pack("src", "-o", "shards", "-f", "hdf5", "--layout", "decoded", *SHAPE, "rgb", "--shards", "1")
    shard, copy = next((self.folder / "shards").glob("*.h5")), self.folder / "small.h5"
    words = ["-l", "images:CHUNK=16x16x24x3", "-f", "images:SHUF", "-f", "images:GZIP=6"]  # of docs/formats/hdf5.md
    subprocess.run(["h5repack", *words, shard, copy], check=True)
    with h5py.File(shard) as whole, h5py.File(copy) as small:
      self.assertEqual((small["images"].compression, small["images"].chunks), ("gzip", (16, 16, 24, 3)))
      for name in ("images", "labels"):
        np.testing.assert_array_equal(whole[name][:], small[name][:])
    refused = self.pack("validate", copy, expect=4)
    self.assertIn("h5repack -f NONE", refused.stdout + refused.stderr)

  def test_each_image_has_its_label_and_its_bytes(self):
    self.pack("src", "-o", "out", "-f", "npy", *SHAPE, "rgb", "--shards", "2")
    images, labels = self.arrays("out", "npy")
    rows = self.rows("out")
    self.assertEqual(len(rows), len(images))
    for number in (0, 57, 114, 115, 229):
      key = rows[number]["key"]
      got = self.pack("cat", "out", key, text=False).stdout
      self.assertEqual(got, images[number].tobytes())
      self.assertEqual(rows[number]["label"], labels[number])
      self.assertEqual(self.labels[key + ".jpg"], labels[number])

  def test_statistics_of_files_are_those_of_their_pixels(self):
    self.pack("src", "-o", "out", "--compute-stats", "--shards", "4")
    pixels = np.concatenate([np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3)
                             for path in sorted(glob.glob(str(self.folder / "src/*/*.jpg")))])
    self.check_stats("out", pixels / 255)
    sums = self.manifest("out")["facts"]["pixel_sums"]
    self.assertEqual(sums["images"], 230)
    self.assertEqual(sums["pixels"], len(pixels))
    self.assertEqual([sums[f"sum_{c}"] for c in range(3)], pixels.sum(0, dtype=np.int64).tolist())
    # Whatever is packed from files is packed as without the option.
    self.pack("src", "-o", "plain", "--shards", "4")
    self.assertNotIn("pixel_stats", self.manifest("plain")["facts"])
    for name, data in self.contents("plain").items():
      if str(name) != "manifest.json":
        self.assertEqual(data, self.contents("out")[name])
    self.assertIn("mean", self.pack("info", "out").stdout)

  def test_an_image_that_cannot_be_decoded_is_packed_but_not_counted(self):
    data = bytearray((self.folder / "src/cat/0000.jpg").read_bytes())
    data[-300:-298] = b"\xff\xd7"
    self.write("src/cat/0000.jpg", data)
    self.pack("src", "-o", "out", "--compute-stats")
    sums = self.manifest("out")["facts"]["pixel_sums"]
    self.assertEqual((sums["images"], sums["undecodable"]), (229, 1))
    self.assertEqual(self.manifest("out")["counts"]["packed"], 230)
    found = self.pack("validate", "out", "--level", "deep", expect=4).stdout
    self.assertIn("image-damaged", found)
    self.pack("validate", "out")

  def test_the_same_bytes_on_any_number_of_threads_and_after_a_kill(self):
    for options in (["-f", "npy", *SHAPE, "rgb"], ["-f", "hdf5", "--layout", "decoded", *SHAPE, "gray"],
                    ["-f", "webdataset"]):
      words = ["src", *options, "--compute-stats", "--samples-per-shard", "9", "-q"]
      self.pack(*words, "-o", "want", "-j", "1")
      want = self.contents("want")
      self.pack(*words, "-o", "many", "-j", "7")
      self.assertEqual(want, self.contents("many"))
      rng = random.Random(3)
      killed = 0
      for turn in range(30):
        process = self.start(*words, "-o", "killed")
        try:
          process.wait(rng.uniform(0, 0.12))
        except subprocess.TimeoutExpired:
          process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        killed += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
          break
      self.assertGreater(killed, 0)
      self.pack(*words, "-o", "killed")
      self.assertEqual(want, self.contents("killed"))
      for out in ("want", "many", "killed"):
        shutil.rmtree(self.folder / out)

  def test_a_bad_input_leaves_a_shorter_array(self):
    data = (self.folder / "src/dog/0001.jpg").read_bytes()
    damaged = bytearray(data)
    damaged[len(data) // 2:len(data) // 2 + 2] = b"\xff\xd7"
    self.write("src/dog/0001.jpg", damaged)
    self.write("src/emu/0002.jpg", data[:200])
    for layout, options in (("npy", ["-f", "npy"]), ("h5", ["-f", "hdf5", "--layout", "decoded"])):
      self.pack("src", "-o", layout, *options, *SHAPE, "rgb", "--shards", "2", "--compute-stats", expect=3)
      images, labels = self.arrays(layout, layout)
      self.assertEqual((len(images), len(labels)), (228, 228))
      self.check_stats(layout, images.reshape(-1, 3) / 255)
      self.pack("validate", layout, "--level", "deep")

  def test_what_the_options_must_say(self):
    for options in ([], ["--encode", "raw", "--resize", "shortest", "--size", "24"],
                    ["--encode", "raw", "--resize", "crop", "--size", "24x16"]):
      for layout in (["-f", "npy"], ["-f", "hdf5", "--layout", "decoded"]):
        error = self.pack("src", "-o", "out", *layout, *options, expect=2).stderr
        for word in ("--encode raw", "--resize", "--size", "--color"):
          self.assertIn(word, error)
        self.assertFalse((self.folder / "out").exists())

  def test_images_of_one_shape_need_no_other(self):
    for layout, options in (("npy", ["-f", "npy"]), ("h5", ["-f", "hdf5", "--layout", "decoded"])):
      self.pack("src", "-o", layout, *options, "--encode", "raw", "--shards", "2")
      self.pack("src", "-o", "said", *options, "--encode", "raw", "--resize", "exact", "--size", "60x48", "--color", "rgb",
                "--shards", "2")
      # How the shape was found is in the manifest's digests alone.
      for name, data in self.contents("said").items():
        if name != "manifest.json":
          self.assertEqual(data, self.contents(layout)[name], name)
      images, _ = self.arrays(layout, layout)
      self.assertEqual((230, 48, 60, 3), images.shape)
      for row, pixels in zip(self.rows(layout)[:20], images):
        source = Image.open(self.folder / "src" / row["path"])
        np.testing.assert_array_equal(pixels, np.asarray(source.convert("RGB")))
      shutil.rmtree(self.folder / "said")
    Image.new("RGB", (61, 48)).save(self.folder / "src/dog/9999.png")
    for options in (["-f", "npy"], ["-f", "hdf5", "--layout", "decoded"]):
      error = self.pack("src", "-o", "out", *options, "--encode", "raw", expect=2).stderr
      for words in ("cat/0000.jpg has 60 x 48", "dog/9999.png has 61 x 48", "--resize exact, crop or pad with --size"):
        self.assertIn(words, " ".join(error.split()))
      self.assertFalse((self.folder / "out").exists())

  def test_dimensions_of_decoded_are_labelled(self):
    self.pack("src", "-o", "out", "-f", "hdf5", "--layout", "decoded", *SHAPE, "rgb", "--shards", "2")
    for shard in sorted((self.folder / "out").glob("*.h5")):
      with h5py.File(shard) as h5:
        self.assertEqual(["batch", "height", "width", "channel"], [dim.label for dim in h5["images"].dims])

  def test_every_file_of_a_shard_that_is_a_folder_is_vouched_for(self):
    images = np.random.default_rng(1).integers(0, 256, (40, 8, 9, 3), np.uint8)
    for shard in ("in/a.npy", "in/b.npy"):
      (self.folder / shard).mkdir(parents=True)
      np.save(self.folder / shard / "images.npy", images)
      np.save(self.folder / shard / "labels.npy", np.arange(40) % 4)
      np.save(self.folder / shard / "boxes.npy", np.zeros((40, 4)))  # read by nobody here, but data
    self.pack("index", "in")
    self.pack("index", "in", "-o", "apart")  # where they lie, nothing can be listed
    names = [entry["name"] for entry in self.manifest("in")["files"]]
    self.assertEqual(["a.npy/boxes.npy", "a.npy/images.npy", "a.npy/labels.npy", "a.pidx", "b.npy/boxes.npy",
                      "b.npy/images.npy", "b.npy/labels.npy", "b.pidx"], names)
    self.pack("validate", "in")
    self.pack("validate", "apart")
    for name in ("a.npy/labels.npy", "b.npy/boxes.npy"):
      path = self.folder / "in" / name
      data = path.read_bytes()
      for damaged, quick in ((None, "file-missing"), (data + b"junk", "file-size"), (data[:-1], "file-size")):
        path.unlink()
        if damaged is not None:
          path.write_bytes(damaged)
        for level in ("quick", "full"):
          self.assertIn(quick, self.pack("validate", "in", "--level", level, expect=4).stdout)
        self.pack("index", "in", expect=None if damaged is not None else 5)
        path.write_bytes(data)
      path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
      self.assertIn("file-hash", self.pack("validate", "in", expect=4).stdout)
      path.write_bytes(data)
      self.pack("validate", "in")
    (self.folder / "in/a.npy/labels.npy").unlink()
    self.assertIn("label-mismatch", self.pack("validate", "apart", expect=4).stdout)

  def test_foreign_arrays_are_indexed_and_converted(self):
    images = np.random.default_rng(1).integers(0, 256, (40, 8, 9, 3), np.uint8)
    (self.folder / "mine").mkdir()
    np.save(self.folder / "mine/images.npy", images)
    np.save(self.folder / "mine/labels.npy", np.arange(40, dtype=np.int32) % 4)
    with h5py.File(self.folder / "mine.h5", "w") as h5:
      h5["images"] = images
      h5["labels"] = np.arange(40) % 4
    for path in ("mine", "mine.h5"):
      self.assertIn("40 of 40 images decoded", self.pack("validate", path, "--level", "deep").stdout)
      self.pack("index", path, "-o", path + ".index")
      self.pack("validate", path + ".index", "--level", "deep")
      rows = self.rows(path + ".index")
      self.assertEqual([row["label"] for row in rows], (np.arange(40) % 4).tolist())
      self.pack("convert", path, "-o", path + ".tars", "-f", "webdataset", "--key", "index", "--no-shuffle")
      self.assertIn("40 of 40 images decoded", self.pack("validate", path + ".tars", "--level", "deep").stdout)
      key = self.rows(path + ".tars")[7]["key"]
      self.assertEqual(self.pack("cat", path + ".tars", key, text=False).stdout, images[7].tobytes())
    # Damage is found at full.
    data = bytearray((self.folder / "mine/images.npy").read_bytes())
    data[-1] ^= 1
    (self.folder / "mine/images.npy").write_bytes(data)
    self.pack("validate", "mine.index", expect=4)


if __name__ == "__main__":
  command.main()
