"""Augmentation: plans and programs, views, mixing, and fields that move with the image."""

import copy
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import numpy
import PIL.Image
import shardpack

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
SHARDS = str(WORK / "shards")
COUNT, CLASSES = 24, 4
PLAN = "color_jitter(b=0.4, c=0.4, s=0.4, h=0.1) rand_augment erase(p=0.5)"


def setUpModule():
  """Gray images with a white rectangle, its label map, and its box as COCO has it; a folder a class."""
  for n in range(COUNT):
    folder = WORK / "images" / str(n % CLASSES)
    folder.mkdir(parents=True, exist_ok=True)
    draw = numpy.random.default_rng(n)
    x, y, w, h = (int(number) for number in (*draw.integers(20, 40, 2), *draw.integers(25, 40, 2)))
    inside = numpy.zeros((100, 120), bool)
    inside[y:y + h, x:x + w] = True
    PIL.Image.fromarray(numpy.where(inside, 255, 90).astype(numpy.uint8)).convert("RGB").save(folder / f"{n:02}.png")
    PIL.Image.fromarray(inside.astype(numpy.uint8)).save(folder / f"{n:02}.mask.png")
    (folder / f"{n:02}.json").write_text(json.dumps([{"bbox": [x, y, w, h], "category_id": 1}]))
  subprocess.run(["cli/pack", WORK / "images", "-o", SHARDS, "-q", "--fields", "json,mask.png"], check=True, stdout=subprocess.DEVNULL)


def load(**options):
  return shardpack.load(SHARDS, **{"batch": 8, "seed": 3, "size": (48, 40), "flip": 0.5, **options})


class PlanTest(unittest.TestCase):

  def test_steps_and_text_say_the_same(self):
    plan = shardpack.Augment().color_jitter(0.4, 0.4, 0.4, 0.1).rand_augment().erase(0.5)
    self.assertEqual(plan, shardpack.Augment(PLAN))
    self.assertEqual(str(shardpack.Augment(str(plan))), str(plan))
    self.assertEqual(str(shardpack.Augment().trivial_augment_wide(p=0.5).auto_augment("svhn").erase(value="random")),
                     "augment/1 trivial_augment_wide(p=0.5) auto_augment(svhn) erase(value=random)")
    self.assertEqual(str(shardpack.Augment().color_jitter((0.5, 2))), "augment/1 color_jitter(b=0.5..2)")
    for copied in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
      self.assertEqual(copied, plan)
    self.assertTrue(plan.moves_pixels)
    self.assertFalse(shardpack.Augment("invert").moves_pixels)

  def test_what_is_no_plan(self):
    for text, why in (("rotat(3)", "column 1: no step is called rotat; the nearest is rotate"), ("invert\0", "zero byte"),
                      ("hue(2)", "column 5: turn is 2; it is a number from -0.5 to 0.5")):
      with self.assertRaisesRegex(shardpack.OptionError, why):
        shardpack.Augment(text)
    with self.assertRaisesRegex(TypeError, "a plan is text, and not int"):
      shardpack.Augment(3)
    for bad in (True, "x", (1, 2, 3), None):
      with self.assertRaises(shardpack.OptionError):
        shardpack.Augment().color_jitter(bad)

  def test_programs_are_applied_in_place(self):
    pixels = numpy.arange(12 * 10 * 3, dtype=numpy.uint8).reshape(12, 10, 3)
    before = pixels.copy()
    self.assertIs(shardpack.apply_program("invert", pixels), pixels)
    numpy.testing.assert_array_equal(pixels, 255 - before)
    part = before.copy()[2:9, 3:8]  # rows with gaps
    numpy.testing.assert_array_equal(shardpack.apply_program("flip_horizontal", part), before[2:9, 3:8][:, ::-1])
    gray = before[..., 0].copy()
    numpy.testing.assert_array_equal(shardpack.apply_program("flip_vertical", gray), before[::-1, :, 0])
    for bad in (before.astype(float), before[:, ::2], before[..., :2].copy(), [1, 2], before.transpose(1, 0, 2)):
      with self.assertRaises(shardpack.OptionError):
        shardpack.apply_program("invert", bad)
    before.flags.writeable = False
    with self.assertRaisesRegex(shardpack.OptionError, "can be written to"):
      shardpack.apply_program("invert", before)


class LoaderTest(unittest.TestCase):

  def test_programs_make_the_pixels(self):
    plain, augmented = load(), load(augment=PLAN)
    for without, batch in zip(plain, augmented):
      for slot in range(len(batch)):
        program = batch.program(slot)
        self.assertEqual(program, shardpack.Augment(PLAN).draw(3, batch.epoch, int(batch.ids[slot]), 48, 40))
        numpy.testing.assert_array_equal(batch.pixels[slot], shardpack.apply_program(program, without.pixels[slot].copy()))
    with self.assertRaises(IndexError):
      batch.program(len(batch))
    self.assertEqual(without.program(0), "")

  def test_resume_and_another_plan(self):
    loader = load(augment=PLAN)
    next(loader)
    state, expected = loader.cursor, next(loader).pixels.copy()
    numpy.testing.assert_array_equal(next(load(augment=PLAN, cursor=state)).pixels, expected)
    with self.assertRaisesRegex(shardpack.CursorError, "another augmentation"):
      load(augment="invert", cursor=state)
    with self.assertRaisesRegex(shardpack.CursorError, "another augmentation"):
      load(cursor=state)
    with self.assertRaisesRegex(shardpack.CursorError, "augmentation was .*, and is none"):
      load().load_state_dict(loader.state_dict())
    dataset = shardpack.Dataset(SHARDS)
    order = shardpack.Order(len(dataset), 8, seed=3, tail="pad")
    shardpack.Loader(dataset, order, decode=shardpack.Decode(48, 40, augment="invert"), cursor=state, other_augment=True)

  def test_a_seek_keeps_the_plan(self):
    loader = load(augment=PLAN, epochs=2)
    first = [batch.pixels.copy() for batch in loader]
    state = load(augment=PLAN, epochs=2).state_dict()
    loader.load_state_dict(state)
    for expected, batch in zip(first, loader):
      numpy.testing.assert_array_equal(batch.pixels, expected)

  def test_views(self):
    batch = next(load(augment=PLAN, views=2, dtype="float32", layout="nchw"))
    self.assertEqual(batch.pixels.shape, (2, 8, 3, 40, 48))
    self.assertNotEqual(batch.program(0, view=1), batch.program(0))
    self.assertTrue((batch.pixels[0] != batch.pixels[1]).any())
    numpy.testing.assert_array_equal(next(load(augment=PLAN, dtype="float32", layout="nchw")).pixels, batch.pixels[0])
    for views in (0, 65):
      with self.assertRaises(shardpack.OptionError):
        load(views=views)

  def test_mix(self):
    plain = next(load(augment=PLAN))
    batch = next(load(augment=PLAN, mix=shardpack.Mix(mixup=1.0, classes=CLASSES)))
    for slot in range(8):
      other = slot + 1 if slot % 2 == 0 else slot - 1
      self.assertEqual(batch.partners[slot], batch.ids[other])
      weight = float(batch.weights[slot])
      mixed = plain.pixels[slot] * (1 - weight) + plain.pixels[other] * weight
      self.assertLessEqual(numpy.abs(batch.pixels[slot] - mixed).max(), 0.5 + 1e-3)
      labels = numpy.zeros(CLASSES)
      labels[batch.labels[slot]] += 1 - weight
      labels[batch.labels[other]] += weight
      numpy.testing.assert_allclose(batch.soft_labels[slot], labels, atol=1e-6)
    with self.assertRaisesRegex(shardpack.OptionError, "soft_labels needs a Loader with mix="):
      _ = plain.soft_labels
    with self.assertRaisesRegex(shardpack.OptionError, "groups of 3 do not divide"):
      load(mix=shardpack.Mix(mixup=1.0, classes=CLASSES, group=3))
    with self.assertRaises(shardpack.OptionError):
      shardpack.Mix(mixup=1.0, classes=CLASSES, p=0)
    mix = shardpack.Mix(cutmix=1.0, classes=CLASSES, smoothing=0.1)
    self.assertEqual(repr(pickle.loads(pickle.dumps(mix))), repr(mix))

  def test_label_maps_and_boxes_move_with_the_pixels(self):
    plan = "rotate(-30..30) translate_x(-6..6) shear_y(-0.2..0.2) flip_vertical(p=0.5)"
    loader = load(augment=plan, crop="resize", decode_fields={"mask.png": "labels", "json": "coco"})
    seen = 0
    for batch in loader:
      for slot in range(len(batch)):
        white, labels = batch.pixels[slot][..., 0] > 172, batch.masks[slot]
        # The image was resized with a filter, its label map to the nearest: they may differ at edges.
        self.assertLess((white != (labels == 1)).mean(), 0.03)
        boxes = batch.objects.boxes[batch.objects.of(slot)]
        rows, columns = numpy.nonzero(labels == 1)
        if len(rows):
          seen += 1
          x0, y0, x1, y1 = boxes[0]
          self.assertTrue(x0 <= columns.min() + 1 and y0 <= rows.min() + 1 and x1 >= columns.max() and y1 >= rows.max())
          self.assertLess((x1 - x0) - (columns.max() + 1 - columns.min()), 8)
    self.assertGreater(seen, COUNT // 2)
    with self.assertRaisesRegex(shardpack.OptionError, "the plan moves pixels"):
      next(load(augment=plan, fields=["image", "json"])).boxes()
    with self.assertRaisesRegex(shardpack.OptionError, "not operations that move pixels"):
      load(augment=plan, decode_fields={"mask.png": "nearest"})

  def test_devices_decode_without_operations(self):
    on_device = load(augment="invert", device="cpu")
    numpy.testing.assert_array_equal(numpy.from_dlpack(next(on_device).images), next(load(augment="invert")).pixels)
    with self.assertRaisesRegex(shardpack.OptionError, "give the Decode to the Loader"):
      load(augment="invert", device="cpu", decode_on="device")
    with self.assertRaisesRegex(shardpack.UnsupportedError, "several views and mixed samples"):
      load(views=2, device="cpu")


if __name__ == "__main__":
  unittest.main()
