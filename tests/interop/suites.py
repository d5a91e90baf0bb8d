"""A Dataset where frameworks expect one of theirs. Each class of tests needs one of them. Loaders are tested by frameworks/.

usage: suites.py CLASS...      in a folder with the dataset `shards` of python/tests/example_shards.py
"""

import itertools
import sys
import unittest

import shardpack

CONTEXTS = ("fork", "spawn", "forkserver")


def keys_of(samples):
  """Also what collates in a worker: the keys, and that the bytes came with them."""
  assert all(sample.image for sample in samples)
  return [sample.key for sample in samples]


class TorchDataLoader(unittest.TestCase):
  """Map style: what torch's own tests of DataLoader ask of a dataset."""

  def setUp(self):
    import torch.utils.data  # pylint: disable=import-outside-toplevel
    self.data = torch.utils.data
    self.dataset = shardpack.Dataset("shards")

  def test_every_start_method_delivers_everything_in_order(self):
    expected = [list(self.dataset.keys[n:n + 7]) for n in range(0, len(self.dataset), 7)]
    for context in CONTEXTS:
      with self.subTest(context):
        loader = self.data.DataLoader(self.dataset, batch_size=7, num_workers=2, multiprocessing_context=context, collate_fn=keys_of,
                                      persistent_workers=True)
        self.assertEqual(list(loader), expected)
        self.assertEqual(list(loader), expected)

  def test_views_go_to_workers_too(self):
    view = self.dataset.where(label="dog")[3:15]
    for context in CONTEXTS:
      with self.subTest(context):
        loader = self.data.DataLoader(view, batch_size=4, num_workers=2, multiprocessing_context=context, collate_fn=keys_of)
        self.assertEqual([key for batch in loader for key in batch], list(view.keys))

  def test_default_collate(self):
    for workers in (0, 2):
      first = next(iter(self.data.DataLoader(self.dataset, batch_size=4, num_workers=workers)))
      self.assertEqual(first["key"], list(self.dataset.keys[:4]))
      self.assertEqual(first["label"].tolist(), self.dataset.labels[:4].tolist())

  def test_collate(self):
    """What crosses from a worker is one block; a Subset hands on what the Dataset gives, and a ConcatDataset a list of samples."""
    order = self.data.Subset(self.dataset, range(59, -1, -1))
    for dataset in (self.dataset, order, self.data.ConcatDataset([self.dataset, order])):
      for context in (None, *CONTEXTS):
        with self.subTest(dataset=type(dataset).__name__, context=context):
          loader = self.data.DataLoader(dataset, batch_size=7, num_workers=2 if context else 0, multiprocessing_context=context,
                                        collate_fn=shardpack.collate)
          whole = [(image, int(label)) for images, labels in loader for image, label in zip(images, labels)]
          self.assertEqual(whole, [(dataset[n].image, dataset[n].label) for n in range(len(dataset))])
    images, labels = next(iter(self.data.DataLoader(self.dataset, batch_size=7, collate_fn=shardpack.collate)))
    self.assertEqual((type(images), type(labels).__name__, str(labels.dtype), tuple(labels.shape)), (list, "Tensor", "torch.int64", (7,)))

  def test_torchs_datasets_and_samplers_of_it(self):
    first, second = self.data.random_split(self.dataset, [0.5, 0.5])
    both = self.data.ConcatDataset([first, self.data.Subset(second, range(len(second)))])
    loader = self.data.DataLoader(both, batch_size=8, shuffle=True, collate_fn=keys_of)
    self.assertEqual(sorted(key for batch in loader for key in batch), sorted(self.dataset.keys))
    weights = [1.0 if label == 1 else 0.0 for label in self.dataset.labels]
    loader = self.data.DataLoader(self.dataset, batch_size=8, sampler=self.data.WeightedRandomSampler(weights, 40), collate_fn=keys_of)
    self.assertEqual({key.split("/")[0] for batch in loader for key in batch}, {"dog"})

  def test_an_error_of_a_worker_names_the_sample(self):
    with self.assertRaisesRegex(IndexError, "no sample 60"):
      list(self.data.DataLoader(self.dataset, batch_size=2, sampler=[0, 1, 60], num_workers=1, collate_fn=keys_of))


class StatefulDataLoader(unittest.TestCase):
  """As torchdata's own tests of states, which neither its wheels nor PyPI have: interrupted anywhere, a loader with the state delivers just
  the rest."""

  def setUp(self):
    import torch  # pylint: disable=import-outside-toplevel
    from torchdata import stateful_dataloader  # pylint: disable=import-outside-toplevel
    self.torch, self.made = torch, stateful_dataloader.StatefulDataLoader
    self.dataset = shardpack.Dataset("shards")

  def check(self, make, interrupts):
    for interrupt in interrupts:
      with self.subTest(interrupt=interrupt):
        loader = make()
        batches = iter(loader)
        for _ in range(interrupt):
          next(batches)
        state = loader.state_dict()
        rest = list(batches)
        again = make()
        again.load_state_dict(state)
        self.assertEqual(list(again), rest)
        # And the epoch after that is a whole one.
        self.assertEqual(sum(map(len, again)), 60)

  def test_map_style(self):
    for workers, every, persistent in itertools.product((0, 2), (1, 3), (False, True)):
      if persistent and not workers:
        continue
      with self.subTest(workers=workers, every=every, persistent=persistent):
        def make(workers=workers, every=every, persistent=persistent):
          sampler = self.torch.utils.data.RandomSampler(self.dataset, generator=self.torch.Generator().manual_seed(13))
          return self.made(self.dataset, batch_size=7, num_workers=workers, snapshot_every_n_steps=every, sampler=sampler,
                           persistent_workers=persistent, collate_fn=keys_of)
        self.check(make, (0, 1, 5))

  def test_map_style_by_spawn_and_forkserver(self):
    for context in CONTEXTS[1:]:
      def make(context=context):
        return self.made(self.dataset, batch_size=7, num_workers=1, multiprocessing_context=context, collate_fn=keys_of)
      with self.subTest(context):
        self.check(make, (3,))


class Grain(unittest.TestCase):

  def test_checkpoints(self):
    """By the means that Grain tests its own iterators with."""
    import grain  # pylint: disable=import-outside-toplevel
    from grain import experimental  # pylint: disable=import-outside-toplevel
    from shardpack.adapters.grain import Source  # pylint: disable=import-outside-toplevel
    source = grain.MapDataset.source(Source(shardpack.Dataset("shards"))).shuffle(seed=7)
    labels = source.map(lambda sample: {"label": sample["label"], "bytes": len(sample["image"])}).batch(8)
    experimental.assert_equal_output_after_checkpoint(labels.to_iter_dataset())


if __name__ == "__main__":
  unittest.main(argv=["suites.py", *sys.argv[1:]], verbosity=2)
