"""Sample: what a dataset has under a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ._errors import UnsupportedError

if TYPE_CHECKING:
  import numpy
  import numpy.typing
  from ._dataset import Dataset
  from ._source import Reference

_TURNED = range(5, 9)  # EXIF orientations that exchange width and height
_NAMES = ("key", "source_path", "label", "width", "height", "fields")


class Facts(NamedTuple):
  """What the index of a shard says about a sample."""

  key: str
  path: str
  split: Optional[str]
  class_name: Optional[str]
  width: int
  height: int


class Sample(Mapping[str, Any]):
  """A sample with its encoded bytes, read and verified. It owns them, so it can be kept, pickled and sent to other processes.

  It is a mapping too: of "key", "source_path", "label", "width", "height" and "fields", and sample["json"] is the field's bytes.

  >>> import shardpack
  >>> sample = shardpack.Dataset("shards")[0]
  >>> sample.class_name in ("cat", "dog", "owl"), sample.fields["image"] == sample.image
  (True, True)
  >>> sample.decode().shape == (sample.height, sample.width, 3)
  True
  """

  __slots__ = ("id", "label", "fields", "_dataset", "_reference", "_facts")

  id: int
  """Its number in the dataset."""
  label: int
  """Of its class; -1 if it has none."""
  fields: Dict[str, bytes]
  """The bytes of each field that it has; "image" is the encoded image."""

  def __init__(self, dataset: Optional[Dataset], id: int, label: int, fields: Dict[str, bytes],  # pylint: disable=redefined-builtin
               facts: Optional[Facts], reference: Optional[Reference]) -> None:
    self._dataset, self.id, self.label, self.fields, self._facts, self._reference = dataset, id, label, fields, facts, reference

  def __reduce__(self) -> Any:
    # Not with the dataset: that would be opened where the sample arrives.
    reference = self._reference if self._dataset is None else self._dataset._reference_to(self.id)  # pylint: disable=protected-access
    return Sample, (None, self.id, self.label, self.fields, self._known, reference)

  @property
  def _known(self) -> Facts:
    if self._facts is None:
      assert self._dataset is not None
      self._facts = self._dataset._facts_of(self.id, self.label)  # pylint: disable=protected-access
    return self._facts

  @property
  def image(self) -> bytes:
    """The encoded image. KeyError if the sample has none."""
    return self["image"]  # type: ignore[no-any-return]

  @property
  def key(self) -> str:
    """Its name, unique in the dataset."""
    return self._known.key

  @property
  def path(self) -> str:
    """Of the file that it was packed from; '' if that is not known."""
    return self._known.path

  @property
  def split(self) -> Optional[str]:
    """None if the dataset has no splits."""
    return self._known.split

  @property
  def class_name(self) -> Optional[str]:
    """None if it has no label, or the dataset has no names for them."""
    return self._known.class_name

  @property
  def width(self) -> int:
    """In pixels as stored, before an EXIF orientation is applied; 0 if it is not known."""
    return self._known.width

  @property
  def height(self) -> int:
    """As width."""
    return self._known.height

  def text(self, field: str = "txt") -> str:
    """A field as text. KeyError if the sample lacks it, UnicodeDecodeError if it is not UTF-8.

    >>> shardpack.Dataset("shards")[0].text().split(",")[0] in ("a cat", "a dog", "an owl")
    True
    """
    return self.fields[field].decode()

  def json(self, field: str = "json") -> Any:
    """A field that is JSON, parsed. KeyError if the sample lacks it.

    >>> sorted(shardpack.Dataset("shards")[0].json())
    ['boxes', 'number']
    """
    import json  # pylint: disable=import-outside-toplevel
    return json.loads(self.fields[field])

  def decode(self, channels: int = 3) -> numpy.typing.NDArray[numpy.uint8]:
    """The image's pixels, uint8 [height, width, channels], as a Loader decodes them: turned upright by its EXIF orientation.

    channels: 3, RGB, or 1, gray. UnsupportedError if the size of the image is not known. The library reads the image from the dataset again, with a loader of its own, which takes a
    millisecond or two: for single images. For many, use shardpack.load.

    >>> sample = shardpack.Dataset("shards")[0]
    >>> sample.decode(channels=1).shape == (sample.height, sample.width, 1)
    True
    """
    dataset, number = self._opened()
    facts = dataset._image_of(number)  # pylint: disable=protected-access
    width, height = facts.width, facts.height
    if facts.orientation in _TURNED:
      width, height = height, width
    if not width or not height:
      raise UnsupportedError("the size of the image is not known: a shard of another program was opened without an index; `pack index` makes a "
                             "dataset of it that has one")
    return _decoded(dataset, number, width, height, channels).pixels[0].copy()  # type: ignore[no-any-return]

  def _opened(self) -> Any:
    """The dataset, which a pickled sample has to open first, and the sample's number there."""
    if self._dataset is not None:
      return self._dataset, self.id
    assert self._reference is not None
    return self._reference.dataset(), self._reference.id

  def __getitem__(self, name: str) -> Any:
    if name in _NAMES:
      return self.path if name == "source_path" else getattr(self, name)
    try:
      return self.fields[name]
    except KeyError:
      raise KeyError(f"the sample has no field {name!r}, but " + ", ".join(repr(field) for field in self.fields)) from None

  def __iter__(self) -> Iterator[str]:
    return iter(_NAMES)

  def __len__(self) -> int:
    return len(_NAMES)

  def __repr__(self) -> str:
    named = "" if self.class_name is None else f", {self.class_name}"
    fields = ", ".join(f"{name}: {len(data)} bytes" for name, data in self.fields.items())
    return f"<Sample {self.id} {self.key!r}{named}, {self.width}x{self.height}, {fields}>"


def _decoded(dataset: Dataset, number: int, width: int, height: int, channels: int) -> Any:
  """A batch of that image alone."""
  from ._decode import Decode  # pylint: disable=import-outside-toplevel
  from ._loader import Loader  # pylint: disable=import-outside-toplevel
  from ._order import Order  # pylint: disable=import-outside-toplevel
  order = Order(len(dataset), 1, subset=[number], mode="sequential")
  decode = Decode(width, height, crop="resize", channels=channels)
  return next(Loader(dataset, order, decode=decode, epochs=1, threads=1, io_threads=0, prefetch_batches=1, map_shards=False))
