"""Dataset: numbered samples."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Iterator, Sequence, SupportsIndex, Tuple, Union, overload

from . import _c, _columns, _select, _source
from ._columns import Columns
from ._errors import DataLossError, Error, NotADatasetError, NotFoundError
from ._library import Handle, call, library, made, text_of
from ._memory import ids_of, import_numpy
from ._options import c_path, c_text, flag, names, of_type
from ._sample import Facts, Sample
from ._samples import Content, Samples
from ._table import Table
from ._text import decoded, encoded

if TYPE_CHECKING:
  import numpy
  import numpy.typing
  from ._arguments import Path
  Ids = Union[Sequence[int], Sequence[bool], "numpy.typing.NDArray[numpy.integer[Any]]", "numpy.typing.NDArray[numpy.bool_]"]
  Int64s = numpy.typing.NDArray[numpy.int64]
  Uint32s = numpy.typing.NDArray[numpy.uint32]
  Uint64s = numpy.typing.NDArray[numpy.uint64]
  Strings = numpy.typing.NDArray[numpy.object_]


_BLOCK_BYTES = 64 << 20  # that a loop over samples reads at once


class Dataset:
  """A packed dataset, or a part of one: samples with numbers from 0 on, read with their hashes checked.

  path: the folder that `pack` made, or one shard of another program: str, bytes or os.PathLike. A list of them is one dataset
  after the other; their classes must be the same, by name and order, because a label would otherwise mean two things.
  map_shards: small samples are copied from mappings of the shards in the page cache, as Loader says; of a list, of those that are
  paths, and a joined dataset has it where all parts do.

  dataset[7] and dataset[-1] are Samples. dataset[2:9], dataset[mask] and dataset[ids] are Datasets: views that read nothing and copy
  nothing but numbers. Can be used by several threads, after a fork, and by torch's DataLoader as it is. It is pickled as its
  path, identity and selection.

  Errors: NotFoundError (a FileNotFoundError) if nothing is there, OptionError (a ValueError) for what is not a dataset or does not fit,
  DataLossError for damage.

  >>> import shardpack
  >>> dataset = shardpack.Dataset("shards")
  >>> dataset.classes, len(dataset), dataset.splits
  (['cat', 'dog', 'owl'], 60, {'train': 48, 'val': 12})
  >>> cats = dataset.where(label="cat", split="train")
  >>> {cats[n].class_name for n in range(3)}
  {'cat'}
  """

  def __init__(self, path: Union[Path, Sequence[Union[Path, Dataset]]], *, map_shards: bool = True) -> None:
    map_shards = flag(map_shards, "map_shards")
    if isinstance(path, (list, tuple)):
      parts = [part if isinstance(part, Dataset) else Dataset(part, map_shards=map_shards) for part in path]
      joined = parts[0] if len(parts) == 1 else Dataset.join(parts)
      self._become(joined._handle, joined._source, joined._map_shards, joined._base, joined._ids)
    elif isinstance(path, (str, bytes, os.PathLike)):
      name = c_path(path, "path")
      try:
        handle = made(library.dataset_release, library.dataset_open, name)
      except (NotADatasetError, DataLossError) as error:
        from . import _parts  # pylint: disable=import-outside-toplevel
        if isinstance(error, NotADatasetError) or name.rstrip(b"/").endswith(b".parts"):
          error.args = (f"{error}{_parts.way_on(name)}",)
        raise
      self._become(handle, _source.of_path(name), map_shards)
    else:
      raise TypeError(f"path must be a str, bytes, an os.PathLike or a list of these, not {type(path).__name__}")

  @classmethod
  def _of(cls, handle: Handle, source: _source.Source, map_shards: bool, base: Optional[Dataset] = None,
          ids: Optional[Uint64s] = None) -> Dataset:
    dataset = cls.__new__(cls)
    dataset._become(handle, source, map_shards, base, ids)
    return dataset

  def _become(self, handle: Handle, source: _source.Source, map_shards: bool, base: Optional[Dataset] = None,
              ids: Optional[Uint64s] = None) -> None:
    """base, ids: of a selection, its dataset of whole shards and the ids there."""
    self._handle, self._source, self._map_shards, self._ids = handle, source, map_shards, ids
    self._base = self if ids is None or base is None else base
    self._info = _c.dataset_info(ctypes.sizeof(_c.dataset_info))
    call(library.dataset_info_of, handle, self._info)
    call(library.dataset_map_shards, handle, map_shards)
    self._columns: Columns = Columns(handle, self._info.shards) if self._base is self else self._base._columns
    self._kept: Dict[str, Any] = {}  # columns of a selection, and what is made of them

  @staticmethod
  def join(parts: Iterable[Dataset]) -> Dataset:
    """Several datasets as one row of samples. Their classes must be the same, by name and order: OptionError otherwise.

    >>> import shardpack
    >>> dataset = shardpack.Dataset("shards")
    >>> len(shardpack.Dataset.join([dataset.split("val"), dataset.split("train")]))
    60
    """
    if isinstance(parts, Dataset):  # which would be read sample by sample
      raise TypeError("parts must be a list of Datasets, not a single one")
    parts = [of_type(part, Dataset, "each of the parts") for part in parts]
    _select.check_classes(parts)
    bases = [part._base for part in parts]
    pointers = (ctypes.c_void_p * len(parts))(*(base._handle.pointer for base in bases))
    handle = made(library.dataset_release, library.dataset_join, pointers, len(parts))
    joined = Dataset._of(handle, ["join", [base._source for base in bases]], all(base._map_shards for base in bases))
    if all(part._ids is None for part in parts):
      return joined
    return joined._of_ids(_select.joined_ids(parts))

  # ---- samples

  def __len__(self) -> int:
    return self._info.samples  # type: ignore[no-any-return]

  # An array says that it can be an index too: one of a single number can.
  @overload
  def __getitem__(self, which: Union[slice, Ids]) -> Dataset: ...  # type: ignore[overload-overlap]

  @overload
  def __getitem__(self, which: SupportsIndex) -> Sample: ...

  def __getitem__(self, which: Any) -> Any:
    """dataset[7], dataset[-1]: a Sample, read and verified. dataset[2:9], dataset[mask], dataset[ids]: a Dataset of these.

    IndexError for a number past the end; OptionError for a mask of zeros and ones that is not bool: a row of nothing else, which is as
    long as the dataset (of more than two samples).
    """
    # torch makes a number of a row with one entry too.
    if getattr(which, "ndim", 0) or not hasattr(which, "__index__"):
      return self._of_ids(_select.base_ids(self, which))
    return self.__getitems__((which,))[0]

  def __iter__(self) -> Iterator[Sample]:
    """The Samples one after the other, read in blocks as by __getitems__: of 1, 4, 16, 64 and then 256, or of as many as make up
    64 MB if they are as large as those of the block before. Those before a damaged one come, and then its error.

    >>> [sample.id for sample in shardpack.Dataset("shards")[:3]]
    [0, 1, 2]
    """
    first, count = 0, 1
    while first < len(self):
      block = range(first, min(first + count, len(self)))
      first += len(block)
      samples: Optional[Samples] = None
      try:
        samples = self.__getitems__(block)
        count = min(256, 4 * count, max(1, _BLOCK_BYTES * len(samples) // max(1, samples.nbytes)))
      except Error:  # of one of them, which keeps the others from coming
        pass
      yield from map(self.__getitem__, block) if samples is None else samples

  def __getitems__(self, ids: Sequence[int]) -> Samples:
    """The Samples with these numbers, a sequence, with one call of the library, which reads in the order of the shards. torch's
    DataLoader calls it for each batch; with collate_fn=shardpack.collate what was read goes on as one block.

    >>> import shardpack
    >>> [sample.id for sample in shardpack.Dataset("shards").__getitems__([5, 3, -1])]
    [5, 3, 59]
    """
    numbers = _select.places(self, ids)
    return Samples(self, self._read(numbers, None, 0), numbers)

  def _read(self, numbers: Any, fields: Any, field_count: int) -> Handle:
    wanted = (ctypes.c_uint64 * len(numbers)).from_buffer(numbers) if numbers else None
    return made(library.batch_release, library.dataset_read, self._handle, wanted, len(numbers), fields, field_count)

  def _read_lists(self, ids: Sequence[int], fields: Sequence[str]) -> Tuple[List[int], Dict[str, List[Optional[bytes]]]]:
    """Of some fields, (labels, {field: bytes of each sample})."""
    return Content(self._read(_select.places(self, ids), names(fields, "fields"), len(fields))).lists()

  def _read_dicts(self, ids: Sequence[int], fields: Sequence[str]) -> List[Dict[str, Any]]:
    """The same as dicts of bytes and the label, which lack what a sample lacks."""
    labels, found = self._read_lists(ids, fields)
    dicts: List[Dict[str, Any]] = [{"label": label} for label in labels]
    for name, values in found.items():
      for one, value in zip(dicts, values):
        if value is not None:
          one[name] = value
    return dicts

  def get(self, key: str, default: Any = None) -> Any:
    """The Sample with this key; `default` if there is none. Takes the time of find_key.

    >>> import shardpack
    >>> dataset = shardpack.Dataset("shards")
    >>> dataset.get(dataset[7].key).id, dataset.get("none")
    (7, None)
    """
    try:
      return self[self.find_key(key)]
    except KeyError:
      return default

  def __contains__(self, key: object) -> bool:
    """Whether a sample has this key."""
    if not isinstance(key, (str, bytes)):
      raise TypeError(f"a key must be a str, not {type(key).__name__}")
    try:
      self.find_key(key)
      return True
    except KeyError:
      return False

  def find_key(self, key: Union[str, bytes]) -> int:
    """The number of the sample with this key. KeyError if there is none. The first look-up compares with all keys, the second one
    makes a table of 12 to 24 bytes a sample.

    >>> dataset = shardpack.Dataset("shards")
    >>> dataset.find_key(dataset.keys[7])
    7
    """
    name, number = encoded(key, "key"), ctypes.c_uint64()
    try:
      call(library.dataset_find_key, self._handle, name, len(name), ctypes.byref(number))
    except NotFoundError as error:
      if error.path is not None:  # it is an index that is not there
        raise
      raise KeyError(key) from None
    return number.value

  def _place(self, number: int) -> Tuple[int, int]:
    shard, record = ctypes.c_uint32(), ctypes.c_uint64()
    call(library.dataset_locate, self._handle, number, ctypes.byref(shard), ctypes.byref(record))
    return shard.value, record.value

  def _facts_of(self, number: int, label: int) -> Facts:
    shard, record = self._place(number)
    columns, classes = self._columns, self._class_names
    return Facts(columns.text(shard, record, _columns.KEY), columns.text(shard, record, _columns.PATH), columns.shards[shard].split,
                 classes[label] if 0 <= label < len(classes) else None, bytes(columns.image(shard, record)), columns.shards[shard].name, record)

  def _key_of(self, number: int) -> str:
    return self._columns.text(*self._place(number), _columns.KEY)

  def _image_of(self, number: int) -> Any:
    return self._columns.image(*self._place(number))

  # ---- columns

  def _column(self, name: str, of_base: Callable[[], Any]) -> Any:
    """That of the whole shards, or a selection's rows of it."""
    if self._ids is None:
      return of_base()
    if name not in self._kept:
      self._kept[name] = _columns.frozen(of_base()[self._ids])
    return self._kept[name]

  @property
  def labels(self) -> Int64s:
    """int64 [n], read-only: the number of each sample's class, -1 if it has none. Of one shard, a view of its index, which is not
    copied; of several, joined once and kept. So are the other columns. Reads no images.

    >>> import shardpack
    >>> shardpack.Dataset("shards").split("val").labels.shape
    (12,)
    """
    return self._column("labels", lambda: self._columns.joined(_c.COLUMN_LABEL))  # type: ignore[no-any-return]

  @property
  def keys(self) -> Strings:
    """The samples' keys, str [n] (an array of objects), read-only; made once and kept. What is not UTF-8 comes back with
    .encode("utf-8", "surrogateescape").

    >>> dataset = shardpack.Dataset("shards")
    >>> dataset.keys[7] == dataset[7].key
    True
    """
    return self._strings("keys", _columns.KEY)  # type: ignore[no-any-return]

  @property
  def paths(self) -> Strings:
    """The files that the samples were packed from, str [n] (an array of objects), as keys; '' where that is not known.

    >>> sorted({path.split("/")[0] for path in shardpack.Dataset("shards").paths})
    ['cat', 'dog', 'owl']
    """
    return self._strings("paths", _columns.PATH)  # type: ignore[no-any-return]

  @property
  def widths(self) -> Uint32s:
    """uint32 [n], read-only: of the images in pixels as stored, before an EXIF orientation is applied; 0 if it is not known.

    >>> import shardpack
    >>> dataset = shardpack.Dataset("shards")
    >>> bool((dataset.widths * dataset.heights).min() > 0)
    True
    """
    return self._column("widths", lambda: self._columns.image_part("width"))  # type: ignore[no-any-return]

  @property
  def heights(self) -> Uint32s:
    """uint32 [n], read-only: as widths."""
    return self._column("heights", lambda: self._columns.image_part("height"))  # type: ignore[no-any-return]

  @property
  def sizes(self) -> Uint64s:
    """uint64 [n], read-only: bytes of the encoded images; 0 where a sample has none.

    >>> import shardpack
    >>> dataset = shardpack.Dataset("shards")
    >>> int(dataset.sizes[3]) == len(dataset[3].image)
    True
    """
    return self._column("sizes", lambda: self._columns.joined(_c.COLUMN_BYTES, "image"))  # type: ignore[no-any-return]

  @property
  def hashes(self) -> Uint64s:
    """uint64 [n], read-only: XXH3-64 of the encoded images. Equal images have equal hashes.

    >>> import numpy
    >>> len(numpy.unique(shardpack.Dataset("shards").hashes))
    60
    """
    return self._column("hashes", lambda: self._columns.joined(_c.COLUMN_HASH, "image"))  # type: ignore[no-any-return]

  @property
  def shard_ids(self) -> Uint32s:
    """uint32 [n], read-only: which of `shards` has the sample.

    >>> dataset = shardpack.Dataset("shards")
    >>> dataset.shards[dataset.shard_ids[-1]]
    'val-000000.tar'
    """
    return self._column("shard_ids", self._columns.shard_ids)  # type: ignore[no-any-return]

  def _strings(self, name: str, kind: Tuple[int, int]) -> Any:
    if name not in self._kept:
      self._kept[name] = _columns.strings(self._texts(kind))
    return self._kept[name]

  def _texts(self, kind: Tuple[int, int]) -> _columns.Texts:
    texts = self._columns.texts(kind)
    return texts if self._ids is None else _columns.taken_texts(texts, self._ids)

  def table(self) -> Table:
    """All columns by name, each an array [n], made when it is first asked for: id, key, path, label, class_name, split, width, height,
    size, hash, shard. Arrow's users take it as it is: pyarrow.table(dataset.table()), polars.DataFrame(dataset.table()), and in
    DuckDB's SQL the name of a variable that has it; there, numbers, keys and paths of whole shards are not copied.

    >>> import shardpack
    >>> table = shardpack.Dataset("shards").table()
    >>> sorted(table)[:4], int(table["width"].min()) > 0
    (['class_name', 'hash', 'height', 'id'], True)
    """
    return Table(self)

  def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
    """That of table()."""
    return self.table().__arrow_c_stream__(requested_schema)

  # ---- what is known about all of them

  @property
  def classes(self) -> List[str]:
    """Their names: that of label 0 first. Empty for shards of other programs.

    >>> shardpack.Dataset("shards").classes
    ['cat', 'dog', 'owl']
    """
    return list(self._class_names)

  @property
  def class_to_idx(self) -> Dict[str, int]:
    """{class: label}, as torchvision's datasets have it.

    >>> shardpack.Dataset("shards").class_to_idx
    {'cat': 0, 'dog': 1, 'owl': 2}
    """
    return {name: label for label, name in enumerate(self._class_names)}

  @property
  def _class_names(self) -> List[str]:
    base = self._base
    if "classes" not in base._kept:
      name, found = _c.text(), []
      for n in range(base._info.classes):
        call(library.dataset_name, base._handle, _c.CLASS, n, name)
        found.append(text_of(name))
      base._kept["classes"] = found
    return base._kept["classes"]  # type: ignore[no-any-return]

  @property
  def class_counts(self) -> Dict[str, int]:
    """{class: samples}, in the order of the labels; samples without a label are not counted. Classes without names have their
    label's number.

    >>> import shardpack
    >>> sum(shardpack.Dataset("shards").class_counts.values())
    60
    """
    numpy = import_numpy()
    labels, classes = self.labels, self._class_names
    counts = numpy.bincount(labels[labels >= 0], minlength=len(classes)).tolist()
    return {classes[n] if n < len(classes) else str(n): count for n, count in enumerate(counts) if count or n < len(classes)}

  @property
  def splits(self) -> Dict[str, int]:
    """{split: samples} of the splits that have some, sorted by name; empty if the dataset has no splits.

    >>> shardpack.Dataset("shards")[40:].splits
    {'train': 8, 'val': 12}
    """
    counts: Dict[str, int] = {}
    for shard, count in zip(self._columns.shards, _select.shard_counts(self)):
      if shard.split is not None and count:
        counts[shard.split] = counts.get(shard.split, 0) + count
    return dict(sorted(counts.items()))

  @property
  def shards(self) -> List[str]:
    """Names of the shards that `shard_ids` numbers."""
    return [shard.name for shard in self._columns.shards]

  @property
  def fields(self) -> List[str]:
    """The names of all fields that samples have; "image" is the encoded image. Reads the index of every shard, which has at most
    256 fields.

    >>> import shardpack
    >>> sorted(shardpack.Dataset("shards").fields)
    ['image', 'json', 'txt']
    """
    base = self._base
    if "fields" not in base._kept:
      texts = (_c.text * 256)()  # of a shard there are not more
      count = ctypes.c_size_t()
      found: Dict[str, None] = {}
      for shard in range(base._info.shards):
        call(library.dataset_fields, base._handle, shard, texts, len(texts), ctypes.byref(count))
        found.update((text_of(name), None) for name in texts[:count.value])
      base._kept["fields"] = list(found)
    return list(base._kept["fields"])

  @property
  def format(self) -> str:
    """Of the shards, such as "webdataset"."""
    return text_of(self._info.format)

  @property
  def identity(self) -> str:
    """What was packed: the same for equal shards, whatever their folder. That of a selection is of its dataset and ids."""
    return "xxh3:" + bytes(self._info.identity).hex()

  # ---- parts

  def split(self, name: str) -> Dataset:
    """The samples of one split alone. NotFoundError, which names the splits, if there is no such split.

    >>> import shardpack
    >>> len(shardpack.Dataset("shards").split("train"))
    48
    """
    if self._ids is not None:
      return self.where(split=name)
    handle = made(library.dataset_release, library.dataset_split, self._handle, c_text(name, "split"))
    return Dataset._of(handle, ["split", self._source, decoded(encoded(name))], self._map_shards)

  def select(self, ids: Ids) -> Dataset:
    """The samples with these numbers, in this order, as a Dataset; a number may come twice. Negative ones count from the end.
    IndexError for a number past the end.

    >>> import shardpack
    >>> dataset = shardpack.Dataset("shards")
    >>> dataset.select([4, 2])[1].key == dataset[2].key
    True
    """
    return self._of_ids(_select.base_ids(self, ids))

  def where(self, condition: Optional[Callable[[Table], Any]] = None, **conditions: Any) -> Dataset:
    """The samples that fulfil all conditions, as a Dataset.

    condition: is called with table() and returns a mask, bool [n].
    conditions: label= and split=, a name (or a label's number) or a list of them; min_width, max_width, min_height, max_height, in
    pixels, and min_size, max_size, in bytes; both ends are within.

    TypeError for an unknown keyword, OptionError for an unknown class, NotFoundError for an unknown split.

    >>> import shardpack
    >>> dataset = shardpack.Dataset("shards")
    >>> some = dataset.where(lambda t: (t["width"] >= 8) & (t["label"] != 0), split="val")
    >>> set(some.splits), "cat" in {sample.class_name for sample in some}
    ({'val'}, False)
    """
    return self._of_ids(_select.matching(self, condition, conditions))

  def sample(self, n: int, seed: int = 0) -> Dataset:
    """`n` different samples, drawn at random and in random order: the same for a seed in every version and on every machine.

    >>> import shardpack
    >>> len(shardpack.Dataset("shards").sample(5, seed=3))
    5
    """
    return self._of_ids(_select.drawn(self, n, seed))

  def _of_ids(self, ids: Uint64s) -> Dataset:
    """A selection, by ids of the base."""
    base = self._base
    address, count, kept = ids_of(ids, "ids")
    handle = made(library.dataset_release, library.dataset_select, base._handle, address, count)
    return Dataset._of(handle, base._source, base._map_shards, base, _columns.frozen(kept.view()))

  # ---- Python

  def __reduce__(self) -> Any:
    base = self._base
    options = () if base._map_shards else (False,)  # as packages before this option have it
    return _source.unpickled, (_source.text(base._source), base.identity, self._ids, *options)

  def __repr__(self) -> str:
    of = "" if self._ids is None else f" of {len(self._base)}"
    return f"<Dataset of {len(self)}{of} samples in {self._info.shards} shards, {self.format}, {self.identity}>"

  def _repr_html_(self) -> str:
    from . import _html  # pylint: disable=import-outside-toplevel
    return _html.of_dataset(self)
