"""Dataset and Sample: samples by number and key, selections, joins, and what is pickled, against the files that were packed."""

import collections.abc
import ctypes
import io
import json
import mmap
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import example_shards
import numpy
import PIL.Image
import shardpack

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
SHARDS = str(WORK / "shards")
COUNT = 60


def setUpModule():
  example_shards.make(WORK)


def pack(source, out, *flags):
  subprocess.run(["cli/pack", source, "-o", out, "-q", *flags], check=True, stdout=subprocess.DEVNULL)
  return str(out)


def numbers(dataset, of=None):
  """The ids in the whole dataset of a selection's samples."""
  return [(of or shardpack.Dataset(SHARDS)).find_key(key) for key in dataset.keys]


class Tensor:
  """As torch's: a number can be made of one with one entry, of any shape and type."""

  def __init__(self, content):
    self.array = numpy.array(content)
    self.ndim, self.dtype = self.array.ndim, self.array.dtype

  def __array__(self, dtype=None):
    return self.array if dtype is None else self.array.astype(dtype)

  def __index__(self):
    return int(self.array.reshape(-1)[0])


class SampleTest(unittest.TestCase):

  def setUp(self):
    self.dataset = shardpack.Dataset(SHARDS)

  def test_another_label(self):
    for known in (False, True):
      sample, name = self.dataset[0], example_shards.CLASSES[2]
      if known:
        self.assertNotEqual(sample.class_name, name)
      sample.label = numpy.int64(2)
      self.assertEqual((sample.label, sample["label"], sample.class_name), (2, 2, name))
      again = pickle.loads(pickle.dumps(sample))
      self.assertEqual((again.label, again.class_name), (2, name))
      again.label = 1
      self.assertEqual((again.label, again.class_name), (1, None))
      sample.label = -1
      self.assertEqual((sample.label, sample.class_name, sample.key), (-1, None, self.dataset[0].key))
    for label in (-2, 1.0, True, "cat", None):
      with self.assertRaisesRegex(shardpack.OptionError, "label must be the number of a class"):
        sample.label = label
    with self.assertRaisesRegex(shardpack.OptionError, "label 3 is none of the dataset's 3 classes"):
      sample.label = 3
    self.assertEqual((sample.label, sample.class_name), (-1, None))

  def test_attributes_are_the_files(self):
    for n in range(COUNT):
      sample = self.dataset[n]
      path = WORK / "photos" / sample.path
      self.assertEqual(sample.image, path.read_bytes())
      self.assertEqual(sample.class_name, path.parent.name)
      self.assertEqual(sample.label, example_shards.CLASSES.index(path.parent.name))
      self.assertEqual(sample.key, f"{path.parent.name}/{path.stem}")
      self.assertEqual((sample.width, sample.height), PIL.Image.open(io.BytesIO(sample.image)).size)
      self.assertEqual(sample["txt"], path.with_suffix(".txt").read_bytes())
      self.assertEqual(sample.text(), path.with_suffix(".txt").read_text())
      self.assertEqual(sample.json(), json.loads(path.with_suffix(".json").read_text()))
      self.assertIn(sample.key, self.dataset.split(sample.split))
      self.assertEqual(sample.id, n)

  def test_old_mapping(self):
    sample = self.dataset[3]
    self.assertIsInstance(sample, collections.abc.Mapping)
    self.assertEqual(dict(sample), {"key": sample.key, "source_path": sample.path, "label": sample.label, "width": sample.width,
                                    "height": sample.height, "fields": sample.fields})
    self.assertEqual(sorted(sample["fields"]), ["image", "json", "txt"])
    self.assertEqual((sample["image"], sample.get("none", 3)), (sample.image, 3))
    with self.assertRaisesRegex(KeyError, "no field 'mask', but 'image'"):
      sample["mask"]

  def test_decode_is_pillow_s(self):
    for sample in self.dataset.select([0, 1, 2, 3, 4, 5, 6, 7]):
      pixels = sample.decode()
      image = PIL.Image.open(io.BytesIO(sample.image)).convert("RGB")
      self.assertEqual((pixels.shape, pixels.dtype), ((*image.size[::-1], 3), numpy.uint8))
      self.assertLessEqual(numpy.abs(pixels.astype(int) - numpy.asarray(image)).max(), 0 if sample.path.endswith("png") else 4)
      self.assertEqual(sample.decode(channels=1).shape, (*image.size[::-1], 1))

  def test_decode_turns_upright(self):
    folder = WORK / "turned"
    folder.mkdir()
    exif = PIL.Image.Exif()
    exif[0x112] = 6
    PIL.Image.linear_gradient("L").resize((40, 24)).convert("RGB").save(folder / "a.jpg", exif=exif)
    turned = shardpack.Dataset(pack(folder, WORK / "turned_shards"))
    self.assertEqual(((turned[0].width, turned[0].height), turned[0].decode().shape), ((40, 24), (40, 24, 3)))
    # A shard of another program, without an index and with one.
    foreign = WORK / "foreign.tar"
    subprocess.run(["tar", "-C", folder, "-cf", foreign, "a.jpg"], check=True)
    sample = shardpack.Dataset(foreign)[0]
    self.assertEqual(((sample.width, sample.height), sample.class_name, sample.split), ((0, 0), None, None))
    numpy.testing.assert_array_equal(sample.decode(), turned[0].decode())
    subprocess.run(["cli/pack", "index", foreign, "-o", WORK / "indexed", "-q"], check=True, stdout=subprocess.DEVNULL)
    numpy.testing.assert_array_equal(shardpack.Dataset(WORK / "indexed")[0].decode(), turned[0].decode())

  def test_decode_is_a_loader_s(self):
    """Of every kind of image: without a dataset, and without reading it again."""
    shutil.copytree("testdata/images", WORK / "kinds")  # without links
    dataset = shardpack.Dataset(pack(WORK / "kinds", WORK / "kinds_shards"))
    refused = [n for n, path in enumerate(dataset.paths) if path.startswith("rle8")]
    for n in refused:
      with self.assertRaisesRegex(shardpack.UnsupportedError, "rle8"):
        dataset[n].decode()
    dataset = dataset.select(numpy.setdiff1d(numpy.arange(len(dataset)), refused))
    self.assertGreater(len(dataset), 50)
    sent = [pickle.dumps(sample) for sample in dataset]
    for channels in (3, 1):
      for n, sample in enumerate(dataset):
        pixels = sample.decode(channels)
        decode = shardpack.Decode(pixels.shape[1], pixels.shape[0], crop="resize", channels=channels)
        order = shardpack.Order(len(dataset), 1, subset=[n], mode="sequential")
        numpy.testing.assert_array_equal(pixels, next(shardpack.Loader(dataset, order, decode=decode)).pixels[0], sample.path)
        self.assertTrue(pixels.flags.writeable and pixels.flags.owndata)
    expected = [sample.decode() for sample in dataset]
    shutil.rmtree(WORK / "kinds_shards")
    for data, pixels in zip(sent, expected):
      numpy.testing.assert_array_equal(pickle.loads(data).decode(), pixels)

  def test_decode_of_raw_pixels(self):
    arrays = numpy.arange(5 * 6 * 7 * 3, dtype=numpy.uint8).reshape(5, 6, 7, 3)
    (WORK / "raw.npy").mkdir()
    numpy.save(WORK / "raw.npy" / "images.npy", arrays)
    dataset = shardpack.Dataset(WORK / "raw.npy")
    for sample in (dataset[3], pickle.loads(pickle.dumps(dataset[3]))):
      self.assertEqual((sample.width, sample.height, len(sample.image)), (7, 6, 6 * 7 * 3))
      numpy.testing.assert_array_equal(sample.decode(), arrays[3])
      self.assertEqual(sample.decode(channels=1).shape, (6, 7, 1))
      sample.fields["image"] = sample.image[:-1]
      with self.assertRaisesRegex(shardpack.DataLossError, "^raw.npy record 3: .*another size"):
        sample.decode()
    for one in (numpy.int64(1), numpy.array(1)):
      self.assertEqual(dataset[3].decode(channels=one).shape, (6, 7, 1))

  def test_decode_of_too_many_raw_pixels(self):
    for height, why in ((8000, "another size"), (8001, "8000 x 8001 pixels are more than the limit of 64000000")):
      stored = shardpack._c.image(format=7, channels=1, width=8000, height=height)
      sample = shardpack.Sample(None, 0, -1, {"image": b"x"}, shardpack._sample.Facts("k", "", None, None, bytes(stored), "raw.npy", 0))
      with self.assertRaisesRegex(shardpack.Error, f"raw.npy record 0 key 'k': .*{why}") as caught:
        sample.decode(1)
      self.assertEqual((type(caught.exception), caught.exception.code),
                       (shardpack.DataLossError, "DATA_LOSS") if height == 8000 else (shardpack.NoMemoryError, "NO_MEMORY"))

  def test_decode_names_what_it_cannot(self):
    sample = self.dataset[5]
    for sample in (sample, pickle.loads(pickle.dumps(sample))):
      whole = sample.image
      for damaged, why in ((whole[:len(whole) // 2], "JPEG|PNG"), (b"text", "no known image signature"), (b"", "no bytes")):
        sample.fields["image"] = damaged
        with self.assertRaisesRegex(shardpack.DataLossError, f"^{sample._known.shard} record 5 key '{sample.key}': .*({why})") as raised:
          sample.decode()
        self.assertEqual((raised.exception.code, raised.exception.key, raised.exception.id, raised.exception.record, raised.exception.shard),
                         ("DATA_LOSS", sample.key, 5, 5, sample._known.shard))
      # A header of 65,536 x 65,536 pixels.
      sample.fields["image"] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0\x08\x02\0\0\0\0\0\0\0"
      with self.assertRaisesRegex(shardpack.NoMemoryError, f"key '{sample.key}': "):
        sample.decode()
      for channels in (0, 2, 4, None, "3", 3.0, True, numpy.array([3, 1])):
        with self.subTest(channels), self.assertRaisesRegex(shardpack.OptionError, "channels must be 3 or 1"):
          sample.decode(channels)
      del sample.fields["image"]
      with self.assertRaises(KeyError):
        sample.decode()

  def test_pickled_samples(self):
    chosen = self.dataset.where(split="val")[3:]
    sample = chosen[1]
    again = pickle.loads(pickle.dumps(sample))
    self.assertEqual(dict(again), dict(sample))
    self.assertEqual((again.id, again.split, again.class_name), (1, "val", sample.class_name))
    numpy.testing.assert_array_equal(again.decode(), sample.decode())
    self.assertEqual(dict(pickle.loads(pickle.dumps(again))), dict(sample))
    self.assertIn(sample.key, repr(again))


class DatasetTest(unittest.TestCase):

  def setUp(self):
    self.dataset = shardpack.Dataset(SHARDS)

  def test_kinds_of_paths(self):
    for path in (SHARDS, SHARDS.encode(), pathlib.Path(SHARDS)):
      self.assertEqual(shardpack.Dataset(path).identity, self.dataset.identity)
    both = shardpack.Dataset([SHARDS, pathlib.Path(SHARDS)])
    self.assertEqual((len(both), both[COUNT + 5].key), (2 * COUNT, self.dataset[5].key))
    self.assertEqual(shardpack.Dataset([SHARDS]).identity, self.dataset.identity)
    for wrong in (None, 5, {"a": 1}, [5], b"a\0b"):
      with self.subTest(wrong), self.assertRaisesRegex((TypeError, ValueError), "path"):
        shardpack.Dataset(wrong)
    with self.assertRaises(ValueError):
      shardpack.Dataset([])
    with self.assertRaises(FileNotFoundError):
      shardpack.Dataset(WORK / "none")

  def test_a_join_never_mislabels(self):
    more = WORK / "more"
    shutil.copytree(WORK / "photos", more)
    shutil.copytree(more / "cat", more / "ant")
    other = pack(more, WORK / "other")
    with self.assertRaisesRegex(shardpack.OptionError, "shards has other classes than .*other: .*'ant' is only in .*other"):
      shardpack.Dataset([other, SHARDS])
    # The same names, numbered in another order.
    order = WORK / "classes"
    order.write_text("owl\ncat\ndog\n")
    turned = pack(WORK / "photos", WORK / "turned_classes", "--classes", order)
    with self.assertRaisesRegex(shardpack.OptionError, "in another order: label 0 is 'owl' there and 'cat' here.*--classes"):
      shardpack.Dataset([SHARDS, turned])
    same = shardpack.Dataset([turned, turned])
    self.assertEqual({(sample.class_name, sample.label) for sample in same}, {("owl", 0), ("cat", 1), ("dog", 2)})

  def test_a_join_of_selections(self):
    dogs, val = self.dataset.where(label="dog"), self.dataset.split("val")
    joined = shardpack.Dataset.join([dogs, val, self.dataset[[7, 7]]])
    self.assertEqual(list(joined.keys), [*dogs.keys, *val.keys, self.dataset.keys[7], self.dataset.keys[7]])
    self.assertEqual(joined[len(dogs)].image, val[0].image)
    self.assertEqual(joined.splits, {"train": dogs.splits["train"] + 2 * (self.dataset[7].split == "train"),
                                     "val": dogs.splits["val"] + 12 + 2 * (self.dataset[7].split == "val")})

  def test_numbers(self):
    self.assertEqual(self.dataset[-1].key, self.dataset[COUNT - 1].key)
    self.assertEqual(self.dataset[numpy.int64(-COUNT)].id, 0)
    for wrong in (COUNT, -COUNT - 1, 1 << 70):
      with self.assertRaisesRegex(IndexError, f"no sample {wrong}, but those from 0 to 59") as caught:
        self.dataset[wrong]
      self.assertEqual((caught.exception.code, caught.exception.id), ("OUT_OF_RANGE", wrong))
    for wrong in ("cat/001", 1.5, None, [[1]], [1.5], ["a"], True, False, numpy.True_, Tensor(True)):
      with self.subTest(wrong), self.assertRaises(TypeError):
        self.dataset[wrong]
    with self.assertRaisesRegex(TypeError, "get\\('cat/001'\\)"):
      self.dataset["cat/001"]
    self.assertEqual([sample.key for sample in self.dataset], list(self.dataset.keys))

  def test_keys(self):
    self.assertEqual(self.dataset.get("owl/004").path, "owl/004.jpg")
    self.assertEqual((self.dataset.get("owl"), self.dataset.get("owl", 5)), (None, 5))
    self.assertTrue("owl/004" in self.dataset and "owl" not in self.dataset)
    with self.assertRaises(TypeError):
      5 in self.dataset  # pylint: disable=pointless-statement
    with self.assertRaises(KeyError):
      self.dataset.find_key("owl")
    chosen = self.dataset.where(label="owl")
    self.assertEqual(chosen[chosen.find_key("owl/004")].path, "owl/004.jpg")
    self.assertNotIn("cat/004", chosen)

  def test_text_is_utf_8_in_any_locale(self):
    folder = WORK / "locale"
    folder.mkdir()
    code = """import shardpack, sys
image = shardpack.Dataset(sys.argv[1])[0].image
with shardpack.Writer("dr\\xfcben".encode(), format="tfrecord") as writer:
  writer.add("\\xe9", image, "caf\\xe9", **{"f\\xfcr": b"x"})
dataset = shardpack.Dataset("dr\\xfcben".encode())
sample = dataset.get("\\xe9")
assert (dataset.classes, list(dataset.keys), dataset.class_counts) == (["caf\\xe9"], ["\\xe9"], {"caf\\xe9": 1}), dataset.classes
assert (sample.key, sample.class_name, sample["f\\xfcr"]) == ("\\xe9", "caf\\xe9", b"x"), sample.key
assert len(dataset.where(label="caf\\xe9")) == 1 and "f\\xfcr" in dataset.fields
batch = next(shardpack.load(dataset, batch=1, fields=["image", "f\\xfcr"]))
assert batch.keys == ["\\xe9"] and bytes(batch.bytes(0, "f\\xfcr")) == b"x"
"""
    package = os.path.dirname(os.path.dirname(os.path.abspath(shardpack.__file__)))
    for locale in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
      shutil.rmtree(folder)
      folder.mkdir()
      subprocess.run([sys.executable, "-c", code, SHARDS], cwd=folder, env={**os.environ, **locale, "PYTHONPATH": package}, check=True)
    for ask in (self.dataset.get, self.dataset.split):
      with self.assertRaises(shardpack.Error):
        ask("\ud800")

  def test_many_at_once(self):
    ids = [5, -1, 3, 3, numpy.int32(0)]
    self.assertEqual([sample.image for sample in self.dataset.__getitems__(ids)], [self.dataset[i].image for i in ids])
    self.assertEqual(list(self.dataset.__getitems__([])), [])
    with self.assertRaises(IndexError):
      self.dataset.__getitems__([1, COUNT])
    with self.assertRaises(TypeError):
      self.dataset.__getitems__([1, True])
    damaged = WORK / "damaged"
    shutil.copytree(SHARDS, damaged)
    shard = damaged / self.dataset.shards[0]
    data = bytearray(shard.read_bytes())
    at = data.index(self.dataset[1].image)
    data[at + 99] ^= 1
    shard.write_bytes(data)
    with self.assertRaises(shardpack.DataLossError) as caught:
      shardpack.Dataset(damaged).__getitems__([0, 1])
    self.assertEqual((caught.exception.key, caught.exception.offset), (self.dataset[1].key, at))

  def test_a_loop_gives_the_samples_before_a_damaged_one(self):
    damaged = WORK / "damaged_within"
    shutil.copytree(SHARDS, damaged)
    dataset = shardpack.Dataset(damaged)
    bad = dataset[13]
    shard = damaged / dataset.shards[dataset.shard_ids[13]]
    data = bytearray(shard.read_bytes())
    data[data.index(bad.image) + 99] ^= 1
    shard.write_bytes(data)
    seen = []
    with self.assertRaises(shardpack.DataLossError) as caught:
      for sample in shardpack.Dataset(damaged):
        seen.append(sample.key)
    self.assertEqual((seen, caught.exception.key), (self.dataset.keys[:13].tolist(), bad.key))

  def test_a_loop_reads_blocks(self):
    calls, read = [], shardpack.Dataset._read
    with unittest.mock.patch.object(shardpack.Dataset, "_read", lambda self, *how: (calls.append(len(how[0])), read(self, *how))[1]):
      self.assertEqual([sample.id for sample in self.dataset], list(range(COUNT)))
      self.assertEqual((sum(calls), calls[0], len(calls)), (COUNT, 1, 4))
      calls.clear()
      with unittest.mock.patch("shardpack._dataset._BLOCK_BYTES", 1):  # as of large samples
        self.assertEqual([sample.key for sample in self.dataset[:20]], self.dataset.keys[:20].tolist())
      self.assertEqual(calls, [1] * 20)
    self.assertEqual(list(self.dataset[:0]), [])
    iterators = iter(self.dataset), iter(self.dataset)
    self.assertEqual([[next(each).id for each in iterators] for _ in range(2)], [[0, 0], [1, 1]])
    samples = self.dataset.__getitems__([1, 2])
    before = samples.nbytes
    self.assertEqual(before, sum(len(value) for sample in samples for value in sample.fields.values()))
    self.assertEqual(samples.nbytes, before)

  def test_samples_are_a_sequence(self):
    samples = self.dataset.__getitems__(range(4, 9))
    self.assertEqual((len(samples), samples[-1].id, [sample.id for sample in samples[1:3]]), (5, 8, [5, 6]))
    self.assertIs(samples[2], samples[2])
    self.assertEqual([sample.key for sample in pickle.loads(pickle.dumps(samples))], list(self.dataset.keys[4:9]))
    with self.assertRaises(IndexError):
      samples[5]  # pylint: disable=pointless-statement

  def test_collate(self):
    ids = [5, -1, 3, 3]
    samples = self.dataset.__getitems__(ids)
    for given in (samples, list(samples), [self.dataset[i] for i in ids]):
      batch = shardpack.collate(given)
      for same in (batch, pickle.loads(pickle.dumps(batch))):
        images, labels = same.to("numpy")
        self.assertEqual(images, [self.dataset[i].image for i in ids])
        self.assertEqual((labels.dtype, labels.tolist()), (numpy.int64, [self.dataset[i].label for i in ids]))
        self.assertEqual(same.ids.tolist(), [5, COUNT - 1, 3, 3])
        self.assertEqual([bytes(view) for view in same.views()], images)
        self.assertEqual((len(same), same.fields), (4, list(self.dataset[0].fields)))
    with self.assertRaises(KeyError):
      batch.bytes("mask")
    with self.assertRaises(shardpack.OptionError):
      batch.to("numpie")
    with self.assertRaises(TypeError):
      shardpack.collate([(b"image", 3)])
    for nothing in (self.dataset.__getitems__([]), []):
      none, labels = shardpack.collate(nothing).to("numpy")
      self.assertEqual((none, labels.tolist()), ([], []))
    lacking = shardpack.Sample(self.dataset, 0, 3, {"txt": b"x"}, None)
    none, labels = shardpack.collate([lacking, lacking]).to("numpy")
    self.assertEqual((none, labels.tolist()), ([None, None], [3, 3]))
    # What is kept is not the library's.
    del samples, given
    self.assertEqual(images[0], self.dataset[5].image)

  def test_collate_is_the_same_of_samples_that_were_looked_at(self):
    samples = self.dataset.__getitems__([5, 3])
    before = shardpack.collate(samples)
    self.assertEqual([sample.image for sample in samples], before.images)
    after = shardpack.collate(samples)
    self.assertEqual([(name, after.bytes(name)) for name in after.fields], [(name, before.bytes(name)) for name in before.fields])

  def test_a_batch_carries_no_other_memory(self):
    """Between the values, where glibc then has other bytes than zeros."""
    code = ("import sys, shardpack; batch = shardpack.collate(shardpack.Dataset(sys.argv[1]).__getitems__(range(20)))\n"
            "content, bounds = batch._block; held = [False] * len(content)\n"
            "for ends in bounds.values():\n"
            "  ends = memoryview(ends).cast('Q').tolist()\n"
            "  for begin, end in zip(ends[:20], ends[20:]): held[begin:end] = [True] * (end - begin)\n"
            "between = bytes(byte for byte, kept in zip(content, held) if not kept)\n"
            "print(len(between), between.count(0))")
    done = subprocess.run([sys.executable, "-c", code, SHARDS], env={**os.environ, "MALLOC_PERTURB_": "165"}, check=True,
                          stdout=subprocess.PIPE, text=True)
    between, zeros = map(int, done.stdout.split())
    self.assertGreater(between, 0)
    self.assertEqual(zeros, between)

  def test_a_batch_of_4_gib_is_not_cut(self):
    """Its addresses alone: nothing of that memory is touched, and a view stands in for the copy."""
    size = (1 << 32) + 3
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
      address = ctypes.c_char.from_buffer(memory)
      samples = self.dataset.__getitems__([1])
      samples._content._spans = {"image": ([ctypes.addressof(address)], [size])}
      with unittest.mock.patch("shardpack._memory.Memory.bytes", shardpack._memory.Memory.view):
        images = shardpack.collate(samples).views()
      self.assertEqual([len(image) for image in images], [size])
      del images, samples, address

  def test_collate_of_fields_that_some_lack(self):
    out = WORK / "lacking"
    with shardpack.Writer(out) as writer:
      for n in range(6):
        writer.add(f"{n}", self.dataset[n].image, "cat", **({"txt": "" if n == 3 else f"text {n}"} if n % 3 == 0 else {}))
    dataset = shardpack.Dataset(out)
    expected = [b"text 0", None, None, b"", None, None]
    for samples in (dataset.__getitems__(range(6)), list(dataset)):
      batch = pickle.loads(pickle.dumps(shardpack.collate(samples)))
      self.assertEqual(batch.bytes("txt"), expected)
      self.assertEqual([None if view is None else bytes(view) for view in batch.views("txt")], expected)
      self.assertEqual(batch.images, [sample.image for sample in dataset])

  def test_selections(self):
    labels = self.dataset.labels
    mask = labels == 1
    cases = {
        "slice": (self.dataset[2:9:3], [2, 5, 8]),
        "backwards": (self.dataset[::-1], list(range(COUNT))[::-1]),
        "beyond": (self.dataset[55:99], list(range(55, COUNT))),
        "nothing": (self.dataset[5:5], []),
        "mask": (self.dataset[mask], numpy.flatnonzero(mask).tolist()),
        "list of bools": (self.dataset[mask.tolist()], numpy.flatnonzero(mask).tolist()),
        "ids": (self.dataset[numpy.array([4, 4, -1])], [4, 4, COUNT - 1]),
        "small ints": (self.dataset[numpy.array([4, 3], numpy.uint8)], [4, 3]),
        "beyond small ints": (shardpack.Dataset([SHARDS] * 3)[numpy.array([-COUNT, 2], numpy.int8)], [0, 2]),
        "list": (self.dataset.select([9, 1]), [9, 1]),
        "range": (self.dataset.select(range(3, 5)), [3, 4]),
        "none": (self.dataset[[]], []),
        "of a selection": (self.dataset[10:30][[-1, 0]][::-1], [10, 29]),
        "of a split": (self.dataset.split("val")[[3, 1]], None),
    }
    for name, (chosen, expected) in cases.items():
      with self.subTest(name):
        expected = numbers(self.dataset.split("val").select([3, 1])) if expected is None else expected
        self.assertEqual((len(chosen), numbers(chosen)), (len(expected), expected))
        for n, i in enumerate(expected):
          self.assertEqual((chosen[n].image, chosen[n].label, chosen[n].path), (self.dataset[i].image, labels[i], self.dataset[i].path))
        self.assertEqual([sample.key for sample in chosen], [self.dataset[i].key for i in expected])
    for wrong, error in ((numpy.ones(5, bool), ValueError), ([COUNT], IndexError), ([-COUNT - 1], IndexError), ([0.5], TypeError),
                         ({1, 2}, TypeError), ([[1]], TypeError)):
      with self.subTest(wrong), self.assertRaises(error):
        self.dataset[wrong]

  def test_rows_of_one_entry(self):
    for which, expected in ((Tensor([5]), [5]), (Tensor([-1]), [COUNT - 1]), (numpy.array([5]), [5])):
      self.assertEqual(numbers(self.dataset[which]), expected)
    for mask, expected in ((Tensor([True]), [7]), (Tensor([False]), []), (numpy.array([True]), [7])):
      self.assertEqual(numbers(self.dataset[7:8][mask]), expected)
    self.assertEqual(self.dataset[Tensor(5)].id, 5)

  def test_a_selection_is_a_dataset(self):
    chosen = self.dataset.where(label=["cat", 2])[3:]
    order = shardpack.Order(len(chosen), 7, seed=1, tail="pad")
    seen = []
    for batch in shardpack.Loader(chosen, order, epochs=1, fields=["image", "txt"]):
      for slot, i in enumerate(batch.ids):
        if batch.status[slot] == "ok":
          sample = chosen[int(i)]
          self.assertEqual((batch.bytes(slot).tobytes(), batch.bytes(slot, "txt").tobytes(), int(batch.labels[slot])),
                           (sample.image, sample["txt"], sample.label))
          seen.append(int(i))
    self.assertEqual(sorted(seen), list(range(len(chosen))))
    self.assertEqual((chosen.classes, chosen.format, chosen.fields), (self.dataset.classes, "webdataset", self.dataset.fields))
    self.assertNotEqual(chosen.identity, self.dataset.identity)
    self.assertEqual(chosen.identity, self.dataset.where(label=["cat", 2])[3:].identity)
    self.assertIn(f"{len(chosen)} of {COUNT} samples", repr(chosen))

  def test_where(self):
    d, labels, widths = self.dataset, self.dataset.labels, self.dataset.widths
    splits = numpy.array([sample.split for sample in d])
    for chosen, mask in (
        (d.where(label="cat"), labels == 0),
        (d.where(label=1), labels == 1),
        (d.where(label=numpy.array([0, 2])), labels != 1),
        (d.where(split="val"), splits == "val"),
        (d.where(split=["val", "train"]), labels >= 0),
        (d.where(min_width=80, max_width=88), (widths >= 80) & (widths <= 88)),
        (d.where(max_height=70, label="owl"), (d.heights <= 70) & (labels == 2)),
        (d.where(min_size=2000), d.sizes >= 2000),
        (d.where(lambda t: (t["width"] >= 72) & (t["label"] != 1)), (widths >= 72) & (labels != 1)),
        (d.where(lambda t: t["split"] == "val", label="dog"), (splits == "val") & (labels == 1)),
        (d.where(label=-1), labels < 0),
        (d.where(), labels >= 0),
        (d[::-1].where(label="cat")[::-1], labels == 0),
        (d.where(label="dog").split("val"), (splits == "val") & (labels == 1))):
      self.assertEqual(numbers(chosen), numpy.flatnonzero(mask).tolist())
    for error, message, call in (
        (TypeError, "'min_widht'; did you mean 'min_width'", lambda: d.where(min_widht=3)),
        (ValueError, "no class 'cta'; did you mean 'cat'", lambda: d.where(label="cta")),
        (ValueError, "no label 3", lambda: d.where(label=3)),
        (FileNotFoundError, "no split 'test'; its splits are train, val", lambda: d.where(split="test")),
        (FileNotFoundError, "test", lambda: d.split("test")),
        (FileNotFoundError, "test", lambda: d[3:].split("test")),
        (ValueError, "has 1 entries, but the dataset has 60", lambda: d.where(lambda t: numpy.ones(1, bool))),
        (ValueError, "True and False", lambda: d.where(lambda t: t["label"])),
        (TypeError, "dataset\\[mask\\]", lambda: d.where(labels == 1)),
        *((shardpack.OptionError, f"label must be .*not {re.escape(repr(wrong))}", lambda wrong=wrong: d.where(label=wrong))
          for wrong in (None, 1.5, b"cat", True, numpy.True_)),
        (shardpack.OptionError, "label must be .*not b'cat'", lambda: d.where(label=["cat", b"cat"])),
        (KeyError, "colour", lambda: d.where(lambda t: t["colour"])),
        (ValueError, "min_width", lambda: d.where(min_width=-1))):
      with self.assertRaisesRegex(error, message):
        call()

  def test_a_mask_that_is_not_bool_is_refused(self):
    mask = self.dataset.labels == 1
    for wrong in (mask.astype(numpy.uint8), mask.astype(numpy.int64), mask.astype(int).tolist(), numpy.zeros(60, numpy.int32)):
      for call in (self.dataset.__getitem__, self.dataset.select):
        with self.assertRaisesRegex(shardpack.OptionError, r"a mask must be bool: mask.astype\(bool\)"):
          call(wrong)
    self.assertEqual([len(self.dataset.select([0, 1] * 29)), len(self.dataset[:2][numpy.array([1, 0])])], [58, 2])
    for wrong in ([0, True, 2], (False, 1), [numpy.True_, 3]):
      with self.assertRaisesRegex(TypeError, "True or False among numbers"):
        self.dataset[wrong]

  def test_drawn_samples(self):
    chosen = self.dataset.sample(20, seed=4)
    self.assertEqual(len(set(chosen.keys)), 20)
    self.assertEqual(list(self.dataset.sample(20, seed=4).keys), list(chosen.keys))
    self.assertNotEqual(list(self.dataset.sample(20, seed=5).keys), list(chosen.keys))
    self.assertEqual(sorted(self.dataset.sample(COUNT).keys), sorted(self.dataset.keys))
    self.assertEqual(len(self.dataset.sample(0)), 0)
    self.assertTrue(set(self.dataset.split("val").sample(5).keys) <= set(self.dataset.split("val").keys))
    for wrong in (COUNT + 1, -1):
      with self.assertRaisesRegex(ValueError, "n (is|must be) "):
        self.dataset.sample(wrong)

  def test_what_is_known(self):
    self.assertEqual(self.dataset.splits, {"train": 48, "val": 12})
    self.assertEqual(sorted(self.dataset.fields), ["image", "json", "txt"])
    self.assertEqual(self.dataset.class_counts, {"cat": 20, "dog": 20, "owl": 20})
    self.assertEqual(self.dataset.where(label="dog").class_counts, {"cat": 0, "dog": 20, "owl": 0})
    val = self.dataset.split("val")
    self.assertEqual((val.splits, val[2:].splits, self.dataset[[]].splits), ({"val": 12}, {"val": 10}, {}))
    self.assertEqual(self.dataset.shards, sorted(path.name for path in pathlib.Path(SHARDS).glob("*.tar")))


class PickleTest(unittest.TestCase):

  def setUp(self):
    self.dataset = shardpack.Dataset(SHARDS)

  def same(self, a, b):
    self.assertEqual((len(a), a.identity, list(a.keys), repr(a)), (len(b), b.identity, list(b.keys), repr(b)))
    self.assertEqual(a.labels.tolist(), b.labels.tolist())

  def test_everything_comes_back(self):
    d = self.dataset
    for one in (d, d.split("val"), d[3:9], d.split("train")[::-2], d.where(label="cat").sample(4), shardpack.Dataset([SHARDS, SHARDS])[50:70],
                shardpack.Dataset.join([d.split("val"), d[5:8]])):
      self.same(pickle.loads(pickle.dumps(one)), one)

  def test_in_another_folder_and_process(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(WORK)
    data = pickle.dumps(shardpack.Dataset("shards").split("val")[2:5])
    shown = subprocess.run([sys.executable, "-c", "import pickle, sys; print(*pickle.load(sys.stdin.buffer).keys)"], cwd="/", input=data,
                           stdout=subprocess.PIPE, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}).stdout.decode()
    self.assertEqual(shown.split(), list(self.dataset.split("val").keys[2:5]))

  def test_a_relative_path_stays_what_it_was(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(WORK)
    dataset = shardpack.Dataset("shards")
    os.chdir("/")
    self.assertEqual([sample.image for sample in dataset[:]], [sample.image for sample in self.dataset[:]])

  def test_a_missing_or_changed_dataset(self):
    moved = WORK / "moved"
    shutil.copytree(SHARDS, moved)
    dataset = shardpack.Dataset(moved)
    data = pickle.dumps(dataset[2:])
    shutil.rmtree(moved)
    with self.assertRaisesRegex(FileNotFoundError, f"{moved}, which a pickled dataset names, is not on this machine"):
      pickle.loads(data)
    pack(WORK / "photos" / "cat", moved)
    with self.assertRaisesRegex(ValueError, f"{moved} is not what it was when this was pickled: then it was {dataset.identity}"):
      pickle.loads(data)


if __name__ == "__main__":
  unittest.main()
