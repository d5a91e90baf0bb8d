"""Batches of packed datasets, in exact global order, verified, decoded if wanted.

  dataset = shardpack.Dataset('OUT')
  order = shardpack.Order(len(dataset), global_batch=256, seed=7)
  loader = shardpack.Loader(dataset, order, decode=shardpack.Decode(224, 224, flip=0.5))
  for batch in loader:    # one epoch; iterate again for the next
      images, labels = torch.from_dlpack(batch.pixels), torch.from_numpy(batch.labels)
"""

from ._batch import Batch
from ._c import VERSION as __version__
from ._dataset import Dataset
from ._decode import Decode
from ._device import Device
from ._device_loader import DeviceBatch, DeviceLoader, ResidentLoader
from ._errors import (CancelledError, DataLossError, DeniedError, DeviceError, Error, ExistsError, InternalError, NoAnswerError,
                      NoMemoryError, NotFoundError, OptionError, OutOfRangeError, StateError, SystemCallError, UnsupportedError)
from ._loader import Loader
from ._order import PADDING_ID, Order
from ._tensor import Tensor

__all__ = [
    "Batch", "CancelledError", "DataLossError", "Dataset", "Decode", "DeniedError", "Device", "DeviceBatch", "DeviceError",
    "DeviceLoader", "Error", "ExistsError", "InternalError", "Loader", "NoAnswerError", "NoMemoryError", "NotFoundError",
    "OptionError", "Order", "OutOfRangeError", "PADDING_ID", "ResidentLoader", "StateError", "SystemCallError", "Tensor",
    "UnsupportedError",
]
