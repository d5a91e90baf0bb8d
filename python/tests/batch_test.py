"""Batches: fields, boxes, masks, and the tensors that other libraries get."""

import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import PIL.Image
import shardpack
from shardpack import _c

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
SHARDS = str(WORK / "shards")
COCO = str(WORK / "coco")
COUNT = 24


def rectangle_of(number):
  """(width, height of the image, box in it: x, y, w, h)."""
  draw = numpy.random.default_rng(number)
  width, height = (int(side) for side in draw.integers(70, 140, 2))
  w, h = (int(side) for side in draw.integers(20, 40, 2))
  return width, height, [int(draw.integers(0, width - w)), int(draw.integers(0, height - h)), w, h]


def setUpModule():
  images, annotations = [], []
  for n in range(COUNT):
    width, height, (x, y, w, h) = rectangle_of(n)
    pixels = numpy.zeros((height, width, 3), numpy.uint8)
    pixels[y:y + h, x:x + w] = 255
    folder = WORK / "images" / "ab"[n % 2]
    folder.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(pixels).save(folder / f"{n:02}.png")
    PIL.Image.fromarray(pixels[..., 0] // 255 * (n + 1)).save(folder / f"{n:02}.mask.png")
    (folder / f"{n:02}.json").write_text(json.dumps([[x, y, w, h]]))
    (folder / f"{n:02}.txt").write_text(f"number {n} \N{SNOWMAN}")
    rows = io.BytesIO()
    numpy.save(rows, numpy.array([[x, y, x + w, y + h]] * (n % 3), numpy.int32).reshape(n % 3, 4))
    (folder / f"{n:02}.npy").write_bytes(rows.getvalue())
    images.append({"id": n, "file_name": f"images/{'ab'[n % 2]}/{n:02}.png", "width": width, "height": height})
    annotations += [{"id": 2 * n + k, "image_id": n, "category_id": 7 + k, "bbox": [x, y, w, h]} for k in range(n % 3)]
  pack(WORK / "images", SHARDS, "--fields", "json,txt,npy,mask.png:mask")
  (WORK / "coco.json").write_text(json.dumps({
      "images": images, "annotations": annotations, "categories": [{"id": 7, "name": "seven"}, {"id": 8, "name": "eight"}]}))
  pack(WORK / "coco.json", COCO)


def pack(source, out, *flags):
  subprocess.run(["cli/pack", source, "-o", out, "-q", *flags], check=True, stdout=subprocess.DEVNULL)


def load(path=SHARDS, **options):
  return shardpack.load(path, **{"batch": COUNT, "fields": ["image", "json", "txt", "npy"], "seed": 3, **options})


def bright(plane):
  """xyxy of what is brighter than half."""
  rows, columns = numpy.nonzero(plane > 127)
  return None if not len(rows) else (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)


def box_after(box, crop, flip, width, height):
  """Of xywh, in plain Python."""
  x, y, w, h = box
  left, top, right, bottom = crop
  clip = lambda value, most: min(max(value, 0.0), float(most))
  x1, x2 = (clip((at - left) * width / (right - left), width) for at in (x, x + w))
  y1, y2 = (clip((at - top) * height / (bottom - top), height) for at in (y, y + h))
  return [width - x2, y1, width - x1, y2] if flip else [x1, y1, x2, y2]


class FieldsTest(unittest.TestCase):

  def setUp(self):
    self.dataset = shardpack.Dataset(SHARDS)

  def test_what_is_written_to_its_numbers_stays(self):
    batch, ids = next(load()), next(load()).ids
    batch.labels[:] = 7
    batch.ids[:] = 5
    self.assertEqual((set(batch.labels.tolist()), batch.ids.tolist()), ({7}, ids.tolist()))
    _, labels = batch
    self.assertEqual(set(labels.tolist()), {7})
    self.assertEqual(set(batch.to("numpy").labels.tolist()), {7})
    self.assertNotEqual(set(next(load()).labels.tolist()), {7})
    mixed = next(load(size=16, mix=shardpack.Mix(mixup=0.5, classes=2)))
    mixed.soft_labels[:] = 0.25
    self.assertEqual(set(mixed.to("numpy").soft_labels.ravel().tolist()), {0.25})
    *_, last = load(batch=COUNT - 5)
    last.labels[:] = 7
    self.assertEqual(last.labels.tolist(), [7] * 5)  # without the padding

  def test_it_does_not_move(self):
    batch = next(load(size=16))
    self.assertIs(batch.to("cpu"), batch)
    with self.assertRaisesRegex(shardpack.OptionError, "give load\\(\\) device='cuda:1'"):
      batch.to("cuda:1")

  def test_fields_of_all_slots_at_once(self):
    batch = next(load(batch=7))
    for slot, id in enumerate(batch.ids.tolist()):
      sample = self.dataset[id]
      for field in ("image", "json", "txt", "npy"):
        expected = sample.image if field == "image" else bytes(sample[field])
        self.assertEqual((batch.bytes(field)[slot], bytes(batch.view(slot, field)), batch.bytes(slot, field).tobytes()),
                         (expected,) * 3)
      self.assertEqual(batch.text()[slot], bytes(sample["txt"]).decode())
      self.assertEqual(batch.json()[slot], json.loads(bytes(sample["json"])))
      self.assertEqual(batch.keys[slot], sample.key)
    self.assertEqual(batch.bytes(), batch.bytes("image"))
    self.assertEqual(batch.images, batch.bytes())
    self.assertEqual(bytes(batch.view(-1)), batch.bytes()[-1])
    self.assertTrue(batch.view(0).readonly)
    for ask in (batch.bytes, batch.text, batch.json, lambda field: batch.view(0, field), lambda field: batch.bytes(0, field)):
      with self.assertRaises(KeyError):
        ask("none")
    for ask in (batch.view, batch.bytes, batch.program):
      for slot in (7, -8, 100):
        with self.assertRaisesRegex(IndexError, f"the batch has no slot {slot}, but those from 0 to 6"):
          ask(slot)
    with self.assertRaisesRegex(KeyError, "the dataset has no field 'imag'; did you mean 'image'.; it has .*txt"):
      batch.text("imag")
    for ask in (lambda batch: batch.text(), lambda batch: batch.bytes("txt"), lambda batch: batch.view(0, "txt")):
      with self.assertRaisesRegex(KeyError, r"the field 'txt' was not read: load with fields=\('image', 'txt'\)"):
        ask(next(load(fields=["image"])))
    for ask in (lambda batch: batch.json(), lambda batch: batch.boxes()):
      with self.assertRaisesRegex(KeyError, r"the field 'json' was not read: load with fields=\('image', 'json'\)"):
        ask(next(load(fields=["image"], size=8)))
    with self.assertRaisesRegex(ValueError, "field txt of sample .* is not JSON"):
      batch.json("txt")

  def test_one_call_a_field(self):
    from shardpack import _batch
    batch, calls = next(load()), []
    before = _batch.call
    try:
      _batch.call = lambda function, *arguments: (calls.append(function), before(function, *arguments))[1]
      batch.bytes("txt"), batch.text("txt"), [batch.bytes(slot, "txt") for slot in range(len(batch))]
    finally:
      _batch.call = before
    self.assertEqual(len(calls), 1)

  def test_padding_has_no_fields(self):
    batch = list(load(batch=20, pad_last=True, size=8))[-1]
    self.assertEqual((batch.text()[4:], batch.json()[4:], [len(each) for each in batch.boxes()][4:]),
                     ([None] * 16, [None] * 16, [0] * 16))
    self.assertEqual(batch.valid.sum(), 4)
    self.assertEqual((batch.indices.dtype, batch.indices.tolist()), (numpy.int64, batch.ids[:4].tolist()))
    self.assertEqual(batch.ids[4:].tolist(), [2**64 - 1] * 16)
    self.assertIsNone(batch.view(19, "txt"))
    self.assertIsNone(batch.bytes(19, "txt"))
    cut = list(load(batch=20, size=8))[-1]
    for ask in (lambda slot: cut.bytes(slot, "txt").tobytes(), lambda slot: bytes(cut.view(slot, "txt"))):
      self.assertEqual((ask(-1), ask(0)), (cut.bytes("txt")[3], cut.bytes("txt")[0]))
      for slot in (4, -5, 19):
        with self.assertRaises(IndexError):
          ask(slot)

  def test_it_unpacks(self):
    batch = next(load(size=(24, 16)))
    images, labels = batch
    self.assertEqual(images.ctypes.data, batch.pixels.ctypes.data)
    self.assertEqual((images.shape, labels.tolist()), ((COUNT, 16, 24, 3), batch.labels.tolist()))
    with self.assertRaisesRegex(ValueError, "'jax'"):
      batch.to("mxnet")
    self.assertEqual(repr(batch), "<Batch of 24, 16x24x3 uint8, epoch 0, step 0>")

  def test_views_keep_the_batch(self):
    loader = load(size=16)
    batch = next(loader)
    images, view, expected = batch.images, batch.view(0, "txt"), batch.images.copy()
    text = bytes(view)
    loader.close()
    del batch, loader
    numpy.testing.assert_array_equal(images, expected)
    self.assertEqual(bytes(view), text)


class BoxesTest(unittest.TestCase):

  def test_boxes_move_with_crop_resize_and_flip(self):
    for options in ({"flip": 0.5}, {"crop": "resize", "flip": 0.5}, {"crop": "center", "shortest_side": 120, "flip": 0.5},
                    {"crop": "center", "size": (64, 48)}):
      loader, flips = load(**{"size": (96, 80), **options}), 0
      for _ in range(4):
        for batch in loader:
          height, width = batch.images.shape[1:3]
          flips += int(batch.flips.sum())
          for image, box, crop in zip(batch.images, batch.boxes(), batch.crops.tolist()):
            self.assertEqual((box.shape, box.dtype), ((1, 4), numpy.float32))
            seen = bright(image[..., 0])
            x1, y1, x2, y2 = box[0]
            if seen is None:
              self.assertLess(min(x2 - x1, y2 - y1), 3)
            elif min(x2 - x1, y2 - y1) > 4:
              numpy.testing.assert_allclose(seen, box[0], atol=1.01)
            self.assertTrue(0 <= x1 <= x2 <= width and 0 <= y1 <= y2 <= height)
            self.assertTrue(min(crop) >= 0 and crop[2] > 0 and crop[3] > 0)
      self.assertEqual(flips > 10, options.get("flip", 0) > 0)

  def test_against_plain_arithmetic(self):
    for batch in load(size=(50, 70), flip=0.5, batch=5):
      for crop, flip, stored, box in zip(batch.crops.tolist(), batch.flips, batch.json(), batch.boxes()):
        x, y, w, h = crop  # whole pixels, in a random crop
        numpy.testing.assert_allclose(box, [box_after(each, (x, y, x + w, y + h), flip, 50, 70) for each in stored], atol=1e-4)

  def test_formats(self):
    batch = next(load(size=64, crop="resize"))
    for xyxy, xywh, cxcywh in zip(batch.boxes(), batch.boxes("xywh"), batch.boxes("cxcywh")):
      x1, y1, x2, y2 = xyxy.T
      numpy.testing.assert_allclose(xywh.T, [x1, y1, x2 - x1, y2 - y1], rtol=1e-5)
      numpy.testing.assert_allclose(cxcywh.T, [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], rtol=1e-5)
    plain = next(load())
    for id, box in zip(plain.ids.tolist(), plain.boxes("xywh")):
      self.assertEqual(box.tolist(), json.loads(bytes(shardpack.Dataset(SHARDS)[id]["json"])))
    for wrong in ({"format": "yxyx"}, {"stored": "corners"}):
      with self.assertRaisesRegex(ValueError, "'xyxy', 'xywh', 'cxcywh'"):
        batch.boxes(**wrong)

  def test_rows_of_an_array(self):
    batch = next(load(size=64, crop="resize"))
    for one, rows in zip(batch.boxes(), batch.boxes(field="npy", stored="xyxy")):
      numpy.testing.assert_allclose(rows, numpy.repeat(one, len(rows), axis=0), atol=1e-4)
    self.assertEqual(sorted({len(rows) for rows in batch.boxes(field="npy", stored="xyxy")}), [0, 1, 2])

  def test_what_pack_makes_of_coco(self):
    batch = next(load(COCO, size=64, crop="resize", fields=["image", "json"]))
    self.assertEqual(len(batch), COUNT)
    for key, box, labels in zip(batch.keys, batch.boxes("xywh"), batch.box_labels()):
      width, height, (x, y, w, h) = rectangle_of(int(key.split("/")[-1]))
      count = int(key.split("/")[-1]) % 3
      expected = numpy.array([[x * 64 / width, y * 64 / height, w * 64 / width, h * 64 / height]] * count).reshape(count, 4)
      numpy.testing.assert_allclose(box, expected, rtol=1e-5)
      self.assertEqual((labels.dtype, labels.tolist()), (numpy.int64, list(range(count))))

  def test_what_is_not_a_box_names_its_sample(self):
    batch = next(load(size=8))
    with self.assertRaisesRegex(ValueError, "field txt of sample .* is not JSON"):
      batch.boxes(field="txt")
    with self.assertRaisesRegex(ValueError, "box without label"):
      batch.box_labels()
    with self.assertRaisesRegex(ValueError, "field npy of sample .* is a .npy array of boxes, which has no labels"):
      batch.box_labels("npy")
    with self.assertRaisesRegex(shardpack.OptionError, "field npy of sample .* is not UTF-8"):
      batch.text("npy")
    from shardpack._boxes import stored_boxes
    for content, what in ((b'{"a": 1}', "no boxes.* a$"), (b"7", "no boxes"), (b"[[1, 2, 3]]", "not four numbers"),
                          (b'[["a", 1, 2, 3]]', "not four numbers"), (b'{"boxes": [{"bbox": null}]}', "not four numbers"),
                          (b"{", "not JSON")):
      with self.subTest(content), self.assertRaisesRegex(ValueError, "the field of it.*" + what):
        stored_boxes(content, "the field of it")
    for content in (None, b"[]", b'{"boxes": []}', b'{"annotations": [{"caption": "a"}]}'):
      self.assertEqual(stored_boxes(content, "it").shape, (0, 4))


class MasksTest(unittest.TestCase):

  def test_masks_have_the_image_s_crop_and_flip(self):
    loader = load(size=(96, 80), flip=0.5, decode_fields={"mask": "nearest"})
    for batch in loader:
      masks = batch.masks
      self.assertEqual((masks.shape, masks.dtype), ((COUNT, 80, 96), numpy.uint8))
      for mask, box in zip(masks, batch.boxes()):
        seen = bright((mask > 0) * 255)
        x1, y1, x2, y2 = box[0]
        if seen is not None and min(x2 - x1, y2 - y1) > 4:
          numpy.testing.assert_allclose(seen, box[0], atol=1.01)
        self.assertLessEqual(len(numpy.unique(mask)), 2)  # values are not mixed
      kept = masks.copy()
    loader.close()
    del batch
    numpy.testing.assert_array_equal(masks, kept)

  def test_who_asks_in_vain(self):
    with self.assertRaisesRegex(ValueError, "needs decode_fields"):
      next(load(size=8)).masks
    batch = next(load(size=8, decode_fields={"mask": "nearest"}))
    for ask in (batch.mask, batch.decoded):
      with self.assertRaisesRegex(KeyError, "the field 'txt' was not decoded: load with decode_fields={'txt': 'labels'}"):
        ask("txt")
    with self.assertRaisesRegex(KeyError, "take batch.objects"):
      next(load(COCO, size=8, decode_fields={"json": "coco"}, fields=["image"])).decoded("json")


class DlpackTest(unittest.TestCase):

  def test_both_versions(self):
    batch = next(load(size=16))
    self.assertEqual(batch.__dlpack_device__(), (1, 0))
    array = numpy.from_dlpack(batch)
    self.assertEqual(array.ctypes.data, batch.pixels.ctypes.data)
    numpy.testing.assert_array_equal(array, batch.pixels)
    for version, name in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((2, 0), "dltensor_versioned")):
      self.assertIn(f'"{name}"', repr(batch.__dlpack__(max_version=version)))
    with self.assertRaises(BufferError):
      next(load()).__dlpack__()

  def test_a_consumer_without_a_stream_is_refused(self):
    """A stream that is none would not tell when its work on the memory is done."""
    batch = next(shardpack.load(SHARDS, batch=20, size=16, device="cpu"))
    on_gpu = shardpack.Tensor(batch._handle, _c.PIXELS, (20, 3, 16, 16), (2, 0))
    with self.assertRaises(BufferError):
      on_gpu.__dlpack__(stream=-1)

  def test_what_is_cut_off_is_not_exported(self):
    batch = list(load(size=16, batch=20))[-1]
    self.assertEqual(numpy.from_dlpack(batch).shape, (4, 16, 16, 3))


class WithoutNumpyTest(unittest.TestCase):

  def test_lists_need_none(self):
    program = """
import json, sys
sys.modules["numpy"] = None
import shardpack
batch = next(shardpack.load(sys.argv[1], batch=30, shuffle=False, fields=["json"], pad_last=True))
print(json.dumps([batch.text("json"), batch.json(), batch.keys]))
"""
    ran = subprocess.run([sys.executable, "-c", program, SHARDS], capture_output=True, text=True, check=False)
    self.assertEqual((ran.returncode, ran.stderr), (0, ""))
    batch = next(shardpack.load(SHARDS, batch=30, shuffle=False, fields=["json"], pad_last=True))
    self.assertEqual(json.loads(ran.stdout), [batch.text("json"), batch.json(), batch.keys])
    self.assertEqual((batch.keys[COUNT - 1] is None, batch.keys[COUNT:]), (False, [None] * (30 - COUNT)))


if __name__ == "__main__":
  unittest.main()
