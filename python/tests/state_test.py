"""What a checkpoint holds: a run that goes on from it is the run that was not interrupted."""

import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings

import example_shards
import numpy
import shardpack

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
SHARDS = str(WORK / "shards")
COUNT = 48  # of the split train
KILLS = 8


def setUpModule():
  example_shards.make(WORK)
  warnings.filterwarnings("ignore", "the last step of an epoch has", RuntimeWarning)


def load(**options):
  return shardpack.load(SHARDS, **{"split": "train", "global_batch": 12, "rank": 0, "world_size": 1, **options})


def saved(loader):
  """As a checkpoint keeps it."""
  return json.loads(json.dumps(loader.state_dict()))


def interrupt_at(place, function):
  """Whether the function got so far as to come to so many places of the package's code at which Python looks for signals: where a
  function begins, and where one of C ends. There it has a KeyboardInterrupt."""
  left = [place]

  def profile(frame, event, _):
    if event in ("call", "c_return") and frame.f_code.co_filename.endswith(("_batches.py", "_device_loader.py", "_library.py")):
      left[0] -= 1
      if left[0] == -1:
        raise KeyboardInterrupt

  sys.setprofile(profile)
  try:
    function()
    return False
  except KeyboardInterrupt:
    return True
  finally:
    sys.setprofile(None)


class SameBatchTest(unittest.TestCase):

  def test_the_form_of_a_state(self):
    loader = load()
    next(loader)
    state = loader.state_dict()
    self.assertEqual((state["cursor"], state["version"], loader.step), (loader.cursor, 1, 1))

  def test_it_goes_on_from_every_step_at_any_world_size(self):
    options = {"size": 16, "flip": 0.5, "seed": 5, "epochs": 2}
    loader = load(**options)
    whole = [(batch.ids.tolist(), batch.images.tobytes()) for _ in range(2) for batch in loader]
    loader = load(**options)
    for at in range(len(whole)):
      state = saved(loader)
      for world_size in (1, 2, 3):
        ranks = [load(**options, rank=rank, world_size=world_size) for rank in range(world_size)]
        for rank in ranks:
          rank.load_state_dict(state)
        steps = [[(batch.ids.tolist(), batch.images.tobytes()) for batch in rank] for rank in ranks]
        end = at // 4 * 4 + 4
        self.assertEqual([(sum((ids for ids, _ in step), []), b"".join(content for _, content in step)) for step in zip(*steps)],
                         whole[at:end])
      if next(loader, None) is None:
        next(loader)

  def test_a_state_where_the_loader_is_opened(self):
    loader = load()
    next(loader)
    for cursor in (loader.state_dict(), loader.cursor, loader.cursor.encode() + b"\n"):
      self.assertEqual([batch.step for batch in load(cursor=cursor)], [1, 2, 3])

  def test_the_old_class_goes_on_too(self):
    dataset = shardpack.Dataset(SHARDS)
    order = shardpack.Order(len(dataset), 15, seed=2)
    loader = shardpack.Loader(dataset, order, epochs=2)
    next(loader), next(loader)
    state = saved(loader)
    other = shardpack.Loader(dataset, order, epochs=2)
    other.load_state_dict(state)
    self.assertEqual([[batch.step for batch in other] for _ in range(3)], [[2, 3], [0, 1, 2, 3], []])

  def test_killed_at_random_steps(self):
    """By SIGKILL, at any moment: no batch is repeated, and none is left out."""
    program = """
import json, os, sys
import shardpack
folder, shards = sys.argv[1:]
loader = shardpack.load(shards, split='train', batch=2, size=8, epochs=3)
if os.path.exists(folder + '/state'):
  loader.load_state_dict(json.load(open(folder + '/state')))
for _ in range(loader.epoch, 3):
  for batch in loader:
    with open(folder + '/new', 'w') as file:
      json.dump(loader.state_dict(), file)
    os.replace(folder + '/new', folder + '/state')
    print(batch.epoch, batch.step, *batch.ids, flush=True)
"""
    lines, draw = [], random.Random(11)
    for kill in range(KILLS + 1):
      with subprocess.Popen([sys.executable, "-c", program, WORK, SHARDS], stdout=subprocess.PIPE, text=True) as run:
        stop = draw.randrange(1, 8) if kill < KILLS else None
        for count, line in enumerate(run.stdout, 1):
          lines.append(line)
          if count == stop:
            run.send_signal(signal.SIGKILL)
            lines += run.stdout.read().splitlines(keepends=True)
            break
        run.wait()
    # A line may be missing that was killed between its checkpoint and its print.
    expected = [
        f"{epoch} {step} {' '.join(map(str, load(batch=None, global_batch=2).ids(epoch, step)))}\n" for epoch in range(3)
        for step in range(24)
    ]
    self.assertEqual(len(lines), len(set(lines)))
    self.assertLessEqual(set(lines), set(expected))
    self.assertGreaterEqual(len(lines), len(expected) - KILLS)


class OtherBatchTest(unittest.TestCase):

  def test_the_rest_of_the_epoch_comes_first_each_sample_once(self):
    """At 200 random steps the run stops, and goes on with another global batch and world size."""
    draw = random.Random(3)
    options = {"size": 8, "flip": 0.5, "seed": 9}
    pixels = {}  # of (epoch, id)
    loader = load(**options)
    for _ in range(120):
      for batch in loader:
        pixels.update({(batch.epoch, id): image.tobytes() for id, image in zip(batch.ids.tolist(), batch.images)})
    seen, state, stops = {}, None, 0
    while stops < 200:
      world_size = draw.choice((1, 2, 3))
      share = draw.choice((1, 2, 3, 5, 8))
      ranks = [
          load(**options, global_batch=share * world_size, rank=rank, world_size=world_size, threads=1)
          for rank in range(world_size)
      ]
      for rank in ranks:
        if state:
          rank.load_state_dict(state, strict=False)
      for step in range(draw.randrange(1, 4)):
        for rank in ranks:
          batch = next(rank, None)  # None at the end of an epoch, for all of them
          for id, image in zip(batch.ids.tolist(), batch.images) if batch else ():
            self.assertEqual(image.tobytes(), pixels[batch.epoch, id], (batch.epoch, id))
            seen.setdefault(batch.epoch, []).append(id)
      states = [saved(rank) for rank in ranks]
      self.assertEqual(states, states[:1] * world_size)
      state, place = states[0], ranks[0].epoch
      stops += 1
    for epoch in range(place):
      self.assertEqual(sorted(seen[epoch]), list(range(COUNT)), epoch)
    self.assertEqual(len(set(seen.get(place, ()))), len(seen.get(place, ())))
    self.assertGreater(place, 10)

  def test_the_next_epoch_is_in_the_new_order(self):
    loader = load(global_batch=10)
    next(loader)
    state = saved(loader)
    other = load(global_batch=16)
    other.load_state_dict(state, strict=False)
    self.assertEqual((len(other), other.epoch, other.step), (3, 0, 0))
    self.assertEqual([len(batch) for batch in other], [16, 16, 6])
    self.assertEqual((len(other), other.epoch), (3, 1))
    self.assertEqual([batch.ids.tolist() for batch in other], [load(global_batch=16).ids(1, step).tolist() for step in range(3)])
    self.assertNotIn("rest", other.state_dict())

  def test_in_the_rest_there_is_a_state_and_no_cursor(self):
    other = load(global_batch=16, resume_on_iter=True)
    loader = load(global_batch=10)
    next(loader)
    other.load_state_dict(saved(loader), strict=False)
    batch = next(other)
    numpy.testing.assert_array_equal(other.ids(0, 0), batch.ids)
    with self.assertRaisesRegex(shardpack.StateError, "state_dict"):
      other.cursor
    state = saved(other)
    with self.assertRaises(shardpack.CursorError):  # that of the epoch's first order
      load(global_batch=16, cursor=state["cursor"])
    again = load(global_batch=16)
    again.load_state_dict(state)  # strict: the same configuration
    self.assertEqual([b.ids.tolist() for b in again], [b.ids.tolist() for b in other])
    again.load_state_dict(state)
    again.seek(0, 0)  # away from the rest
    self.assertEqual(len(list(again)), 3)

  def test_an_interrupt_leaves_the_loader_here_or_there(self):
    """While a state is loaded, and while the loader leaves the rest."""
    loader = load(global_batch=10)
    next(loader)
    rest = saved(loader)
    changes = ((None, lambda loader: loader.load_state_dict(rest, strict=False)),
               (rest, lambda loader: loader.load_state_dict(load(global_batch=16).state_dict())),
               (rest, lambda loader: loader.seek(0, 1)), (None, lambda loader: loader.seek(1, 0)))
    for options, (before, change) in itertools.product(({}, {"device": "cpu", "size": 8}), changes):
      for at in itertools.count():
        loader = load(global_batch=16, **options)
        if before:
          loader.load_state_dict(before, strict=False)
        old = saved(loader)
        interrupted = interrupt_at(at, lambda: change(loader))
        now, left = saved(loader), [batch.ids.tolist() for batch in loader]
        if not interrupted:
          break
        expected = load(global_batch=16)
        expected.load_state_dict(now, strict=False)
        self.assertEqual(left, [batch.ids.tolist() for batch in expected], at)
        fresh = load(global_batch=16)
        if before:
          fresh.load_state_dict(before, strict=False)
        change(fresh)
        self.assertIn(now, (old, saved(fresh)))

  def test_an_interrupt_of_iter_leaves_the_loader_usable(self):
    for at in itertools.count():
      loader = load(device="cpu", size=8)
      next(loader)
      interrupted = interrupt_at(at, lambda: iter(loader))
      self.assertIn((loader.epoch, loader.step), ((0, 1), (1, 0)))
      self.assertEqual([batch.epoch for batch in loader], [1] * 4)
      if not interrupted:
        break
    self.assertGreater(at, 20)

  def test_with_tail_dropped(self):
    loader = load(global_batch=10, drop_last=True)
    for _ in range(4):
      next(loader)  # 40 of 40: nothing is left
    other = load(global_batch=16, drop_last=True)
    other.load_state_dict(saved(loader), strict=False)
    self.assertEqual((other.epoch, other.step), (1, 0))
    loader.seek(0, 2)
    other.load_state_dict(saved(loader), strict=False)
    self.assertEqual([(b.epoch, len(b)) for b in other], [(0, 16)])
    self.assertEqual([(b.epoch, len(b)) for b in other], [(1, 16)] * 3)

  def test_on_a_device_and_with_weights(self):
    for options in ({"device": "cpu", "size": 8}, {"weights": {"cat": 3.0}}, {"shuffle": False}, {"shuffle": "block"}):
      with self.subTest(options):
        loader = load(global_batch=10, **options)
        whole = [id for step in range(5) for id in loader.ids(0, step).tolist()]
        first = next(loader).ids.tolist()
        other = load(global_batch=7, **options)
        other.load_state_dict(saved(loader), strict=False)
        self.assertEqual(first + [id for batch in other for id in batch.ids.tolist()], whole)


class InterruptedTest(unittest.TestCase):

  def test_no_batch_is_lost(self):
    """While one comes, the first or a later one."""
    images = numpy.zeros((12, 8, 8, 3), numpy.uint8)
    whole = [batch.ids.tolist() for batch in load()]
    on_device = {"device": "cpu", "size": 8}
    asks = (({}, next), (on_device, next), (on_device, lambda loader: loader.next_into(images)))
    for (options, ask), before in itertools.product(asks, range(2)):
      for at in itertools.count():
        loader = load(**options)
        for _ in range(before):
          ask(loader)
        if not interrupt_at(at, lambda: ask(loader)):
          break
        self.assertEqual((loader.epoch, loader.step), (0, before), at)
        state = saved(loader)
        self.assertEqual(ask(loader).ids.tolist(), whole[before], at)
        other = load()
        other.load_state_dict(state)
        self.assertEqual(next(other).ids.tolist(), whole[before], at)
      self.assertEqual(ask(loader).ids.tolist(), whole[before + 1])
      self.assertGreater(at, 10)


class RefusedTest(unittest.TestCase):

  def refused(self, loader, state, strict=True):
    place = (loader.epoch, loader.step)
    with self.assertRaises(shardpack.CursorError) as raised:
      loader.load_state_dict(state, strict=strict)
    self.assertIsInstance(raised.exception, ValueError)
    self.assertEqual((loader.epoch, loader.step), place)
    return raised.exception

  def test_differences_are_named(self):
    state = saved(load())
    error = self.refused(load(global_batch=24), state)
    self.assertEqual(list(error.differences), [("global_batch", "12", "24"), ("steps", "4", "2")])
    self.assertIn("strict=False", str(error))
    for strict in (True, False):
      self.assertEqual(list(self.refused(load(seed=4), state, strict).differences), [("seed", "0", "4")])
      self.assertEqual(list(self.refused(load(shuffle=False), state, strict).differences),
                       [("mode", "shuffle", "sequential"), ("seed", "0", "none")])
      (what, was, now), = self.refused(load(split="val", global_batch=3), state, strict).differences
      self.assertEqual((what, was), ("dataset", shardpack.Dataset(SHARDS).split("train").identity))
      self.assertEqual(now, shardpack.Dataset(SHARDS).split("val").identity)

  def test_what_differs_is_said_in_words(self):
    """Those of load(), or of an Order, with what one can do, and without the digests of the order's line."""
    def order(**options):
      dataset = shardpack.Dataset(SHARDS).split("train")
      return shardpack.Loader(dataset, shardpack.Order(COUNT, 12, **options))

    halves = ((0, 24, 1.0), (24, 24, 1.0))
    sets = r"; give what it was, or begin an epoch with the new settings: .* set_epoch\(1\)"
    for was, now, says in (
        (load(weights={"cat": 3.0}), load(weights={"cat": 2.0}), "the weights are not what they were" + sets),
        (load(weights=numpy.arange(COUNT) % 3 + 1), load(weights={"cat": 2.0}), "the weights are not what they were" + sets),
        (load(), load(weights="balanced"), "weights were not given, and now are given" + sets),
        (load(weights="balanced"), load(epoch_samples=96), "weights were given, and now are not given" + sets),
        (load(weights="balanced"), load(weights="balanced", epoch_samples=96), "epoch_samples was 48, and is 96" + sets),
        (load(weights="balanced"), load(weights={"cat": 3.0}, global_batch=24),
         "the weights are not what they were; global_batch was 12, and is 24" + sets),
        (load(weights={"cat": 3.0}), load(weights={"cat": 2.0}, epoch_samples=96, seed=3, global_batch=24),
         "the weights are not what they were; seed was 0, and is 3; global_batch was 12, and is 24; epoch_samples was 48, and is 96" + sets),
        (load(weights={"cat": 3.0}, epoch_samples=96), load(seed=3), "weights were given, and now are not given; seed was 0, and is 3" + sets),
        (load(), load(epoch_samples=96, drop_last=True), "drop_last was False, and is True; epoch_samples was not given, and is 96" + sets),
        (load(epoch_samples=96), load(), "epoch_samples was 96, and is not given" + sets),
        (load(weights="balanced"), load(weights="balanced", global_batch=24), r"global_batch was 12, and is 24; load_state_dict.*strict=False.*"),
        (load(), load(shuffle=False, drop_last=True), "shuffle was True, and is False; drop_last was False, and is True" + sets),
        (load(), load(split="val"), "it is of another dataset, split or selection: its identity was xxh3:.*, and is xxh3:[0-9a-f]+" + sets),
        (order(), order(mode="block_shuffle"), "mode was shuffle, and is block_shuffle" + sets),
        (order(subset=range(24)), order(subset=range(12)), "the subset is not what it was" + sets),
        (order(), order(subset=range(24)), "subset was not given, and now is given" + sets),
        (order(mixture=halves, epoch_samples=48), order(mixture=((0, 24, 1.0), (24, 24, 3.0)), epoch_samples=48),
         "the mixture is not what it was" + sets)):
      next(was)
      with self.subTest(says):
        error = self.refused(now, saved(was))
        self.assertRegex(str(error), f"^cannot resume from this cursor: {says}$")
        if "dataset" not in says:
          self.assertNotRegex(str(error), "[0-9a-f]{8}|[0-9]\\+[0-9]")
        if "strict=False" in says:
          now.load_state_dict(saved(was), strict=False)
        else:
          self.refused(now, saved(was), strict=False)
          now.set_epoch(1)
          self.assertEqual(next(now).epoch, 1)

  def test_an_interrupt_loses_no_step_of_a_resident_set(self):
    dataset = shardpack.Dataset(SHARDS).split("train")
    resident = lambda: shardpack.ResidentLoader(dataset, shardpack.Order(COUNT, 12), shardpack.Device("cpu"), 8, 8, to="numpy")
    whole = [(batch.ids.tolist(), batch.images.copy()) for batch in resident()]
    images = numpy.zeros((12, 3, 8, 8), "float16")
    for at in itertools.count():
      loader = resident()
      if not interrupt_at(at, loader.next_step):
        break
      self.assertEqual((loader.epoch, loader.step), (0, 0), at)
      for ids, its_images in whole[:2]:
        self.assertEqual(loader.next_step().ids.tolist(), ids, at)
        loader.enqueue_step(images)
        numpy.testing.assert_array_equal(images, its_images)
    self.assertGreater(at, 5)

  def test_a_bare_cursor_names_the_order(self):
    cursor = load(seed=4).cursor
    for refuse in (lambda: load(cursor=cursor), lambda: load().load_state_dict({"cursor": cursor, "version": 1}, strict=False)):
      with self.assertRaisesRegex(shardpack.CursorError, r"another order, .*\(a state_dict\(\) does\).*set_epoch\(0\)") as raised:
        refuse()
      self.assertNotRegex(str(raised.exception), "digest|[0-9a-f]{8}")
      self.assertEqual(raised.exception.differences[0][0], "order")
    with self.assertRaises(shardpack.CursorError) as raised:
      load(split="val", global_batch=3, cursor=cursor)
    self.assertEqual(raised.exception.differences[0][0], "dataset")

  def test_what_is_not_a_state(self):
    dataset = shardpack.Dataset(SHARDS).split("train")
    resident = lambda: shardpack.ResidentLoader(dataset, shardpack.Order(COUNT, 12), shardpack.Device("cpu"), 8, 8)
    for make in (load, lambda: load(device="cpu", size=8), resident):
      loader = make()
      state = saved(loader)
      damaged, other = state["cursor"].replace(":0:0:", ":0:1:"), load(seed=9).cursor
      for wrong, what in (({}, "cursor and version"), (7, "cursor and version"), ({**state, "version": 2}, "version 2"),
                          ({**state, "cursor": "?"}, "not a cursor"), ({**state, "rest": 1}, "rest of the state"),
                          ({**state, "cursor": damaged}, "cursor"), ({"cursor": other, "version": 1}, "of another order")):
        with self.subTest(wrong), self.assertRaisesRegex((ValueError, shardpack.DataLossError), what):
          loader.load_state_dict(wrong)
      self.assertEqual([batch.step for batch in loader], [0, 1, 2, 3])
      with self.assertRaisesRegex(shardpack.OptionError, "step must be at most 4"):
        loader.seek(0, 5)
      loader.seek((1 << 64) - 1)
      self.assertEqual(loader.epoch, (1 << 64) - 1)


if __name__ == "__main__":
  unittest.main()
