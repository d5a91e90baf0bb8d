"""Trains a classifier on a packed dataset, on the GPU if there is one, and goes on where it stopped.

  python3 examples/train_torch.py DATASET                                  # in a checkout: PYTHONPATH=bazel-bin/python/site
  torchrun --nproc-per-node 4 examples/train_torch.py DATASET --epochs 20

Killed at any moment, it goes on with the step after its last checkpoint, also with another number of processes: the global batch stays
the same, and so do the samples, crops and flips of every step. After the last epoch, more --epochs go on.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time
from typing import Any

import shardpack
import torch
import torch.distributed as dist
from torch import nn

RANK, WORLD_SIZE, LOCAL_RANK = (int(os.environ.get(name, value)) for name, value in
                                (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0")))


def make_model(classes: int) -> nn.Module:
  """A small network for small images. GroupNorm, unlike BatchNorm, does the same however many processes share a batch."""
  layers: list[nn.Module] = []
  for inputs, outputs, stride in ((3, 16, 1), (16, 32, 2), (32, 64, 2), (64, 64, 2)):
    layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.GroupNorm(8, outputs), nn.ReLU()]
  return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def random_states() -> list[torch.Tensor]:
  """Of torch's generator in every process; useful to models with dropout."""
  states: list[Any] = [torch.get_rng_state()]
  if WORLD_SIZE > 1:
    mine, states = states[0], [None] * WORLD_SIZE
    dist.all_gather_object(states, mine)
  return states


def mean_of_processes(loss: torch.Tensor) -> float:
  """The same number on all of them, and for any number of them."""
  loss = loss.detach().clone()
  if WORLD_SIZE > 1:
    dist.all_reduce(loss)
  return loss.item() / WORLD_SIZE


def save(path: pathlib.Path, **state: Any) -> None:
  state["random"] = random_states()
  if RANK == 0:
    new = path.with_suffix(".new")
    torch.save(state, new)
    os.replace(new, path)  # atomic: a kill leaves the old one or the new one


@torch.no_grad()
def accuracy(model: nn.Module, batches: Any, device: torch.device) -> float:
  """Over a whole split: each process looks at its share. The last batches are filled up with samples whose label is -1."""
  right = torch.zeros(2, device=device)
  for images, labels in batches:
    right += torch.stack([(model(images).argmax(1) == labels).sum(), (labels >= 0).sum()])
  if WORLD_SIZE > 1:
    dist.all_reduce(right)
  return float(right[0] / right[1])


def arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("dataset")
  parser.add_argument("--epochs", type=int, default=2)
  parser.add_argument("--global-batch", type=int, default=128, help="samples a step, of all processes together")
  parser.add_argument("--size", type=int, default=32, help="width and height of the crops")
  parser.add_argument("--learning-rate", type=float, default=0.05)
  parser.add_argument("--log-steps", type=int, default=20, help="steps between lines with the loss")
  parser.add_argument("--checkpoint", type=pathlib.Path, default=pathlib.Path("checkpoint.pt"))
  parser.add_argument("--checkpoint-steps", type=int, default=100, help="steps between checkpoints; an epoch's end has one too")
  return parser.parse_args()


def main() -> None:
  options = arguments()
  device = torch.device("cuda", LOCAL_RANK) if torch.cuda.is_available() else torch.device("cpu")
  if device.type == "cuda":
    torch.cuda.set_device(device)  # otherwise every process allocates memory on the first GPU
  if WORLD_SIZE > 1:
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
  torch.manual_seed(1 + RANK)

  dataset = shardpack.Dataset(options.dataset)
  pixels = {"size": options.size, "dtype": "float32", "layout": "nchw", "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225),
            "device": device, "to": "torch"}
  # RANK and WORLD_SIZE say which share of each global batch is this process's.
  loader = shardpack.load(dataset, split="train", global_batch=options.global_batch, epochs=options.epochs, seed=7, flip=0.5,
                          scale=(0.5, 1.0), drop_last=True, **pixels)

  model = make_model(len(dataset.classes)).to(device)
  trained = nn.parallel.DistributedDataParallel(model) if WORLD_SIZE > 1 else model  # gives all processes rank 0's weights
  optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate, momentum=0.9, weight_decay=5e-4)
  total_steps = options.epochs * len(loader)
  schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.learning_rate, total_steps=total_steps)
  everything = {"model": model, "optimizer": optimizer, "schedule": schedule, "loader": loader}
  if options.checkpoint.exists():
    saved = torch.load(options.checkpoint, map_location="cpu", weights_only=True)
    for name, part in everything.items():
      part.load_state_dict(saved[name])
    if RANK < len(saved["random"]):
      torch.set_rng_state(saved["random"][RANK])
    if loader.epoch >= options.epochs:
      if RANK == 0:
        print(f"training is complete: {options.checkpoint} has {loader.epoch} epochs; --epochs {loader.epoch + 2} goes on with it, and "
              "another --checkpoint starts anew", flush=True)
    elif schedule.total_steps != total_steps:  # other --epochs than before: the rest is as a run of so many has it
      schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.learning_rate, total_steps=total_steps,
                                                     last_epoch=schedule.last_epoch - 1)
      everything["schedule"] = schedule

  def checkpoint() -> None:
    save(options.checkpoint, **{name: part.state_dict() for name, part in everything.items()})

  for epoch in range(loader.epoch, options.epochs):
    begin, seen = time.perf_counter(), 0
    for batch in loader:
      images, labels = batch  # on the device already
      loss = nn.functional.cross_entropy(trained(images), labels)
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
      schedule.step()
      seen += len(labels)
      if (batch.step + 1) % options.log_steps == 0:
        shown = mean_of_processes(loss)
        if RANK == 0:
          print(f"epoch {batch.epoch} step {batch.step}: loss {shown:.4f}", flush=True)
      if (batch.step + 1) % options.checkpoint_steps == 0:
        checkpoint()
    checkpoint()
    rate = seen * WORLD_SIZE / (time.perf_counter() - begin)
    text = f"epoch {epoch} trained, {rate:,.0f} images/s"
    if "val" in dataset.splits:
      batches = shardpack.load(dataset, split="val", batch=256, shuffle=False, crop="resize", pad_last=True, **pixels)
      text += f", accuracy {accuracy(model, batches, device):.3f}"
    if RANK == 0:
      print(text, flush=True)
  if WORLD_SIZE > 1:
    dist.destroy_process_group()


if __name__ == "__main__":
  main()
