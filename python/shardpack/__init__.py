"""Batches of packed datasets, in exact global order, verified, decoded if wanted.

  for images, labels in shardpack.load('OUT', split='train', batch=256, size=224, flip=0.5):
      train(images, labels)

or step by step:

  dataset = shardpack.Dataset('OUT')
  order = shardpack.Order(len(dataset), global_batch=256, seed=7)
  loader = shardpack.Loader(dataset, order, decode=shardpack.Decode(224, 224, flip=0.5))
  for batch in loader:    # one epoch; iterate again for the next
      images, labels = torch.from_dlpack(batch.pixels), torch.from_numpy(batch.labels)
"""

import typing as _typing
from importlib import import_module as _import_module

from ._augment import Augment, Mix, apply_program
from ._batch import Batch
from ._c import VERSION as __version__
from ._dataset import Dataset
from ._decode import Decode
from ._device import Device
from ._errors import (CancelledError, CursorError, DataLossError, DeniedError, DeviceError, Error, ExistsError, InternalError,
                      NoAnswerError, NoMemoryError, NotADatasetError, NotFoundError, OptionError, OutOfRangeError, PackError,
                      PackExistsError, PackNotFoundError, PackUsageError, StateError, SystemCallError, UnsupportedError)
from ._fields import Coco, CocoLabels, Labels, Paired
from ._load import load
from ._loader import Loader
from ._objects import Objects
from ._order import PADDING_ID, Order
from ._sample import Sample
from ._samples import EncodedBatch, Samples, collate
from ._table import Table
from ._tensor import Tensor

if _typing.TYPE_CHECKING:
  from ._device_loader import DeviceBatch, DeviceLoader, ResidentLoader
  from ._jobs import Job, convert, diff, dups, extract, index, pack, report, stats, validate
  from ._progress import Progress
  from ._report import Finding, Report
  from ._writer import Writer, finish

__all__ = [
    "Augment", "Batch", "CancelledError", "Coco", "CocoLabels", "CursorError", "DataLossError", "Dataset", "Decode", "DeniedError", "Device",
    "DeviceBatch", "DeviceError", "DeviceLoader", "EncodedBatch", "Error", "ExistsError", "Finding", "InternalError", "Job",
    "Labels", "Loader", "Mix", "NoAnswerError", "NoMemoryError", "NotADatasetError", "NotFoundError", "Objects", "OptionError",
    "Order", "OutOfRangeError", "PADDING_ID", "PackError", "PackExistsError", "PackNotFoundError", "PackUsageError", "Paired",
    "Progress", "Report", "ResidentLoader", "Sample", "Samples", "StateError", "SystemCallError", "Table", "Tensor", "UnsupportedError",
    "Writer", "apply_program", "collate", "convert", "diff", "dups", "extract", "finish", "index", "load", "pack", "report", "stats", "validate",
]

# What few programs use is imported when its name is first used: each process of a training run imports this package.
_LATER = {
    name: module for module, names in {
        "_device_loader": ("DeviceBatch", "DeviceLoader", "ResidentLoader"),
        "_jobs": ("Job", "convert", "diff", "dups", "extract", "index", "pack", "report", "stats", "validate"),
        "_progress": ("Progress",),
        "_report": ("Finding", "Report"),
        "_writer": ("Writer", "finish"),
    }.items() for name in names
}

if not _typing.TYPE_CHECKING:  # or they would take every name for one of ours

  def __getattr__(name: str) -> object:
    if name == "adapters":
      return _import_module(".adapters", __name__)
    if name not in _LATER:
      raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module("." + _LATER[name], __name__), name)
    return value

  def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "adapters"})
