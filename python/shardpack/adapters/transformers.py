"""Hugging Face transformers: loaders as the datasets of its Trainer."""

# pylint: disable=protected-access

from __future__ import annotations

from typing import Any

import torch
import transformers
from accelerate.data_loader import DataLoaderShard

from .._batches import Batches
from .._errors import OptionError
from .torch import Iterable


class TrainerMixin:
  """For a Trainer whose train_dataset and eval_dataset are loaders; other datasets are treated as before. Stands before the class that it
  extends: class Mine(shardpack.adapters.transformers.TrainerMixin, transformers.Seq2SeqTrainer). Trainer is the one for
  transformers.Trainer.

  A plain Trainer would share a loader's batches among the processes once more, so that each would get a part of its part. Here each
  process trains with its own batches (rank='auto'), of the size that load() was given: per_device_train_batch_size and the
  options of TrainingArguments for dataloaders have no effect. Epoch n of the Trainer is epoch n of the loader, so that
  resume_from_checkpoint goes on with the batches that it has not had, and reads the others once more to get there. Each evaluation has epoch 0.

  Raises OptionError for a loader of another rank than the Trainer's, and, in an evaluation by several processes, for one whose last
  batches have different sizes: load with pad_last=True, as labels of -1 become -100, which losses ignore.

  >>> import torch, transformers, shardpack.adapters.transformers
  >>> arguments = transformers.TrainingArguments('out', use_cpu=True, report_to='none')
  >>> loader = shardpack.load('shards', split='train', batch=16, size=64, dtype='float32', layout='nchw')
  >>> trainer = shardpack.adapters.transformers.Trainer(torch.nn.Linear(1, 1), arguments, train_dataset=loader)
  >>> [sorted(inputs) for inputs in trainer.get_train_dataloader()]
  [['labels', 'pixel_values'], ['labels', 'pixel_values'], ['labels', 'pixel_values']]
  """

  args: Any
  train_dataset: Any
  eval_dataset: Any

  def inputs_of(self, batch: Any) -> dict[str, Any]:
    """The arguments of the model: pixel_values and labels, with mix= soft labels. Override it for others."""
    images, labels = batch.to("torch")
    if not labels.is_floating_point():
      labels = torch.where(labels < 0, -100, labels)
    return {"pixel_values": images, "labels": labels}

  def get_train_dataloader(self) -> Any:
    """Called by the Trainer."""
    loader = self.train_dataset
    return self._of_loader(loader) if isinstance(loader, Batches) else super().get_train_dataloader()  # type: ignore[misc]

  def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
    """Called by the Trainer."""
    loader = self.eval_dataset if eval_dataset is None else eval_dataset
    loader = self.eval_dataset[loader] if isinstance(loader, str) else loader
    return self._to_evaluate(loader) if isinstance(loader, Batches) else super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]

  def get_test_dataloader(self, test_dataset: Any) -> Any:
    """Called by the Trainer."""
    loader = test_dataset
    return self._to_evaluate(loader) if isinstance(loader, Batches) else super().get_test_dataloader(loader)  # type: ignore[misc]

  def _to_evaluate(self, loader: Batches) -> Any:
    order = loader._order
    if loader._world_size > 1 and loader._look.cut and order.samples % order.global_batch:
      raise OptionError(f"the last batches of {loader._world_size} processes have different sizes, and the Trainer gathers equal ones: load with "
                        "pad_last=True, or drop_last=True")
    return self._of_loader(loader)

  def _of_loader(self, loader: Batches) -> Any:
    """What accelerate would make of a DataLoader, but of all batches."""
    share, own = (loader._rank, loader._world_size), (self.args.process_index, self.args.world_size)
    if share != own:
      raise OptionError(f"the loader has rank {share[0]} of {share[1]}, and the Trainer {own[0]} of {own[1]}: make the TrainingArguments first, "
                        "and load with rank='auto'")
    return DataLoaderShard(_Epochs(loader, self.inputs_of), device=self.args.device, batch_size=None)


class Trainer(TrainerMixin, transformers.Trainer):  # type: ignore[misc,unused-ignore]
  """transformers.Trainer with loaders as train_dataset and eval_dataset: see TrainerMixin.

  >>> import torch, transformers, shardpack.adapters.transformers
  >>> arguments = transformers.TrainingArguments('out', use_cpu=True, report_to='none')
  >>> loader = shardpack.load('shards', split='val', batch=16, size=64, dtype='float32', layout='nchw', shuffle=False)
  >>> trainer = shardpack.adapters.transformers.Trainer(torch.nn.Linear(1, 1), arguments, eval_dataset=loader)
  >>> next(iter(trainer.get_eval_dataloader()))['pixel_values'].shape
  torch.Size([12, 3, 64, 64])
  """


class _Epochs(Iterable):
  """Each iteration is the epoch that set_epoch said last."""

  _epoch = 0

  def set_epoch(self, epoch: int) -> None:
    self._epoch = epoch

  def __iter__(self) -> Any:
    self.loader.set_epoch(self._epoch)
    return super().__iter__()
