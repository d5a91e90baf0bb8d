"""torch: DataLoader over a loader, tensors in the loader's memory, DistributedSampler over a dataset, torchrun with gloo.

  python use_torch.py SHARDS [rank]     # with `rank`: what each process of torchrun does
"""

import os
import re
import subprocess
import sys

import numpy
import shardpack
import shardpack.adapters.torch
import torch
import torch.distributed

COUNT = 60


def load(shards, **options):
  return shardpack.load(shards, **{"batch": 16, "size": 32, "flip": 0.5, **options})


def check_tensors(shards):
  for batch in load(shards, to="torch"):
    images, labels = batch
    assert (images.dtype, labels.dtype, tuple(images.shape)) == (torch.uint8, torch.int64, (len(batch), 32, 32, 3))
    assert images.data_ptr() == batch.pixels.ctypes.data == torch.from_dlpack(batch).data_ptr()
    assert batch.to("numpy").images.tobytes() == images.numpy().tobytes()
  kept = images
  expected = images.clone()
  del batch, images
  assert torch.equal(kept, expected)
  loader = load(shards, device="cpu", dtype="float32", layout="nchw", channels_last=True, to="torch")
  images, _ = next(loader)
  assert images.is_contiguous(memory_format=torch.channels_last) and images.shape == (16, 3, 32, 32)
  into, labels = torch.zeros(16, 3, 32, 32).contiguous(memory_format=torch.channels_last), torch.zeros(16, dtype=torch.int64)
  batch = loader.next_into(into, labels)
  numpy.testing.assert_array_equal(batch.ids, loader.ids(0, 1))
  assert into.abs().sum() > 0


def check_arguments(shards):
  """torch's dtypes, and its tensors as weights."""
  images, _ = next(load(shards, dtype=torch.float32, mean=torch.tensor([0.5, 0.5, 0.5]), std=torch.tensor([0.25] * 3), to="torch"))
  assert images.dtype == torch.float32
  assert next(load(shards, dtype=torch.bfloat16, layout="nchw", device="cpu", to="torch")).images.dtype == torch.bfloat16
  weights = torch.arange(COUNT)
  assert load(shards, weights=weights).ids(0, 0).tolist() == load(shards, weights=weights.tolist()).ids(0, 0).tolist()
  assert shardpack.Order(COUNT, 2, mode="sequential", subset=torch.tensor([7, 3])).ids(0, 0).tolist() == [7, 3]
  for options, what in (({"dtype": torch.float64}, "dtype must be one of 'uint8'"), ({"layout": torch.channels_last}, "layout must be one of 'nhwc'"),
                        ({"weights": weights.float().requires_grad_()}, "(?s)weights must be .*detach"), ({"to": torch}, "to must be one of 'numpy', 'torch'"),
                        ({"mean": torch.tensor(0.5)}, "mean must be"), ({"flip": torch.tensor([0.5, 0.5])}, "flip must be a number"),
                        ({"shuffle": torch.tensor([True, False])}, "shuffle must be")):
    try:
      load(shards, **options)
    except TypeError as error:
      assert re.search(what, str(error)), error
    else:
      raise AssertionError(options)


def check_data_loader(shards):
  loader = load(shards)
  batches = torch.utils.data.DataLoader(shardpack.adapters.torch.Iterable(loader), batch_size=None)
  assert len(batches) == 4
  expected = load(shards)
  for _ in range(2):
    for (images, labels), batch in zip(batches, expected, strict=True):
      assert torch.equal(images, torch.from_dlpack(batch.pixels)) and labels.tolist() == batch.labels.tolist()
  other = shardpack.adapters.torch.Iterable(shardpack.load(shards, batch=5))
  other.load_state_dict(load(shards).state_dict(), strict=False)
  assert next(iter(other))[1].shape == (5,)
  named = shardpack.adapters.torch.Iterable(load(shards), lambda batch: {"pixel_values": batch.to("torch").images})
  assert [item["pixel_values"].shape[0] for item in named] == [16, 16, 16, 12]
  try:
    list(torch.utils.data.DataLoader(shardpack.adapters.torch.Iterable(load(shards)), batch_size=None, num_workers=1))
  except RuntimeError as error:
    assert "num_workers=0" in str(error), error
  else:
    raise AssertionError("a worker read the same again")


def check_mix(shards):
  """Mixed images come with mixed labels."""
  mix = {"mix": shardpack.Mix(mixup=0.5, classes=3)}
  for (images, labels), batch in zip(shardpack.adapters.torch.Iterable(load(shards, **mix)), load(shards, **mix), strict=True):
    assert labels.dtype == torch.float32 and torch.equal(labels, torch.from_numpy(batch.soft_labels))
    assert torch.equal(images, torch.from_dlpack(batch.pixels)) and labels.shape == (len(batch), 3)
  images, labels = next(load(shards, to="torch", **mix))
  assert labels.dtype == torch.float32 and labels.shape == (16, 3)


def check_sampler(shards):
  dataset = shardpack.Dataset(shards)
  for ranks in (2, 3):
    for epoch in range(2):
      seen = []
      for rank in range(ranks):
        sampler = torch.utils.data.DistributedSampler(dataset, num_replicas=ranks, rank=rank, seed=4)
        sampler.set_epoch(epoch)
        numbers = list(sampler)
        samples = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler,
                                              collate_fn=lambda batch: [each.key for each in batch])
        keys = [key for batch in samples for key in batch]
        assert keys == [dataset[number].key for number in numbers]
        seen += keys
      assert len(seen) == len(set(seen)) == COUNT


def check_torchrun(shards):
  for ranks in (2, 3):
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
         str(ranks), __file__, shards, "rank"], check=True, timeout=300, stderr=subprocess.DEVNULL)


def rank_of_torchrun(shards):
  """Two epochs, with a restart: together the ranks have the batches of one process."""
  torch.distributed.init_process_group("gloo")
  ranks = torch.distributed.get_world_size()
  # The group that is there decides, whatever started the process; a group of other processes than torchrun's is refused.
  started = {name: os.environ.pop(name) for name in ("RANK", "WORLD_SIZE")}
  assert (load(shards)._rank, load(shards)._world_size) == (torch.distributed.get_rank(), ranks)
  os.environ.update(started, WORLD_SIZE=str(ranks + 1))
  try:
    load(shards)
  except shardpack.OptionError as error:
    assert f"WORLD_SIZE={ranks + 1}" in str(error), error
  else:
    raise AssertionError("two sizes of the world")
  os.environ.update(started)
  options = {"batch": None, "global_batch": 12, "threads": 1}
  alone = load(shards, **options, rank=0, world_size=1)
  expected = [batch.ids.tolist() for _ in range(2) for batch in alone]
  loader, steps = load(shards, **options), []
  for at in range(len(expected)):
    if at == 7:  # as after a restart
      loader = load(shards, **options, cursor=loader.state_dict())
    batch = next(loader, None) or next(load_next(loader))
    parts = [None] * ranks
    torch.distributed.all_gather_object(parts, batch.ids.tolist())
    steps.append(sum(parts, []))
  assert steps == expected, (steps, expected)
  assert sorted(sum(steps[:5], [])) == sorted(sum(steps[5:], [])) == list(range(COUNT))
  torch.distributed.destroy_process_group()


def load_next(loader):
  """The next epoch begins with a `for`."""
  return iter(loader)


if __name__ == "__main__":
  if len(sys.argv) > 2:
    rank_of_torchrun(sys.argv[1])
  else:
    for check in (check_tensors, check_arguments, check_data_loader, check_mix, check_sampler, check_torchrun):
      check(sys.argv[1])
