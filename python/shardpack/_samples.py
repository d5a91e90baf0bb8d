"""Samples: those of one read; EncodedBatch: the same as one block of bytes, for another process."""

# pylint: disable=protected-access

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from operator import add
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, overload

from . import _c
from ._frameworks import converted, framework_of
from ._library import Handle, call, library
from ._memory import Memory, import_numpy
from ._sample import Sample
from ._text import decoded

if TYPE_CHECKING:
  import numpy.typing
  from ._dataset import Dataset

_Bytes = bytes  # which a method hides
_NONE = (1 << 64) - 1  # where a sample lacks the field
# The bytes of several fields, and of each field, as uint64, where those of the samples begin in the block, and then where they end.
_Block = Tuple[_Bytes, Dict[str, _Bytes]]


class Samples(Sequence[Sample]):
  """What `Dataset.__getitems__` returns: Samples in the order in which they were asked for, made when they are first looked at.

  A read-only sequence: samples[3] is a Sample, samples[1:5] a list of them. One thread at a time. shardpack.collate takes their
  bytes without making any of them. Pickled as a list.

  >>> samples = shardpack.Dataset("shards").__getitems__([5, 3, -1])
  >>> len(samples), [sample.id for sample in samples]
  (3, [5, 3, 59])
  """

  def __init__(self, dataset: Dataset, handle: Handle, ids: array[int]) -> None:
    self._dataset, self._ids = dataset, ids
    self._content: Optional[Content] = Content(handle)  # None: they are made
    self._made: Optional[List[Sample]] = None

  def __len__(self) -> int:
    return len(self._ids)

  @overload
  def __getitem__(self, which: int) -> Sample: ...

  @overload
  def __getitem__(self, which: slice) -> List[Sample]: ...

  def __getitem__(self, which: Any) -> Any:
    return self._all()[which]

  def __iter__(self) -> Iterator[Sample]:
    return iter(self._all())

  def __repr__(self) -> str:
    return f"<{len(self)} Samples>"

  @property
  def nbytes(self) -> int:
    """Of all fields."""
    if self._content is None:
      return sum(len(value) for sample in self._all() for value in sample.fields.values())
    return self._content.nbytes

  def __reduce__(self) -> Any:
    return list, (self._all(),)

  def _all(self) -> List[Sample]:
    if self._made is None:
      assert self._content is not None
      labels, fields = self._content.lists()
      made = [Sample(self._dataset, number, label, {}, None) for number, label in zip(self._ids, labels)]
      for name, values in fields.items():
        for sample, value in zip(made, values):
          if value is not None:
            sample.fields[name] = value
      self._made, self._content = made, None
    return self._made


class Content:
  """What a batch has that dataset_read made: a few calls of the library, however many slots there are."""

  def __init__(self, handle: Handle) -> None:
    self._handle = handle  # whose memory it is
    view = _c.batch_view(ctypes.sizeof(_c.batch_view))
    call(library.batch_view_of, handle, view)
    slots = int(view.slots)
    self.labels = ctypes.string_at(view.labels, 8 * slots) if slots else b""  # int64
    self._spans: Dict[str, Tuple[List[int], List[int]]] = {}  # addresses, 0 where there is none, and sizes
    name, spans = _c.text(), (_c.span * slots)()
    for n in range(view.fields if slots else 0):
      call(library.batch_field, handle, n, name)
      field = ctypes.string_at(name.data, name.size)
      call(library.batch_spans, handle, field, spans, slots)
      numbers = memoryview(spans).cast("B").cast("Q").tolist()
      self._spans[decoded(field)] = numbers[::2], numbers[1::2]

  def lists(self) -> Tuple[List[int], Dict[str, List[Optional[_Bytes]]]]:
    """(labels, {field: bytes of each slot})."""
    content, fields = self.block()
    return memoryview(self.labels).cast("q").tolist(), {name: _values(content, bounds) for name, bounds in fields.items()}

  @property
  def nbytes(self) -> int:
    return sum(sum(sizes) for _, sizes in self._spans.values())

  def block(self) -> _Block:
    """They were read into one piece of memory, one after the other."""
    begin = min([address for addresses, _ in self._spans.values() for address in addresses if address], default=0)
    fields, end = {}, begin
    for name, (addresses, sizes) in self._spans.items():
      starts = [address - begin if address else _NONE for address in addresses]
      fields[name] = array("Q", starts + list(map(add, starts, sizes))).tobytes()
      end = max(end, *map(add, addresses, sizes))
    return Memory(self._handle).bytes(begin, end - begin), fields  # ctypes.string_at cuts sizes to 32 bits


def _joined(fields: Dict[str, List[Optional[_Bytes]]]) -> _Block:
  end, bounds = 0, {}
  for name, values in fields.items():
    starts, ends = array("Q"), array("Q")
    for value in values:
      starts.append(_NONE if value is None else end)
      end += len(value or b"")
      ends.append(end)
    bounds[name] = (starts + ends).tobytes()
  return b"".join([value for values in fields.values() for value in values if value is not None]), bounds


def _values(content: Any, bounds: _Bytes) -> List[Any]:
  """Those of a field, as parts of the block's content."""
  numbers = memoryview(bounds).cast("Q").tolist()
  starts, ends = numbers[:len(numbers) // 2], numbers[len(numbers) // 2:]
  if _NONE in starts:
    return [None if start == _NONE else content[start:end] for start, end in zip(starts, ends)]
  return [content[start:end] for start, end in zip(starts, ends)]


class EncodedBatch:
  """What shardpack.collate makes: encoded images and labels, `images, labels = batch`, in one block of bytes that goes from
  process to process as a whole. Can be kept and pickled; threads can share it.

  >>> batch = shardpack.collate(shardpack.Dataset("shards").__getitems__([5, 3, 4])).to("numpy")
  >>> images, labels = batch
  >>> [type(image) for image in images], labels.shape, labels.dtype
  ([<class 'bytes'>, <class 'bytes'>, <class 'bytes'>], (3,), dtype('int64'))
  """

  def __init__(self, block: _Block, ids: _Bytes, labels: _Bytes, to: str = "torch") -> None:
    self._block, self._ids, self._labels, self._to = block, ids, labels, to

  def __reduce__(self) -> Any:
    return EncodedBatch, (self._block, self._ids, self._labels, self._to)

  def __len__(self) -> int:
    return len(self._ids) // 8

  def __iter__(self) -> Iterator[Any]:
    """For `images, labels = batch`."""
    yield self.images
    yield self.labels

  def __repr__(self) -> str:
    return f"<EncodedBatch of {len(self)}, {', '.join(self.fields)}: {len(self._block[0])} bytes>"

  @property
  def images(self) -> List[Optional[_Bytes]]:
    """bytes("image"), also where no sample has an image."""
    return self.bytes("image") if "image" in self._block[1] else [None] * len(self)

  @property
  def labels(self) -> Any:
    """int64 [n], a copy; -1 where a sample has none. A torch.Tensor, or of what `to` names."""
    return converted(import_numpy().frombuffer(self._labels, "int64").copy(), self._to)

  @property
  def ids(self) -> numpy.typing.NDArray[numpy.uint64]:
    """uint64 [n], a copy: the samples' numbers in the dataset."""
    ids: numpy.typing.NDArray[numpy.uint64] = import_numpy().frombuffer(self._ids, "uint64").copy()
    return ids

  @property
  def fields(self) -> List[str]:
    """Their names; "image" is the encoded image."""
    return list(self._block[1])

  def bytes(self, field: str = "image") -> List[Optional[_Bytes]]:
    """The bytes of that field of every sample: a list, with None where a sample has none. KeyError for a field that none has.

    >>> batch = shardpack.collate(shardpack.Dataset("shards").__getitems__([5, 3]))
    >>> batch.bytes("txt") == [shardpack.Dataset("shards")[n]["txt"] for n in (5, 3)]
    True
    """
    return _values(self._block[0], self._block[1][field])

  def views(self, field: str = "image") -> List[Optional[memoryview]]:
    """The same without a copy, read-only; they keep the batch's bytes.

    >>> shardpack.collate(shardpack.Dataset("shards").__getitems__([5, 3])).views()[0].readonly
    True
    """
    return _values(memoryview(self._block[0]), self._block[1][field])

  def to(self, framework: str) -> EncodedBatch:
    """The same batch, whose labels are of 'numpy', 'torch', 'jax' or 'tf'.

    >>> images, labels = shardpack.collate(shardpack.Dataset('shards').__getitems__([0, 1])).to('numpy')
    >>> labels.tolist()
    [0, 0]
    """
    return EncodedBatch(self._block, self._ids, self._labels, framework_of(framework, "framework"))


def collate(samples: Sequence[Sample]) -> EncodedBatch:
  """For torch's DataLoader over a Dataset: encoded images that cross from a worker process as one block of bytes.

    loader = torch.utils.data.DataLoader(shardpack.Dataset("shards"), 256, num_workers=2, collate_fn=shardpack.collate)
    for images, labels in loader:    # a list of bytes, an int64 tensor [n]

  samples: what a Dataset gives for a batch (Samples), or a list of Sample of one dataset or several. TypeError for anything else.

  >>> batch = shardpack.collate([shardpack.Dataset("shards")[7]])
  >>> len(batch), sorted(batch.fields)
  (1, ['image', 'json', 'txt'])
  """
  if isinstance(samples, Samples) and samples._content is not None:
    return EncodedBatch(samples._content.block(), samples._ids.tobytes(), samples._content.labels)
  for sample in samples:
    if not isinstance(sample, Sample):
      raise TypeError(f"samples must come from a shardpack.Dataset, not {type(sample).__name__}: a DataLoader with a transform of its own has "
                      "its own collate_fn")
  fields = {name: None for sample in samples for name in sample.fields}
  block = _joined({name: [sample.fields.get(name) for sample in samples] for name in fields})
  return EncodedBatch(block, array("Q", [sample.id for sample in samples]).tobytes(), array("q", [sample.label for sample in samples]).tobytes())
