"""Decoded fields: label maps, objects and further images, which move with the image's crop and flip."""

import copy
import json
import math
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
COUNT = 24


def rectangle_of(number):
  """(width, height of the image, box in it: x, y, w, h)."""
  draw = numpy.random.default_rng(number)
  width, height = (int(side) for side in draw.integers(70, 140, 2))
  w, h = (int(side) for side in draw.integers(20, 40, 2))
  return width, height, [int(draw.integers(0, width - w)), int(draw.integers(0, height - h)), w, h]


def setUpModule():
  """Images with a white rectangle; label maps (a palette, 16 bits, colours) that have it, too; COCO's annotations; the image at half its size."""
  folder = WORK / "images"
  folder.mkdir()
  for n in range(COUNT):
    width, height, (x, y, w, h) = rectangle_of(n)
    inside = numpy.zeros((height, width), bool)
    inside[y:y + h, x:x + w] = True
    pixels = numpy.repeat(inside[..., None] * numpy.uint8(255), 3, axis=2)
    PIL.Image.fromarray(pixels).save(folder / f"{n:02}.png")
    PIL.Image.fromarray(pixels).resize((width // 2, height // 2), PIL.Image.BOX).save(folder / f"{n:02}.half.png")
    palette = PIL.Image.fromarray(inside.astype(numpy.uint8) * 15)
    palette.putpalette([7] * 768)
    palette.save(folder / f"{n:02}.mask.png")
    PIL.Image.fromarray(inside.astype(numpy.uint16) * (1000 + n)).save(folder / f"{n:02}.deep.png")
    PIL.Image.fromarray(pixels // 255 * numpy.uint8([200, 10, 0])).save(folder / f"{n:02}.color.png")
    ring = [x, y, x + w, y, x + w, y + h, x, y + h]
    objects = [{"bbox": [x, y, w, h], "category_id": n, "segmentation": [ring], "keypoints": [x, y, 2, x + w - 1, y, 1]},
               {"bbox": [0, 0, 0.5, 0.5], "category_id": 99, "iscrowd": 1, "segmentation": {"size": [height, width], "counts": [height * width]}}]
    (folder / f"{n:02}.json").write_text(json.dumps(objects[:1 + n % 2]))
  subprocess.run(["cli/pack", folder, "-o", SHARDS, "-q", "--fields", "json,mask.png,deep.png,color.png,half.png"], check=True, stdout=subprocess.DEVNULL)


def load(**options):
  return shardpack.load(SHARDS, **{"batch": COUNT, "seed": 3, "size": (96, 80), "flip": 0.5, **options})


def box_of(plane):
  """x1, y1, x2, y2 of what is set; None if nothing is."""
  rows, columns = numpy.flatnonzero(plane.any(axis=1)), numpy.flatnonzero(plane.any(axis=0))
  return [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1] if len(rows) else None


class LabelsTest(unittest.TestCase):

  def test_kinds_of_maps_are_the_same(self):
    how = {"mask.png": "labels", "deep.png": shardpack.Labels(bits=16),
           "color.png": shardpack.Labels(colors={(0, 0, 0): 0, (200, 10, 0): 3}, classes=4)}
    for batch in load(decode_fields=how):
      mask, deep, color = (batch.mask(field) for field in how)
      self.assertEqual((mask.shape, mask.dtype, deep.dtype, color.dtype), ((COUNT, 80, 96), numpy.uint8, numpy.uint16, numpy.uint8))
      inside = mask == 15
      numpy.testing.assert_array_equal(mask, inside * 15)
      numpy.testing.assert_array_equal(deep, inside * (1000 + numpy.array([int(key) for key in batch.keys]))[:, None, None])
      numpy.testing.assert_array_equal(color, inside * 3)
      # The image is the same but for its edges.
      self.assertLess((numpy.abs(batch.images[..., 0] / 255 - inside) > 0.6).mean(), 0.01)

  def test_the_map_of_polygons_is_that_of_pixels(self):
    how = {"mask.png": "labels", "json": ["coco", shardpack.CocoLabels(classes=101, bits=16)]}
    batch = next(load(decode_fields=how))
    mask, painted = batch.mask("mask.png"), batch.mask("json")
    self.assertEqual(painted.dtype, numpy.uint16)
    numpy.testing.assert_array_equal(painted, (mask == 15) * (1 + numpy.array([int(key) for key in batch.keys]))[:, None, None])
    self.assertGreater(len(batch.objects), 0)
    numpy.testing.assert_array_equal(next(load(decode_fields={"json": "coco_labels"})).masks, painted)
    with self.assertRaisesRegex(shardpack.DataLossError, r"json: object \d has the label \d+ of 24 classes"):
      next(load(decode_fields={"json": shardpack.CocoLabels(classes=24)}))

  def test_a_pixel_comes_from_where_affine_says(self):
    batch = next(load(decode_fields={"mask.png": "labels"}))
    for slot, key in enumerate(batch.keys):
      _, _, (x, y, w, h) = rectangle_of(int(key))
      back = numpy.linalg.inv(numpy.vstack([batch.affine[slot], [0, 0, 1]]))
      v, u = numpy.mgrid[:80, :96] + 0.5
      at_x, at_y, _ = numpy.einsum("ij,jyx->iyx", back, numpy.stack([u, v, numpy.ones_like(u)]))
      expected = (at_x >= x) & (at_x < x + w) & (at_y >= y) & (at_y < y + h)
      self.assertLess((expected != (batch.masks[slot] == 15)).mean(), 0.001)  # centres on an edge

  def test_labels_and_boxes_follow_a_perspective(self):
    plan = shardpack.Augment().perspective(0.6, p=1, bilinear=False)
    batch = next(load(augment=plan, decode_fields={"mask.png": "labels", "json": "coco"}))
    with self.assertRaisesRegex(shardpack.UnsupportedError, "projection"):
      batch.affine
    self.assertEqual(batch.projection.shape, (COUNT, 3, 3))
    self.assertTrue((batch.projection[:, 2, :2] != 0).any(axis=1).all())
    for slot, key in enumerate(batch.keys):
      _, _, (x, y, w, h) = rectangle_of(int(key))
      v, u = numpy.mgrid[:80, :96] + 0.5
      at = numpy.einsum("ij,jyx->iyx", numpy.linalg.inv(batch.projection[slot]), numpy.stack([u, v, numpy.ones_like(u)]))
      expected = (at[0] / at[2] >= x) & (at[0] / at[2] < x + w) & (at[1] / at[2] >= y) & (at[1] / at[2] < y + h)
      inside, known = batch.masks[slot] == 15, batch.masks[slot] != 255  # nobody knows what the crop does not show
      self.assertLess(((expected & known) != inside).mean(), 0.02)  # the map is resized before it is warped
      for x1, y1, x2, y2 in batch.objects.boxes[batch.objects.of(slot)]:
        seen = numpy.argwhere(inside) + 0.5
        self.assertTrue((seen >= (y1 - 1.5, x1 - 1.5)).all() and (seen <= (y2 + 1.5, x2 + 1.5)).all())

  def test_labels_follow_an_elastic_warp(self):
    plan = shardpack.Augment().elastic(200, 4, bilinear=False)
    batch = next(load(augment=plan, decode_fields={"mask.png": shardpack.Labels(ignore=0)}))
    plain = next(load(decode_fields={"mask.png": "labels"}))
    self.assertTrue((batch.masks != plain.masks).any())
    # The image is the same but for its edges, whose levels lie in between.
    self.assertLess((numpy.abs(batch.images[..., 0] / 255 - (batch.masks == 15)) > 0.6).mean(), 0.01)
    with self.assertRaisesRegex(shardpack.UnsupportedError, "bends lines"):
      batch.projection
    with self.assertRaisesRegex(shardpack.OptionError, "field json: objects do not follow the plan's elastic"):
      load(augment=plan, decode_fields={"json": "coco"})

  def test_nearest_is_as_before(self):
    both = load(decode_fields={"mask.png": "nearest", "deep.png": shardpack.Labels(bits=16)})
    batch = next(both)
    self.assertEqual(batch.mask("mask.png").dtype, numpy.uint8)
    numpy.testing.assert_array_equal(batch.mask("mask.png") > 0, batch.mask("deep.png") > 0)
    with self.assertRaisesRegex(ValueError, "mask.png and deep.png"):
      batch.masks

  def test_legacy_is_elsewhere(self):
    exact, legacy = (next(load(decode_fields={"mask.png": shardpack.Labels(nearest=nearest)})).masks for nearest in ("exact", "legacy"))
    self.assertTrue((exact != legacy).any())
    self.assertLess((exact != legacy).mean(), 0.1)

  def test_bad_labels_name_the_field(self):
    with self.assertRaisesRegex(shardpack.DataLossError, "mask.png.*label 15 of 15 classes") as raised:
      next(load(decode_fields={"mask.png": shardpack.Labels(classes=15)}))
    self.assertEqual(raised.exception.field, "mask.png")


class ObjectsTest(unittest.TestCase):

  def test_boxes_are_around_what_is_seen(self):
    how = {"json": shardpack.Coco(polygons=True, keypoints=2, pairs=[(0, 1)]), "mask.png": "labels"}
    for batch in load(decode_fields=how):
      objects = batch.objects
      self.assertEqual((objects.boxes.shape, objects.boxes.dtype), ((len(objects), 4), numpy.float32))
      self.assertEqual(objects.offsets[-1], len(objects))
      seen = 0
      for slot, key in enumerate(batch.keys):
        rows = objects.of(slot)
        box = box_of(batch.masks[slot])
        for row in range(rows.start, rows.stop):
          self.assertEqual((objects.labels[row], objects.keep[row], objects.crowds[row]), (int(key), 0, False))
          numpy.testing.assert_allclose(box, objects.boxes[row], atol=1.01)
          ring, = objects.polygons[row]
          numpy.testing.assert_allclose([*ring.min(axis=0), *ring.max(axis=0)], objects.boxes[row], atol=1e-3)
          left, right = objects.keypoints[row]
          if left[2] and right[2]:
            self.assertLess(left[0], right[0])  # also mirrored, where they have changed places
            self.assertEqual((left[2], right[2]), (1, 2) if batch.flips[slot] else (2, 1))
          seen += 1
      self.assertGreater(seen, COUNT // 2)
      self.assertGreaterEqual(objects.dropped, COUNT // 2)  # half of them have one below a pixel
      self.assertEqual(objects.outside, 0)

  def test_as_the_boxes_method(self):
    batch = next(load(fields=["image", "json"], decode_fields={"json": shardpack.Coco(format="xywh")}))
    for slot, stored in enumerate(batch.boxes("xywh")):
      rows = batch.objects.of(slot)
      numpy.testing.assert_allclose(batch.objects.boxes[rows], stored[batch.objects.keep[rows]], atol=1e-4)

  def test_who_asks_in_vain(self):
    with self.assertRaisesRegex(ValueError, "objects need decode_fields"):
      next(load()).objects
    batch = next(load(decode_fields={"json": "coco"}))
    with self.assertRaisesRegex(ValueError, "polygons need"):
      batch.objects.polygons
    with self.assertRaises(KeyError):
      batch.decoded("json")
    with self.assertRaises(IndexError):
      batch.objects.of(COUNT)
    self.assertEqual(batch.objects.keypoints.shape, (len(batch.objects), 0, 3))
    with self.assertRaises(shardpack.UnsupportedError):
      next(load(size=None, flip=0)).affine

  def test_padding_has_none(self):
    batch = list(load(batch=20, pad_last=True, decode_fields={"json": "coco"}))[-1]
    self.assertEqual(len(batch.objects.offsets), 21)
    self.assertTrue((batch.objects.offsets[4:] == len(batch.objects)).all())
    cut = list(load(batch=20, decode_fields={"json": "coco"}))[-1]
    self.assertEqual((len(cut.objects.offsets), cut.affine.shape), (5, (4, 2, 3)))


class PairedTest(unittest.TestCase):

  def test_the_same_part_of_the_other_image(self):
    batch = next(load(decode_fields={"half.png": "image"}))
    other = batch.decoded("half.png")
    self.assertEqual((other.shape, other.dtype), (batch.images.shape, batch.images.dtype))
    self.assertLess(numpy.abs(other.astype(int) - batch.images).mean(), 12)
    own = next(load(decode_fields={"half.png": shardpack.Paired(share="none")})).decoded("half.png")
    self.assertGreater(numpy.abs(own.astype(int) - batch.images).mean(), 20)


class OptionsTest(unittest.TestCase):

  def test_what_cannot_be(self):
    for how, why in (({"bits": 12}, "8 or 16"), ({"ignore": 256}, "ignore"), ({"nearest": "linear"}, "nearest"),
                     ({"colors": {(1, 2): 3}}, "three numbers"), ({"colors": {(1, 2, 300): 3}}, "colour's part"), ({"share": "some"}, "share"),
                     ({"classes": -1}, "classes"), ({"classes": 300}, "classes must be at most 256 with bits=8, not 300"),
                     ({"bits": 16, "classes": 300}, "one has the label 255; give ignore=300 or more, or 0 for"),
                     ({"classes": 256}, "give ignore=256 or more and bits=16, or 0 for the background"),
                     ({"bits": 16, "classes": 256}, "give ignore=256 or more, or 0 for"), ({"bits": 16, "classes": 1 << 16, "ignore": 65535}, "65535; give ignore=0 for"),
                     ({"colors": {(1, 2, 3): 256}}, "a colour's label must be a number from 0 to 255, not 256"),
                     ({"classes": 3, "colors": {(1, 2, 3): 3}}, r"colors has the label 3 for \(1, 2, 3\), but there are 3 classes")):
      with self.subTest(how), self.assertRaisesRegex(shardpack.OptionError, why):
        shardpack.Labels(**how)
    with self.assertRaisesRegex(shardpack.OptionError, "bits must be a whole number, not 8.0"):
      shardpack.Labels(bits=8.0)
    for works in ({"classes": 3, "colors": {(1, 2, 3): 2, (4, 5, 6): 255}}, {"ignore": 0, "classes": 256}, {"ignore": 256, "classes": 256, "bits": 16},
                  {"ignore": 0, "classes": 1 << 16, "bits": 16}):
      load(decode_fields={"mask.png": shardpack.Labels(**works)}).close()
    for how, why in (({"overlap": "first"}, "overlap"), ({"bits": 16, "classes": 300}, "one has the label 255")):
      with self.subTest(how), self.assertRaisesRegex(shardpack.OptionError, why):
        shardpack.CocoLabels(**how)
    for how, why in (({"format": "cxcywh"}, "format"), ({"pairs": [(1, 2)]}, "pairs name 2 keypoints, but there are 0"), ({"keypoints": 3, "pairs": [1]}, "two keypoints"),
                     ({"box_from": "mask"}, "box_from"), ({"polygons": 2}, "polygons"), ({"min_visible": "x"}, "min_visible must be a number"),
                     ({"min_visible": 2}, "min_visible must be a share, from 0 to 1, not 2"), ({"min_visible": float("nan")}, "min_visible must be a share"),
                     ({"keypoints": 1.5}, "keypoints"), ({"keypoints": 1025}, "keypoints must be a number from 0 to 1024, not 1025"),
                     ({"keypoints": 3, "pairs": [(0, 3)]}, r"pairs must name each of the 3 keypoints, counted from 0, at most once, not \(\(0, 3\),\)"),
                     ({"keypoints": 4, "pairs": [(0, 1), (1, 2)]}, "at most once")):
      with self.subTest(how), self.assertRaisesRegex(shardpack.OptionError, why):
        shardpack.Coco(**how)
    for fields, why in (({"mask.png": "bilinear"}, "'labels', 'coco'"), ({"json": ["coco", "coco"]}, "has the objects already"), ({"mask.png": 7}, ", not 7"), ({"msak.png": "labels"}, "msak.png"),
                        (["mask.png"], "must be a dict")):
      with self.subTest(fields), self.assertRaisesRegex(shardpack.OptionError, why):
        load(decode_fields=fields)
    with self.assertRaisesRegex(shardpack.OptionError, "needs a Decode"):
      load(size=None, flip=0, decode_fields={"mask.png": "labels"})

  def test_limits_are_the_library_s(self):
    for kind, member, inside, outside, name, given in (
        (shardpack.Labels, "classes", 256, 257, "mask.png", {"ignore": 0}), (shardpack.Labels, "classes", 1 << 16, (1 << 16) + 1, "mask.png", {"ignore": 0, "bits": 16}),
        (shardpack.Labels, "ignore", 255, 256, "mask.png", {}), (shardpack.Labels, "ignore", 65535, 65536, "mask.png", {"bits": 16}),
        (shardpack.Labels, "ignore", 21, 20, "mask.png", {"classes": 21}), (shardpack.CocoLabels, "classes", 256, 257, "json", {"ignore": 0}),
        (shardpack.CocoLabels, "ignore", 255, 256, "json", {}), (shardpack.Coco, "keypoints", 1024, 1025, "json", {}),
        (shardpack.Coco, "min_visible", 1.0, math.nextafter(1, 2), "json", {}), (shardpack.Coco, "min_visible", 0.0, math.nextafter(0, -1), "json", {})):
      with self.subTest(kind=kind.__name__, member=member, outside=outside):
        how = kind(**{**given, member: inside})
        load(decode_fields={name: how}).close()
        with self.assertRaisesRegex(shardpack.OptionError, f"{member} must be"):
          kind(**{**given, member: outside})
        how._options[member] = outside
        with self.assertRaises(shardpack.OptionError):
          load(decode_fields={name: how})

  def test_what_they_are_printed_as(self):
    self.assertEqual(repr(shardpack.Labels(bits=16, ignore=0)), "Labels(ignore=0, bits=16)")
    self.assertEqual(repr(shardpack.Coco()), "Coco()")
    self.assertEqual(repr(shardpack.Coco(keypoints=numpy.int64(3), pairs=(pair for pair in [(1, 2)]))), "Coco(keypoints=3, pairs=((1, 2),))")

  def test_they_are_pickled_and_copied(self):
    for option in (shardpack.Labels(classes=21, colors={(1, 2, 3): 4}), shardpack.CocoLabels(classes=3, overlap="last"),
                   shardpack.Coco(keypoints=4, pairs=[(0, 1)], min_visible=0.5), shardpack.Paired(share="none")):
      for again in (pickle.loads(pickle.dumps(option)), copy.deepcopy(option), copy.copy(option)):
        self.assertEqual((type(again), repr(again)), (type(option), repr(option)))
    loader = shardpack.load(SHARDS, batch=8, size=16, decode_fields={"json": pickle.loads(pickle.dumps(shardpack.Coco()))})
    self.assertGreater(len(next(loader).objects), 0)

  def test_an_ignored_zero(self):
    batch = next(load(decode_fields={"mask.png": shardpack.Labels(ignore=0, classes=16)}))
    self.assertEqual(set(numpy.unique(batch.masks)), {0, 15})

  def test_the_same_after_a_resume(self):
    how = {"mask.png": "labels", "json": "coco", "half.png": "image"}
    loader = load(batch=8, decode_fields=how)
    next(loader)
    state = loader.state_dict()
    first = next(loader)
    again = load(batch=8, decode_fields=how)
    again.load_state_dict(state)
    second = next(again)
    numpy.testing.assert_array_equal(first.masks, second.masks)
    numpy.testing.assert_array_equal(first.objects.boxes, second.objects.boxes)
    numpy.testing.assert_array_equal(first.decoded("half.png"), second.decoded("half.png"))


if __name__ == "__main__":
  unittest.main()
