"""A torch training loop over a packed dataset: on the GPU when there is one, resumed where it stopped.

  PYTHONPATH=bazel-bin/python/site python3 examples/train_torch.py DATASET [EPOCHS]

Under torchrun every process takes its share of each global batch (wrap the model in DistributedDataParallel).
"""

import os
import sys

import shardpack
import torch

rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
if torch.cuda.is_available():
  torch.cuda.set_device(local_rank)  # otherwise every process allocates memory on the first GPU
  device = torch.device("cuda", local_rank)
else:
  device = torch.device("cpu")
target = shardpack.Device(device)  # this device, or an error
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 2

dataset = shardpack.Dataset(sys.argv[1])
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
                            torch.nn.Flatten(), torch.nn.Linear(128, len(dataset.classes))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
saved = torch.load("checkpoint.pt") if os.path.exists("checkpoint.pt") else {"cursor": None}
if saved["cursor"]:
  model.load_state_dict(saved["model"])

order = shardpack.Order(len(dataset), global_batch=16, seed=7)
loader = shardpack.Loader(dataset, order, rank=rank, world_size=world_size, epochs=epochs, cursor=saved["cursor"],
                          decode=shardpack.Decode(64, 64, flip=0.5), bad_samples="substitute", device=target)
loader = shardpack.DeviceLoader(loader, dtype="float32", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
for _ in range(loader.epoch, epochs):
  for batch in loader:
    images, labels = torch.from_dlpack(batch.pixels), torch.from_dlpack(batch.labels)  # already on the device
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {batch.epoch} step {batch.step}: {len(batch)} images, loss {loss.item():.3f}", flush=True)
    if rank == 0:
      torch.save({"model": model.state_dict(), "cursor": loader.cursor}, "checkpoint.new")
      os.replace("checkpoint.new", "checkpoint.pt")  # atomic
