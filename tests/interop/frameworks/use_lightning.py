"""Lightning: two epochs of a DataModule, and the same killed in the middle of an epoch and resumed: the same loss at every step.

  python use_lightning.py SHARDS [FOLDER STEP]     # with a step: train in FOLDER, and die by SIGKILL after that step
"""

import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import warnings

import lightning
import shardpack.adapters.lightning
import torch

EPOCHS, STEPS = 2, 6  # 48 samples in batches of 8


class Model(lightning.LightningModule):

  def __init__(self, folder, die_after):
    super().__init__()
    torch.manual_seed(2)
    self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 3))
    self.folder, self.die_after = folder, die_after

  def training_step(self, batch, _):
    images, labels = batch
    loss = torch.nn.functional.cross_entropy(self.layers(images), labels)
    with open(self.folder / "losses", "a") as file:
      file.write(f"{self.current_epoch} {self.global_step} {loss.item():.9f}\n")
    return loss

  def validation_step(self, batch, _):
    with open(self.folder / "validated", "a") as file:
      file.write(f"{len(batch[1])}\n")

  def configure_optimizers(self):
    return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)

  def on_train_batch_start(self, *_):
    if self.global_step == self.die_after:
      os.kill(os.getpid(), signal.SIGKILL)


def train(shards, folder, die_after=-1):
  data = shardpack.adapters.lightning.DataModule(shards, batch=8, size=16, flip=0.5, dtype="float32", layout="nchw",
                                                 val={"crop": "resize"})
  keep = lightning.pytorch.callbacks.ModelCheckpoint(folder, save_last=True, every_n_train_steps=1, save_top_k=0)
  trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", logger=False, callbacks=[keep], enable_progress_bar=False,
                              enable_model_summary=False, num_sanity_val_steps=1)
  last = folder / "last.ckpt"
  trainer.fit(Model(folder, die_after), datamodule=data, ckpt_path=last if last.exists() else None, weights_only=False)


def check_validation(shards):
  """Each image of the split once, in order and as it is, whatever training does."""
  share = {"batch": 8, "size": 16, "crop": "resize"}
  expected = [(images.tolist(), labels.tolist())
              for images, labels in shardpack.load(shards, split="val", to="numpy", shuffle=False, **share)]
  for options in ({"augment": "rand_augment(2, 9)"}, {"weights": "balanced", "epoch_samples": 1000}, {"views": 2}, {"drop_last": True},
                  {"cursor": shardpack.load(shards, split="train", **share).cursor}, {"mix": shardpack.Mix(0.2, classes=3)}):
    data = shardpack.adapters.lightning.DataModule(shards, flip=0.5, **share, **options)
    found = [(images.numpy().tolist(), labels.tolist()) for images, labels in data.val_dataloader()]
    assert found == expected, options
  central = shardpack.load(shards, split="val", to="numpy", shuffle=False, batch=8, size=16, crop="center")
  central_images = [images.tolist() for images, _ in central]
  random_crops = shardpack.adapters.lightning.DataModule(shards, batch=8, size=16, scale=(0.5, 1.0))
  assert [images.numpy().tolist() for images, _ in random_crops.val_dataloader()] == central_images
  meant = shardpack.adapters.lightning.DataModule(shards, batch=8, size=16, val={"scale": (0.5, 1.0)})
  assert next(iter(meant.val_dataloader()))[0].numpy().tolist() != central_images[0]
  encoded = shardpack.adapters.lightning.DataModule(shards, batch=8)
  assert isinstance(next(iter(shardpack.load(shards, split="val", shuffle=False, **encoded._options))).images[0], bytes)
  assert "crop" not in encoded._val
  data = shardpack.adapters.lightning.DataModule(shards, pad_last=True, **share)
  assert [len(labels) for _, labels in data.train_dataloader()] == [len(labels) for _, labels in data.val_dataloader()][:1] * len(data.train_dataloader())


def check_plain_loader(shards):
  """What load() returns trains, too, on the CPU: Lightning "moves" its batches."""
  class Plain(lightning.LightningModule):
    seen = 0

    def training_step(self, batch, _):
      images, labels = batch
      Plain.seen += len(labels)
      assert isinstance(images, torch.Tensor) and len(images) == len(labels)

    def configure_optimizers(self):
      return None

  trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                              enable_model_summary=False)
  trainer.fit(Plain(), shardpack.load(shards, split="train", batch=8, size=16, to="torch"))
  assert Plain.seen == len(shardpack.Dataset(shards).split("train")), Plain.seen


def check_mix(shards):
  """Mixed images come with mixed labels, but not in validation."""
  data = shardpack.adapters.lightning.DataModule(shards, batch=8, size=16, mix=shardpack.Mix(mixup=0.5, classes=3))
  _, labels = next(iter(data.train_dataloader()))
  assert labels.dtype == torch.float32 and labels.shape == (8, 3)
  _, labels = next(iter(data.val_dataloader()))
  assert labels.dtype == torch.int64


def check_tests(shards):
  """Tests and predictions have each image of their split once, in order."""
  options = {"batch": 5, "size": 16, "crop": "resize"}
  data = shardpack.adapters.lightning.DataModule(shards, flip=0.5, dtype="float32", layout="nchw", test_split="val", predict_split="train",
                                                 **options)
  seen = {"test": [], "predict": []}

  class Tested(lightning.LightningModule):

    def test_step(self, batch, _):
      seen["test"].append(batch[1].tolist())

    def predict_step(self, batch, _):
      seen["predict"].append(batch[1].tolist())

  trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False)
  trainer.test(Tested(), datamodule=data, verbose=False)
  trainer.predict(Tested(), datamodule=data)
  for what, split in (("test", "val"), ("predict", "train")):
    assert seen[what] == [batch.labels.tolist() for batch in shardpack.load(shards, split=split, shuffle=False, **options)], what
  try:
    shardpack.adapters.lightning.DataModule(shards, **options).test_dataloader()
  except FileNotFoundError as error:
    assert "no split test" in str(error) and "train, val" in str(error), error
  else:
    raise AssertionError("there is no split for tests")


def check(shards):
  with tempfile.TemporaryDirectory() as work:
    whole = pathlib.Path(work, "whole")
    whole.mkdir()
    train(shards, whole)
    losses = (whole / "losses").read_text().splitlines()
    assert [line.split()[:2] for line in losses] == [[str(step // STEPS), str(step)] for step in range(EPOCHS * STEPS)], losses
    # Of 12 images: one batch for the sanity check, and all after each epoch.
    assert (whole / "validated").read_text().split() == ["8", "8", "4", "8", "4"], (whole / "validated").read_text()
    for stop in (2, 6, 9):
      killed = pathlib.Path(work, f"killed{stop}")
      killed.mkdir()
      run = subprocess.run([sys.executable, __file__, shards, killed, str(stop)], check=False)
      assert run.returncode == -signal.SIGKILL, run
      train(shards, killed)
      assert (killed / "losses").read_text().splitlines() == losses, (stop, (killed / "losses").read_text(), losses)


if __name__ == "__main__":
  warnings.simplefilter("ignore")
  logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
  if len(sys.argv) > 2:
    train(sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]))
  else:
    check_validation(sys.argv[1])
    check_plain_loader(sys.argv[1])
    check_mix(sys.argv[1])
    check_tests(sys.argv[1])
    check(sys.argv[1])
