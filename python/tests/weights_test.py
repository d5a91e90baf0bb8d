"""Weights: exact counts in every epoch, by largest remainders, also after a resume."""

import os
import pathlib
import subprocess
import tempfile
import unittest
from collections import Counter

import example_shards
import numpy
import shardpack
from shardpack._weights import apportioned, order_of

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
SHARDS = str(WORK / "shards")


def setUpModule():
  example_shards.make(WORK)


def load(**options):
  return shardpack.load(SHARDS, **{"batch": 7, "epochs": 0, **options})


def epoch_of(loader):
  """(how often each label came, how often each id)."""
  labels, ids = Counter(), Counter()
  for batch in loader:
    labels.update(batch.labels.tolist())
    ids.update(batch.ids.tolist())
  return labels, ids


class WeightsTest(unittest.TestCase):

  def some(self, counts):
    """A dataset in which classes have so many samples."""
    dataset = shardpack.Dataset(SHARDS)
    labels = dataset.labels
    return dataset.select(numpy.concatenate([numpy.flatnonzero(labels == label)[:count] for label, count in enumerate(counts)]))

  def test_balanced_is_exact(self):
    for counts, samples, expected in (((3, 20, 13), 0, (12, 12, 12)), ((3, 20, 13), 100, (34, 33, 33)), ((1, 0, 9), 0, (5, 0, 5))):
      loader = shardpack.load(self.some(counts), batch=7, epochs=0, weights="balanced", epoch_samples=samples)
      for _ in range(4):
        labels, _ = epoch_of(loader)
        self.assertEqual(tuple(labels[label] for label in range(3)), expected)

  def test_samples_of_a_class_take_turns_across_epochs(self):
    loader = shardpack.load(self.some((3, 20, 13)), batch=6, epochs=0, weights="balanced")
    ids = Counter()
    for _ in range(5):  # 12 of each class: of the 20 each comes 3 times in 5 epochs
      ids.update(epoch_of(loader)[1])
    self.assertEqual({ids[id] for id in range(3, 23)}, {3})
    self.assertEqual({ids[id] for id in range(3)}, {20})

  def test_classes_by_name_or_number(self):
    for weights in ({"cat": 2.0}, {0: 2.0}):
      labels, _ = epoch_of(load(weights=weights))  # 20 of each: 40 : 20 : 20 of 80
      self.assertEqual(labels, {0: 30, 1: 15, 2: 15})
    labels, _ = epoch_of(load(weights={"cat": 0, "dog": 0.5}, epoch_samples=30))
    self.assertEqual(labels, {1: 10, 2: 20})

  def test_a_weight_for_each_sample(self):
    weights = numpy.ones(60)
    weights[:10], weights[10:15] = 3, 0
    labels, ids = epoch_of(load(weights=weights, epoch_samples=75))
    self.assertEqual(([ids[id] for id in range(15)], sum(ids.values())), ([3] * 10 + [0] * 5, 75))
    # All different: a sample's count is its share, rounded by largest remainders.
    weights = numpy.arange(1, 61) / 7
    with self.assertWarnsRegex(RuntimeWarning, "samples, of classes or weights .* less than one sample"):
      loader = load(weights=weights)
    _, ids = epoch_of(loader)
    self.assertEqual([ids[id] for id in range(60)], apportioned(weights, 60).tolist())
    self.assertEqual(sum(ids.values()), 60)

  def test_a_class_that_is_due_less_than_one_sample_leaves_the_others_as_they_are(self):
    with self.assertWarnsRegex(RuntimeWarning, "20 samples, .* never come") as caught:
      loader = load(weights={"owl": 0.0001}, epoch_samples=50)
    self.assertEqual(caught.filename, __file__)
    of_others = numpy.flatnonzero(shardpack.Dataset(SHARDS).labels < 2)
    seen = Counter()
    for _ in range(4):  # 100 turns of each class
      labels, ids = epoch_of(loader)
      self.assertEqual(labels, {0: 25, 1: 25})
      seen.update(ids)
    self.assertEqual({seen[id] for id in of_others.tolist()}, {5})

  def test_thousands_of_classes_take_turns(self):
    labels = numpy.repeat(numpy.arange(5000), 2)
    order = order_of("balanced", labels, [], len(labels), 6000, global_batch=1000)
    counts = numpy.zeros(len(labels), int)
    for epoch in range(5):
      ids = numpy.concatenate([order.ids(epoch, step) for step in range(order.steps)])
      counts += numpy.bincount(ids.astype(numpy.int64), minlength=len(labels))
      self.assertEqual(sorted(set(numpy.bincount(labels[ids]).tolist())), [1, 2])
    self.assertEqual((counts.sum(), counts.min()), (30000, 2))

  def test_more_classes_than_can_take_turns(self):
    labels = numpy.repeat(numpy.arange(40000), 3)
    with self.assertWarnsRegex(RuntimeWarning, "20000 never come"):
      order = order_of("balanced", labels, [], len(labels), 100000, global_batch=100000, seed=4)
    ids = order.ids(0, 0)  # half of the classes have 3 turns, half have 2
    self.assertEqual(numpy.bincount(numpy.bincount(labels[ids])).tolist(), [0, 0, 20000, 20000])
    self.assertEqual(len(numpy.unique(ids)), 100000)
    self.assertEqual(sorted(order.ids(1, 0).tolist()), sorted(ids.tolist()))
    dropped = numpy.setdiff1d(numpy.arange(len(labels)), ids) % 3
    self.assertGreater(numpy.bincount(dropped).min(), 5000)  # and not the last of each class

  def test_classes_of_labels_without_names(self):
    labels = numpy.array([0, 1, 2, 2, -1])
    for key in (2, numpy.int64(2)):
      order = order_of({key: 3.0}, labels, [], 5, 18, global_batch=18)
      self.assertEqual(numpy.bincount(labels[order.ids(0, 0)] + 1).tolist(), [2, 2, 2, 12])  # no label, 0, 1, 2

  def test_largest_remainders(self):
    self.assertEqual(apportioned(numpy.array([1.0, 1, 1]), 4).tolist(), [2, 1, 1])
    self.assertEqual(apportioned(numpy.array([47000.0, 16000, 15800, 12000, 6100, 3100]), 10).tolist(), [5, 2, 1, 1, 1, 0])
    draw = numpy.random.default_rng(1)
    for _ in range(200):
      weights, total = draw.random(draw.integers(1, 30)), int(draw.integers(1, 1000))
      counts = apportioned(weights, total)
      self.assertEqual(counts.sum(), total)
      self.assertLess(numpy.abs(counts - weights * total / weights.sum()).max(), 1)

  def test_ranks_and_resumes_have_the_same_order(self):
    options = {"weights": {"owl": 2.5}, "batch": None, "global_batch": 12, "world_size": 1, "rank": 0}
    loader = load(**options)
    whole = [batch.ids.tolist() for _ in range(3) for batch in loader]
    loader = load(**options)
    next(loader), next(loader)
    cursor = loader.cursor
    ranks = [load(**{**options, "rank": rank, "world_size": 3, "cursor": cursor, "epochs": 3}) for rank in range(3)]
    self.assertEqual([sum(step, []) for step in zip(*([batch.ids.tolist() for _ in range(3) for batch in rank] for rank in ranks))],
                     whole[2:])

  def test_what_is_wrong_is_named(self):
    for weights, what in (("even", "'balanced'"), ({"cow": 1}, "'cow'.*cat, dog, owl"), ({3: 1}, "class 3"),
                          ({True: 1}, "class True"), ({-1: 1}, "class -1"),
                          ({"cat": 2, 0: 3}, "'cat' twice, also as 0"), ({numpy.int64(1): 2, "dog": 3}, "twice, also as"),
                          (["a"] * 60, "weights must be 'balanced', a dict .*not \\['a'"), ({"cat"}, r"weights must be .*not \{'cat'\}"),
                          ({"cat": "x"}, r"weights\['cat'\] must be a number, not 'x'"), ({"cat": None}, r"weights\['cat'\] must be"),
                          ([1.0], r"shape \(1,\).*60"), (numpy.full(60, -1.0), "at least 0"), (numpy.zeros(60), "above 0"),
                          ({"cat": float("nan")}, "finite"), ({"cat": float("inf")}, "finite")):
      with self.subTest(weights), self.assertRaisesRegex(ValueError, what):
        load(weights=weights)
    bare = WORK / "bare"
    subprocess.run(["cli/pack", WORK / "photos", "-o", bare, "-q", "--label-from", "none"], check=True, stdout=subprocess.DEVNULL)
    with self.assertRaisesRegex(ValueError, "60 have none"):
      shardpack.load(bare, batch=4, weights="balanced")


if __name__ == "__main__":
  unittest.main()
