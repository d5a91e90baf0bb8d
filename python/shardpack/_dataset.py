"""Dataset: numbered samples."""

import ctypes
import os
from operator import index

from . import _c
from ._errors import NotFoundError, OutOfRangeError
from ._library import call, library, made, text_of
from ._options import c_text, of_type


class Dataset:
  """A packed dataset: numbered samples, read with their hashes checked. dataset[i] is a dict with key, label and the bytes of
  every field. Can be used by several threads, and after a fork."""

  def __init__(self, path):
    self._set(made(library.dataset_release, library.dataset_open, c_text(path, "path")))

  @classmethod
  def _of(cls, handle):
    dataset = cls.__new__(cls)
    dataset._set(handle)
    return dataset

  def _set(self, handle):
    self._handle = handle
    self._info = _c.dataset_info(ctypes.sizeof(_c.dataset_info))
    call(library.dataset_info_of, handle, self._info)
    self._columns = {}  # those of the shards' indexes that were needed

  @staticmethod
  def join(parts):
    """Several datasets of the same classes as one row of samples."""
    if isinstance(parts, Dataset):  # which would be read sample by sample
      raise TypeError("parts is a list of Datasets, and not one")
    parts = [of_type(part, Dataset, "each of the parts") for part in parts]
    pointers = (ctypes.c_void_p * len(parts))(*(part._handle.pointer for part in parts))
    return Dataset._of(made(library.dataset_release, library.dataset_join, pointers, len(parts)))

  def split(self, name):
    """The samples of one split alone."""
    return Dataset._of(made(library.dataset_release, library.dataset_split, self._handle, c_text(name, "name")))

  def __len__(self):
    return self._info.samples

  def __repr__(self):
    return f"<Dataset of {len(self)} samples in {self._info.shards} shards, {self.format}, {self.identity}>"

  def __getitem__(self, id):  # pylint: disable=redefined-builtin
    number = index(id)
    if not 0 <= number < len(self):
      error = OutOfRangeError(f"the dataset has no sample {number}, but those from 0 to {len(self) - 1}" if len(self) else "the dataset has no samples")
      error.code = "OUT_OF_RANGE"
      raise error
    number = ctypes.c_uint64(number)
    batch = made(library.batch_release, library.dataset_read, self._handle, ctypes.byref(number), 1, None, 0)
    view = _c.batch_view(ctypes.sizeof(_c.batch_view))
    call(library.batch_view_of, batch, view)
    fields = {}
    name, span = _c.text(), _c.span()
    for n in range(view.fields):
      call(library.batch_field, batch, n, name)
      key = ctypes.string_at(name.data, name.size)
      call(library.batch_spans, batch, key, span, 1)
      if span.data is not None:
        fields[os.fsdecode(key)] = ctypes.string_at(span.data, span.bytes)
    shard, record = ctypes.c_uint32(), ctypes.c_uint64()
    call(library.dataset_locate, self._handle, number, ctypes.byref(shard), ctypes.byref(record))
    text = lambda ends, of: self._text(shard.value, record.value, ends, of)
    image = self._column(shard.value, _c.COLUMN_IMAGE)
    facts = _c.image.from_address(image.data + record.value * image.item_bytes)
    return {
        "key": text(_c.COLUMN_KEY_ENDS, _c.COLUMN_KEY_TEXT),
        "source_path": text(_c.COLUMN_PATH_ENDS, _c.COLUMN_PATH_TEXT),
        "label": ctypes.c_int64.from_address(view.labels).value,
        "width": facts.width,
        "height": facts.height,
        "fields": fields,
    }

  def _column(self, shard, column):
    if (shard, column) not in self._columns:
      view = _c.column()
      call(library.dataset_column, self._handle, shard, column, None, view)
      self._columns[shard, column] = view
    return self._columns[shard, column]

  def _text(self, shard, record, ends, of):
    """A record's text; it begins where the one before it ends."""
    at = self._column(shard, ends).data + 8 * record
    end = ctypes.c_uint64.from_address(at).value
    begin = ctypes.c_uint64.from_address(at - 8).value if record > 0 else 0
    return os.fsdecode(ctypes.string_at(self._column(shard, of).data + begin, end - begin))

  def find_key(self, key):
    """The number of the sample with this key."""
    encoded, number = os.fsencode(key), ctypes.c_uint64()
    try:
      call(library.dataset_find_key, self._handle, encoded, len(encoded), ctypes.byref(number))
    except NotFoundError:
      raise KeyError(key) from None
    return number.value

  @property
  def classes(self):
    """Their names: that of label 0 first."""
    name, names = _c.text(), []
    for n in range(self._info.classes):
      call(library.dataset_name, self._handle, _c.CLASS, n, name)
      names.append(text_of(name))
    return names

  @property
  def format(self):
    return text_of(self._info.format)

  @property
  def identity(self):
    """What was packed: the same for equal shards, whatever their folder."""
    return "xxh3:" + bytes(self._info.identity).hex()
