"""shardpack.load and what its loaders can do."""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
import warnings

import example_shards
import numpy
import shardpack
from shardpack import _c
from shardpack._ranks import share_of

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
SHARDS = str(WORK / "shards")
PADDING = shardpack.PADDING_ID


class OfOtherLibrary:
  """An array that NumPy takes by __array__, or refuses."""

  def __init__(self, array, error=None):
    self.array, self.error = array, error

  def __array__(self, dtype=None, copy=None):
    if self.error:
      raise self.error
    return self.array.astype(dtype or self.array.dtype)


class OfDlpack:
  """An array that has only __dlpack__."""

  def __init__(self, array):
    self.array = array

  def __dlpack__(self, **options):
    return self.array.__dlpack__(**options)

  def __dlpack_device__(self):
    return self.array.__dlpack_device__()


def setUpModule():
  example_shards.make(WORK)


def load(**options):
  return shardpack.load(SHARDS, **{"split": "train", "batch": 20, **options})


def places(batches):
  return [(batch.epoch, batch.step) for batch in batches]


class ArgumentsTest(unittest.TestCase):

  def test_in_a_worker_of_a_data_loader(self):
    """Each of several would deliver everything."""
    info = types.SimpleNamespace(id=1, num_workers=2)
    torch = types.SimpleNamespace(get_worker_info=lambda: info)
    with unittest.mock.patch.dict(sys.modules, {"torch.utils.data": torch}):
      with self.assertRaisesRegex(shardpack.StateError, "worker 1 of 2 of a torch DataLoader.* rank=1 and world_size=2 "):
        load()
      with unittest.mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
        with self.assertRaisesRegex(shardpack.StateError, "rank=3 and world_size=4 "):
          load()
      self.assertEqual(len(load(rank=0, world_size=1)), 3)
      self.assertEqual(len(load(rank=info.id, world_size=info.num_workers)), 2)
      info.num_workers = 1
      load()

  def test_random_crops_in_order_are_said(self):
    with self.assertWarnsRegex(RuntimeWarning, "crop='center' or 'resize' is for evaluation"):
      load(size=16, shuffle=False)
    with warnings.catch_warnings():
      warnings.simplefilter("error")
      for options in ({"crop": "resize"}, {"crop": "center"}, {"scale": (0.08, 1.0)}, {"flip": 0.5}):
        load(size=16, shuffle=False, **options)
      load(shuffle=False)
      load(size=16)

  def test_splits_that_are_loaded_together_are_named(self):
    with self.assertWarnsRegex(RuntimeWarning, "all splits .*train, val") as caught:
      shardpack.load(SHARDS, batch=20)
    self.assertEqual(caught.filename, __file__)
    with warnings.catch_warnings():
      warnings.simplefilter("error")
      load()
      shardpack.load(shardpack.Dataset(SHARDS), batch=20)

  def test_a_mean_of_bytes_is_refused(self):
    with self.assertRaisesRegex(shardpack.OptionError, "divided by 255"):
      load(size=32, dtype="float32", mean=(123, 117, 104), std=(58, 57, 57))

  def test_an_unknown_argument_is_named_with_the_nearest(self):
    for wrong, right in (("batch_size", "batch"), ("sise", "size"), ("shufle", "shuffle"), ("num_threads", "threads")):
      with self.assertRaisesRegex(TypeError, f"no argument '{wrong}'; did you mean '{right}'"):
        load(**{wrong: 1})
    with self.assertRaisesRegex(TypeError, "no argument 'qqqq'$"):
      load(qqqq=1)

  def test_an_argument_of_torch_is_named_with_what_it_is_here(self):
    for wrong, right in (("num_workers", "threads="), ("pin_memory", "device="), ("transform", "size=.* augment="), ("normalize", "mean= and std="),
                         ("sampler", "shuffle=, weights="), ("collate_fn", "leave it out"), ("generator", "seed=")):
      with self.subTest(wrong), self.assertRaisesRegex(TypeError, f"no argument '{wrong}'; .*{right}"):
        load(**{wrong: 1})
    import inspect
    from shardpack._load import _OF_TORCH
    named = {word for text in _OF_TORCH.values() for word in re.findall(r"\b(\w+)=", text)}
    self.assertLessEqual(named, set(inspect.signature(shardpack.load).parameters))

  def test_a_framework_that_is_not_there_is_refused_at_once(self):
    with unittest.mock.patch.dict(sys.modules, {"torch": None}):
      sys.modules.pop("shardpack.adapters.torch", None)
      for ask in (lambda: load(to="torch"), lambda: load(to="torch", size=8, device="cpu"), lambda: next(load()).to("torch"),
                  lambda: shardpack.Loader(shardpack.Dataset(SHARDS), shardpack.Order(60, 20), to="torch")):
        with self.assertRaisesRegex(ModuleNotFoundError, "'torch' needs the package torch, which is not installed"):
          ask()

  def test_adapters_are_imported_by_their_name(self):
    program = "import shardpack; assert 'adapters' in dir(shardpack); shardpack.adapters.mine"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    self.assertIn("module 'shardpack.adapters' has no attribute 'mine'", ran.stderr)
    (WORK / "torchdata").mkdir()
    (WORK / "torchdata" / "__init__.py").write_text("raise ImportError('it was imported')")
    ran = subprocess.run([sys.executable, "-c", "import shardpack; shardpack.adapters.torchdata"], capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(WORK)])})
    self.assertIn("it was imported", ran.stderr)

  def test_what_does_not_fit_is_named(self):
    for options, what in (({"batch": None}, "needs batch="), ({"global_batch": 8}, "give one of them"),
                          ({"memory": "1XB"}, "memory must be"), ({"memory": "1iB"}, "memory must be"), ({"memory": 0}, "memory must be"),
                          ({"shuffle": "yes"}, "shuffle must be"), ({"size": "64"}, "size must be"),
                          ({"batch": "8"}, "batch must be a whole number, not '8'"), ({"size": (1, 2, 3)}, "size must be"),
                          ({"size": 0}, "width must be"), ({"device": "cpu"}, "device needs size="), ({"to": "mxnet"}, "to must be one of"),
                          ({"size": True}, "size must be"), ({"size": (8, True)}, "size must be"),
                          ({"size": 8, "crop": None}, "crop must be one of .*, not None"),
                          ({"size": 8, "flip": 2}, "flip must be a probability, from 0 to 1, not 2"),
                          ({"size": 8, "flip": float("nan")}, "flip must be a probability"),
                          ({"size": 8, "scale": 0.5}, "scale must be two numbers, from and to, not 0.5"),
                          ({"size": 8, "ratio": (1, 2, 3)}, "ratio must be two numbers"), ({"size": 8, "scale": ("a", "b")}, "scale must be"),
                          ({"size": 8, "dtype": "float32", "mean": (0.5, "a", 0.5)}, "mean must be a number, not 'a'"),
                          ({"size": 8, "dtype": "float32", "std": (0.5, 0.5)}, "std must be three numbers, .* not"),
                          ({"size": 8, "dtype": "float32", "std": (-1, 1, 1)}, "std must be a finite number above 0, not -1"),
                          ({"batch": None, "global_batch": 9, "rank": 0, "world_size": 2}, "not divisible by the world size 2"),
                          ({"decode_on": "device"}, "need a device"),
                          ({"channels_last": True}, "need a device"), ({"channels_last": numpy.array([True, False])}, "channels_last must be True or False"), ({"decode_fields": {"mask": "nearest"}}, "needs a Decode"),
                          ({"size": 8, "decode_fields": {"mask": "box"}}, "must be 'nearest'"),
                          ({"size": 8, "decode_fields": "mask"}, "must be a dict"),
                          ({"rank": "first"}, "rank must be a number or 'auto'"), ({"rank": 2, "world_size": 2}, "below world_size"),
                          ({"cursor": "nonsense"}, "cursor"), ({"batch": 49, "drop_last": True}, "shorter than the global batch"),
                          ({"drop_last": True, "pad_last": True}, "nothing to pad"), ({"size": 32, "flip": "0.5"}, "flip must be a number"),
                          ({"size": 32, "mean": 0.5}, "one per channel"), ({"size": 8, "mean": numpy.array(0.5)}, "mean must be 3 numbers, one per channel"),
                          ({"size": 8, "dtype": float}, "dtype must be a name, such as 'float32', .*, not <class 'float'>"),
                          ({"size": 8, "dtype": numpy.float64}, "dtype must be one of .*, not 'float64'"),
                          ({"size": 8, "dtype": numpy.dtype(">f4")}, "dtype must be a name, .*, not dtype"),
                          ({"size": 8, "dtype": numpy.zeros(2), "device": "cpu"}, "dtype must be a name, .*, not array"),
                          *(({"size": 8, "dtype": each}, f"dtype must be a name, .*, not <class '.*{each.__name__}'>")
                            for each in (numpy.ndarray, numpy.ma.MaskedArray, numpy.recarray, int, OfOtherLibrary)),
                          ({"size": 8, "dtype": numpy.floating}, "dtype must be one of .*, not 'floating'"),
                          ({"size": 8, "flip": numpy.array([0.5, 0.5])}, "flip must be a number"),
                          *(({"size": 8, "crop": "resize", name: numpy.array([2, 3])}, f"{name} must be a whole number, not array|{name} needs crop")
                            for name in ("shortest_side", "scale", "ratio")),
                          ({"shuffle": numpy.array([True, False])}, "shuffle must be True, False or 'block', not array"),
                          ({"drop_last": numpy.array([True, False])}, "drop_last must be True or False"),
                          ({"weights": OfOtherLibrary(numpy.ones(48), RuntimeError("use detach()"))}, "weights must be .*: use detach"),
                          ({"weights": OfOtherLibrary(numpy.ones(9))}, r"weights has the shape \(9,\)")):
      with self.subTest(options), self.assertRaisesRegex(ValueError, what):
        load(**options)
    with self.assertRaises(FileNotFoundError):
      shardpack.load(WORK / "none", batch=1)
    with self.assertRaises(FileNotFoundError):
      load(split="test")

  def test_a_batch_is_not_true(self):
    for name in ("batch", "global_batch"):
      with self.assertRaisesRegex(shardpack.OptionError, f"{name} must be a number of samples, not True"):
        shardpack.load(SHARDS, split="train", **{name: True})

  def test_what_needs_a_size_is_refused_without_one(self):
    given = {"crop": "resize", "scale": numpy.array([0.5, 1.0]), "ratio": (1.0, 1.0), "shortest_side": 9, "flip": 0.5,
             "filter": "box", "channels": 1, "dtype": "float32", "layout": "nchw", "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5),
             "fast": True}
    for name, value in given.items():
      with self.subTest(name), self.assertRaisesRegex(ValueError, f"{name} needs size="):
        load(**{name: value})
    with self.assertRaisesRegex(ValueError, "layout and mean need size="):
      load(layout="nchw", mean=[0.5] * 3, device="cpu")
    load(crop="random_resized", channels=3, fast=False)

  def test_options_without_effect_are_refused_also_at_their_defaults(self):
    for options, what in (
        ({"shortest_side": 256}, "shortest_side needs crop='center'"),
        ({"shortest_side": 256, "crop": "resize"}, "shortest_side needs crop='center'"),
        ({"scale": (0.08, 1.0), "crop": "center"}, "scale needs crop='random_resized'"),
        ({"ratio": [3 / 4, 4 / 3], "crop": "resize"}, "ratio needs crop='random_resized'"),
        ({"mean": (0, 0, 0)}, "mean and std need another dtype"),
        ({"std": numpy.ones(3)}, "mean and std need another dtype")):
      for called in (lambda **given: load(size=8, **given), lambda **given: load(size=8, device="cpu", **given),
                     lambda **given: shardpack.Decode(8, 8, **given)):
        with self.subTest(options), self.assertRaisesRegex(shardpack.OptionError, what):
          called(**options)
    for name, value in (("mean", [0, 0, 0]), ("std", numpy.ones(3)), ("scale", (0.08, 1.0))):
      with self.subTest(name), self.assertRaisesRegex(shardpack.OptionError, f"{name} needs size="):
        load(**{name: value})
    with self.assertRaisesRegex(shardpack.OptionError, "mean and std need another dtype"):
      load(size=8).to("cpu", dtype="uint8", mean=(0, 0, 0))
    load(size=8, crop="center", shortest_side=256, dtype="float32", mean=(0, 0, 0), std=(1, 1, 1))

  def test_dtypes_and_arrays_of_other_libraries(self):
    class OfTorch:
      """torch.float32."""
      __module__ = "torch"
      __str__ = lambda self: "torch.float32"

    OfTorch.__module__ = "torch"
    for dtype in (OfTorch(), numpy.float32, numpy.dtype("float32"), "float32"):
      decode = shardpack.Decode(8, 8, dtype=dtype)
      self.assertEqual((repr(decode), next(load(size=8, dtype=dtype)).images.dtype), ("Decode(8, 8, dtype='float32')", numpy.float32))
      loader = load(size=8).to("cpu", dtype=dtype, layout="nchw")
      self.assertEqual(numpy.from_dlpack(next(loader).images).dtype, numpy.float32)
      dataset = shardpack.Dataset(SHARDS)
      resident = shardpack.ResidentLoader(dataset, shardpack.Order(60, 20), shardpack.Device("cpu"), 8, 8, dtype=dtype)
      self.assertEqual(numpy.from_dlpack(next(resident).images).dtype, numpy.float32)
    load(dtype=numpy.uint8)  # the default, which needs no size
    weights = numpy.arange(48.0)
    ids = load(weights=weights).ids(0, 0).tolist()
    for same in (weights.tolist(), OfOtherLibrary(weights), OfDlpack(weights), memoryview(weights)):
      self.assertEqual(load(weights=same).ids(0, 0).tolist(), ids)
    order = shardpack.Order(60, 3, mode="sequential", subset=OfDlpack(numpy.array([7, 3, 5])))
    self.assertEqual(order.ids(0, 0).tolist(), [7, 3, 5])
    for which in (OfDlpack(numpy.array([7, 3])), OfOtherLibrary(numpy.array([7, 3]))):
      self.assertEqual(shardpack.Dataset(SHARDS).select(which).keys.tolist(), shardpack.Dataset(SHARDS).keys[[7, 3]].tolist())
    lost = OfOtherLibrary(weights, TypeError("can't convert cuda:0 device type tensor to numpy"))
    for ask, what in ((lambda: shardpack.Order(60, 3, subset=lost), "subset must be a row of ids, not .*: can't convert cuda:0"),
                      (lambda: shardpack.Dataset(SHARDS).select(lost), "samples must be asked for by .*: can't convert cuda:0")):
      with self.assertRaisesRegex(TypeError, what):
        ask()

  def test_sizes_of_numpy(self):
    for size in (numpy.int64(8), (numpy.uint8(8), 8), numpy.array([8, 8])):
      self.assertEqual(next(load(size=size, batch=1)).pixels.shape, (1, 8, 8, 3))

  def test_a_path_or_a_dataset(self):
    for path in (SHARDS, pathlib.Path(SHARDS), os.fsencode(SHARDS), shardpack.Dataset(SHARDS)):
      self.assertEqual(sum(len(batch) for batch in shardpack.load(path, batch=7)), 60)
    self.assertEqual(sum(len(batch) for batch in shardpack.load(shardpack.Dataset(SHARDS), split="val", batch=7)), 12)

  def test_an_order_is_of_a_number(self):
    with self.assertRaisesRegex(shardpack.OptionError, r"such as len\(dataset\), not <Dataset of 60 samples"):
      shardpack.Order(shardpack.Dataset(SHARDS), 8)

  def test_memory_in_words(self):
    from shardpack._load import _bytes_of
    self.assertEqual([_bytes_of(text) for text in ("1GiB", "1.5 kB", "64MiB", "7", "7B", 7)], [1 << 30, 1500, 64 << 20, 7, 7, 7])

  def test_ranks_from_what_started_the_process(self):
    torchrun = {"RANK": "3", "WORLD_SIZE": "4"}
    slurm = {"SLURM_PROCID": "1", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "2"}
    mpi = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    for environment, share in (({}, (0, 1)), (torchrun, (3, 4)), (slurm, (1, 2)), (mpi, (0, 2)),
                               ({**mpi, **slurm, **torchrun}, (3, 4)), ({**mpi, **slurm}, (0, 2)),
                               ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, (0, 1))):  # sbatch's script
      self.assertEqual(share_of("auto", "auto", environment), share)
      self.assertEqual(share_of(1, 3, environment), (1, 3))
    self.assertEqual((share_of("auto", 4, torchrun), share_of(3, "auto", torchrun)), ((3, 4), (3, 4)))
    for arguments, what in ((("auto", "auto", {"RANK": "0"}), "RANK but not WORLD_SIZE"),
                            (("auto", "auto", {"WORLD_SIZE": "2"}), "WORLD_SIZE but not RANK"), (("auto", 2, {}), "needs rank"),
                            ((1, "auto", {}), "needs world_size"), (("auto", 2, torchrun), "WORLD_SIZE=4"),
                            ((2, "auto", torchrun), "RANK=3"),
                            (("auto", "auto", {"RANK": "x", "WORLD_SIZE": "1"}), "RANK is 'x', not a number"),
                            (("auto", "auto", {"RANK": "4", "WORLD_SIZE": "4"}), "below world_size")):
      with self.subTest(arguments), self.assertRaisesRegex(ValueError, what):
        share_of(*arguments)

  def test_a_process_group_decides(self):
    torchrun, slurm = {"RANK": "3", "WORLD_SIZE": "4"}, {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}

    def group(rank, size):
      torch = types.SimpleNamespace(is_initialized=lambda: rank is not None, get_rank=lambda: rank, get_world_size=lambda: size)
      return unittest.mock.patch.dict(sys.modules, {"torch.distributed": torch})

    def of_jax(rank, size):
      distributed = types.SimpleNamespace(is_initialized=lambda: rank is not None)
      state = types.SimpleNamespace(global_state=types.SimpleNamespace(process_id=0 if rank is None else rank, num_processes=size))

      def begins_backends():
        self.fail("this would begin JAX's backends")

      jax = types.SimpleNamespace(distributed=distributed, process_index=begins_backends, process_count=begins_backends)
      return unittest.mock.patch.dict(sys.modules, {"jax": jax, "jax._src.distributed": state})

    for kind, asks in ((group, r"get_rank\(\)"), (of_jax, "process_id of jax.distributed")):
      with kind(None, None):
        self.assertEqual((share_of("auto", "auto", torchrun), share_of("auto", "auto", {})), ((3, 4), (0, 1)))
      with kind(3, 4):
        for environment in ({}, torchrun, slurm, {"RANK": "3"}):
          self.assertEqual((share_of("auto", "auto", environment), share_of("auto", 4, environment)), ((3, 4), (3, 4)))
        self.assertEqual(share_of(0, 2, torchrun), (0, 2))
        with self.assertRaisesRegex(shardpack.OptionError, rf"rank=2 contradicts .*{asks}=3"):
          share_of(2, "auto", {})
      with kind(1, 2):
        with self.assertRaisesRegex(shardpack.OptionError, rf"{asks}=1 contradicts the environment's RANK=3; give rank="):
          share_of("auto", "auto", torchrun)
        with self.assertRaisesRegex(shardpack.OptionError, r"=2 contradicts the environment's WORLD_SIZE=4"):
          share_of("auto", "auto", {"RANK": "1", "WORLD_SIZE": "4"})
    with of_jax(1, 2), unittest.mock.patch.dict(sys.modules, {"jax._src.distributed": types.SimpleNamespace()}):  # a version that has it elsewhere
      with self.assertRaisesRegex(shardpack.OptionError, r"give rank=jax.process_index\(\)"):
        share_of("auto", "auto", {})
    with unittest.mock.patch.dict(sys.modules, {"torch.distributed": types.ModuleType("torch.distributed")}):  # that is being imported
      self.assertEqual(share_of("auto", "auto", torchrun), (3, 4))

  def test_processes_share_each_batch(self):
    whole = [batch.ids.tolist() for batch in load(batch=None, global_batch=12)]
    parts = [[batch.ids.tolist() for batch in load(batch=4, rank=rank, world_size=3)] for rank in range(3)]
    self.assertEqual([sum(step, []) for step in zip(*parts)], whole)
    self.assertEqual(sorted(sum(whole, [])), list(range(48)))
    with self.assertWarnsRegex(RuntimeWarning, "some get an empty batch"):
      last = [list(load(batch=20, rank=rank, world_size=2))[-1] for rank in range(2)]
    self.assertEqual([len(batch) for batch in last], [8, 0])
    with warnings.catch_warnings():
      warnings.simplefilter("error")
      load(batch=20, rank=1, world_size=2, drop_last=True)
      load(batch=20, rank=1, world_size=2, pad_last=True)
      load(batch=8, rank=1, world_size=2)


class EpochsTest(unittest.TestCase):

  def test_every_sample_once_and_the_last_batch_is_cut(self):
    batches = list(load(size=(24, 16)))
    self.assertEqual([len(batch) for batch in batches], [20, 20, 8])
    for batch in batches:
      images, labels = batch
      self.assertEqual((images.shape, labels.shape, batch.ids.shape, len(batch.status)),
                       ((len(batch), 16, 24, 3),) + ((len(batch),),) * 2 + (len(batch),))
      self.assertTrue(batch.valid.all())
      self.assertGreaterEqual(labels.min(), 0)
    self.assertEqual(sorted(numpy.concatenate([batch.ids for batch in batches]).tolist()), list(range(48)))

  def test_the_last_batch_padded_or_dropped(self):
    last = list(load(size=8, pad_last=True))[-1]
    self.assertEqual((len(last), last.valid.tolist(), last.keys[8:]), (20, [True] * 8 + [False] * 12, [None] * 12))
    self.assertEqual((last.labels[8:].tolist(), int(last.images[8:].max()), last.crops[8:].max()), ([-1] * 12, 0, 0))
    self.assertEqual([len(batch) for batch in load(drop_last=True)], [20, 20])

  def test_each_for_is_an_epoch_also_after_a_break(self):
    for epochs in (1, 2, 9, 0):
      with self.subTest(epochs=epochs):
        loader = load(epochs=epochs)
        self.assertEqual(places(loader), [(0, 0), (0, 1), (0, 2)])
        for batch in loader:
          self.assertEqual((batch.epoch, batch.step), (1, 0))
          break
        self.assertEqual(places(loader), [(2, 0), (2, 1), (2, 2)])
        for batch, _ in zip(loader, range(3)):  # all of it, but not its end
          pass
        self.assertEqual(places(loader), [(4, 0), (4, 1), (4, 2)])
        self.assertEqual((loader.epoch, loader.step, len(loader)), (5, 0, 3))

  def test_an_iterator_goes_on_where_it_is_and_ends_with_its_epoch(self):
    loader = load(epochs=0)
    batches = iter(loader)
    self.assertEqual(places([next(batches)]), [(0, 0)])
    self.assertEqual(places(batches), [(0, 1), (0, 2)])  # `for` asks an iterator for its iterator
    self.assertEqual((list(batches), next(batches, None)), ([], None))
    batches = iter(loader)
    groups = iter(lambda: places(itertools.islice(batches, 2)), [])
    self.assertEqual(list(groups), [[(1, 0), (1, 1)], [(1, 2)]])

  def test_a_loop_whose_loader_is_taken_elsewhere_says_so(self):
    for options in ({}, {"device": "cpu", "size": 8}):
      loader = load(epochs=0, **options)
      seen = []
      with self.subTest(**options), self.assertRaisesRegex(shardpack.StateError, "another loop over this loader"):
        for batch in loader:
          seen += places([batch])
          next(iter(loader))  # for a look at a batch
      self.assertEqual(seen, [(0, 0)])

  def test_threads_share_an_iterator(self):
    loader = load(batch=1, epochs=0)
    batches, seen = iter(loader), []
    threads = [threading.Thread(target=lambda: seen.extend(places(batches))) for _ in range(4)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual(sorted(seen), [(0, step) for step in range(48)])

  def test_resume_on_iter_goes_on(self):
    loader = load(resume_on_iter=True, epochs=2)
    for _ in loader:
      break
    self.assertEqual(places(loader), [(0, 1), (0, 2)])
    self.assertEqual(places(loader), [(1, 0), (1, 1), (1, 2)])
    self.assertEqual(places(loader), [])

  def test_seek_and_set_epoch(self):
    loader = load()
    expected = {(batch.epoch, batch.step): batch.ids.tolist() for _ in range(3) for batch in loader}
    loader.seek(1, 2)
    self.assertEqual((loader.epoch, loader.step), (1, 2))
    loader.set_epoch(1)  # as a training loop does after a resume
    self.assertEqual([((b.epoch, b.step), b.ids.tolist()) for b in loader], [((1, 2), expected[1, 2])])
    loader.set_epoch(0)
    self.assertEqual([b.ids.tolist() for b in loader], [expected[0, step] for step in range(3)])
    next(loader)
    loader.set_epoch(1)  # once more from its beginning
    self.assertEqual(places(loader), [(1, 0), (1, 1), (1, 2)])
    for epoch, step in ((-1, 0), (0, -1), (0, 4), (1 << 64, 0)):
      with self.assertRaises(ValueError):
        loader.seek(epoch, step)
    for epoch, step in ((0, 1), (7, 2)):
      self.assertEqual(loader.ids(epoch, step).tolist(), next(self.sought(epoch, step)).ids.tolist())

  def sought(self, epoch, step):
    loader = load()
    loader.seek(epoch, step)
    return loader

  def test_order_and_augmentation_follow_the_seed(self):
    content = lambda **options: [(b.ids.tolist(), b.images.tobytes()) for b in load(size=32, flip=0.5, **options)]
    self.assertEqual(content(), content(threads=1))
    self.assertNotEqual(content(), content(seed=1))
    self.assertEqual([ids for ids, _ in content(shuffle=False)], [list(range(20)), list(range(20, 40)), list(range(40, 48))])
    self.assertEqual(sorted(sum((ids for ids, _ in content(shuffle="block")), [])), list(range(48)))

  def test_it_is_closed_once_and_views_stay(self):
    with load(size=16) as loader:
      batch = next(loader)
      expected = batch.images.copy()
    numpy.testing.assert_array_equal(batch.images, expected)
    loader.close()
    for ask in (lambda: next(loader), lambda: iter(loader), lambda: loader.cursor, loader.state_dict, loader.stats,
                lambda: loader.seek(0)):
      with self.assertRaisesRegex(shardpack.StateError, "closed"):
        ask()
    self.assertIn("closed", repr(loader))
    loader = load(size=16, device="cpu")
    next(loader)
    loader.close()
    with self.assertRaisesRegex(shardpack.StateError, "closed"):
      iter(loader)

  def test_stop_and_close_from_another_thread_end_a_wait(self):
    for end in ("stop", "close"):
      loader = load(size=16, epochs=0, resume_on_iter=True)
      held = []  # until there is no memory left
      timer = threading.Timer(0.2, getattr(loader, end))
      timer.start()
      with self.assertRaises((shardpack.CancelledError, shardpack.StateError)):
        while True:
          try:
            held.append(next(loader))
          except StopIteration:
            pass
      timer.join()
      loader.close()

  def test_what_it_says_of_itself(self):
    loader = load(size=32)
    count = sum(len(batch) for batch in loader)
    self.assertEqual((loader.stats()["samples"], count, loader.bad_samples()), (48, 48, []))
    self.assertIn("bottleneck", loader.explain().splitlines()[0] + "bottleneck")
    self.assertRegex(repr(loader), "^<Loader at epoch 1, step 0>$")

  def test_bad_samples_are_kept_until_taken(self):
    damaged = WORK / "damaged"
    example_shards.make(damaged)
    shard = sorted((damaged / "shards").glob("*train*.tar"))[0]
    data = bytearray(shard.read_bytes())
    data[data.index(b"\xff\xda") + 40] ^= 1
    shard.write_bytes(data)
    loader = shardpack.load(damaged / "shards", split="train", batch=20, bad_samples="substitute")
    statuses = sum((batch.status for _ in range(2) for batch in loader), [])  # the second epoch opens the loader again
    self.assertEqual(statuses.count("substituted"), 2)
    self.assertEqual([bad["epoch"] for bad in loader.bad_samples()], [0, 1])
    self.assertEqual(loader.bad_samples(), loader.bad_samples())
    self.assertEqual((len(loader.take_bad_samples()), loader.bad_samples()), (2, []))
    for options in ({}, {"device": "cpu", "size": 8}):
      loader = shardpack.load(damaged / "shards", split="train", batch=20, bad_samples="substitute", **options)
      for _ in range(2):
        list(loader)
      loader.close()
      self.assertEqual([bad["epoch"] for bad in loader.bad_samples()], [0, 1])
      self.assertEqual((len(loader.take_bad_samples()), loader.take_bad_samples()), (2, []))
    dataset = shardpack.Dataset(damaged / "shards").split("train")
    loader = shardpack.Loader(dataset, shardpack.Order(48, 24), decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu"),
                              epochs=1, bad_samples="substitute", resume_on_iter=False)
    for _ in range(2):
      list(loader)
    before = loader.bad_samples()
    self.assertEqual((shardpack.DeviceLoader(loader).bad_samples(), len(before)), (before, 2))
    loader = shardpack.load(damaged / "shards", split="train", batch=20, size=8, bad_samples="substitute")
    list(loader)
    on_device = loader.to("cpu")
    list(on_device)
    self.assertEqual([bad["epoch"] for bad in on_device.bad_samples()], [0, 1])
    with self.assertRaises(shardpack.DataLossError):
      list(shardpack.load(damaged / "shards", split="train", batch=20))


class DeviceTest(unittest.TestCase):

  LOOK = {"size": 24, "dtype": "float32", "layout": "nchw", "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4), "flip": 0.5}

  def test_the_same_batches_on_a_device(self):
    for options in ({"device": "cpu"}, {"device": "cpu", "to": "numpy"}, {"device": shardpack.Device("cpu"), "channels_last": True},
                    {"device": "cpu", "decode_on": "device"}, {"device": "cpu", "decode_on": "auto"}):
      with self.subTest(options):
        on_device = load(**self.LOOK, **options)
        for host in load(**self.LOOK):
          batch = next(on_device)
          images, labels = (numpy.from_dlpack(each) if isinstance(each, shardpack.Tensor) else each for each in batch)
          numpy.testing.assert_array_equal(labels, host.labels)
          difference = numpy.abs(images - host.images)
          # Images that are decoded for a device are decoded whole, and not at a fraction of their size.
          self.assertLess(*((difference.mean(), 0.02) if "decode_on" in options else (difference.max(), 1e-5)))
          self.assertEqual(images.strides[1] == 4, "channels_last" in options)
          self.assertEqual((batch.keys, batch.valid.tolist()), (host.keys, host.valid.tolist()))
        self.assertEqual(on_device.stats()["batches"], 3)
        self.assertIsNone(on_device.device.why_not)
        self.assertEqual(on_device.stats()["decode_choice"],
                         "cpu: there is no other way here" if options.get("decode_on") == "auto" else "")

  def test_fields_of_a_batch_on_the_cpu(self):
    fields = ("image", "txt", "json")
    loader = load(size=8, fields=fields, device="cpu", seed=2)
    for batch, host in zip(loader, load(size=8, fields=fields, seed=2), strict=True):
      self.assertEqual((batch.text(), batch.json(), batch.bytes("txt")), (host.text(), host.json(), host.bytes("txt")))
      self.assertEqual((bytes(batch.view(-1, "txt")), batch.bytes(1, "txt").tobytes()), (bytes(host.view(-1, "txt")), host.bytes("txt")[1]))
      numpy.testing.assert_array_equal(batch.to("numpy").images, host.images)
      numpy.testing.assert_array_equal(batch.indices, host.indices)
    with self.assertRaisesRegex(KeyError, r"'mask' was not read: load with fields=\('image', 'txt', 'json', 'mask'\)|has no field 'mask'"):
      batch.text("mask")
    self.assertEqual(repr(batch), "<DeviceBatch of 8, 8x8x3 uint8, epoch 0, step 2>")
    self.assertEqual((repr(batch.images), repr(batch.labels)), ("<Tensor of pixels, 8x8x8x3, on cpu>", "<Tensor of labels, 8, on cpu>"))
    for released in (0, 1):
      batch = next(load(size=8, fields=fields, device="cpu", seed=2))
      again = batch.to("numpy")
      self.assertEqual(again.text(), batch.text())  # both now know where that is
      (batch, again)[released].release()
      for ask in (batch.text, lambda: batch.view(0, "txt"), lambda: batch.to("numpy"), again.text, lambda: again.view(0, "txt"), lambda: again.images):
        with self.assertRaises(shardpack.StateError):
          ask()

  def test_fields_of_a_batch_on_a_gpu_are_refused(self):
    """Nothing could read them."""
    device = shardpack.Device("cpu")
    with unittest.mock.patch.object(shardpack.Device, "kind", "cuda"):
      with self.assertRaisesRegex(shardpack.OptionError, "cannot read its field 'txt': leave it out of fields="):
        load(size=8, fields=["image", "txt"], device=device)
      load(size=8, device=device)
    batch = next(shardpack.DeviceLoader(shardpack.Loader(shardpack.Dataset(SHARDS), shardpack.Order(60, 20), device=device)))
    self.assertEqual(len(batch.bytes("image")), 20)
    batch._view.device_kind = _c.CUDA
    batch._spans.clear()
    with self.assertRaisesRegex(shardpack.UnsupportedError, "on the GPU"):
      batch.bytes("image")

  def test_who_decodes(self):
    loader = load(device="cpu", size=8, threads=1)
    for options in ({"decode_by": "auto"}, {"share_decoding": True}, {"decode_regions": True}):
      with self.assertRaisesRegex(shardpack.OptionError, "need decode"):
        shardpack.DeviceLoader(loader._loader, **options)

  def test_epochs_as_on_the_host(self):
    loader = load(**self.LOOK, device="cpu")
    for _ in loader:
      break
    self.assertEqual(places(loader), [(1, 0), (1, 1), (1, 2)])
    loader.seek(5, 1)
    state = loader.state_dict()
    self.assertEqual(places(loader), [(5, 1), (5, 2)])
    loader.load_state_dict(state)
    self.assertEqual((loader.cursor, places(loader)), (state["cursor"], [(5, 1), (5, 2)]))
    with load(**self.LOOK, device="cpu", cursor=state) as again:
      self.assertEqual(places(again), [(5, 1), (5, 2)])

  def test_a_loader_moves(self):
    expected = [(batch.ids.tolist(), batch.images) for batch in load(**self.LOOK)]
    loader = load(**self.LOOK)
    next(loader)
    moved = loader.to("cpu")
    for (ids, images), batch in zip(expected[1:], moved):
      self.assertEqual(batch.ids.tolist(), ids)
      numpy.testing.assert_allclose(numpy.from_dlpack(batch.images), images, rtol=1e-5, atol=1e-5)
    with self.assertRaisesRegex(ValueError, "closed"):
      next(loader)

  def test_a_loader_that_cannot_move_stays(self):
    for made, options, error in (({}, {"dtype": "float64"}, shardpack.OptionError), ({}, {"dtyp": "float32"}, TypeError),
                                 ({}, {"width": 4, "dtype": "uint8", "mean": (.5,) * 3}, shardpack.OptionError),
                                 ({"decode_fields": {"json": "coco"}}, {}, shardpack.UnsupportedError)):
      with self.subTest(options):
        loader = load(size=8, **made)
        next(loader)
        with self.assertRaises(error):
          loader.to("cpu", **options)
        self.assertEqual(next(loader).step, 1)

  def test_memory_is_given_back_early(self):
    loader = load(**self.LOOK, device="cpu", epochs=0)
    kept = []
    for _ in range(20):  # many more batches than there are buffers
      for batch in loader:
        batch.release()
        kept.append(batch)
    with self.assertRaisesRegex(shardpack.StateError, "released"):
      kept[0].images

  def test_batches_into_memory_of_the_caller(self):
    expected = [(batch.ids.tolist(), batch.labels, batch.images) for batch in load(**self.LOOK, drop_last=True)]
    loader = load(**self.LOOK, drop_last=True, device="cpu")
    images, labels = numpy.zeros((20, 3, 24, 24), "float32"), numpy.zeros(20, "int64")
    for ids, its_labels, its_images in expected:
      batch = loader.next_into(images, labels)
      self.assertEqual((batch.ids.tolist(), labels.tolist()), (ids, its_labels.tolist()))
      self.assertEqual(batch.labels.tolist(), its_labels.tolist())
      numpy.testing.assert_allclose(images, its_images, rtol=1e-5, atol=1e-5)
    self.assertIsNone(loader.next_into(images))
    for wrong, what in (((images[:, :, ::2],), "must be contiguous"), (([1.0],), "__cuda_array_interface__"),
                        ((images, labels.astype("int32")), "int64")):
      with self.assertRaisesRegex(ValueError, what):
        loader.next_into(*wrong)

  def test_memory_of_the_caller_that_does_not_fit_is_left_alone(self):
    """Nothing is written beyond it, into what is read-only, or in another layout; and no batch is lost."""
    def check(wrong, what, **options):
      loader = load(**{"size": 16, "device": "cpu", "shuffle": False, **options})
      with self.subTest(what), self.assertRaisesRegex(shardpack.OptionError, what):
        loader.next_into(*wrong)
      self.assertEqual(loader.step, 0)
      for array in wrong:
        self.assertFalse(isinstance(array, numpy.ndarray) and array.any())
    planes, labels = numpy.zeros((20, 3, 16, 16), "uint8"), numpy.zeros(20, "int64")
    for short in (labels[:4], labels.reshape(20, 1), numpy.zeros((20, 2), "int64")[:, 0]):
      check((planes, short), r"labels must be contiguous, of the shape \[20\]", layout="nchw")
    for dtype in ("uint64", "int32", ">i8", "float64", "datetime64[ns]"):
      check((planes, labels.astype(dtype)), "labels must be int64", layout="nchw")
    read_only = numpy.frombuffer(bytes(planes.size), "uint8").reshape(planes.shape)
    check((read_only,), "images must be writable", layout="nchw")
    check((planes, numpy.frombuffer(bytes(160), "int64")), "labels must be writable", layout="nchw")
    rows = numpy.zeros((20, 16, 16, 3), "uint8")
    for wrong in (rows, planes.reshape(-1), planes[:, ::-1], rows.transpose(0, 3, 1, 2), numpy.zeros((20, 3, 16, 17), "uint8")):
      check((wrong,), "layout in memory is nchw", layout="nchw")
    for wrong in (planes, rows.reshape(20, 3, 16, 16), numpy.zeros((20, 3, 16, 32), "uint8")[..., ::2]):
      check((wrong,), "layout in memory is nhwc")
      check((wrong,), "layout in memory is nhwc", layout="nchw", channels_last=True)
    check((numpy.zeros((20, 3, 16, 4), "float32"),), "images must be uint8", layout="nchw")
    check((numpy.zeros((20, 3, 16, 16), "uint16"),), "images must be float16", layout="nchw", dtype="float16")
    class OnGpu:  # as Numba's, which does not tell of which one
      __cuda_array_interface__ = {**planes.__array_interface__, "version": 3}
    check((OnGpu(),), "must be where the loader's batches are, on <Device cpu>, not on cuda", layout="nchw")
    encoded = shardpack.Loader(shardpack.Dataset(SHARDS), shardpack.Order(60, 20), device=shardpack.Device("cpu"))
    with self.assertRaisesRegex(shardpack.OptionError, "no fixed size"):
      shardpack.DeviceLoader(encoded).next_into(planes)

  def test_memory_of_the_caller_in_either_look_of_nhwc(self):
    for look in ({}, {"layout": "nchw", "channels_last": True}):
      expected = numpy.from_dlpack(next(load(size=16, device="cpu", shuffle=False)).images)
      for planes in (False, True):
        rows = numpy.zeros((20, 16, 16, 3), "uint8")
        load(size=16, device="cpu", shuffle=False, **look).next_into(rows.transpose(0, 3, 1, 2) if planes else rows)
        numpy.testing.assert_array_equal(rows, expected)

  def test_a_resident_set_in_memory_of_the_caller(self):
    dataset = shardpack.Dataset(SHARDS)
    for decode, sides in ((None, (12, 16)), (shardpack.Decode(8, 9, crop="center", shortest_side=12), (9, 8))):
      loader = shardpack.ResidentLoader(dataset, shardpack.Order(len(dataset), 20), shardpack.Device("cpu"), 16, 12, decode=decode)
      images = numpy.zeros((20, 3, *sides), "float16")
      loader.next_into(images)
      self.assertTrue(images.any())

  def test_steps_of_a_resident_set(self):
    dataset = shardpack.Dataset(SHARDS)
    decode = shardpack.Decode(8, 9, crop="random_resized", flip=0.5)
    resident = lambda **more: shardpack.ResidentLoader(dataset, shardpack.Order(len(dataset), 20, seed=3), shardpack.Device("cpu"), 16, 12,
                                                       decode=decode, epochs=2, to="numpy", **more)
    expected = [[(batch.ids.tolist(), batch.images.copy(), batch.labels.copy()) for batch in loader]
                for loader in [resident()] for _ in range(2)]
    loader = resident()
    images, labels = numpy.full((20, 3, 9, 8), 7, "float16"), numpy.zeros(20, "int64")
    loader.enqueue_step(images, labels)
    self.assertEqual((images.any(), labels.tolist()), (False, [-1] * 20))  # before the first step
    for epoch in expected:
      got = []
      while (batch := loader.next_step()) is not None:
        loader.enqueue_step(images, labels)
        got.append((batch.ids.tolist(), images.copy(), labels.copy()))
        loader.enqueue_step(images)  # again, which is the same one
        numpy.testing.assert_array_equal(images, got[-1][1])
        self.assertIsNone(batch.pixels)
        numpy.testing.assert_array_equal(batch.labels, labels)
      self.assertEqual(len(got), 3)
      numpy.testing.assert_equal(got, epoch)
    self.assertIsNone(loader.next_step())
    loader = resident(cursor=self.cursor_after_a_step(resident()))
    self.assertEqual(loader.next_step().ids.tolist(), expected[0][1][0])
    loader.seek(1)
    self.assertEqual(loader.next_step().ids.tolist(), expected[1][0][0])

  def cursor_after_a_step(self, loader):
    loader.next_step()
    return loader.cursor

  def test_steps_that_cannot_be(self):
    dataset = shardpack.Dataset(SHARDS)
    resident = lambda: shardpack.ResidentLoader(dataset, shardpack.Order(len(dataset), 20), shardpack.Device("cpu"), 16, 12)
    images = numpy.zeros((20, 3, 12, 16), "float16")
    loader = resident()
    loader.next_step()
    for ask in (lambda: next(loader), lambda: loader.next_into(images), lambda: list(loader)):
      with self.assertRaisesRegex(shardpack.StateError, "gives steps"):
        ask()
    with self.assertRaisesRegex(shardpack.OptionError, "another stream"):
      loader.next_step(2)
    self.assertEqual(loader.next_step().step, 1)
    for wrong, what in (((images[:19],), "contiguous"), ((images.astype("float32"),), "float16"),
                        ((images, numpy.zeros(19, "int64")), "labels must be")):
      with self.assertRaisesRegex(shardpack.OptionError, what):
        loader.enqueue_step(*wrong)
    loader = resident()
    next(loader)
    with self.assertRaisesRegex(shardpack.StateError, "gives batches"):
      loader.next_step()
    self.assertFalse(hasattr(load(size=16, device="cpu"), "next_step"))


if __name__ == "__main__":
  unittest.main()
