"""Batch: the samples of a step, in host memory."""

# pylint: disable=protected-access,redefined-builtin

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional, TypeVar, Union, overload

from . import _boxes, _c
from ._errors import NotFoundError, OptionError, nearest
from ._frameworks import converted, framework_of
from ._library import Handle, call, library, text_made, text_of
from ._memory import Memory, import_numpy
from ._objects import Objects
from ._options import c_text, slot_of, whole
from ._tensor import Tensor, pixels_of, place_name

if TYPE_CHECKING:
  import numpy.typing

  from ._dataset import Dataset

_Bytes = bytes  # which a method hides
_VIEW_BYTES = ctypes.sizeof(_c.batch_view)
_STATES = ("ok", "padding", "substituted")  # by number
_PADDING = b"\1"
_DTYPES = {_c.U8: "uint8", _c.F32: "float32", _c.F16: "float16", _c.BF16: "bfloat16"}


class Look(NamedTuple):
  """How batches are seen."""

  dataset: Optional[Dataset] = None  # of which the ids are
  to: Optional[str] = "numpy"  # None: tensors, for any library that supports DLPack
  cut: bool = False  # padding is cut off
  masks: tuple[str, ...] = ()
  channels_last: bool = False
  warps: bool = False  # pixels may be moved after crop and flip


_B = TypeVar("_B", bound="BatchFacts")


class BatchFacts:
  """What batches in host memory and on a device have. n, their length, counts padding unless it is cut off."""

  def __init__(self, handle: Handle, look: Look = Look()) -> None:
    self._handle = handle
    self._look = look
    self._memory = Memory(handle)
    self._view = _c.batch_view(_VIEW_BYTES)
    call(library.batch_view_of, handle, self._view)
    self._slots = int(self._view.slots)
    if look.cut and self._slots:
      padding = ctypes.string_at(self._view.states, self._slots).find(_PADDING)  # which is at the end
      self._slots = self._slots if padding < 0 else padding
    self._given_back = [False]  # shared by all that `to` makes of it
    self._spans: dict[str, Any] = {}  # of the fields that were asked for
    self._copies: dict[str, Any] = {}  # shared in the same way

  def __len__(self) -> int:
    return self._slots

  def __iter__(self) -> Iterator[Any]:
    """For `images, labels = batch`; with mix= the labels are soft_labels."""
    yield self.images
    yield self._targets

  def __repr__(self) -> str:
    what = "encoded images"
    if self._view.pixels is not None:
      what = "x".join(map(str, self._pixel_shape[1:])) + " " + _DTYPES[self._view.type]
    return f"<{type(self).__name__} of {len(self)}, {what}, epoch {self.epoch}, step {self.step}>"

  @property
  def images(self) -> Any:
    """Of the library that `to` names."""
    raise NotImplementedError

  @property
  def labels(self) -> Any:
    """int64 [n]."""
    raise NotImplementedError

  @property
  def _targets(self) -> Any:
    """What unpacks as labels."""
    return self.labels

  def to(self: _B, framework: str) -> _B:
    """The same batch, whose images, labels and masks are of 'numpy', 'torch', 'jax' or 'tf'.

    >>> images, labels = next(shardpack.load('shards', batch=8, size=32)).to('numpy')
    """
    word = str(framework)
    if word.startswith(("cpu", "cuda")):  # a device, as Lightning gives it to all that has this method
      if word in (place_name(self._view), "cuda" if self._view.device_kind != _c.HOST else "cpu"):
        return self
      raise OptionError(f"a batch does not move to {word!r}: give load() device={word!r}, which copies batches ahead (in Lightning "
                        "adapters.lightning.DataModule), or move its images and labels; to() names a library of arrays")
    same = type(self)(self._handle, self._look._replace(to=framework_of(framework, "framework")))
    same._given_back, same._copies = self._given_back, self._copies
    return same

  def _copy(self, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
    """Of memory that other batches will have; made once, so that what is written to it stays."""
    if name not in self._copies:
      self._copies.setdefault(name, self._memory.array(getattr(self._view, name), dtype, shape).copy())
    return self._copies[name]

  @property
  def epoch(self) -> int:
    """From 0."""
    return int(self._view.epoch)

  @property
  def step(self) -> int:
    """Of its epoch, from 0."""
    return int(self._view.step)

  @property
  def ids(self) -> numpy.typing.NDArray[numpy.uint64]:
    """uint64 [n], a copy; PADDING_ID, which is 2**64 - 1, where there is no sample. torch does not take uint64 for an index:
    `indices` is for that.

    >>> batch = next(shardpack.load('shards', batch=4, shuffle=False))
    >>> batch.ids
    array([0, 1, 2, 3], dtype=uint64)
    """
    ids: numpy.typing.NDArray[numpy.uint64] = self._memory.array(self._view.ids, "uint64", (len(self),)).copy()
    return ids

  @property
  def indices(self) -> numpy.typing.NDArray[numpy.int64]:
    """int64 [k]: the ids of the slots that have a sample (`valid`), to index arrays and tensors of the whole dataset. A copy.

    >>> *_, last = shardpack.load('shards', batch=32, pad_last=True)
    >>> len(last), last.indices.shape, last.indices.dtype
    (32, (28,), dtype('int64'))
    """
    indices: numpy.typing.NDArray[numpy.int64] = self.ids[self.valid].astype("int64")
    return indices

  @property
  def _numbers(self) -> list[int]:
    """The ids, without NumPy."""
    return self._memory.view(self._view.ids, 8 * len(self)).cast("Q").tolist() if len(self) else []

  @property
  def keys(self) -> list[Optional[str]]:
    """Of each slot, as in the dataset; None where there is no sample.

    >>> dataset = shardpack.Dataset('shards')
    >>> batch = next(shardpack.load(dataset, batch=4))
    >>> batch.keys == [dataset[int(number)].key for number in batch.ids]
    True
    """
    text = _c.text()
    keys: list[Optional[str]] = []
    dataset = self._look.dataset
    if dataset is None:
      raise OptionError("only batches of a loader know their keys")
    for number in self._numbers:
      if number == _c.PADDING_ID:
        keys.append(None)
        continue
      call(library.dataset_key, dataset._handle, number, text)
      keys.append(text_of(text))
    return keys

  @property
  def status(self) -> list[str]:
    """Of each slot: 'ok', 'padding' or 'substituted'; 'unknown' for what only a newer package has a word for.

    >>> *_, last = shardpack.load('shards', batch=32, pad_last=True)
    >>> last.status.count('ok'), last.status.count('padding')
    (28, 4)
    """
    return [_STATES[state] if state < len(_STATES) else "unknown" for state in ctypes.string_at(self._view.states, len(self))]

  @property
  def valid(self) -> numpy.typing.NDArray[numpy.bool_]:
    """bool [n]: where there is a sample, and no padding.

    >>> *_, last = shardpack.load('shards', batch=32, pad_last=True)
    >>> int(last.valid.sum()), last.labels[~last.valid].tolist()
    (28, [-1, -1, -1, -1])
    """
    valid: numpy.typing.NDArray[numpy.bool_] = self._memory.array(self._view.states, "uint8", (len(self),)) != _c.SAMPLE_PADDING
    return valid

  @property
  def flips(self) -> numpy.typing.NDArray[numpy.bool_]:
    """bool [n]: which images are mirrored by Decode's flip, of the first view. Raises UnsupportedError for a batch that was not decoded.

    >>> next(shardpack.load('shards', batch=4, size=32, flip=1.0)).flips.tolist()
    [True, True, True, True]
    """
    flips: numpy.typing.NDArray[numpy.bool_] = self._crops()["flip"] != 0
    return flips

  @property
  def crops(self) -> numpy.typing.NDArray[numpy.int32]:
    """int32 [n, 4]: x, y, width and height of the part that was taken of each image (for the first view), in pixels of the image as displayed, to the
    nearest whole pixel (a central crop may have its edges within pixels; boxes() moves with the exact ones). 0 for padding. Raises
    UnsupportedError for a batch that was not decoded.

    >>> dataset = shardpack.Dataset('shards')
    >>> batch = next(shardpack.load(dataset, batch=8, size=32, crop='resize'))
    >>> batch.crops[:, 2].tolist() == dataset.widths[batch.ids].tolist()
    True
    """
    crops: numpy.typing.NDArray[numpy.int32] = self._corners().round().astype("int32")
    crops[:, 2:] -= crops[:, :2]
    return crops

  @property
  def affine(self) -> numpy.typing.NDArray[numpy.float64]:
    """float64 [n, 2, 3]: from the image as displayed to its pixels in the batch (of the first view), in coordinates where pixel x covers x to x + 1.
    Raises UnsupportedError for a batch that was not decoded, or is on a device, or whose plan has perspective (`projection` is its map)
    or elastic.

    >>> dataset = shardpack.Dataset('shards')
    >>> batch = next(shardpack.load(dataset, batch=8, size=32, crop='resize', flip=1.0))
    >>> width = int(dataset.widths[batch.ids[0]])
    >>> (batch.affine[0] @ (width, 0, 1)).round(6).tolist()   # the right upper corner is now the left one
    [0.0, 0.0]
    """
    rows: numpy.typing.NDArray[numpy.float64] = import_numpy().zeros((int(self._view.slots), 2, 3))
    call(library.batch_affine, self._handle, rows.ctypes.data, len(rows))
    return rows[:len(self)]

  @property
  def projection(self) -> numpy.typing.NDArray[numpy.float64]:
    """float64 [n, 3, 3]: the map of `affine` as a matrix M, also of a plan with perspective: x', y', w = M @ (x, y, 1), and the pixel is
    x' / w, y' / w. Raises UnsupportedError as `affine` does, but for perspective.

    >>> batch = next(shardpack.load('shards', batch=8, size=32, augment='perspective(0.5, p=1)'))
    >>> x, y, w = batch.projection[0] @ (20, 10, 1)   # where pixel (20, 10) of the image is now
    >>> batch.projection.shape, bool(-32 < x / w < 64)
    ((8, 3, 3), True)
    """
    rows: numpy.typing.NDArray[numpy.float64] = import_numpy().zeros((int(self._view.slots), 3, 3))
    call(library.batch_projection, self._handle, rows.ctypes.data, len(rows))
    return rows[:len(self)]

  def _corners(self) -> Any:
    numpy, crops = import_numpy(), self._crops()
    return numpy.stack([crops[name] for name in ("left", "top", "right", "bottom")], axis=1)

  def _crops(self) -> Any:
    numpy = import_numpy()
    slots = int(self._view.slots)
    crops = (_c.crop * slots)()
    call(library.batch_crops, self._handle, crops, slots)
    return numpy.frombuffer(crops, numpy.dtype(_c.crop))[:len(self)]

  @property
  def _pixel_shape(self) -> tuple[int, ...]:
    view = self._view
    shape = (view.channels, view.height, view.width) if view.layout == _c.NCHW else (view.height, view.width, view.channels)
    return (len(self), *shape) if view.views <= 1 else (view.views, int(view.slots), *shape)

  # ------------------------------------------------------------------------------------------------------------ fields

  @overload
  def bytes(self, slot: str = "image") -> list[Optional[_Bytes]]:
    ...

  @overload
  def bytes(self, slot: int, field: str = "image") -> Any:
    ...

  def bytes(self, slot: Union[str, int] = "image", field: str = "image") -> Any:
    """bytes('txt'): the bytes of that field of every slot, copied: a list, with None where a sample has none; one call of the
    library for a batch. bytes(slot, 'txt'): those of one slot as a uint8 array that views the batch. Raises KeyError for a field
    that was not read, IndexError for a slot that is not there. A decoded image's bytes are not kept: None.

    >>> batch = next(shardpack.load('shards', batch=8, fields=['image', 'txt']))
    >>> len(batch.bytes('txt')), batch.bytes(0).dtype
    (8, dtype('uint8'))
    """
    if isinstance(slot, str):
      view = self._memory.bytes
      return [view(address, size) if address else None for address, size in self._of_field(slot)[:len(self)]]
    address, size = self._of_field(field)[slot_of(slot, len(self), "the batch")]
    return self._memory.uint8(address, size) if address else None

  def view(self, slot: int, field: str = "image") -> Optional[memoryview]:
    """The bytes of one slot's field, without a copy, read-only; None where the sample has none. Raises KeyError for a field that
    was not read, IndexError for a slot that is not there.

    >>> batch = next(shardpack.load('shards', batch=8))
    >>> bytes(batch.view(0)) == batch.bytes()[0]
    True
    """
    address, size = self._of_field(field)[slot_of(slot, len(self), "the batch")]
    return self._memory.view(address, size).toreadonly() if address else None

  def text(self, field: str = "txt") -> list[Optional[str]]:
    """A field as UTF-8 of every slot; None where a sample has none. Raises OptionError that names the sample for what is not
    UTF-8, KeyError for a field that was not read.

    >>> batch = next(shardpack.load('shards', batch=8, shuffle=False, fields=['txt']))
    >>> len(batch.text())
    8
    """
    return [None if content is None else _decoded(content, what) for content, what in self._named(field)]

  def json(self, field: str = "json") -> list[Any]:
    """A field, parsed, of every slot; None where a sample has none. Raises OptionError that names the sample for what is not
    JSON, KeyError for a field that was not read.

    >>> batch = next(shardpack.load('shards', batch=8, fields=['json']))
    >>> sorted(batch.json()[0])
    ['boxes', 'number']
    """
    return [None if content is None else _boxes.parsed(content, what) for content, what in self._named(field)]

  def box_labels(self, field: str = "json") -> list[Any]:
    """The labels of boxes(): a list of int64 [k]. Raises OptionError that names the sample where boxes have none, as in a
    .npy array.

    >>> batch = next(shardpack.load('shards', batch=8, fields=['json']))
    >>> [labels.tolist() for labels in batch.box_labels()] == [[label] for label in batch.labels]
    True
    """
    return [_boxes.labels_of(content, what) for content, what in self._named(field)]

  def _named(self, field: str) -> Iterator[tuple[Optional[_Bytes], str]]:
    """The bytes of every slot, and how an error names them."""
    for content, number in zip(self.bytes(field), self._numbers):
      yield content, f"the field {field} of sample {number}"

  def _lacks(self, field: str) -> str:
    """For a KeyError."""
    dataset, read, name = self._look.dataset, [], _c.text()
    for n in range(self._view.fields):
      call(library.batch_field, self._handle, n, name)
      read.append(text_of(name))
    if dataset is not None and field not in dataset.fields:
      return f"the dataset has no field {field!r}{nearest(field, dataset.fields)}; it has {', '.join(dataset.fields)}"
    return f"the field {field!r} was not read: load with fields={(*dict.fromkeys([*read, field]),)}"

  def _of_field(self, field: str) -> Any:
    return self._spans.get(field) or self._spans_of(field)

  def _spans_of(self, field: str) -> Any:
    """[(address, bytes)] of all slots: one call of the library for a batch, and not one for a slot."""
    slots = int(self._view.slots)
    spans = (_c.span * slots)()
    try:
      call(library.batch_spans, self._handle, c_text(field, "field"), spans, slots)
    except NotFoundError:
      raise KeyError(self._lacks(field)) from None
    numbers = memoryview(spans).cast("B").cast("N").tolist()  # type: ignore[call-overload]
    self._spans[field] = list(zip(numbers[::2], numbers[1::2]))
    return self._spans[field]


def _decoded(content: bytes, what: str) -> str:
  try:
    return content.decode()
  except UnicodeDecodeError as error:
    raise OptionError(f"{what} is not UTF-8: {error}") from None


class Batch(BatchFacts):
  """The samples of one step, in host memory: `images, labels = batch`.

  images and labels are of the library that `to` names. With mix= what unpacks as labels, and what adapters of frameworks give, is
  soft_labels; batch.labels stay the numbers of the classes. pixels, masks and view() are views of the loader's memory: each keeps the
  whole batch until it is gone, also after the loader is closed. What is kept cannot be reused, so copy what you keep for long.

  >>> batch = next(shardpack.load('shards', split='train', batch=16, size=64, fields=['image', 'json', 'txt']))
  >>> images, labels = batch
  >>> images.shape, images.dtype, labels.shape, labels.dtype
  ((16, 64, 64, 3), dtype('uint8'), (16,), dtype('int64'))
  >>> batch.text('txt')[0].split(',')[0] in ('a cat', 'a dog', 'an owl')
  True
  >>> batch.boxes()[0].dtype, batch.boxes()[0].shape
  (dtype('float32'), (1, 4))
  """

  @property
  def labels(self) -> Any:
    """int64 [n], a copy of the batch's own: what is written to it is what `images, labels = batch` gives. -1 where there is none, and
    for padding.

    >>> batch = next(shardpack.load('shards', batch=4, shuffle=False))
    >>> batch.labels.tolist() == shardpack.Dataset('shards').labels[:4].tolist()
    True
    """
    return converted(self._copy("labels", "int64", (len(self),)), self._look.to)

  @property
  def pixels(self) -> Any:
    """With a Decode: a NumPy array [n, height, width, channels] or [n, channels, height, width] of its dtype, with several views
    [views, n, ...]; else None.

    >>> next(shardpack.load('shards', batch=8, size=(24, 32))).pixels.shape
    (8, 32, 24, 3)
    >>> next(shardpack.load('shards', batch=8, size=(24, 32), layout='nchw', views=2)).pixels.shape
    (2, 8, 3, 32, 24)
    """
    if self._view.pixels is None:
      return None
    pixels = self._memory.array(self._view.pixels, _DTYPES[self._view.type], self._pixel_shape)
    return pixels if self._view.views <= 1 else pixels[:, :len(self)]

  @property
  def images(self) -> Any:
    """The same as an array of the library that `to` names, without a copy; without a Decode the encoded bytes: a list.

    >>> next(shardpack.load('shards', batch=8, size=32)).images.shape
    (8, 32, 32, 3)
    >>> type(next(shardpack.load('shards', batch=8)).images[0])
    <class 'bytes'>
    """
    return self.bytes("image") if self._view.pixels is None else converted(self.pixels, self._look.to)

  @property
  def _targets(self) -> Any:
    return self.labels if self._view.soft_labels is None else self.soft_labels

  def __dlpack_device__(self) -> tuple[int, int]:
    return self._tensor().__dlpack_device__()

  def __dlpack__(self, **how: Any) -> Any:
    """The pixels: torch.from_dlpack(batch). Versions 0 and 1 of DLPack."""
    return self._tensor().__dlpack__(**how)

  def _tensor(self) -> Tensor:
    if self._view.views > 1:
      raise BufferError("several views do not make one tensor of samples: take batch.pixels")
    tensor: Optional[Tensor] = pixels_of(self._handle, self._view, self._pixel_shape)
    if tensor is None:
      raise BufferError("a batch that is not decoded has no pixels")
    return tensor

  def boxes(self, format: str = "xyxy", *, field: str = "json", stored: str = "xywh") -> list[Any]:
    """Boxes of every slot's objects, in pixels of the decoded image: moved with its crop, resize and flip, and cut at its edges
    (what lies outside has no area, and keeps its row). Without a Decode as in the source.

    format: 'xyxy', 'xywh' or 'cxcywh'; stored: the same of the field. The field is what `pack` makes of COCO json, COCO's own
    annotations of an image, a JSON list of four numbers each, or a .npy array of such rows. Returns a list of float32 [k, 4]; k is
    0 where a sample lacks the field. Raises OptionError that names the sample for what is not a box.

    >>> batch = next(shardpack.load('shards', batch=8, size=64, crop='resize', fields=['image', 'json']))
    >>> all((boxes >= 0).all() and (boxes <= 64).all() for boxes in batch.boxes())
    True
    """
    boxes = [_boxes.corners(_boxes.stored_boxes(content, what), stored) for content, what in self._named(field)]
    if self._view.pixels is not None:
      if self._look.warps:
        raise OptionError("boxes() knows crop and flip, and the plan moves pixels once more: use decode_fields={'json': 'coco'}")
      if self._view.views > 1 or self._view.soft_labels:
        raise OptionError("boxes() needs a single view of unmixed samples")
      boxes = _boxes.moved(boxes, self._corners(), self.flips, self._view.width, self._view.height)
    return [_boxes.formatted(each, format) for each in boxes]

  def program(self, slot: int, view: int = 0) -> str:
    """What the Decode's augment drew for this sample, for apply_program; '' for padding. Raises IndexError for a slot or view that
    is not there, UnsupportedError for a batch that was not decoded.

    >>> next(shardpack.load('shards', batch=8, size=32, augment='rotate(30..30)')).program(0)
    'rotate(30)'
    """
    return text_made(library.batch_program, self._handle, slot_of(slot, len(self), "the batch"), whole(view, "view", 32))

  @property
  def soft_labels(self) -> Any:
    """With mix=: float32 [n, classes], rows that sum to 1. A sample without a label adds nothing, so its row, or that
    of what is mixed with it, sums to less; padding has zeros. A copy, as labels.

    >>> batch = next(shardpack.load('shards', batch=8, size=32, mix=shardpack.Mix(mixup=0.2, classes=3)))
    >>> batch.soft_labels.shape, batch.soft_labels.sum(axis=1).round(5).tolist() == [1.0] * 8
    ((8, 3), True)
    """
    return converted(self._mixed("soft_labels", "float32", (len(self), self._view.classes)), self._look.to)

  @property
  def partners(self) -> numpy.typing.NDArray[numpy.uint64]:
    """With mix=: uint64 [n], the id of the sample that each was mixed with; PADDING_ID for none.

    >>> batch = next(shardpack.load('shards', batch=8, size=32, mix=shardpack.Mix(mixup=0.2, classes=3)))
    >>> set(batch.partners.tolist()) <= set(batch.ids.tolist())
    True
    """
    partners: numpy.typing.NDArray[numpy.uint64] = self._mixed("partners", "uint64", (len(self),))
    return partners

  @property
  def weights(self) -> numpy.typing.NDArray[numpy.float32]:
    """With mix=: float32 [n], the share of that sample.

    >>> batch = next(shardpack.load('shards', batch=8, size=32, mix=shardpack.Mix(mixup=0.2, classes=3)))
    >>> batch.weights.shape, bool((batch.weights <= 1).all())
    ((8,), True)
    """
    weights: numpy.typing.NDArray[numpy.float32] = self._mixed("weights", "float32", (len(self),))
    return weights

  def _mixed(self, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
    address = getattr(self._view, name)
    if address is None:
      raise OptionError(f"{name} needs a Loader with mix=")
    return self._copy(name, dtype, shape) if name == "soft_labels" else self._memory.array(address, dtype, shape).copy()

  @property
  def masks(self) -> Any:
    """With one field of masks or label maps among decode_fields: uint8 [n, height, width] (uint16 with Labels(bits=16)), with the
    image's crop and flip; where a sample has none 0, or what Labels ignore.

    >>> import numpy
    >>> with shardpack.Writer('masked', fields={'mask': 'png'}) as writer:
    ...   writer.add('a', numpy.zeros((8, 8, 3), 'uint8'), encode='png', mask=numpy.full((8, 8), 7, 'uint8'))
    >>> masks = next(shardpack.load('masked', batch=1, size=4, decode_fields={'mask': 'labels'})).masks
    >>> masks.shape, int(masks.max())
    ((1, 4, 4), 7)
    """
    fields = self._look.masks
    if len(fields) != 1:
      raise OptionError("masks needs decode_fields={'mask': 'labels'}" if not fields else
                        f"there are masks of {' and '.join(fields)}: take mask(field)")
    return self.mask(fields[0])

  def mask(self, field: str) -> Any:
    """The same of one of several fields. Raises KeyError for one that is not among decode_fields.

    >>> import numpy
    >>> with shardpack.Writer('masked', fields={'mask': 'png', 'parts': 'png'}) as writer:
    ...   image, mask = numpy.zeros((8, 8, 3), 'uint8'), numpy.full((8, 8), 7, 'uint8')
    ...   writer.add('a', image, encode='png', mask=mask, parts=mask + 1)
    >>> batch = next(shardpack.load('masked', batch=1, size=4, decode_fields={'mask': 'labels', 'parts': 'labels'}))
    >>> int(batch.mask('parts').max())
    8
    """
    address, size = ctypes.c_void_p(), ctypes.c_uint64()
    try:
      call(library.batch_masks, self._handle, c_text(field, "field"), ctypes.byref(address), ctypes.byref(size))
    except NotFoundError:
      return self.decoded(field)
    return converted(self._memory.array(address.value or 0, "uint8", (len(self), self._view.height, self._view.width)),
                     self._look.to)

  def decoded(self, field: str) -> Any:
    """A field of decode_fields that is 'labels' or 'coco_labels' ([n, height, width]) or 'image' (like the pixels), a view of the batch. Raises
    KeyError for any other.

    >>> import numpy
    >>> with shardpack.Writer('paired', encode='png', fields={'right': 'png'}) as writer:
    ...   writer.add('a', numpy.zeros((8, 8, 3), 'uint8'), right=numpy.full((8, 8, 3), 7, 'uint8'))
    >>> right = next(shardpack.load('paired', batch=1, size=4, decode_fields={'right': 'image'})).decoded('right')
    >>> right.shape, int(right.max())
    ((1, 4, 4, 3), 7)
    """
    found = _c.decoded_field(ctypes.sizeof(_c.decoded_field))
    try:
      call(library.batch_decoded, self._handle, c_text(field, "field"), found)
    except NotFoundError:
      raise KeyError(f"the field {field!r} was not decoded: load with decode_fields={{{field!r}: 'labels'}}, or what else it is") from None
    if found.kind == _c.AS_COCO:
      raise KeyError(f"the field {field!r} is decoded to objects: take batch.objects")
    dtype, shape = _DTYPES[self._view.type], self._pixel_shape
    if found.kind in (_c.AS_LABELS, _c.AS_COCO_LABELS):
      dtype, shape = f"uint{8 * found.label_bytes}", (len(self), self._view.height, self._view.width)
    return converted(self._memory.array(found.data or 0, dtype, shape), self._look.to)

  @property
  def objects(self) -> Objects:
    """With decode_fields={'json': 'coco'}: the objects of all slots that are seen, moved with crop and flip. Raises OptionError
    without.

    >>> batch = next(shardpack.load('shards', batch=8, size=32, crop='resize', decode_fields={'json': 'coco'}))
    >>> batch.objects.offsets.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    return Objects(self._handle, len(self), int(self._view.slots))
