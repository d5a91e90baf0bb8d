"""Objects: those of a batch, as arrays."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from . import _c
from ._errors import NotFoundError, OptionError
from ._library import Handle, call, library
from ._memory import Memory, import_numpy
from ._options import slot_of

if TYPE_CHECKING:
  import numpy.typing


class Objects:
  """The objects of a batch, one slot after the other, copied: those of slot i are rows offsets[i] to offsets[i + 1].

  len(objects) counts them; objects.of(i) is a slice for one slot, for any of the arrays. batch.objects raises OptionError without
  decode_fields={'json': 'coco'}.

  >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
  >>> len(batch.objects), batch.objects.boxes.shape, batch.objects.labels[batch.objects.of(0)].shape
  (8, (8, 4), (1,))
  """

  def __init__(self, handle: Handle, slots: int, all_slots: int) -> None:
    found = _c.objects(ctypes.sizeof(_c.objects))
    try:
      call(library.batch_objects, handle, found)
    except NotFoundError:
      raise OptionError("objects need decode_fields={'json': 'coco'}") from None
    self._memory, self._found = Memory(handle), found
    self._offsets = self._array(found.offsets, "int64", (all_slots + 1,))[:slots + 1]
    self._count = int(self._offsets[-1])

  def _array(self, address: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    if 0 in shape:
      return import_numpy().zeros(shape, dtype)
    return self._memory.array(address, dtype, shape).copy()

  def __len__(self) -> int:
    return self._count

  def of(self, slot: int) -> slice:
    """The rows of one slot. Raises IndexError for a slot that is not there.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.of(3)
    slice(3, 4, None)
    """
    slot = slot_of(slot, len(self._offsets) - 1, "the batch")
    return slice(int(self._offsets[slot]), int(self._offsets[slot + 1]))

  @property
  def offsets(self) -> numpy.typing.NDArray[numpy.int64]:
    """int64 [m], m = n + 1: where the objects of each slot begin, and the end of all.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.offsets[-1] == len(batch.objects)
    True
    """
    offsets: numpy.typing.NDArray[numpy.int64] = self._offsets
    return offsets

  @property
  def boxes(self) -> numpy.typing.NDArray[numpy.float32]:
    """float32 [k, 4], in pixels of the slot, in the format that Coco says.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> bool((batch.objects.boxes >= 0).all() and (batch.objects.boxes <= 64).all())
    True
    """
    boxes: numpy.typing.NDArray[numpy.float32] = self._array(self._found.boxes, "float32", (self._count, 4))
    return boxes

  @property
  def labels(self) -> numpy.typing.NDArray[numpy.int64]:
    """int64 [k]: classes of the dataset as `pack` numbers them, or COCO's category_id where the JSON is COCO's own; -1: none.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.labels.tolist() == batch.labels.tolist()
    True
    """
    labels: numpy.typing.NDArray[numpy.int64] = self._array(self._found.labels, "int64", (self._count,))
    return labels

  @property
  def areas(self) -> numpy.typing.NDArray[numpy.float32]:
    """float32 [k]: of the whole object, scaled as the image is.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.areas.shape
    (8,)
    """
    areas: numpy.typing.NDArray[numpy.float32] = self._array(self._found.areas, "float32", (self._count,))
    return areas

  @property
  def crowds(self) -> numpy.typing.NDArray[numpy.bool_]:
    """bool [k]: groups that were not told apart (iscrowd).

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.crowds.any()
    False
    """
    crowds: numpy.typing.NDArray[numpy.bool_] = self._array(self._found.crowds, "uint8", (self._count,)) != 0
    return crowds

  @property
  def keep(self) -> numpy.typing.NDArray[numpy.uint32]:
    """uint32 [k]: the position of each in its JSON, as some were left out.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.keep.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0]
    """
    keep: numpy.typing.NDArray[numpy.uint32] = self._array(self._found.keep, "uint32", (self._count,))
    return keep

  @property
  def keypoints(self) -> numpy.typing.NDArray[numpy.float32]:
    """float32 [k, p, 3]: x, y and COCO's visibility, of numbers of pixels; zeros where there is none, or none is seen.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, decode_fields={'json': shardpack.Coco(keypoints=17)}))
    >>> batch.objects.keypoints.shape[1:]
    (17, 3)
    """
    each = int(self._found.keypoints_each)
    keypoints: numpy.typing.NDArray[numpy.float32] = self._array(self._found.keypoints, "float32", (self._count, each, 3))
    return keypoints

  @property
  def polygons(self) -> list[list[numpy.typing.NDArray[numpy.float32]]]:
    """Of each object its polygons, float32 [points, 2] each. Raises OptionError without Coco(polygons=True).

    >>> batch = next(shardpack.load('shards', batch=8, size=64, decode_fields={'json': shardpack.Coco(polygons=True)}))
    >>> len(batch.objects.polygons) == len(batch.objects)
    True
    """
    if not self._count:
      return []
    if not self._found.ring_offsets:
      raise OptionError("polygons need decode_fields={'json': Coco(polygons=True)}")
    rings = self._array(self._found.ring_offsets, "int64", (self._count + 1,))
    ends = self._array(self._found.point_offsets, "int64", (int(rings[-1]) + 1,))
    points = self._array(self._found.polygons, "float32", (int(ends[-1]), 2))
    return [[points[ends[ring]:ends[ring + 1]] for ring in range(rings[k], rings[k + 1])] for k in range(self._count)]

  @property
  def dropped(self) -> int:
    """How many objects of the batch are not there: too small, or not seen enough.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.dropped
    0
    """
    return int(self._found.dropped)

  @property
  def outside(self) -> int:
    """How many boxes went beyond their image and were cut.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.outside
    0
    """
    return int(self._found.outside)
