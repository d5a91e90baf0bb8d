"""Lightning: datasets as its DataModule, with the place in the epoch in its checkpoints."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

try:
  from lightning import LightningDataModule
except ModuleNotFoundError:
  from pytorch_lightning import LightningDataModule

from .._load import load
from .torch import Iterable


# As load() has them by default, or without chance. Random crops become central ones.
_OF_TRAINING_ALONE = {"shuffle": False, "flip": 0.0, "augment": None, "views": 1, "mix": None, "weights": None, "epoch_samples": 0,
                      "cursor": None, "resume_on_iter": False, "drop_last": False}


_RANDOM = "random_resized"


class DataModule(LightningDataModule):  # type: ignore[misc,unused-ignore]
  """Splits of a dataset for Trainer.fit, validate, test and predict: batches are (images, labels) as tensors, in training with mix=
  (images, soft labels).

  `Trainer(max_epochs=90).fit(model, datamodule=data)` trains with it.

  options: of shardpack.load, for training. train_split, val_split, test_split, predict_split: None for a dataset without splits;
  val_split=None also where there is no validation. val: options that differ for validation, tests and predictions, which have each image
  once, in order: not shuffled, weighted, flipped, augmented or mixed, and with crop='center' in place of random crops. Training leaves
  an incomplete last step out, unless drop_last=False or pad_last=True. Each process takes its share (rank='auto'). The Trainer's
  checkpoints hold the place in the epoch: training goes on with the batches that it has not had.

  >>> import shardpack.adapters.lightning
  >>> data = shardpack.adapters.lightning.DataModule('shards', batch=16, size=64, flip=0.5, val={'crop': 'resize'})
  >>> len(data.train_dataloader()), len(data.val_dataloader())
  (3, 1)
  >>> data = shardpack.adapters.lightning.DataModule('shards', batch=16, size=64, test_split='val', predict_split='train')
  >>> len(data.test_dataloader()), len(data.predict_dataloader())
  (1, 3)
  """

  def __init__(self, path: Any, *, train_split: Optional[str] = "train", val_split: Optional[str] = "val",
               test_split: Optional[str] = "test", predict_split: Optional[str] = "test",
               val: Optional[Mapping[str, Any]] = None, **options: Any) -> None:
    super().__init__()
    self._path, self._options = path, options
    self._splits = {"train": train_split, "val": val_split, "test": test_split, "predict": predict_split}
    self._val = {**options, **_OF_TRAINING_ALONE, **(val or {})}
    random = self._val.get("crop", _RANDOM) == _RANDOM and not {"crop", "scale", "ratio"} & (val or {}).keys()
    if self._val.get("size") is not None and random:
      self._val = {**self._val, "crop": "center", "scale": None, "ratio": None}
    if val_split is None:
      setattr(self, "val_dataloader", super().val_dataloader)  # for Lightning: there is none

  def _share(self) -> dict[str, Union[int, str]]:
    """Lightning's own processes need not have an environment that says it."""
    trainer = self.trainer
    return {"rank": trainer.global_rank, "world_size": trainer.world_size} if trainer is not None else {}

  def train_dataloader(self) -> Iterable:
    """Called by the Trainer."""
    options = {"drop_last": not self._options.get("pad_last"), **self._options}
    return Iterable(load(self._path, split=self._splits["train"], **{**self._share(), **options}))

  def val_dataloader(self) -> Iterable:
    """Called by the Trainer."""
    return self._in_order("val")

  def test_dataloader(self) -> Iterable:
    """Called by the Trainer."""
    return self._in_order("test")

  def predict_dataloader(self) -> Iterable:
    """Called by the Trainer; batches are (images, labels) here too."""
    return self._in_order("predict")

  def _in_order(self, what: str) -> Iterable:
    return Iterable(load(self._path, split=self._splits[what], **{**self._share(), **self._val}))
