"""What outlives what: arrays their batch, loader and dataset; loaders the end of the interpreter; datasets a fork."""

import gc
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import weakref

import numpy
import PIL.Image
import shardpack
from shardpack import _c
from shardpack._library import library

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
COUNT = 60


def setUpModule():
  for n in range(COUNT):
    folder = WORK / "images" / "ab"[n % 2]
    folder.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(numpy.full((9, 9, 3), n, numpy.uint8)).save(folder / f"{n}.png")
  subprocess.run(["cli/pack", WORK / "images", "-o", WORK / "shards", "-q"], check=True, stdout=subprocess.DEVNULL)


def loader(dataset, **options):
  return shardpack.Loader(dataset, shardpack.Order(len(dataset), 4, seed=1), **options)


def raises_afterwards(function):
  def call(*arguments):
    code = function(*arguments)
    if code == _c.WAIT:
      return code
    raise KeyboardInterrupt
  return call


class LifetimeTest(unittest.TestCase):

  def setUp(self):
    self.dataset = shardpack.Dataset(WORK / "shards")

  def test_arrays_outlive_all_else(self):
    decoded = next(loader(self.dataset, decode=shardpack.Decode(8, 8, crop="resize"))).pixels
    batch = next(loader(self.dataset))
    arrays, ids = [batch.bytes(slot) for slot in range(len(batch))], batch.ids
    expected = [self.dataset[int(id)]["fields"]["image"] for id in ids]
    del batch, self.dataset
    gc.collect()
    self.assertEqual([array.tobytes() for array in arrays], expected)
    self.assertEqual(sorted({int(pixels.min()) for pixels in decoded}), sorted({int(pixels.max()) for pixels in decoded}))

  def test_a_batch_is_gone_with_its_last_array(self):
    # By the count of references alone: nothing goes round in circles.
    gc.disable()
    self.addCleanup(gc.enable)
    batch = next(loader(self.dataset))
    array = batch.bytes(0)
    owner = array.base
    while isinstance(owner, numpy.ndarray):
      owner = owner.base
    exporter = weakref.ref(owner.obj)
    del batch, owner
    self.assertIsNotNone(exporter())
    del array
    self.assertIsNone(exporter())

  def test_an_array_is_the_memory_of_the_library(self):
    batch = next(loader(self.dataset, decode=shardpack.Decode(8, 8)))
    batch.pixels[0] = 77
    self.assertTrue((batch.pixels[0] == 77).all())
    self.assertTrue(batch.pixels.flags.c_contiguous)

  def test_what_no_consumer_takes_goes_with_its_capsule(self):
    """Else the loader would wait for memory, and say so after a while."""
    batches = shardpack.DeviceLoader(loader(self.dataset, decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu")), prefetch_batches=1)
    pixels = lambda: (next(batches, None) or next(batches)).pixels
    for version in (None, (1, 0)):
      for _ in range(7):
        pixels().__dlpack__(max_version=version)
        with self.assertRaises(ZeroDivisionError):
          print(pixels().__dlpack__(max_version=version), 1 / 0)
    # The capsule outlives its tensor, and is taken.
    class Kept:
      def __init__(self, tensor):
        self.capsule, self.place = tensor.__dlpack__(), tensor.__dlpack_device__()
      def __dlpack__(self, **_):
        return self.capsule
      def __dlpack_device__(self):
        return self.place
    kept = Kept(pixels())
    pixels().__dlpack__()
    array = numpy.from_dlpack(kept)
    expected = array.copy()
    del kept
    for _ in range(7):
      pixels().__dlpack__()
    numpy.testing.assert_array_equal(array, expected)

  def test_what_the_device_leaves_to_the_cpu_is_told(self):
    held = loader(self.dataset, decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu"))
    stats = {"fallbacks": 1, "why_fallback": "no nvJPEG"}
    with unittest.mock.patch.object(shardpack.DeviceLoader, "stats", lambda self: stats), \
        self.assertWarnsRegex(RuntimeWarning, "no nvJPEG"):
      shardpack.DeviceLoader(held)

  def test_the_interpreter_ends_in_the_middle_of_an_epoch(self):
    program = """
import sys
import shardpack
dataset = shardpack.Dataset(sys.argv[1])
order = shardpack.Order(len(dataset), 4)
loaders = [shardpack.Loader(dataset, order), shardpack.Loader(dataset, order, decode=shardpack.Decode(8, 8))]
held = shardpack.Loader(dataset, order, decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu"))
loaders.append(shardpack.DeviceLoader(held))
batches = [next(loader) for loader in loaders]
arrays = [batches[0].bytes(0), batches[1].pixels]
capsule = batches[2].pixels.__dlpack__()
loaders.append(loaders)
if len(sys.argv) > 2:
  exec(sys.argv[2])
print("end")
"""
    busy = """
import threading
def load(loader):
  while True:
    list(loader)
for each in loaders[:3]:
  threading.Thread(target=load, args=(each,), daemon=True).start()
"""
    for more, code in (("", 0), (busy, 0), ("sys.keep = loaders, batches, arrays, capsule", 0), ("1 / 0", 1), ("sys.exit(3)", 3)):
      with self.subTest(more):
        ran = subprocess.run([sys.executable, "-c", program, WORK / "shards", more], capture_output=True, text=True, check=False, timeout=100)
        self.assertEqual(ran.returncode, code, ran.stderr)
        self.assertEqual(ran.stderr.count("\n") > 0, code == 1, ran.stderr)

  def test_threads_share_a_dataset_and_a_loader(self):
    each = [sample["fields"]["image"] for sample in (self.dataset[i] for i in range(COUNT))]
    all_steps, wrong = [], []
    shared = loader(self.dataset, epochs=1)
    def work():
      for batch in shared:
        all_steps.append(batch.step)
        for slot, id in enumerate(batch.ids):
          if not batch.bytes(slot).tobytes() == each[int(id)] == self.dataset[int(id)]["fields"]["image"]:
            wrong.append(id)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual(wrong, [])
    # The end of the epoch comes once; who asks again hears of the next one, which is not there.
    self.assertEqual(sorted(all_steps), list(range(COUNT // 4)))

  def test_another_thread_stops_a_loader(self):
    stopped = loader(self.dataset)
    threading.Thread(target=stopped.stop).start()
    with self.assertRaises(shardpack.CancelledError):
      while True:
        next(stopped)

  def test_a_dataset_and_a_batch_work_after_a_fork(self):
    batch = next(loader(self.dataset))
    expected = self.dataset[5]
    child = os.fork()
    if child == 0:
      right = False
      try:
        again = next(loader(self.dataset, epochs=1, threads=1))
        right = self.dataset[5] == expected and again.bytes(0).tobytes() == batch.bytes(0).tobytes()
      finally:
        os._exit(0 if right else 1)
    self.assertEqual(os.waitpid(child, 0)[1], 0)

  def test_a_loader_of_before_a_fork_does_nothing_in_the_child(self):
    held = [loader(self.dataset)]
    next(held[0])
    child = os.fork()
    if child == 0:
      try:
        next(held[0])
        os._exit(1)
      except shardpack.StateError:
        held.clear()
        gc.collect()
        os._exit(0)
      finally:
        os._exit(2)
    self.assertEqual(os.waitpid(child, 0)[1], 0)
    self.assertEqual(next(held[0]).step, 1)

  def test_an_exception_says_where(self):
    damaged = WORK / "damaged"
    subprocess.run(["cli/pack", WORK / "images", "-o", damaged, "-q", "--shards", "1"], check=True, stdout=subprocess.DEVNULL)
    shard, = damaged.glob("*.tar")
    whole, dataset = bytearray(shard.read_bytes()), shardpack.Dataset(damaged)
    key = dataset[7]["key"]
    at = whole.index(dataset[7]["fields"]["image"])
    whole[at + 20] ^= 1
    shard.write_bytes(whole)
    for read in (lambda: dataset[7], lambda: list(loader(dataset, epochs=1))):
      with self.assertRaises(shardpack.DataLossError) as raised:
        read()
      error = raised.exception
      self.assertIsInstance(error, (shardpack.Error, OSError))
      self.assertEqual((error.code, error.key, error.field, error.id), ("DATA_LOSS", key, "image", 7))
      self.assertEqual((error.shard, error.record), (shard.name, 7))
      again = pickle.loads(pickle.dumps(error))
      self.assertEqual((type(again), str(again), again.__dict__), (type(error), str(error), error.__dict__))
    with self.assertRaises(shardpack.NotFoundError) as raised:
      shardpack.Dataset(WORK / "none")
    self.assertEqual((raised.exception.code, raised.exception.record), ("NOT_FOUND", None))
    self.assertIn("none", raised.exception.path)

  def test_a_signal_as_a_batch_comes_loses_nothing(self):
    def on_device(**options):
      return shardpack.DeviceLoader(loader(self.dataset, decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu"), **options))
    for make in (lambda **options: loader(self.dataset, **options), on_device):
      whole = [batch.ids.tolist() for batch in make(epochs=1)]
      for look in (False, True):
        with self.subTest(make=make, look=look):
          batches, got = make(epochs=1), []
          for n in range(len(whole)):
            cursor = batches.cursor
            # Python runs a signal's handler when the library has returned.
            with unittest.mock.patch.object(library, "loader_next", raises_afterwards(library.loader_next)):
              with self.assertRaises(KeyboardInterrupt):
                next(batches)
            self.assertEqual(batches.epoch, 0)
            if look:
              self.assertEqual(batches.cursor, cursor)
              self.assertEqual(next(make(cursor=cursor)).ids.tolist(), whole[n])
            got.append(next(batches).ids.tolist())
          self.assertEqual(got, whole)

  def test_a_batch_is_released_without_a_line_of_python(self):
    """Python would handle signals there, and what the handler raises would be lost."""
    batch, called = next(loader(self.dataset)), []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    del batch
    sys.setprofile(None)
    self.assertEqual(called, [])

  def test_numbers_that_c_would_cut(self):
    for wrong in (dict(rank=-1), dict(world_size=0), dict(epochs=-1), dict(threads=1 << 31), dict(world_size=1 << 32), dict(memory_bytes=0)):
      with self.subTest(wrong), self.assertRaises(ValueError):
        loader(self.dataset, **wrong)
    for wrong in (dict(rank=0.5), dict(threads="2"), dict(unknown=1)):
      with self.subTest(wrong), self.assertRaises(TypeError):
        loader(self.dataset, **wrong)
    for wrong in (dict(width=0), dict(channels=0), dict(scale=(0, 1)), dict(mean=(1, 2)), dict(dtype="bfloat16"), dict(layout="nwhc")):
      with self.subTest(wrong), self.assertRaises(ValueError):
        shardpack.Decode(**wrong)
    with self.assertRaises(ValueError):
      shardpack.Order(10, 0)

  def test_text_that_c_would_cut(self):
    for use in (lambda: shardpack.Dataset(f"{WORK / 'shards'}\0x"), lambda: self.dataset.split("train\0"), lambda: shardpack.Device("cpu\0"),
                lambda: loader(self.dataset, fields=["image\0"]), lambda: next(loader(self.dataset)).bytes(0, "image\0")):
      with self.assertRaisesRegex(shardpack.OptionError, "zero byte"):
        use()
    with self.assertRaisesRegex(shardpack.OptionError, "list of names"):
      loader(self.dataset, fields="image")
    with self.assertRaises(KeyError):
      self.dataset.find_key(self.dataset[0]["key"] + "\0")
    with self.assertRaises(KeyError):
      next(loader(self.dataset)).bytes(0, "json")

  def test_no_bad_sample_is_allowed(self):
    damaged = WORK / "none_allowed"
    subprocess.run(["cli/pack", WORK / "images", "-o", damaged, "-q", "--shards", "1"], check=True, stdout=subprocess.DEVNULL)
    shard, = damaged.glob("*.tar")
    whole, dataset = bytearray(shard.read_bytes()), shardpack.Dataset(damaged)
    whole[whole.index(dataset[0]["fields"]["image"]) + 20] ^= 1
    shard.write_bytes(whole)
    with self.assertRaises(shardpack.DataLossError):
      list(loader(dataset, epochs=1, bad_samples="substitute", max_bad_samples=0))


if __name__ == "__main__":
  unittest.main()
