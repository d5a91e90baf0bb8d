"""What outlives what: arrays their batch, loader and dataset; loaders the end of the interpreter; datasets a fork."""

import ctypes
import gc
import json
import os
import pathlib
import pickle
import signal
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
from shardpack import _c, _source, _tensor
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

  def test_loaders_are_closed_before_the_interpreter_goes(self):
    run = subprocess.run([sys.executable, "-c", '''
import atexit, builtins, sys
builtins.kept = []  # which nobody lets go
atexit.register(lambda: print(*kept, sep=", "))  # after those of shardpack
import shardpack
dataset = shardpack.Dataset(sys.argv[1])
order = shardpack.Order(len(dataset), 4, seed=1)
host = lambda **device: shardpack.Loader(dataset, order, decode=shardpack.Decode(8, 8), **device)
kept += [host(), shardpack.DeviceLoader(host(device=shardpack.Device("cpu")))]
kept += [shardpack.ResidentLoader(dataset, order, shardpack.Device("cpu"), 8, 8)]
for loader in kept:
  next(loader)
''', str(WORK / "shards")], capture_output=True, text=True, check=True)
    self.assertEqual(run.stdout, "".join(f"<{kind}: the loader is closed>{end}" for kind, end in (
        ("Loader", ", "), ("DeviceLoader", ", "), ("ResidentLoader", "\n"))))
    self.assertEqual(run.stderr, "")

  def on_cpu(self, **options):
    return shardpack.DeviceLoader(loader(self.dataset, decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu"), **options))

  def test_a_capsule_that_another_thread_takes_meanwhile_is_not_deleted(self):
    for hook in ("_has_name", "is_ours_alone"):
      with self.subTest(hook):
        tensor = next(self.on_cpu()).pixels
        class Kept:
          capsule = tensor.__dlpack__()
          __dlpack_device__ = lambda self: tensor.__dlpack_device__()
          def __dlpack__(self, **_):
            capsule, Kept.capsule = Kept.capsule, None
            return capsule
        export, = (export for export in _tensor._exports if export.capsule is Kept.capsule)
        export._deleter, real, taken = unittest.mock.Mock(), getattr(_tensor, hook), []
        # What it answers is as old as that when the next line runs.
        def then_taken(*arguments):
          answer = real(*arguments)
          if not taken:
            taken.append(numpy.from_dlpack(Kept()))
          return answer
        with unittest.mock.patch.object(_tensor, hook, then_taken):
          export.over()
        self.assertEqual(export._deleter.call_count, 0)
        self.assertTrue(export.over())
        self.assertEqual(export._deleter.call_count, 0)

  def test_no_capsule_is_deleted_that_others_may_have(self):
    """As on free-threaded builds, in another thread than the one that has made it."""
    tensor = next(self.on_cpu()).pixels
    before = set(_tensor._exports)
    with unittest.mock.patch.object(_tensor, "is_ours_alone", lambda export: False):
      tensor.__dlpack__()
      left, = _tensor._exports - before
      array = numpy.from_dlpack(tensor)
      _tensor.drop_untaken()
      self.assertEqual(_tensor._exports - before, {left})
    _tensor.drop_untaken()
    self.assertNotIn(left, _tensor._exports)
    self.assertEqual(array.shape, tensor.shape)

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
        list(stopped)  # an epoch may end before the other thread begins

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

  def test_a_forked_child_is_told_so_while_another_thread_iterates(self):
    for make in (loader, lambda dataset: shardpack.DeviceLoader(loader(dataset, device=shardpack.Device("cpu")))):
      batches, in_next, goes_on = make(self.dataset), threading.Event(), threading.Event()
      state = batches.state_dict()

      def held(*arguments, function=library.loader_next):
        in_next.set()
        goes_on.wait()
        return function(*arguments)

      with unittest.mock.patch.object(library, "loader_next", held):
        iterates = threading.Thread(target=next, args=[batches])
        iterates.start()
        self.addCleanup(goes_on.set)
        in_next.wait()
        for ask in (next, iter, lambda each: each.seek(1), lambda each: each.set_epoch(1), lambda each: each.load_state_dict(state)):
          child = os.fork()
          if child == 0:
            signal.alarm(20)  # which ends it
            batches._resume_on_iter = False  # an epoch begins with iter()
            try:
              ask(batches)
            except shardpack.StateError as error:
              os._exit(0 if "fork" in str(error) else 2)
            finally:
              os._exit(1)
          self.assertEqual(os.waitpid(child, 0)[1], 0, ask)
        goes_on.set()
        iterates.join()

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

  def test_a_batch_that_an_interrupt_held_back_goes_to_the_device_too(self):
    whole = [batch.ids.tolist() for batch in loader(self.dataset, epochs=1)]
    for goes_on in (shardpack.DeviceLoader, lambda batches: batches.to("cpu")):
      batches = loader(self.dataset, epochs=1, decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu"))
      next(batches)
      with unittest.mock.patch.object(library, "loader_next", raises_afterwards(library.loader_next)):
        with self.assertRaises(KeyboardInterrupt):
          next(batches)
      self.assertEqual([batch.ids.tolist() for batch in goes_on(batches)], whole[1:])

  def test_where_it_is_while_a_batch_comes(self):
    """Another thread asks, or a signal's handler in the thread that the batch comes to."""
    for make in (lambda **options: loader(self.dataset, **options), self.on_cpu):
      whole = [batch.ids.tolist() for batch in make(epochs=1)]
      for here in (False, True):
        with self.subTest(make=make, here=here):
          batches, got, places = make(epochs=1), [], []
          def look():
            places.append((batches.cursor, batches.epoch, repr(batches)))
          def as_it_comes(*arguments, function=library.loader_next):
            code = function(*arguments)
            if code != _c.OK or len(places) == 3:
              return code
            if here:
              look()
            else:
              thread = threading.Thread(target=look, daemon=True)
              thread.start()
              thread.join(20)
            return code
          with unittest.mock.patch.object(library, "loader_next", as_it_comes):
            for _ in range(3):
              got.append(next(batches).ids.tolist())
          got += [batch.ids.tolist() for batch in batches]
          self.assertEqual(got, whole)
          self.assertEqual({epoch for _, epoch, _ in places}, {0})
          self.assertEqual(len(places), 3)
          if here:  # for a handler, the batch has not come yet
            self.assertEqual(next(make(cursor=places[0][0])).ids.tolist(), whole[0])

  def test_a_handler_asks_for_a_batch_meanwhile(self):
    batches = loader(self.dataset)
    def asks(*arguments, function=library.loader_next):
      code = function(*arguments)
      if code == _c.OK:
        with self.assertRaisesRegex(shardpack.StateError, "signal"):
          next(batches)
      return code
    with unittest.mock.patch.object(library, "loader_next", asks):
      self.assertEqual(next(batches).step, 0)
    self.assertEqual(next(batches).step, 1)

  def test_mappings_are_an_option(self):
    """They come with a handler of SIGBUS."""
    asked, real = [], library.loader_open
    def opened(dataset, order, options, *results):
      asked.append(options.map_shards)
      return real(dataset, order, options, *results)
    with unittest.mock.patch.object(library, "loader_open", opened):
      for options in ({}, dict(map_shards=False), dict(map_shards=True)):
        next(loader(self.dataset, **options))
    self.assertEqual(asked, [1, 0, 1])

  def test_mappings_are_an_option_of_datasets_too(self):
    """Which what is made of them, and pickled ones, have too."""
    path, asked = WORK / "shards", []
    def mapped(dataset, on, error):
      asked.append(bool(on))
      return _c.OK
    with unittest.mock.patch.object(library, "dataset_map_shards", mapped):
      for options in ({}, dict(map_shards=True), dict(map_shards=False)):
        dataset = shardpack.Dataset(path, **options)
        shardpack.Dataset([dataset[:2], dataset])
        pickle.loads(pickle.dumps(dataset))
        self.assertEqual(set(asked), {options.get("map_shards", True)})
        asked.clear()
    for what in (path, [path], [shardpack.Dataset(path)]):
      with self.assertRaisesRegex(shardpack.OptionError, "map_shards must be True or False, not 'no'"):
        shardpack.Dataset(what, map_shards="no")

  def test_mappings_are_no_part_of_a_source(self):
    """Which other packages, and what was stored of an adapter, open; and equal datasets have equal ones."""
    path = str(WORK / "split")
    subprocess.run(["cli/pack", WORK / "images", "-o", path, "-q", "--split", "train=0.5,val=0.5"], check=True, stdout=subprocess.DEVNULL)
    source = json.dumps(["open", path])
    mapped, plain = shardpack.Dataset(path), shardpack.Dataset(path, map_shards=False)
    self.assertEqual(len(_source.opened(source, mapped.identity)), COUNT)
    self.assertEqual([_source.text(dataset._source) for dataset in (mapped, plain)], [source, source])
    self.assertEqual(mapped.__reduce__(), (_source.unpickled, (source, mapped.identity, None)))
    for dataset, maps in ((mapped, True), (plain, False), (shardpack.Dataset([mapped, plain]), False), (shardpack.Dataset([plain[:1], mapped[:2]]), False),
                          (shardpack.Dataset([mapped, mapped]), True)):
      for part in (dataset, dataset[3:1:-1], shardpack.Dataset([dataset]), dataset.split("val"), dataset.split("val")[:2]):
        for each in (part, pickle.loads(pickle.dumps(part)), pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(part)))), part[:1]):
          self.assertIs(each._map_shards, maps)
          self.assertIs(each._base._map_shards, maps)

  def test_objects_of_other_types(self):
    """The library could not tell them apart."""
    dataset, order, device, decode = self.dataset, shardpack.Order(COUNT, 4), shardpack.Device("cpu"), shardpack.Decode(8, 8)
    host = shardpack.Loader(dataset, order, device=device)
    for use in (lambda: shardpack.Loader(order, dataset), lambda: shardpack.Loader(dataset, dataset), lambda: shardpack.Loader("shards", order),
                lambda: shardpack.Loader(dataset, order, device=dataset), lambda: shardpack.Loader(dataset, order, device="cpu"),
                lambda: shardpack.Loader(dataset, order, decode=(32, 32)), lambda: shardpack.Loader(dataset, order, cursor=3),
                lambda: shardpack.Dataset.join([dataset, order]), lambda: shardpack.Dataset.join(["shards"]),
                lambda: shardpack.Dataset.join(dataset), lambda: shardpack.DeviceLoader(dataset), lambda: shardpack.DeviceLoader(host, decode=8),
                lambda: shardpack.ResidentLoader(order, dataset, device, 32, 32), lambda: shardpack.ResidentLoader(dataset, order, dataset, 32, 32),
                lambda: shardpack.ResidentLoader(dataset, dataset, device, 32, 32),
                lambda: shardpack.ResidentLoader(dataset, order, device, 32, 32, decode=order)):
      with self.assertRaises(TypeError):
        use()
    for one in (device, host, next(host)):
      with self.assertRaisesRegex(TypeError, "not pickled"):
        pickle.dumps(one)
    shown = repr(dataset)
    for part in (f"{COUNT} samples", "webdataset", dataset.identity):
      self.assertIn(part, shown)
    self.assertEqual(repr(host), "<Loader at epoch 0, step 1>")

  def test_a_subset_is_ids(self):
    mask = numpy.zeros(COUNT, bool)
    mask[20:40] = True
    for wrong in (mask, mask.tolist(), [1.7], ["3"], [-1], {1, 2}, (n for n in (1, 2)), 5, [[1, 2]], []):
      with self.subTest(wrong), self.assertRaises(shardpack.OptionError):
        shardpack.Order(COUNT, 4, subset=wrong)
    with self.assertRaisesRegex(shardpack.OptionError, "flatnonzero"):
      shardpack.Order(COUNT, 4, subset=mask)
    for right in (numpy.flatnonzero(mask), range(20, 40), numpy.arange(20, 40, dtype=numpy.int8), list(range(20, 40))):
      self.assertEqual(shardpack.Order(COUNT, 4, subset=right, mode="sequential").ids(0, 1).tolist(), [24, 25, 26, 27])

  def test_a_mixture_can_be_any_row(self):
    parts = [(0, 30, 1.0), (30, 30, 2.0)]
    order = shardpack.Order(COUNT, 4, mixture=parts, epoch_samples=COUNT)
    other = shardpack.Order(COUNT, 4, mixture=iter(parts), epoch_samples=COUNT)
    self.assertEqual(other._with(global_batch=6).explain(), order._with(global_batch=6).explain())
    for wrong, what in (([(0, 30)], "first_id, samples, weight"), ([3], "first_id, samples, weight"), ([(0, 30, "1")], "weight must be a number")):
      with self.assertRaisesRegex(shardpack.OptionError, what):
        shardpack.Order(COUNT, 4, mixture=wrong, epoch_samples=COUNT)

  def test_options_without_effect(self):
    decode, order = shardpack.Decode, shardpack.Order(COUNT, 4)
    half = (.5, .5, .5)
    host = shardpack.Loader(self.dataset, order, decode=decode(8, 8), device=shardpack.Device("cpu"))
    resident = lambda decode=None, **others: shardpack.ResidentLoader(self.dataset, order, shardpack.Device("cpu"), 8, 8, decode=decode, **others)
    for wrong in (lambda: decode(8, 8, mean=half), lambda: decode(8, 8, std=half), lambda: decode(8, 8, dtype="float32", std=(0, 0, 0)),
                  lambda: decode(8, 8, dtype="float32", std=(1, 1e-60, 1)), lambda: decode(8, 8, dtype="float32", mean=(float("nan"),) * 3),
                  lambda: decode(8, 8, crop="resize", scale=(.5, 1)), lambda: decode(8, 8, crop="center", ratio=(1, 1)),
                  lambda: decode(8, 8, shortest_side=300), lambda: decode(8, 8, fast="no"),
                  lambda: shardpack.Loader(self.dataset, order, verify="no"), lambda: shardpack.Order(9, 3, mode=["shuffle"]),
                  lambda: shardpack.DeviceLoader(host, mean=half), lambda: shardpack.DeviceLoader(host, width=9),
                  lambda: shardpack.DeviceLoader(host, dtype="float32", std=(0, 1, 1)), lambda: shardpack.DeviceLoader(host, layout="nchw"),
                  lambda: resident(decode(8, 8, fast=True)), lambda: resident(decode(8, 8, dtype="float32")),
                  lambda: resident(decode(8, 8, layout="nchw")), lambda: resident(threads=-5),
                  lambda: shardpack.ResidentLoader(self.dataset, order, shardpack.Device("cpu"), 8, 8, std=(0, 1, 1))):
      with self.assertRaises(shardpack.OptionError):
        wrong()
    with self.assertRaises(shardpack.OptionError) as raised:
      decode(8, 8, dtype="float64")
    self.assertNotIn("bfloat16", str(raised.exception))
    gray = next(loader(self.dataset, decode=decode(8, 8, channels=1, dtype="float32", mean=(.5,), std=[.5]))).pixels
    self.assertEqual(gray.shape, (4, 8, 8, 1))
    self.assertEqual(next(resident(decode(8, 8, channels=1, filter="box"))).images.shape, (4, 1, 8, 8))
    # What none of these has taken.
    self.assertEqual(next(shardpack.DeviceLoader(host, dtype="float32", mean=half)).step, 0)

  def test_a_loader_that_is_refused_can_be_used(self):
    encoded = lambda: shardpack.Loader(self.dataset, shardpack.Order(COUNT, 4), device=shardpack.Device("cpu"))
    host = encoded()
    with unittest.mock.patch.object(library, "loader_to_device", lambda *_: (_ for _ in ()).throw(MemoryError)), self.assertRaises(MemoryError):
      shardpack.DeviceLoader(host)
    self.assertEqual(next(host).step, 0)

  def test_numbers_of_samples(self):
    for number in (-COUNT - 1, COUNT, 1 << 70):
      with self.assertRaisesRegex(shardpack.OutOfRangeError, f"0 to {COUNT - 1}"):
        self.dataset[number]

  def test_a_cursor_from_a_file_s_line(self):
    batches = loader(self.dataset)
    next(batches)
    self.assertEqual(next(loader(self.dataset, cursor=batches.cursor + "\n")).step, 1)

  def test_states_of_a_newer_library(self):
    batch = next(loader(self.dataset))
    states = (ctypes.c_uint8 * 4)(0, 2, 3, 255)
    batch._view.states = ctypes.addressof(states)
    self.assertEqual(batch.status, ["ok", "substituted", "unknown", "unknown"])

  def test_a_batch_is_released_without_a_line_of_python(self):
    """Python would handle signals there, and what the handler raises would be lost."""
    batch, called = next(loader(self.dataset)), []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    del batch
    sys.setprofile(None)
    self.assertEqual(called, [])

  def test_a_loader_ends_without_a_line_of_python(self):
    order = shardpack.Order(COUNT, 4)
    for make in (lambda: loader(self.dataset), self.on_cpu, lambda: shardpack.ResidentLoader(self.dataset, order, shardpack.Device("cpu"), 8, 8)):
      batches, called = make(), []
      next(batches)
      gone = weakref.ref(batches)
      sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
      del batches
      sys.setprofile(None)
      self.assertEqual((called, gone()), ([], None))

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
