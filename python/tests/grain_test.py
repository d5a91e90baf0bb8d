"""The data source of Grain: what its protocol asks for, its pipelines, workers and checkpoints."""

import os
import pathlib
import pickle
import tempfile
import unittest

import example_shards
import grain
import shardpack
from shardpack.adapters.grain import Batches, Source

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))


def label_and_size(row):
  return row["label"], len(row["image"])


class Labels(grain.transforms.Map):

  def map(self, element):
    return label_and_size(element)


class SourceTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    example_shards.make(WORK)

  def setUp(self):
    self.dataset = shardpack.Dataset(WORK / "shards")
    self.source = Source(self.dataset)

  def test_the_protocol(self):
    self.assertIsInstance(self.source, grain.sources.RandomAccessDataSource)
    self.assertEqual(len(self.source), 60)
    for n in (0, 7, 59):
      self.assertEqual(self.source[n], {"image": self.dataset[n].image, "label": self.dataset[n].label})
    self.assertEqual(self.source.__getitems__([5, 3]), [self.source[5], self.source[3]])
    with self.assertRaises(IndexError):
      self.source[60]
    texts = Source(self.dataset[3:5], fields=["txt", "json"])
    self.assertEqual(texts[1], {"txt": self.dataset[4]["txt"], "json": self.dataset[4]["json"], "label": self.dataset[4].label})
    with self.assertRaisesRegex(FileNotFoundError, "mask"):
      Source(self.dataset, fields=["mask"])[0]
    for wrong in (lambda: Source("shards"), lambda: Source(self.dataset, fields="image")):
      with self.assertRaises(TypeError):
        wrong()

  def test_its_name_is_of_what_was_packed(self):
    """Grain compares it with the one in a checkpoint."""
    elsewhere = WORK / "elsewhere"
    example_shards.make(elsewhere)
    self.assertEqual(repr(Source(shardpack.Dataset(elsewhere / "shards"))), repr(self.source))
    others = (Source(self.dataset[1:]), Source(self.dataset[::-1]), Source(self.dataset, fields=["image", "txt"]), Source(self.dataset.split("val")))
    self.assertEqual(len({repr(other) for other in (self.source, *others)}), 5)
    self.assertEqual(repr(pickle.loads(pickle.dumps(others[1]))), repr(others[1]))

  def test_a_pipeline(self):
    rows = grain.MapDataset.source(self.source).shuffle(seed=3).map(label_and_size)
    self.assertEqual(sorted(map(rows.__getitem__, range(len(rows)))), sorted((int(s.label), len(s.image)) for s in self.dataset))
    iterator = iter(rows.to_iter_dataset())
    for _ in range(20):
      next(iterator)
    state = iterator.get_state()
    rest = list(iterator)
    again = iter(rows.to_iter_dataset())
    again.set_state(state)
    self.assertEqual(list(again), rest)
    self.assertEqual(len(rest), 40)

  def test_workers_and_checkpoints(self):
    def loader(source):
      sampler = grain.samplers.IndexSampler(len(source), shard_options=grain.sharding.NoSharding(), shuffle=True, num_epochs=1, seed=1)
      return grain.DataLoader(data_source=source, sampler=sampler, operations=[Labels()], worker_count=2)
    iterator = iter(loader(self.source))
    first = [next(iterator) for _ in range(20)]
    state = iterator.get_state()
    rest = list(iterator)
    self.assertEqual(sorted(first + rest), sorted((int(s.label), len(s.image)) for s in self.dataset))
    again = iter(loader(Source(shardpack.Dataset(str(WORK / "shards")))))
    again.set_state(state)
    self.assertEqual(list(again), rest)
    with self.assertRaises(ValueError):
      iter(loader(Source(self.dataset[::-1]))).set_state(state)

  def test_batches(self):
    batches = Batches(self.dataset, 16, seed=5, epochs=2, fields=("image", "txt"))
    self.assertIsInstance(batches, grain.sources.RandomAccessDataSource)
    self.assertEqual(len(batches), 8)
    order = shardpack.Order(60, 16, seed=5, tail="pad")
    for epoch in range(2):
      seen = []
      for step in range(4):
        batch = batches[4 * epoch + step]
        ids = [int(n) for n in order.ids(epoch, step) if n != shardpack.PADDING_ID]
        self.assertEqual(batch["image"], [self.dataset[n].image for n in ids])
        self.assertEqual(batch["txt"], [self.dataset[n]["txt"] for n in ids])
        self.assertEqual((batch["label"].dtype, batch["label"].tolist()), ("int64", [self.dataset[n].label for n in ids]))
        seen += ids
      self.assertEqual(sorted(seen), list(range(60)))
    self.assertNotEqual(batches[0]["txt"], batches[4]["txt"])
    for past in (-1, 8):
      with self.assertRaises(IndexError):
        batches[past]
    self.assertEqual(len(Batches(self.dataset, 16, drop_last=True)), 3)
    self.assertEqual(Batches(self.dataset, 4, shuffle=False)[1]["image"], [self.dataset[n].image for n in range(4, 8)])
    for wrong in ({"batch": 0}, {"batch": 4, "epochs": 0}):
      with self.assertRaises(shardpack.OptionError):
        Batches(self.dataset, **wrong)
    with self.assertRaises(TypeError):
      Batches("shards", 4)

  def test_batches_in_a_pipeline(self):
    batches = Batches(self.dataset, 7, seed=5)
    again = pickle.loads(pickle.dumps(batches))
    self.assertEqual((repr(again), len(again), again[3]["image"]), (repr(batches), len(batches), batches[3]["image"]))
    self.assertEqual(len({repr(each) for each in (batches, Batches(self.dataset, 7), Batches(self.dataset[1:], 7, seed=5))}), 3)
    hosts = [list(grain.MapDataset.source(batches)[host::2].to_iter_dataset()) for host in range(2)]
    images = [image for host in hosts for batch in host for image in batch["image"]]
    self.assertEqual(sorted(images), sorted(sample.image for sample in self.dataset))
    iterator = iter(grain.MapDataset.source(batches).to_iter_dataset())
    next(iterator)
    state = iterator.get_state()
    rest = [batch["image"] for batch in iterator]
    resumed = iter(grain.MapDataset.source(again).to_iter_dataset())
    resumed.set_state(state)
    self.assertEqual([batch["image"] for batch in resumed], rest)


if __name__ == "__main__":
  unittest.main()
