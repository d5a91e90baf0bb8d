"""Sample: what a dataset has under a number."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any, Dict, Iterator, NamedTuple, Optional

from . import _c
from ._errors import DataLossError, Error, NoMemoryError, OptionError, made_error
from ._library import call, library
from ._memory import import_numpy

if TYPE_CHECKING:
  import numpy
  import numpy.typing
  from ._dataset import Dataset

_RAW = 7  # the format of pixels without headers
_MOST_PIXELS = 64_000_000  # that a Loader decodes, and image_info_of takes
_NAMES = ("key", "source_path", "label", "width", "height", "fields")


class Facts(NamedTuple):
  """What the index of a shard says about a sample."""

  key: str
  path: str
  split: Optional[str]
  class_name: Optional[str]
  stored: bytes  # a shardpack_image
  shard: str
  record: int


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

  __slots__ = ("id", "fields", "_label", "_dataset", "_facts")

  id: int
  """Its number in the dataset."""
  fields: Dict[str, bytes]
  """The bytes of each field that it has; "image" is the encoded image."""

  def __init__(self, dataset: Optional[Dataset], id: int, label: int, fields: Dict[str, bytes],  # pylint: disable=redefined-builtin
               facts: Optional[Facts]) -> None:
    self._dataset, self.id, self._label, self.fields, self._facts = dataset, id, label, fields, facts

  def __reduce__(self) -> Any:
    # Not with the dataset: that would be opened where the sample arrives.
    return Sample, (None, self.id, self._label, self.fields, self._known)

  @property
  def _known(self) -> Facts:
    if self._facts is None:
      assert self._dataset is not None
      self._facts = self._dataset._facts_of(self.id, self._label)  # pylint: disable=protected-access
    return self._facts

  @property
  def _stored(self) -> Any:
    """What the index says about the image, a shardpack_image."""
    if self._facts is None and self._dataset is not None:  # the others take longer to find
      return self._dataset._image_of(self.id)  # pylint: disable=protected-access
    return _c.image.from_buffer_copy(self._known.stored)

  @property
  def label(self) -> int:
    """Of its class; -1 if it has none. Another one, for Writer.add_sample, changes class_name too; the dataset stays as it is. A
    sample that was pickled does not know the names of other classes: then class_name is None.

    >>> dataset = shardpack.Dataset("shards")
    >>> sample = dataset[0]
    >>> sample.label = dataset.class_to_idx["owl"]
    >>> sample.class_name
    'owl'
    """
    return self._label

  @label.setter
  def label(self, label: int) -> None:
    try:
      number = -2 if isinstance(label, bool) else index(label)
    except TypeError:
      number = -2
    if number < -1:
      raise OptionError(f"label must be the number of a class, or -1 for none, not {label!r}")
    known = self._known
    names = [] if self._dataset is None else self._dataset.classes
    if names and number >= len(names):
      raise OptionError(f"label {number} is none of the dataset's {len(names)} classes, which count from 0")
    if number != self._label:
      self._label, self._facts = number, known._replace(class_name=names[number] if names and number >= 0 else None)

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
    return self._stored.width  # type: ignore[no-any-return]

  @property
  def height(self) -> int:
    """As width."""
    return self._stored.height  # type: ignore[no-any-return]

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
    """The image's pixels, uint8 [height, width, channels], as a Loader decodes them: turned upright by its EXIF orientation:
    height and width of the sample are those as stored, so of an image that lies on its side they are the other way round here.

    channels: 3, RGB, or 1, gray. Decodes the bytes that the sample holds, in this thread, so a pickled sample needs no dataset.
    For many images, use shardpack.load, which decodes with all cores.

    KeyError if the sample has no image; DataLossError, which names the sample, if its bytes are damaged or no image, UnsupportedError for a
    kind of image that a Loader does not decode either, NoMemoryError for more than 64 million pixels.

    >>> sample = shardpack.Dataset("shards")[0]
    >>> sample.decode(channels=1).shape == (sample.height, sample.width, 1)     # which has no EXIF orientation
    True
    """
    try:
      planes = 0 if isinstance(channels, bool) else index(channels)
    except TypeError:
      planes = 0
    if planes not in (1, 3):
      raise OptionError(f"channels must be 3 or 1, not {channels!r}")
    data, numpy = bytes(self.image), import_numpy()
    stored = self._stored
    width, height = stored.width, stored.height
    try:
      if stored.format != _RAW:
        info = _c.image_info(ctypes.sizeof(_c.image_info))
        call(library.image_info_of, data, len(data), 0, info)
        stored, width, height = info.stored, info.width, info.height
      elif width * height > _MOST_PIXELS:
        raise made_error(NoMemoryError, f"{width} x {height} pixels are more than the limit of {_MOST_PIXELS}", {"code": "NO_MEMORY"})
      elif width * height * stored.channels != len(data):
        raise DataLossError("the image has another size than its width, height and channels")
      pixels = numpy.empty((height, width, planes), numpy.uint8)
      call(library.image_decode, data, len(data), stored, planes, pixels.ctypes.data, pixels.nbytes)
      return pixels  # type: ignore[no-any-return]
    except Error as error:
      raise self._named(error) from None

  def _named(self, error: Error) -> Error:
    """An error about the image, as a Loader's."""
    facts = self._known
    kind = DataLossError if isinstance(error, OptionError) else type(error)  # the argument is not the caller's
    where = {"shard": facts.shard, "record": facts.record, "key": facts.key, "id": self.id, "field": "image"}
    key = f" key {facts.key!r}" if facts.key else ""
    return made_error(kind, f"{facts.shard} record {facts.record}{key}: {error}",
                      {"code": "DATA_LOSS" if kind is DataLossError else error.code, **where})

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
