"""Augmentation: plans and programs, views, mixing, and fields that move with the image."""

import copy
import ctypes
import functools
import json
import math
import os
import pathlib
import pickle
import re
import subprocess
import sys
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
    self.assertEqual(str(shardpack.Augment().color_jitter(numpy.float32(0.5)).rand_augment(numpy.int64(3)).erase(numpy.float64(0.25))),
                     "augment/1 color_jitter(b=0.5..1.5) rand_augment(n=3) erase(p=0.25)")
    self.assertEqual(str(shardpack.Augment().aug_mix().aug_mix(5, 2, 4, 0.5, all_ops=False, bilinear=False, fill=9, p=0.5)),
                     "augment/1 aug_mix aug_mix(severity=5, width=2, depth=4, alpha=0.5, all_ops=0, bilinear=0, fill=9, p=0.5)")
    for copied in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
      self.assertEqual(copied, plan)
    self.assertTrue(plan.moves_pixels)
    self.assertFalse(shardpack.Augment("invert").moves_pixels)

  def test_what_is_no_plan(self):
    for text, why in (("rotat(3)", "column 1: no step is called rotat; the nearest is rotate"), ("invert\0", "zero byte"),
                      ("hue(2)", "column 5: turn is 2; it is a number from -0.5 to 0.5")):
      with self.assertRaisesRegex(shardpack.OptionError, why):
        shardpack.Augment(text)
    with self.assertRaisesRegex(TypeError, "a plan must be text, not int"):
      shardpack.Augment(3)
    for step, what in (("aug_mix", "all_ops"), ("aug_mix", "bilinear"), ("perspective", "bilinear"), ("elastic", "bilinear")):
      for bad in ("no", 2, numpy.array([True, False])):
        with self.assertRaisesRegex(shardpack.OptionError, f"{what} must be True or False"):
          getattr(shardpack.Augment(), step)(**{what: bad})
    for bad in (True, "x", (1, 2, 3), None):
      with self.assertRaises(shardpack.OptionError):
        shardpack.Augment().color_jitter(bad)

  def test_aug_mix_is_replayed(self):
    program = shardpack.Augment().aug_mix(3, 2, 2).draw(seed=1, epoch=0, id=7, width=40, height=30)
    chains, weights = re.split(r" ?(?:chain|blend)\([0-9.e-]+\) ?", program)[1:-1], [float(number) for number in re.findall(r"(?:chain|blend)\((.*?)\)", program)]
    self.assertEqual((len(chains), len(weights), sum(weights)), (2, 3, 1))
    image = numpy.random.default_rng(1).integers(0, 256, (30, 40, 3), numpy.uint8)
    copies = [shardpack.apply_program(chain, image.copy()) for chain in chains] + [image]
    expected = sum(weight * made for weight, made in zip(weights, copies)).astype(numpy.uint8)
    numpy.testing.assert_array_equal(shardpack.apply_program(program, image.copy()), expected)
    with self.assertRaisesRegex(shardpack.OptionError, "a chain without a blend"):
      shardpack.apply_program("chain(0.5) invert", image)

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
    with self.assertRaisesRegex(shardpack.OptionError, "must be writable"):
      shardpack.apply_program("invert", before)


class OpenCvTest(unittest.TestCase):

  def test_steps(self):
    plan = shardpack.Augment().gaussian_blur(5, p=0.5).median(3).clahe(tiles=4).perspective(0.3, p=1).elastic(30, (2, 4), fill=7)
    self.assertEqual(str(plan), "augment/1 gaussian_blur(kernel=5, sigma=0.1..2, p=0.5) median(kernel=3) clahe(clip=1..4, tiles=4) "
                                "perspective(distortion=0.3, p=1) elastic(alpha=30, sigma=2..4, fill=7)")
    self.assertEqual(str(shardpack.Augment().perspective()), "augment/1 perspective")
    with self.assertRaisesRegex(shardpack.OptionError, "kernel is 4; it is an odd number from 1 to 255"):
      shardpack.Augment().gaussian_blur(4)

  def test_pixels_are_those_of_the_program(self):
    plan = shardpack.Augment().gaussian_blur(5).median(3).clahe().perspective(p=1).elastic()
    plain, batch = next(load()), next(load(augment=plan))
    for slot in range(len(batch)):
      self.assertRegex(batch.program(slot), r"^gaussian_blur\(5, .*\) median\(3\) clahe\(.*\) perspective\(.*\) elastic\(.*\)$")
      numpy.testing.assert_array_equal(batch.pixels[slot], shardpack.apply_program(batch.program(slot), plain.pixels[slot].copy()))

  def test_without_its_library(self):
    program = ("import numpy, shardpack\nshardpack.apply_program('elastic(5, 1, 1) perspective(0, 0, 7, 0, 7, 7, 0, 6)', numpy.zeros((8, 8, 3), 'u1'))\n"
               f"for use in (lambda: shardpack.load({SHARDS!r}, batch=8, size=32, augment='median(3)'),\n"
               "            lambda: shardpack.apply_program('median(3)', numpy.zeros((8, 8, 3), 'u1'))):\n"
               "  try:\n    use()\n  except shardpack.Error as error:\n    print(error.code, error)\n")
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    self.assertEqual(run.stderr, "")
    self.assertRegex(run.stdout, "^(.* need OpenCV, by libshardpack_opencv.so.0 of the package libshardpack-opencv0: .*No such file.*\n){2}$")


RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32,
                       ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64, ctypes.POINTER(ctypes.c_char))
PLUGIN = "examples/my_noise.so"


class OwnOperationTest(unittest.TestCase):

  def test_a_plugin(self):
    plan = shardpack.Augment().plugin(PLUGIN, "amount=3").then("invert")
    self.assertEqual(str(plan), "augment/1 own(my_noise) invert")
    self.assertEqual(pickle.loads(pickle.dumps(plan)), plan)
    self.assertNotEqual(plan, shardpack.Augment(str(plan)))
    plain, loader = next(load()), load(augment=plan)
    batch = next(loader)
    off = numpy.abs(255 - batch.pixels.astype(int) - plain.pixels)
    self.assertEqual(int(off.max()), 3)
    self.assertEqual(batch.program(0), "own(my_noise) invert")
    numpy.testing.assert_array_equal(batch.pixels, next(load(augment=plan, threads=1)).pixels)
    # Cursors know the parameters, and the file.
    self.assertRegex(loader.stats()["augmentation"], r"^augment/1 own\(my_noise\) invert my_noise\{amount=3 xxh3:[0-9a-f]{32}\} views 1$")
    with self.assertRaisesRegex(shardpack.CursorError, r": own\(my_noise\) was amount=3 xxh3:[0-9a-f]{32}, and is amount=4 xxh3:"):
      load(augment=shardpack.Augment().plugin(PLUGIN, "amount=4").then("invert")).load_state_dict(loader.state_dict())
    with self.assertRaisesRegex(shardpack.OptionError, r"own\(my_noise\): no operation of this name was added"):
      load(augment=str(plan))
    with self.assertRaisesRegex(shardpack.OptionError, "my_noise.so refuses the parameters loud: amount=0..255 is needed"):
      shardpack.Augment().plugin(PLUGIN, "loud")
    for path, kind in (("no_such.so", shardpack.NotFoundError), ("python/tests/augment_test.py", shardpack.StateError),
                       ("augment/test_plugin_abi.so", shardpack.UnsupportedError)):
      with self.assertRaisesRegex(kind, os.path.basename(path)):
        shardpack.Augment().plugin(path)

  def test_a_plugin_that_was_built_again(self):
    """The process keeps the code that it has loaded."""
    path = WORK / "again.so"
    for more in (b"", b"new"):
      path.with_suffix(".part").write_bytes(pathlib.Path(PLUGIN).read_bytes() + more)
      path.with_suffix(".part").rename(path)
      if not more:
        plan = shardpack.Augment().plugin(path, "amount=3")
        load(augment=plan)
    for again in (lambda: shardpack.Augment().plugin(path, "amount=3"), lambda: load(augment=plan)):
      with self.assertRaisesRegex(shardpack.StateError, "again.so has changed since this process loaded it"):
        again()

  def test_a_c_function(self):
    seen = set()

    @RUN
    def darken(_self, pixels, width, height, channels, stride, sample, _random, error):
      seen.add(sample[2])
      if sample[2] == 5:
        ctypes.memmove(error, b"five\0", 5)
        return 1
      for y in range(height):
        for i in range(width * channels):
          pixels[y * stride + i] //= 2
      return 0

    plan = shardpack.Augment().function(darken, "darken", "by 2")
    plain, loader = load(), load(augment=plan, threads=2, bad_samples="substitute")
    for without, batch in zip(plain, loader):
      for slot in range(len(batch)):
        if batch.ids[slot] == without.ids[slot]:
          numpy.testing.assert_array_equal(batch.pixels[slot], without.pixels[slot] // 2)
    self.assertEqual(seen, set(range(COUNT)))
    self.assertEqual([(bad["id"], bad["why"].rpartition(": ")[2]) for bad in loader.bad_samples()], [(5, "five")])
    self.assertIn("own(darken): five", loader.bad_samples()[0]["why"])
    self.assertEqual(loader.stats()["augmentation"], "augment/1 own(darken) darken{by 2} views 1")
    with self.assertRaisesRegex(TypeError, "cannot be pickled"):
      pickle.dumps(plan)

  def test_what_is_no_such_function_is_refused(self):
    """It would be called, and end the process."""

    def plain(*_arguments):
      return 0

    typed = ctypes.CDLL(None).strlen
    typed.restype, typed.argtypes = ctypes.c_int32, RUN._argtypes_[:-1]
    for wrong in (None, 0, -1, True, 1 << 64, 4095, 3.5, "abc", b"abcdefgh", ctypes.c_void_p(5), ctypes.c_void_p(), ctypes.c_uint64(1 << 20), RUN(), int):
      with self.subTest(wrong), self.assertRaisesRegex(shardpack.OptionError, "^function must be a "):
        shardpack.Augment().function(wrong, "wrong")
    for wrong, says in ((plain, "Augment.batch"), (ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0), r"not c_int \(\)$"), (ctypes.CDLL(None).strlen, "argtypes of .* not set$"),
                        (typed, r"not c_int \(c_void_p, .*c_u?long\)$"),
                        (ctypes.CFUNCTYPE(None, *RUN._argtypes_)(plain), "not None"), (ctypes.CFUNCTYPE(ctypes.c_float, *RUN._argtypes_)(plain), "not c_float")):
      with self.subTest(wrong), self.assertRaisesRegex(shardpack.OptionError, says):
        shardpack.Augment().function(wrong, "wrong")

  def test_ways_to_name_a_c_function(self):
    blacken = RUN(lambda _self, pixels, width, height, channels, stride, *_: ctypes.memset(pixels, 0, height * stride) and 0)
    address = ctypes.cast(blacken, ctypes.c_void_p).value

    class OfNumba:
      """What is looked at in a numba.cfunc."""

      def __init__(self, typed):
        self.address, self.ctypes = address, typed

      def __call__(self):
        raise AssertionError

    untyped = OfNumba(None)
    del untyped.ctypes
    for given in (blacken, address, numpy.uint64(address), ctypes.c_void_p(address), OfNumba(blacken), untyped):
      self.assertEqual(int(next(load(augment=shardpack.Augment().function(given, "blacken"))).pixels.max()), 0)
    with self.assertRaisesRegex(shardpack.OptionError, "not c_int"):
      shardpack.Augment().function(OfNumba(ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)), "blacken")

  def test_then_takes_the_text_of_steps(self):
    plan = shardpack.Augment("invert")
    self.assertEqual(str(plan.then("equalize solarize(90)")), "augment/1 invert equalize solarize(threshold=90)")
    for wrong in (plan, str(plan), 5, None):
      with self.subTest(wrong), self.assertRaisesRegex(shardpack.OptionError, "^step must be the text of steps"):
        plan.then(wrong)

  def test_names_are_words(self):
    for wrong in ("", "a b", "a)", "\u00e9", "9a", "x" * 65, 5):
      with self.subTest(wrong), self.assertRaisesRegex(shardpack.OptionError, r"^name must be a word .*function\(f, name='darken'\), not "):
        shardpack.Augment().function(RUN(lambda *_: 0), wrong)
    with self.assertRaisesRegex(shardpack.OptionError, r"^name must be a word .*batch\(f, name='darken'\), not '<lambda>'"):
      shardpack.Augment().batch(lambda pixels, identities: None)
    with self.assertRaisesRegex(shardpack.OptionError, "^name must be a word .*, not ''"):
      shardpack.Augment().batch(functools.partial(print))
    self.assertEqual(str(shardpack.Augment().batch(functools.partial(print), "mine")), "augment/1 batch(mine)")

  def test_a_function_of_batches(self):
    seen = []

    def brand(pixels, identities):
      seen.append(identities.copy())
      pixels[:, 0, 0] = identities[:, 2:] % 251

    loader = load(augment=shardpack.Augment("invert").batch(brand))
    self.assertTrue(loader.stats()["augmentation"].startswith("augment/1 invert batch(brand) "))
    plain = load(augment="invert")
    for without, batch in zip(plain, loader):
      numpy.testing.assert_array_equal(batch.images[:, 0, 0, 0], batch.ids % 251)
      numpy.testing.assert_array_equal(batch.images[:, 1:], without.images[:, 1:])
      numpy.testing.assert_array_equal(seen[-1], [(3, batch.epoch, number) for number in batch.ids])

    def fail(_pixels, _identities):
      raise KeyError("mine")

    def fresh(pixels, _identities):
      return 255 - pixels

    with self.assertRaisesRegex(KeyError, "mine"):
      next(load(augment=shardpack.Augment().batch(fail)))
    for options in ({"dtype": "float32"}, {"views": 2}):
      with self.assertRaisesRegex(shardpack.OptionError, "functions of batches need"):
        load(augment=shardpack.Augment().batch(brand), **options)
    with self.assertRaisesRegex(shardpack.OptionError, "functions of batches change pixels in host memory"):
      load(augment=shardpack.Augment().batch(brand), device="cpu")
    with self.assertRaises(TypeError):
      shardpack.Augment().batch("brand")
    with self.assertRaisesRegex(shardpack.OptionError, r"column 24: solarize stands after batch\(brand\), "):
      shardpack.Augment().batch(brand).then("solarize(90)")
    with self.assertRaisesRegex(shardpack.OptionError, "what it returns would be lost"):
      next(load(augment=shardpack.Augment().batch(fresh)))
    with self.assertRaisesRegex(shardpack.OptionError, "a text does not hold the functions"):
      load(augment=str(shardpack.Augment().batch(brand)))

  def test_a_function_that_raises_loses_no_batch(self):
    """It comes again, with pixels that the function has not changed."""
    raised = []
    def once(pixels, identities):
      del identities
      pixels += 1
      if len(raised) < 2:
        raised.append((KeyboardInterrupt, KeyError)[len(raised)])
        raise raised[-1]
    loader, expected = load(augment=shardpack.Augment().batch(once)), next(load())
    for kind in (KeyboardInterrupt, KeyError):
      with self.assertRaises(kind):
        next(loader)
      self.assertEqual((loader.epoch, loader.step), (0, 0))
    first, second = next(loader), next(loader)
    self.assertEqual((first.ids.tolist(), second.step), (expected.ids.tolist(), 1))
    numpy.testing.assert_array_equal(first.pixels, expected.pixels + numpy.uint8(1))


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
    with self.assertRaisesRegex(shardpack.CursorError, r"another augmentation, of which a cursor alone does not say what differs \(a state_dict\(\) does\); with other_augment=True"):
      load(augment="invert", cursor=state)
    with self.assertRaisesRegex(shardpack.CursorError, "it is of a run with augmentation, and this one is without; with other_augment=True"):
      load(cursor=state)
    with self.assertRaisesRegex(shardpack.CursorError, "it is of a run without augmentation; with other_augment=True"):
      load(augment=PLAN, cursor=load().cursor)
    # What else is refused is not of the augmentation, whatever is in its words.
    with self.assertRaisesRegex(shardpack.OptionError, "augmentation.png") as raised:
      load(augment=PLAN, cursor=state, decode_fields={"augmentation.png": "labels"})
    self.assertNotIn("other_augment", str(raised.exception))
    with self.assertRaisesRegex(shardpack.CursorError, "it is of a run with augmentation, and this one is without; with other_augment=True"):
      load().load_state_dict(loader.state_dict())
    with self.assertRaisesRegex(shardpack.CursorError, r"step 2 of the augmentation was rand_augment, and is rand_augment\(n=3\);") as raised:
      load(augment=PLAN.replace("rand_augment", "rand_augment(n=3)")).load_state_dict(loader.state_dict())
    self.assertEqual(raised.exception.differences, (("step 2 of the augmentation", "rand_augment", "rand_augment(n=3)"),))
    for other, difference in ((f"{PLAN} invert", "step 4 of the augmentation was nothing, and is invert"), ("rand_augment", "step 1 .* and is rand_augment;")):
      with self.assertRaisesRegex(shardpack.CursorError, difference):
        load(augment=other).load_state_dict(loader.state_dict())
    mixes = [shardpack.Mix(mixup=alpha, classes=CLASSES) for alpha in (0.2, 0.4)]
    for was, now, difference in (({"views": 2}, {"views": 3}, ("views", "2", "3")), ({"views": 2}, {}, ("views", "2", "1")),
                                 ({"mix": mixes[0]}, {}, ("mix", "mix/1 mixup=0.2 cutmix=0 p=1 share=0.5 group=2 classes=4 smoothing=0", "none"))):
      with self.assertRaisesRegex(shardpack.CursorError, f"cursor: {difference[0]} was .*, and is {difference[2]};") as raised:
        load(augment=PLAN, **now).load_state_dict(load(augment=PLAN, **was).state_dict())
      self.assertEqual(raised.exception.differences, (difference,))
    with self.assertRaisesRegex(shardpack.CursorError, ": mix was mix/1 mixup=0.2 .*, and is mix/1 mixup=0.4 "):
      load(mix=mixes[1]).load_state_dict(load(mix=mixes[0]).state_dict())
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
    images, labels = batch
    self.assertEqual((images.shape, labels.dtype, labels.tolist()), (batch.pixels.shape, numpy.float32, batch.soft_labels.tolist()))
    self.assertEqual(next(load(augment=PLAN))._targets.dtype, numpy.int64)
    with self.assertRaisesRegex(shardpack.OptionError, "soft_labels needs a Loader with mix="):
      _ = plain.soft_labels
    with self.assertRaisesRegex(shardpack.OptionError, "groups of 3 do not divide"):
      load(mix=shardpack.Mix(mixup=1.0, classes=CLASSES, group=3))
    alpha = "must be 0, or a number from 0.001 to 1000, not"
    for wrong, why in (({"p": 0}, "p and cutmix_share must be above 0"), ({"mixup": "a"}, "mixup must be a number, not 'a'"),
                       ({"mixup": -1}, f"mixup {alpha} -1"), ({"cutmix": 1e4}, f"cutmix {alpha} 10000"), ({"mixup": float("nan")}, f"mixup {alpha} nan"),
                       ({"p": 1.5}, "p must be a probability, above 0 and at most 1, not 1.5"), ({"p": -1}, "p must be a probability"),
                       ({"cutmix": 1.0, "cutmix_share": 2}, "cutmix_share must be a share"), ({"cutmix_share": 0.7}, "cutmix_share is of mixup and cutmix together"),
                       ({"smoothing": 1}, "smoothing must be a number of at least 0 and below 1, not 1"), ({"group": 1}, "group must be a number from 2"),
                       ({"mixup": 0}, "nothing would be done"), ({"classes": 0}, "classes must be a number from 1 to 1000000, not 0"),
                       ({"classes": 2_000_000}, "classes must be"), *(({name: numpy.array([1.0, 2.0])}, f"{name} must be a (whole )?number, not array")
                                                                       for name in ("mixup", "cutmix", "p", "cutmix_share", "smoothing", "group", "classes"))):
      with self.subTest(wrong), self.assertRaisesRegex(shardpack.OptionError, why):
        shardpack.Mix(**{"mixup": 1.0, "classes": CLASSES, **wrong})
    for given in ({"smoothing": 0.1}, {"mixup": 1e-3, "smoothing": 0.999}, {"mixup": 1e3, "cutmix": 1, "cutmix_share": 0.7, "p": 1}):
      next(load(mix=shardpack.Mix(classes=CLASSES, **given)))  # the library takes what the constructor takes
    # And refuses what that refuses: the limits are the same.
    below, above = (lambda x: math.nextafter(x, -math.inf)), (lambda x: math.nextafter(x, math.inf))
    zero = {"mixup": 0.0, "smoothing": 0.1}
    for name, member, inside, outside, others in (
        ("mixup", "mixup", 1e-3, below(1e-3), {}), ("mixup", "mixup", 1e3, above(1e3), {}), ("mixup", "mixup", 0.0, below(0.0), zero),
        ("cutmix", "cutmix", 1e-3, below(1e-3), {}), ("cutmix", "cutmix", 1e3, above(1e3), {}), ("p", "probability", 1.0, above(1.0), {}),
        ("p", "probability", above(0.0), below(0.0), {}), ("cutmix_share", "cutmix_share", 1.0, above(1.0), {"cutmix": 1.0}),
        ("cutmix_share", "cutmix_share", above(0.0), below(0.0), {"cutmix": 1.0}), ("smoothing", "smoothing", below(1.0), 1.0, {}),
        ("smoothing", "smoothing", 0.0, below(0.0), {}), ("group", "group", 2, 1, {}), ("classes", "classes", 1_000_000, 1_000_001, {})):
      with self.subTest(name, outside=outside):
        mix = shardpack.Mix(**{"mixup": 1.0, "classes": CLASSES, **others, name: inside})
        load(mix=mix).close()
        with self.assertRaisesRegex(shardpack.OptionError, f"{name} must be"):
          shardpack.Mix(**{"mixup": 1.0, "classes": CLASSES, **others, name: outside})
        setattr(mix._options, member, outside)
        with self.assertRaisesRegex(shardpack.OptionError, "mix: "):
          load(mix=mix)
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
    with self.assertRaisesRegex(shardpack.UnsupportedError, "no affine maps: ask for the batch's projection instead"):
      _ = next(load(augment="perspective(p=1)")).affine
    with self.assertRaisesRegex(shardpack.OptionError, "the plan moves pixels"):
      next(load(augment=plan, fields=["image", "json"])).boxes()
    with self.assertRaisesRegex(shardpack.OptionError, "not operations that move pixels"):
      load(augment=plan, decode_fields={"mask.png": "nearest"})

  def test_devices_augment_what_they_decode(self):
    plain, inverted = (numpy.from_dlpack(next(load(device="cpu", decode_on="device", **options)).images)
                       for options in ({}, {"augment": "invert"}))
    numpy.testing.assert_array_equal(inverted, 255 - plain)
    with self.assertWarnsRegex(RuntimeWarning, "augmentation by the CPU: elastic"):
      next(load(augment="contrast(1.5) elastic", device="cpu", decode_on="device"))
    own = shardpack.Augment("invert").batch(lambda pixels, ids: None, name="mine")
    with self.assertRaisesRegex(shardpack.OptionError, "give the Decode to the Loader"):
      load(augment=own, device="cpu", decode_on="device")

  def test_devices_go_on_with_their_plan_alone(self):
    on_device = {"device": "cpu", "decode_on": "device"}
    loader = load(augment="invert solarize(90)", **on_device)
    next(loader)
    state, cursor = loader.state_dict(), loader.cursor
    self.assertEqual(state["augmentation"], "augment/1 invert solarize(threshold=90) views 1")
    expected = numpy.from_dlpack(next(loader).images).copy()
    for place in (state, cursor):
      resumed = load(augment="invert solarize(90)", cursor=place, **on_device)
      self.assertEqual(resumed.cursor, cursor)
      numpy.testing.assert_array_equal(numpy.from_dlpack(next(resumed).images), expected)
    resumed.load_state_dict(state)
    numpy.testing.assert_array_equal(numpy.from_dlpack(next(resumed).images), expected)
    for place, says in ((state, r"step 2 of the augmentation was solarize\(threshold=90\), and is hue"), (cursor, "another augmentation, of which a cursor alone does not say")):
      with self.assertRaisesRegex(shardpack.CursorError, says):
        load(augment="invert hue(.1)", cursor=place, **on_device)
      with self.assertRaisesRegex(shardpack.CursorError, "augmentation"):
        load(cursor=place, **on_device)
      next(load(augment="invert hue(.1)", cursor=place, other_augment=True, **on_device))
    other = load(augment="invert hue(.1)", **on_device)
    with self.assertRaisesRegex(shardpack.CursorError, "step 2 of the augmentation"):
      other.load_state_dict(state)
    self.assertNotEqual(other.cursor, cursor)

  def test_devices_copy_what_the_host_augments(self):
    on_device = load(augment="invert", device="cpu")
    numpy.testing.assert_array_equal(numpy.from_dlpack(next(on_device).images), next(load(augment="invert")).pixels)
    self.assertEqual(on_device.stats()["augmentation"], "augment/1 invert views 1")
    self.assertEqual(load(augment="invert", device="cpu", decode_on="device").stats()["augmentation"], "augment/1 invert views 1")
    self.assertIn("on the host, with decoding: augment/1 invert", on_device.explain())
    with self.assertRaisesRegex(shardpack.OptionError, "from_dlpack"):
      numpy.asarray(next(on_device).images)
    self.assertEqual(on_device.state_dict()["augmentation"], "augment/1 invert views 1")
    with self.assertRaisesRegex(shardpack.UnsupportedError, "several views and mixed samples"):
      load(views=2, device="cpu")


if __name__ == "__main__":
  unittest.main()
