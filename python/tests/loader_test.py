"""The module against Python's own readers: bytes with the files, pixels with Pillow, orders with sets."""

import copy
import gc
import io
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest
import warnings

import numpy
import PIL.Image
import shardpack

# The GPU that is promised with SHARDPACK_REQUIRE_GPU=1, so that nothing passes on the CPU then.
DEVICE = "cuda:0" if os.environ.get("SHARDPACK_REQUIRE_GPU", "0") != "0" else "cpu"

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
CLASSES = ("bee", "cat")
EACH = 20


def write_images(folder, first):
  random = numpy.random.default_rng(first)
  for name in CLASSES:
    (folder / name).mkdir(parents=True)
    for i in range(EACH):
      # Smooth, so that a crop's place shows and a filter's does not.
      ramp = numpy.linspace(0, 255, 60 + i)
      pixels = numpy.stack([ramp[None, :] + 0 * ramp[:, None], ramp[:, None] + 0 * ramp, numpy.full((60 + i, 60 + i), random.integers(255))], -1)
      PIL.Image.fromarray(pixels.astype(numpy.uint8)).save(folder / name / f"{first + i}.jpg", quality=95)


def pack(source, out, *flags):
  subprocess.run(["cli/pack", source, "-o", out, "-q", *flags], check=True, stdout=subprocess.DEVNULL)
  return str(out)


write_images(WORK / "images", 0)
write_images(WORK / "more", 1000)
DATASET = pack(WORK / "images", WORK / "webdataset")
OTHER = pack(WORK / "more", WORK / "hdf5", "-f", "hdf5")


class ModuleTest(unittest.TestCase):

  def setUp(self):
    self.dataset = shardpack.Dataset(DATASET)

  def order(self, dataset=None, **options):
    return shardpack.Order(len(dataset or self.dataset), options.pop("global_batch", 8), **{"seed": 3, **options})

  def test_samples_are_the_files(self):
    self.assertEqual(len(self.dataset), 2 * EACH)
    self.assertEqual(self.dataset.classes, list(CLASSES))
    for i in range(len(self.dataset)):
      sample = self.dataset[i]
      path = WORK / "images" / sample["source_path"]
      self.assertEqual(sample["fields"]["image"], path.read_bytes())
      self.assertEqual(CLASSES[sample["label"]], path.parent.name)
      self.assertEqual(self.dataset.find_key(sample["key"]), i)
      self.assertEqual((sample["width"], sample["height"]), PIL.Image.open(io.BytesIO(path.read_bytes())).size)
    with self.assertRaises(IndexError):
      self.dataset[len(self.dataset)]
    with self.assertRaises(KeyError):
      self.dataset.find_key("none")

  def test_an_order_is_pickled_and_copied(self):
    for order in (self.order(), shardpack.Order(9, 2, subset=[5, 3, 8, 1], tail="pad", mode="sequential"),
                  shardpack.Order(9, 2, mixture=[(0, 3, 1.0), (3, 6, 2.5)], epoch_samples=20, seed=4)):
      for again in (pickle.loads(pickle.dumps(order)), copy.deepcopy(order), copy.copy(order)):
        self.assertEqual(again.explain(), order.explain())
        self.assertEqual([again.ids(1, step).tolist() for step in range(again.steps)], [order.ids(1, step).tolist() for step in range(order.steps)])

  def test_a_decode_says_what_it_does(self):
    self.assertEqual(repr(shardpack.Decode()), "Decode(224, 224)")
    self.assertEqual(repr(shardpack.Decode(64, 48, crop="resize", flip=0.5, mean=numpy.array([0.5] * 3), dtype="float32", augment="invert")),
                     "Decode(64, 48, crop='resize', flip=0.5, dtype='float32', mean=array([0.5, 0.5, 0.5]), augment='invert')")
    self.assertEqual(repr(eval(repr(shardpack.Decode(8, 9, scale=(0.5, 1.0), views=2)), {"Decode": shardpack.Decode})),  # pylint: disable=eval-used
                     "Decode(8, 9, scale=(0.5, 1.0), views=2)")

  def test_an_epoch_is_every_sample_in_the_order_s_order(self):
    order = self.order()
    loader = shardpack.Loader(self.dataset, order, epochs=2)
    for epoch in range(2):
      seen = []
      for step, batch in enumerate(loader):
        self.assertEqual((batch.epoch, batch.step, len(batch)), (epoch, step, 8))
        numpy.testing.assert_array_equal(batch.ids, order.ids(epoch, step))
        for slot, (i, label) in enumerate(zip(batch.ids, batch.labels)):
          sample = self.dataset[int(i)]
          self.assertEqual(batch.bytes(slot).tobytes(), sample["fields"]["image"])
          self.assertEqual(label, sample["label"])
        seen += batch.ids.tolist()
      self.assertEqual(sorted(seen), list(range(2 * EACH)))
    self.assertEqual(list(loader), [])
    self.assertEqual(json.loads(loader.stats_json())["samples"], 4 * EACH)

  def test_pixels_are_pillow_s_and_views(self):
    decode = shardpack.Decode(32, 24, crop="resize")
    batch = next(shardpack.Loader(self.dataset, self.order(), decode=decode))
    pixels = batch.pixels
    self.assertEqual((pixels.shape, pixels.dtype), ((8, 24, 32, 3), numpy.uint8))
    for slot, i in enumerate(batch.ids):
      image = PIL.Image.open(io.BytesIO(self.dataset[int(i)]["fields"]["image"])).resize((32, 24), PIL.Image.BILINEAR)
      # A scaled decode may come before the resize.
      self.assertLessEqual(numpy.abs(pixels[slot].astype(int) - numpy.asarray(image).astype(int)).max(), 6)
    self.assertIsNone(batch.bytes(0))
    kept = pixels.copy()
    del batch
    gc.collect()
    numpy.testing.assert_array_equal(pixels, kept)

    for dtype, kind, tolerance in (("float32", numpy.float32, 1e-6), ("float16", numpy.float16, 1e-3)):
      decode = shardpack.Decode(32, 24, crop="resize", dtype=dtype, layout="nchw", mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
      numbers = next(shardpack.Loader(self.dataset, self.order(), decode=decode)).pixels
      self.assertEqual((numbers.shape, numbers.dtype), ((8, 3, 24, 32), kind))
      expected = (kept.transpose(0, 3, 1, 2) / 255 - numpy.array([0.5, 0.4, 0.3])[:, None, None]) / numpy.array([0.2, 0.3, 0.4])[:, None, None]
      numpy.testing.assert_allclose(numbers, expected, rtol=tolerance, atol=tolerance)

  def test_a_cursor_goes_on_at_another_world_size(self):
    order = self.order()
    whole = [b.ids.tolist() for b in shardpack.Loader(self.dataset, order, epochs=1)]
    loader = shardpack.Loader(self.dataset, order)
    next(loader), next(loader)
    cursor = loader.cursor
    ranks = [[b.ids.tolist() for b in shardpack.Loader(self.dataset, order, rank=r, world_size=2, cursor=cursor, epochs=1)] for r in range(2)]
    self.assertEqual([a + b for a, b in zip(*ranks)], whole[2:])
    # The epochs of a training loop, one of which is half done.
    loader = shardpack.Loader(self.dataset, order, cursor=cursor, epochs=3)
    steps = [[b.step for b in loader] for _ in range(loader.epoch, 3)]
    self.assertEqual(steps, [[2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]])
    with self.assertRaisesRegex(ValueError, "another order"):
      shardpack.Loader(self.dataset, self.order(seed=4), cursor=cursor)

  def test_padding_subset_and_mixture(self):
    order = self.order(global_batch=12, tail="pad")
    batches = list(shardpack.Loader(self.dataset, order, epochs=1))
    self.assertEqual(batches[-1].status, ["ok"] * 4 + ["padding"] * 8)
    self.assertEqual(int(batches[-1].ids[-1]), shardpack.PADDING_ID)
    self.assertIsNone(batches[-1].bytes(11))

    order = self.order(global_batch=2, mode="sequential", subset=numpy.array([7, 3, 5, 1]))
    self.assertEqual([b.ids.tolist() for b in shardpack.Loader(self.dataset, order, epochs=1)], [[7, 3], [5, 1]])

    other = shardpack.Dataset(OTHER)
    both = shardpack.Dataset.join([self.dataset, other])
    self.assertEqual(both[len(self.dataset)]["fields"], other[0]["fields"])
    mixture = [(0, len(self.dataset), 3), (len(self.dataset), len(other), 1)]
    order = self.order(both, mixture=mixture, epoch_samples=80)
    ids = numpy.concatenate([b.ids for b in shardpack.Loader(both, order, epochs=1)])
    self.assertEqual(int((ids >= len(self.dataset)).sum()), 20)

  def test_a_damaged_sample_is_named_or_substituted(self):
    damaged = pack(WORK / "images", WORK / "damaged", "--shards", "1")
    shard = next(pathlib.Path(damaged).glob("*.tar"))
    data = bytearray(shard.read_bytes())
    data[data.index(b"\xff\xda") + 40] ^= 1
    shard.write_bytes(data)
    dataset = shardpack.Dataset(damaged)
    with self.assertRaisesRegex(shardpack.DataLossError, "record .* key .* at offset"):
      list(shardpack.Loader(dataset, self.order(), epochs=1))
    loader = shardpack.Loader(dataset, self.order(), epochs=1, bad_samples="substitute")
    self.assertEqual(sum(b.status.count("substituted") for b in loader), 1)
    self.assertIn("at offset", loader.take_bad_samples()[0]["why"])

  def test_a_device_is_what_was_asked_for(self):
    cpu = shardpack.Device("cpu")
    self.assertEqual((cpu.kind, cpu.number, cpu.why_not), ("cpu", None, None))
    for words in ("gpu", "", None, "cuda:x"):
      with self.assertRaisesRegex(ValueError, '"cuda:3"'):
        shardpack.Device(words)
    # Of a GPU that cannot be used, by its number never the CPU; else with a warning.
    with self.assertRaisesRegex(shardpack.DeviceError, "GPU|CUDA"):
      shardpack.Device(1000)
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter("always")
      device = shardpack.Device("auto")
    self.assertEqual((device.kind == "cpu", device.number is None), (device.why_not is not None,) * 2)
    if device.kind == "cuda":
      self.assertEqual((caught, shardpack.Device().number, shardpack.Device("cuda:0").number), ([], 0, 0))
      return
    self.assertEqual([(one.category, str(one.message)) for one in caught],
                     [(RuntimeWarning, f"the device is the CPU: {device.why_not}")])
    for number in (shardpack.Device, lambda: shardpack.Device(0), lambda: shardpack.Device("cuda:0")):
      with self.assertRaises(shardpack.DeviceError) as raised:
        number()
      self.assertEqual(str(raised.exception), device.why_not)

  def test_a_device_loader_gives_the_same_batches_cast_there(self):
    device = shardpack.Device(DEVICE)
    order, decode = self.order(), shardpack.Decode(32, 24, flip=0.5)
    loader = shardpack.Loader(self.dataset, order, decode=decode, epochs=2)
    host = [(b.ids, b.labels, b.pixels.copy()) for _ in range(2) for b in loader]
    loader = shardpack.Loader(self.dataset, order, decode=decode, epochs=2, device=device)
    loader = shardpack.DeviceLoader(loader, dtype="float32", mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
    count = 0
    for epoch in range(loader.epoch, 2):
      for step, batch in enumerate(loader):
        ids, labels, pixels = host[count]
        count += 1
        self.assertEqual((batch.epoch, batch.step, len(batch)), (epoch, step, 8))
        numpy.testing.assert_array_equal(batch.ids, ids)
        if device.kind == "cpu":
          numpy.testing.assert_array_equal(numpy.from_dlpack(batch.labels), labels)
          expected = (pixels.transpose(0, 3, 1, 2) / 255 - numpy.array([0.5, 0.4, 0.3])[:, None, None]) / numpy.array([0.2, 0.3, 0.4])[:, None, None]
          numpy.testing.assert_allclose(numpy.from_dlpack(batch.pixels), expected, rtol=1e-5, atol=1e-6)
        self.assertEqual(batch.pixels.shape, (8, 3, 24, 32))
    self.assertEqual(count, len(host))

  def test_images_are_decoded_for_the_device(self):
    order, decode, device = self.order(), shardpack.Decode(48, 40, flip=0.5), shardpack.Device(DEVICE)  # decoded whole
    host = [(b.ids, b.labels, b.pixels.copy())
            for b in shardpack.Loader(self.dataset, order, decode=decode, augment_seed=3, epochs=1)]
    encoded = lambda: shardpack.Loader(self.dataset, order, augment_seed=3, epochs=1, device=device)
    loader = shardpack.DeviceLoader(encoded(), decode=decode, layout="nhwc")
    for batch, (ids, labels, pixels) in zip(loader, host, strict=True):
      numpy.testing.assert_array_equal(batch.ids, ids)
      if device.kind == "cpu":
        numpy.testing.assert_array_equal(numpy.from_dlpack(batch.labels), labels)
        numpy.testing.assert_allclose(numpy.from_dlpack(batch.pixels).astype(int), pixels, rtol=0, atol=1)
    self.assertEqual(sum(loader.decoded_by.values()), 8 * len(host))
    with self.assertRaisesRegex(ValueError, "the Loader decodes"):
      both = shardpack.Loader(self.dataset, order, decode=decode, device=device)
      shardpack.DeviceLoader(both, decode=decode)
    with self.assertRaisesRegex(ValueError, "to the loader on the device, not to its Decode"):
      shardpack.DeviceLoader(encoded(), decode=shardpack.Decode(32, 24, dtype="float32"))

  def test_tensors_keep_their_batch_and_give_it_back(self):
    loader = shardpack.Loader(self.dataset, self.order(), decode=shardpack.Decode(8, 8), device=shardpack.Device(DEVICE))
    loader = shardpack.DeviceLoader(loader)
    first = next(loader).pixels
    if first.__dlpack_device__()[0] != 1:
      self.skipTest("NumPy reads host memory alone")
    array = numpy.from_dlpack(first)
    kept = array.copy()
    del first
    for _ in range(3 * len(self.dataset) // 8):  # many more than there are buffers
      try:
        next(loader)
      except StopIteration:
        pass
    numpy.testing.assert_array_equal(array, kept)
    pixels = next(loader).pixels
    unused = pixels.__dlpack__()  # nobody takes what is in it
    del unused, array
    with self.assertRaises(BufferError):
      pixels.__dlpack__(copy=True)

  def test_a_resident_loader_keeps_the_dataset_on_the_device(self):
    order = self.order()
    loader = shardpack.ResidentLoader(self.dataset, order, shardpack.Device(DEVICE), 32, 24, dtype="uint8", layout="nhwc", epochs=1)
    host = shardpack.Loader(self.dataset, order, decode=shardpack.Decode(32, 24, crop="resize"), epochs=1)
    for mine, theirs in zip(loader, host, strict=True):
      numpy.testing.assert_array_equal(mine.ids, theirs.ids)
      if mine.pixels.__dlpack_device__()[0] == 1:
        numpy.testing.assert_array_equal(numpy.from_dlpack(mine.pixels), theirs.pixels)

  def test_what_the_device_did_is_counted(self):
    loader = shardpack.Loader(self.dataset, self.order(), epochs=1, device=shardpack.Device(DEVICE))
    loader = shardpack.DeviceLoader(loader, decode=shardpack.Decode(32, 24))
    count = sum(1 for _ in loader)  # a list would hold every buffer
    stats = loader.stats()
    self.assertEqual((stats["batches"], stats["pinned"]), (count, True))
    self.assertEqual(stats["decoded_by"], loader.decoded_by)
    self.assertEqual(sum(stats["decoded_by"].values()), 8 * count)
    self.assertEqual(stats["fallbacks"] > 0, stats["why_fallback"] != "")
    if DEVICE == "cpu":
      self.assertEqual((stats["decoded_by"]["cpu"], stats["fallbacks"]), (8 * count, 0))
    else:  # Python's nvJPEG, or that of SHARDPACK_NVJPEG
      self.assertGreater(stats["decoded_by"]["hardware"] + stats["decoded_by"]["hybrid"], 0, stats["why_fallback"])

  def test_tensors_outlive_the_device_loader(self):
    order, decode = self.order(), shardpack.Decode(32, 24)
    expected = next(shardpack.Loader(self.dataset, order, decode=decode)).pixels.copy()
    loader = shardpack.DeviceLoader(shardpack.Loader(self.dataset, order, decode=decode, device=shardpack.Device(DEVICE)))
    batch = next(loader)
    loader.stop()
    del loader
    gc.collect()
    if batch.pixels.__dlpack_device__()[0] == 1:
      numpy.testing.assert_array_equal(numpy.from_dlpack(batch.pixels), expected)

  def test_a_forked_child_is_told_so(self):
    loaders = [shardpack.Loader(self.dataset, self.order())]
    held = shardpack.Loader(self.dataset, self.order(), decode=shardpack.Decode(8, 8), device=shardpack.Device(DEVICE))
    loaders.append(shardpack.DeviceLoader(held))
    for loader in loaders:
      next(loader)
      child = os.fork()
      if child == 0:
        told = ""
        try:
          next(loader)
        except ValueError as error:
          told = str(error)
        os._exit(0 if "another process" in told and "fork" in told else 1)
      self.assertEqual(os.waitpid(child, 0)[1], 0)
      next(loader)

  def test_a_loader_is_taken_once(self):
    loader = shardpack.Loader(self.dataset, self.order(), decode=shardpack.Decode(8, 8))
    with self.assertRaisesRegex(ValueError, "device="):
      shardpack.DeviceLoader(loader)
    loader = shardpack.Loader(self.dataset, self.order(), decode=shardpack.Decode(8, 8), device=shardpack.Device(DEVICE))
    shardpack.DeviceLoader(loader)
    with self.assertRaisesRegex(ValueError, "taken"):
      next(loader)

  def test_what_cannot_be_is_an_error(self):
    with self.assertRaises(FileNotFoundError):
      shardpack.Dataset(str(WORK / "none"))
    with self.assertRaisesRegex(ValueError, "does not divide"):
      shardpack.Loader(self.dataset, self.order(), world_size=3)
    with self.assertRaisesRegex(ValueError, "filter must be one of 'box'"):
      shardpack.Decode(8, 8, filter="nearest")
    for wrong, why in (({"width": 70_000}, "width"), ({"scale": (0.5, 2)}, "scales are above 0, at most 1"), ({"ratio": (1e-4, 1)}, "ratios are 0.001"),
                       ({"channels": 2}, "channels must be 1 or 3"), ({"crop": "center", "shortest_side": 4}, "shortest side"), ({"views": 65}, "views must be a number from 1 to 64"),
                       ({"flip": 2}, "flip must be a probability"), ({"dtype": "float32", "std": (-1, 1, 1)}, "std must be a finite number above 0"),
                       ({"crop": "resize", "scale": 0.5}, "scale must be two numbers"), ({"augment": "gamma(-1)"}, "gamma")):
      with self.subTest(wrong), self.assertRaisesRegex(ValueError, why):
        shardpack.Decode(**{"width": 8, "height": 8, **wrong})
    with self.assertRaisesRegex(ValueError, "no sample has a field json"):
      shardpack.Loader(self.dataset, self.order(), fields=["image", "json"])
    loader = shardpack.Loader(self.dataset, self.order())
    loader.stop()
    with self.assertRaises(shardpack.CancelledError):
      next(loader)

  def test_batches_outlive_the_loader(self):
    loader = shardpack.Loader(self.dataset, self.order(), epochs=1)
    first = next(loader)
    del loader
    gc.collect()
    self.assertEqual(first.bytes(0).tobytes(), self.dataset[int(first.ids[0])]["fields"]["image"])


if __name__ == "__main__":
  unittest.main()
