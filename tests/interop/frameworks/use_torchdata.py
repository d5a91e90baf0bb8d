"""torchdata: StatefulDataLoader and a node of a graph go on from their state, at every step, as its own tests of state ask for.

  python use_torchdata.py SHARDS
"""

import json
import sys

import shardpack
import shardpack.adapters.torch
import shardpack.adapters.torchdata
from torchdata import nodes
from torchdata.stateful_dataloader import StatefulDataLoader

STEPS, EPOCHS = 5, 3


def load(shards):
  return shardpack.load(shards, batch=13, size=16, seed=6)


def ids_of(batch):
  return batch.ids.tolist()


def stateful(shards):
  return StatefulDataLoader(shardpack.adapters.torch.Iterable(load(shards), ids_of), batch_size=None)


def graph(shards):
  return nodes.Loader(shardpack.adapters.torchdata.Node(load(shards), ids_of))


def prefetching(shards):
  """A thread asks for the batches, some ahead."""
  return nodes.Loader(
      nodes.Prefetcher(shardpack.adapters.torchdata.Node(load(shards), ids_of), prefetch_factor=3, snapshot_frequency=2))


def check(make, shards):
  loader = make(shards)
  whole = [list(loader) for _ in range(EPOCHS)]
  assert [len(epoch) for epoch in whole] == [STEPS] * EPOCHS
  assert all(sorted(sum(epoch, [])) == list(range(60)) for epoch in whole) and whole[0] != whole[1]
  for stop in range(STEPS + 1):
    loader = make(shards)
    assert list(loader) == whole[0]
    items = iter(loader)
    begun = [next(items) for _ in range(stop)]
    state = json.loads(json.dumps(loader.state_dict()))
    assert begun == whole[1][:stop]
    again = make(shards)
    again.load_state_dict(state)
    # Its state before anything was asked is the one that it was given.
    rest = list(again)
    # At an epoch's end torchdata begins the next one.
    assert rest == (whole[1][stop:] or whole[2]), (make.__name__, stop, rest)
    if stop < STEPS:
      assert list(again) == whole[2], (make.__name__, stop)
    assert list(items) == whole[1][stop:]  # taking the state disturbs nothing


def check_of_a_state_s_state(make, shards):
  loader = make(shards)
  items = iter(loader)
  next(items)
  first = loader.state_dict()
  again = make(shards)
  again.load_state_dict(first)
  items = iter(again)
  next(items)
  third = make(shards)
  third.load_state_dict(again.state_dict())
  assert list(third) == list(items) == list(make(shards))[2:]


def check_mix(shards):
  """Mixed images come with mixed labels."""
  mix = {"batch": 12, "size": 16, "mix": shardpack.Mix(mixup=0.5, classes=3)}
  node = shardpack.adapters.torchdata.Node(shardpack.load(shards, **mix))
  for (_, labels), batch in zip(nodes.Loader(node), shardpack.load(shards, **mix), strict=True):
    assert labels.numpy().tolist() == batch.soft_labels.tolist() and labels.shape == (12, 3)


if __name__ == "__main__":
  check_mix(sys.argv[1])
  for each in (stateful, graph, prefetching):
    check(each, sys.argv[1])
    check_of_a_state_s_state(each, sys.argv[1])
