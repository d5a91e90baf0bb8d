"""Writer: samples that a program makes, packed in the order of their keys."""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import sys
import threading
import warnings
import weakref
from contextlib import contextmanager
from operator import itemgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence, SupportsIndex, Union

from . import _arguments, _c, _parts
from . import _writer_arguments as given
from ._arguments import Path
from ._aside import Aside
from ._encode import ENCODINGS, encoded, is_array, pixels_of, way_on
from ._errors import (DISK_FULL, ExistsError, NotFoundError, OptionError, PackError, PackUsageError, StateError, SystemCallError, made_error,
                      nearest)
from ._jobs import Job, check_flags, keywords_in
from ._library import Handle, call, library, made
from ._options import c_text, whole
from ._progress import Shown, checked
from ._report import Report
from ._sending import Sending, add_one

if TYPE_CHECKING:
  import numpy.typing
  from ._sample import Sample
  Label = Union[str, SupportsIndex, None]
  Column = Union[Iterable[Any], numpy.typing.NDArray[Any]]

_BATCH_BYTES = 8 << 20  # that are given to the library at once
_BATCH_VALUES = 1 << 16
# After so many bytes what was added is made safe, beside this thread. The first parts are smaller, so that little is left to do in
# the end of a small dataset.
_SAFE_BYTES, _FIRST_SAFE_BYTES, _FIRST_PARTS = 64 << 20, 16 << 20, 4
# Keys that every format can hold. Others are shown to the library one by one, which knows the rules of each.
_plain = re.compile(rb"[^\0/._\\][^\0/.\\]*(?:/[^\0/._\\][^\0/.\\]*)*").fullmatch
_MOST_PLAIN_BYTES = 64
_MOST_PLAIN_NAME = 30
# How images begin, in short: samples whose fields begin alike are alike in the rules. What is an image, the library judges.
_IMAGES = (b"\xff\xd8\xff", b"\x89PN", b"GIF", b"RIF", b"BM", b"II*", b"II+", b"MM\0")
_begin = itemgetter(slice(3))
_MOST_SHAPES = 4096
_CACHED = (str, int)  # kinds of labels: others may be equal to these
_MOST_EXPLAINED = 20
OF_ADD = {"key", "image", "label", "encode", "quality"}  # which no field is called
_PLAIN_WORDS = {b"--format=webdataset", b"--no-fsync"}  # which need no check
_open_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


class Writer:
  """Writes a dataset from samples of this program, in any order and from any number of processes.

    with shardpack.Writer("shards", format="webdataset", shard_size="512MB") as writer:
      for key, jpeg, label in samples:
        if key not in writer:            # after a killed run: what is safe already
          writer.add(key, jpeg, label, txt="a caption", json={"age": 3})
    print(writer.result)                 # a Report

  Samples go to parts beside the dataset, PATH.parts, each of which is read again and compared with the hashes taken in `add`.
  At the end of the block `pack` writes them in the order of their keys, verifies the shards and publishes them: the same bytes
  however the samples were shared out and however often a run was killed. Left by an exception, the samples are kept and nothing
  is published: the next Writer of the same path goes on with them as they are, and warns of it (RuntimeWarning); `fresh=True` removes
  them first and begins anew (a Writer alone; StateError if another one is at work).

  `format`: "webdataset", "tfrecord", "lmdb", "hdf5", "npy". `fields`: the names that samples must have (`None` as a value: this
  one has none), or a dict of their encodings, {"mask": "png", "embedding": "npy"}:
  an array without one is stored as .npy, which `decode_fields` of a loader cannot decode. `classes`: the names of labels 0, 1, ..., also of
  those that no sample has, or a dict of their numbers; without them classes are numbered in the order of their names.
  `worker`, `workers`: of processes that write the same dataset, also of one alone; then `shardpack.finish(path)` publishes, once, when all
  have ended well. `encode` ("jpeg" or "png") and `quality`: how images that are arrays or PIL.Images are encoded. `order`: "key" alone. `overwrite`: replace a dataset, at
  the very end. `progress`: of the end, as for `pack`. Further keywords are flags of `pack convert` (docs/cli.md), such as
  `layout`, `shuffle`, `split`, `resize`, `jobs`.

  Lifetime: holds a lock on its part of PATH.parts. Threads: any; their calls take turns. A forked child cannot use it.
  Errors: ExistsError if there is a dataset, a file or a folder with other files (or at the end, where samples of it were left in PATH.parts); StateError if another Writer of this worker is open; OptionError (a ValueError and
  TypeError) for arguments.

  >>> with shardpack.Writer("drawn", format="tfrecord") as writer:
  ...   for n in range(3):
  ...     writer.add(f"drawn/{n}", image=shardpack.Dataset("shards")[n].image, label="cat", txt="a cat")
  >>> writer.result.samples, shardpack.Dataset("drawn").classes
  (3, ['cat'])
  """

  _owner = 0  # also if __init__ raises

  def __init__(self, path: Path, format: str = "webdataset",  # pylint: disable=redefined-builtin
               fields: Iterable[str] | Mapping[str, str] | None = None, shard_size: str | int | None = None, *, worker: int = 0,
               workers: int | None = None, encode: str | None = None, quality: int = 90, order: str = "key",
               overwrite: bool = False, progress: Shown = None, classes: Iterable[str] | Mapping[str, int] | None = None,
               fresh: bool = False, **flags: Any):
    self._path = given.absolute(path, "path")
    self._alone = workers is None
    self._worker, self._workers = whole(worker, "worker", 32), 1 if workers is None else whole(workers, "workers", 32, 1)
    given.order(order)
    self._encode, self._quality = given.pixels_encoding(encode), given.quality(quality)
    self._progress = checked(progress)
    self._encodings, self._required = given.declared(fields)
    flags = {"format": format, "shard_size": shard_size, **flags}
    self._stores_8_bits = format == "npy" or flags.get("layout") == "decoded"
    if self._stores_8_bits:  # pixels, which come of images without loss
      flags["encode"] = "raw"
      self._encode = self._encode or "png"
    flags["overwrite"] = overwrite
    if flags.get("label_from") is not None:  # of which --classes FILE is a part
      flags["classes"], classes = classes, None
    self._classes = given.classes(classes)
    self._words = _arguments.words("convert", flags, without=("out", "dry-run"))
    if not _PLAIN_WORDS.issuperset(self._words):
      check_flags(self._words)
    # What cannot be an image is left out at the end where that is allowed.
    self._takes_unlabelled = flags.get("missing_part") == "keep"
    self._takes_all = any(word.startswith(b"--max-skip") for word in self._words)
    self._refuse_other_files()
    agreed = (self._words, 0 if self._alone else self._workers, self._classes)
    try:
      if fresh:
        self._remove_earlier(fresh, overwrite)
      _parts.check_agreed(self._path, *agreed)  # before it becomes one of the workers
      self._begin()
    except StateError as error:
      if any((other._path, other._worker, other._owner) == (self._path, self._worker, os.getpid()) for other in _open_writers):
        raise made_error(StateError, f"{error}: it is a Writer of this process, which was neither finished nor closed; end it with its "
                         "finish() or close()", {"code": error.code, "path": error.path}) from None
      raise
    try:
      _parts.agree(self._path, *agreed)
      _parts.begin(self._path, self._worker)
      if self._alone and not self._resumed:
        _parts.forget_labels(self._path)
      if self._earlier:
        alone = "; Writer(..., fresh=True) begins anew" if self._alone else ""
        _warn_each_time(f"the Writer of {given.shown(self._path)} goes on with {self._earlier} samples that an earlier run has added "
                      f"({self._parts()}): `if key not in writer` leaves them as they are{alone}")
    except BaseException:
      self._let_go()
      raise

  def _refuse_other_files(self) -> None:
    """Which the finish would refuse, once all samples are there. Where a dataset is, or is being published, the library judges."""
    try:
      names = os.listdir(self._path)
    except NotADirectoryError:
      what = "is a file"
    except OSError:  # it is not there, or what the library says of it
      return
    else:
      if not names or {b"manifest.json", b".pack"} & {*names} or os.path.exists(os.path.join(_parts.folder(self._path), b"manifest.json")):
        return
      what = f"is not empty and holds no dataset (first entry: {given.shown_key(min(names))})"
    raise made_error(ExistsError, f"{given.shown(self._path)} {what}: a Writer makes a folder of its own, so give it another path",
                     {"code": "EXISTS", "path": os.fsdecode(self._path)})

  def _remove_earlier(self, fresh: bool, overwrite: bool) -> None:
    if fresh is not True:
      raise OptionError(f"fresh must be True or False, not {fresh!r}")
    if self._workers > 1:
      raise OptionError("fresh=True is of a Writer alone: it would remove the samples of the other workers too. Remove "
                        f"{self._parts()} before the workers are started")
    if not overwrite and os.path.exists(os.path.join(self._path, b"manifest.json")):
      raise ExistsError(f"{given.shown(self._path)} is a dataset already: overwrite=True lets the finish replace it")
    _parts.remove(self._path)

  def _begin(self) -> None:
    self._lock = threading.RLock()
    self._named: set[str] = set()  # names of fields that are meant
    self.result: Report | None = None
    self._resumed = _parts.there_are_some(self._path)
    self._handle: Handle | None = Aside(_open, self._path, self._words, self._worker, self._workers, self._classes).result()
    self._earlier = _parts.samples_of(self._path, self._worker) if self._resumed else 0
    self._seen: set[int] = set()  # hashes of the keys that were added
    self._shapes: set[tuple[Any, ...]] = set()  # of samples that the library has accepted
    self._labels: dict[Any, bytes] = {}  # str and int alone
    self._labelled = True if self._resumed and _parts.have_labels(self._path) else None  # whether the samples before have labels
    self._numbers: tuple[bool, bytes] | None = None  # whether labels are numbers, and one of them
    self._added = self._unsafe = self._flushed = 0  # samples; bytes since the last flush, of which there were so many
    self._refused: list[tuple[str, OptionError | ExistsError]] = []  # samples of batches, by their keys as shown
    self._sending: Sending | None = None
    self._flushing: Aside | None = None
    self._owner = os.getpid()  # 0: closed
    _open_writers.add(self)
    self._new_batch(())

  def _new_batch(self, names: tuple[str, ...]) -> None:
    self._names = names
    self._bytes = 0
    self._values: list[bytes | None] = []  # of each sample key, label, image, and a field for each name

  @classmethod
  def _to_finish(cls, path: bytes, words: list[bytes], agreed: _parts.Options) -> Writer:
    writer = cls.__new__(cls)
    writer._path, writer._words, writer._worker, writer._workers = path, words, 0, max(agreed.workers, 1)
    writer._alone, writer._classes, writer._progress, writer._stores_8_bits = not agreed.workers, agreed.classes, None, False
    writer._begin()
    return writer

  def add(self, /, key: str | bytes, image: Any = None, label: Label = None, *, encode: str | None = None,
          quality: int | None = None, **fields: Any) -> None:
    """Adds a sample: its key, its image, its label (None: none), and further fields by their names.

    `label`: the name of its class, or a number up to 999999; not the one after the other. Classes are numbered in the order of their
    names; if all are whole numbers up to 999999, these are the labels. With `Writer(classes=[...])`: a name in there, or its number.

    All samples have a label or none has: a sample of the other kind is refused unless `Writer(missing_part="keep")`.

    `image`: the bytes of an encoded image, or an array or PIL.Image, with `encode` "jpeg" or "png": uint8 [h, w], [h, w, 1] or
    [h, w, 3] (PNG also with 2 or 4 channels, and uint16). Fields: bytes as they are, text as UTF-8, dicts, lists and numbers as JSON,
    arrays as .npy (or as `Writer(fields={"mask": "png"})` says, or the field's name: `png`); None: the sample does not have it.

    A field whose name is near to an argument (`lable`, `labels`, `class_name`, `split`) is refused unless `Writer(fields=...)` names it; so is
    what means a label (`target`, `y`, `category`) where there is no `label`.

    A sample that is refused changes nothing: ExistsError for a key that was added before, OptionError for bytes that do not begin as
    an image does (unless `max_skip` lets the end leave such samples out), for what the format cannot hold, and for `quality` beside
    an encoded image: no field has the name of an argument. An error of the system (SystemCallError, also of a full disk, NoMemoryError, DataLossError) ends
    the writer; what was safe before stays so.

    >>> import numpy
    >>> with shardpack.Writer("added", classes=["dog", "cat"]) as writer:
    ...   writer.add("a", shardpack.Dataset("shards")[0].image, "cat", txt="as it is")
    ...   writer.add("b", numpy.zeros((8, 8, 3), numpy.uint8), 0, encode="png", txt="made of an array")
    >>> shardpack.Dataset("added").labels
    array([1, 0])
    """
    if self._owner != os.getpid():
      self._open_handle()
    try:
      text = key if type(key) is bytes else key.encode()  # type: ignore[union-attr]
    except (AttributeError, UnicodeEncodeError):
      text = given.key(key)
    if type(image) is not bytes or encode is not None or quality is not None:
      image = self._image(image, text, encode, quality)
    if fields or self._required:
      fields = self._fields(fields, text, label is None)
    with self._lock:
      name = b"" if label is None else (type(label) in _CACHED and self._labels.get(label)) or self._label_of(label, text)
      if (label is None) is self._labelled and not self._takes_unlabelled:
        self._refuse_mixed(text)
      hashed = hash(text)
      if fields:
        begins = [value[:3] if value.startswith(_IMAGES) else b"" for value in fields.values()]
        shape: Any = (label is None, image[:3], *fields, *begins)
      else:
        shape = image[:3] if name else image[:4]
      if (shape not in self._shapes or hashed in self._seen or self._resumed or len(text) > _MOST_PLAIN_BYTES or
          not (text.isalnum() or _plain(text))):
        self._add_alone(given.key(text), name, image, fields)
        self._labelled = label is not None
        if len(self._shapes) < _MOST_SHAPES and "cls" not in fields and all(len(each) <= _MOST_PLAIN_NAME for each in fields):
          self._shapes.add(shape)
      else:
        if fields or self._names:
          self._add_to_batch(text, name, image, fields)
        else:
          self._values += (text, name, image)
          self._bytes += len(image)
        if self._bytes >= _BATCH_BYTES or len(self._values) >= _BATCH_VALUES:
          self._send()
      self._seen.add(hashed)
      self._added += 1

  def add_sample(self, sample: Sample, /, key: str | bytes | None = None) -> None:
    """Adds a Sample of a Dataset as it is: its image, the name of its class (or its label, if classes have no names), its further
    fields and its key, or another `key`. Errors: as of add().

    >>> cats = shardpack.Dataset("shards").where(label="cat")
    >>> with shardpack.Writer("cats") as writer:
    ...   for sample in cats:
    ...     writer.add_sample(sample, key=f"my/{sample.key}")
    >>> writer.result.samples
    20

    With another label, of the classes of its dataset:

    >>> animals = shardpack.Dataset("shards")
    >>> with shardpack.Writer("corrected", classes=animals.classes) as writer:
    ...   for sample in animals:
    ...     if sample.key == animals[0].key:
    ...       sample.label = animals.class_to_idx["owl"]
    ...     writer.add_sample(sample)
    >>> shardpack.Dataset("corrected").get(animals[0].key).class_name
    'owl'
    """
    if not isinstance(getattr(sample, "fields", None), Mapping):
      raise OptionError(f"sample must be a shardpack.Sample, not {type(sample).__name__}")
    label = sample.class_name if sample.class_name is not None else sample.label if sample.label >= 0 else None
    fields: dict[str, Any] = dict(sample.fields)
    image = fields.pop(given.IMAGE, None)
    self._named.update(fields)
    key = sample.key if key is None else key
    for name in fields.keys() & OF_ADD:
      raise OptionError(f"sample {given.shown_key(key)} has a field '{name}', which is an argument of add() and cannot name a field here")
    self.add(key, image, label, **fields)

  def add_many(self, /, keys: Column, images: Column, labels: Column | None = None, **fields: Column) -> None:
    """Adds samples by columns of the same length, as add() does one after the other; encoded images without further fields go to the
    library as they are, without Python's work for each.

    A column is a list, an array, or anything else that can be iterated. `labels`: None if the samples have none. `fields`: further
    columns by their names.

    Samples that are refused are left out, and the others added; the error, of the first, then names them all: ExistsError for a key
    that was added before, OptionError for what the format cannot hold. OptionError, and nothing is added, if the columns differ in length, or are
    none.

    >>> with shardpack.Writer("many") as writer:
    ...   writer.add_many(["a", "b"], [sample.image for sample in shardpack.Dataset("shards")[:2]], labels=["cat", "dog"], txt=["one", "two"])
    >>> writer.result.samples
    2
    """
    for name in fields.keys() & OF_ADD:
      raise OptionError(f"{name} is an argument of add() and cannot name a field here; the columns are keys, images and labels")
    self._check_names(fields, labels is None)
    columns = {"keys": keys, "images": images, **({} if labels is None else {"labels": labels}), **fields}
    found = {name: given.column(column, name) for name, column in columns.items()}
    count = len(found["keys"])
    for name, column in found.items():
      if len(column) != count:
        raise OptionError(f"{name} has {len(column)} entries, and keys {count}")
    keys, images, kinds, further = found["keys"], found["images"], found.get("labels"), [found[name] for name in fields]
    self._open_handle()
    with self._lock:
      names: Sequence[Any] = [None] * count if kinds is None else kinds.tolist() if hasattr(kinds, "tolist") else kinds
      if not (fields or self._required or self._resumed) and self._add_rows(keys, images, names):
        return
      # A table's columns are in order when they are iterated; an index of theirs may be a label.
      for key, image, label, *values in zip(keys, images, names, *further):
        try:
          self.add(key, image, label, **dict(zip(fields, values)))
        except (OptionError, ExistsError) as error:
          self._refused.append((given.shown_key(key), error))
      self._settle_all()

  def _add_rows(self, keys: Sequence[Any], images: Sequence[Any], labels: Sequence[Any]) -> bool:
    """Batches of them, or nothing if one of them needs to be looked at. The library judges each."""
    kinds = {*map(type, keys)}
    if kinds not in ({str}, {bytes}) or {*map(type, images)} != {bytes} or not {*map(type, labels)} <= {*_CACHED, type(None)}:
      return False
    if not self._takes_all and not all(begin.startswith(_IMAGES) for begin in {*map(_begin, images)}):
      return False
    try:
      texts = list(map(str.encode, keys)) if kinds == {str} else list(keys)
    except UnicodeEncodeError:
      return False
    unlabelled = {label is None for label in labels}
    if not self._takes_unlabelled and (len(unlabelled) > 1 or self._labelled in unlabelled):
      return False
    hashes = {*map(hash, texts)}
    if len(hashes) < len(texts) or not hashes.isdisjoint(self._seen):
      return False
    try:
      encoded_labels = {label: b"" if label is None else self._label(label) for label in dict.fromkeys(labels)}
    except OptionError:
      return False
    self._labelled = False in unlabelled
    images, labels = list(images), list(labels)  # whose slices are by position
    self._send()
    self._new_batch(())
    rows = max(1, min(_BATCH_VALUES // 3, len(texts) * _BATCH_BYTES // max(1, sum(map(len, images)))))
    for first in range(0, len(texts), rows):
      part = slice(first, first + rows)
      values: list[bytes | None] = [None] * (3 * len(texts[part]))
      values[::3], values[1::3], values[2::3] = texts[part], map(encoded_labels.__getitem__, labels[part]), images[part]
      self._values, self._bytes = values, sum(map(len, images[part]))
      self._seen.update(map(hash, texts[part]))
      self._added += len(texts[part])
      self._send()
    self._settle_all()
    return True

  def _settle_all(self) -> None:
    self._send()
    self._settle()
    self._raise_refused()

  def _refuse_mixed(self, key: bytes) -> None:
    has = ("no label, and the samples before it have one: give it one" if self._labelled else
           "a label, and the samples before it have none: give labels to all")
    raise OptionError(f"sample {given.shown_key(key)} has {has}, or Writer(..., missing_part=\"keep\") takes samples without a label")

  def _label_of(self, label: str | SupportsIndex, key: bytes) -> bytes:
    try:
      return self._label(label)
    except OptionError as error:
      error.args = (f"sample {given.shown_key(key)}: {error}",)
      raise

  def _label(self, label: str | SupportsIndex) -> bytes:
    if self._classes:
      text = given.label_of(label, self._classes)
      if type(label) in _CACHED:
        self._labels[label] = text
      return text
    text = given.label(label)
    number = given.is_number(label, text)
    if number is not None and (self._numbers is None or self._numbers[0] != number):
      self._agree_on_labels(number, text)
    if type(label) in _CACHED:
      self._labels[label] = text
    return text

  def _agree_on_labels(self, number: bool, text: bytes, again: bool = False) -> None:
    """With those of this Writer, of other workers and of earlier runs."""
    first, where = self._numbers, ""
    if first is None or again:
      first = _parts.agreed_labels(self._path, number, text)
      where = f"; the samples in {self._parts()}, of other workers or an earlier run, count too"
    if first[0] != number:
      raise given.mixed_kinds(*((text, first[1]) if number else (first[1], text)), where)
    self._numbers = first

  def _image(self, image: Any, key: bytes, encode: str | None, quality: int | None) -> bytes:
    if image is None:
      raise OptionError(f"sample {given.shown_key(key)} lacks an image")
    encode = given.pixels_encoding(encode) or self._encode
    if quality is not None:
      quality = given.quality(quality)
      if isinstance(image, (bytes, bytearray, memoryview)):
        raise OptionError(f"quality is of arrays, and the image of sample {given.shown_key(key)} is encoded already; no field has that name")
      if encode == "png":
        raise OptionError(f"quality is of JPEG, and the image of sample {given.shown_key(key)} is encoded as PNG, which loses nothing")
    image = pixels_of(image, f"image of sample {given.shown_key(key)}")
    if not isinstance(image, (bytes, bytearray, memoryview)) and not is_array(image):
      raise OptionError(f"image of sample {given.shown_key(key)} must be the bytes of an encoded image or an array, not "
                        f"{type(image).__name__}{way_on(image, may_be_path=True)}")
    if self._stores_8_bits and str(getattr(image, "dtype", "uint8")).rpartition(".")[2] != "uint8":
      raise OptionError(f"image of sample {given.shown_key(key)} must be of uint8, as this format stores pixels, not of {image.dtype}")
    if encode is None and hasattr(image, "dtype"):
      raise OptionError(f"image of sample {given.shown_key(key)} is an array: encode=\"jpeg\" or \"png\" says what is made of it")
    return encoded(image, f"image of sample {given.shown_key(key)}", encode, quality or self._quality)

  def _check_names(self, names: Iterable[str], unlabelled: bool) -> None:
    """That none is a misspelt argument; what Writer(fields=...) names is meant."""
    for name in () if self._required is not None else {*names} - self._named:
      if what := given.like_an_argument(name) or (given.like_a_label(name) if unlabelled else None):
        raise OptionError(f"'{name}' is no argument of add(), and would be a field: {what}; Writer(fields=[...]) names one that is meant")
      self._named.add(name)

  def _fields(self, fields: dict[str, Any], key: bytes, unlabelled: bool) -> dict[str, bytes]:
    if self._required is not None and fields.keys() != self._required:
      for name in fields.keys() - self._required:
        raise OptionError(f"sample {given.shown_key(key)}: the Writer has no field '{name}'{nearest(name, self._required)}")
      for name in self._required - fields.keys():
        raise OptionError(f"sample {given.shown_key(key)} lacks the field '{name}'; {name}=None says that it has none")
    self._check_names(fields, unlabelled)
    found = {}
    for name, value in fields.items():
      c_text(name, "the name of a field")
      if type(value) is bytes:
        found[name] = value
      elif value is not None:
        encoding = self._encodings.get(name) or (ending if (ending := name.rpartition(".")[2]) in ENCODINGS else None)
        found[name] = encoded(value, f"{name} of sample {given.shown_key(key)}", encoding, self._quality)
    return found

  def _add_to_batch(self, key: bytes, label: bytes, image: bytes, fields: dict[str, bytes]) -> None:
    if not fields.keys() <= set(self._names):
      names = (*self._names, *[name for name in fields if name not in self._names])
      self._send()
      self._new_batch(names)
    found = [fields.get(name) for name in self._names]
    self._values += (key, label, image, *found)
    self._bytes += len(image) + sum(len(value) for value in fields.values())

  def _send(self) -> None:
    """Gives the batch to the library, beside this thread, once that has done with the one before."""
    self._settle()
    if not self._values:
      return
    self._unsafe += self._bytes
    flush = self._unsafe >= (_FIRST_SAFE_BYTES if self._flushed < _FIRST_PARTS else _SAFE_BYTES)
    if flush:
      self._unsafe, self._flushed = 0, self._flushed + 1
    self._sending = Sending(self._open_handle(), self._names, self._values, flush)
    self._new_batch(self._names)
    self._sending.start()

  def _settle(self) -> None:
    """Waits for what the library is at."""
    with self._says_what_stays():
      if self._sending is not None:
        if self._sending.values is self._values:  # a signal came before the new batch
          self._new_batch(self._names)
        self._account(self._sending.result())
      if self._flushing is not None:
        self._flushing.result()
        self._flushing = None

  @contextmanager
  def _says_what_stays(self) -> Iterator[None]:
    """Where the disk is full."""
    try:
      yield
    except SystemCallError as error:
      stays = f"; samples that were made safe before stay in {self._parts()}: make room, and a Writer of the same path goes on with them"
      if error.errno in DISK_FULL and not str(error).endswith(stays):  # a second call gets the same error
        error.args = (f"{error}{stays}",)
      raise

  def _account(self, refused: dict[bytes, OptionError]) -> None:
    self._refused += [(given.shown_key(key), error) for key, error in refused.items()]
    self._sending = None
    self._added -= len(refused)
    self._seen.difference_update(map(hash, refused))

  def _add_alone(self, key: bytes, label: bytes, image: bytes, fields: dict[str, bytes]) -> None:
    self._send()
    self._settle()
    try:
      with self._says_what_stays():
        add_one(self._open_handle(), key, label, image, fields)
    except ExistsError as error:
      if self._resumed and hash(key) not in self._seen:
        whose = "an earlier run" if self._alone else "an earlier run or another worker"
        error.args = (f"{error} by {whose}, whose samples {self._parts()} keeps: `if key not in writer` skips it"
                      + (", fresh=True begins anew" if self._alone else ""),)
      raise
    except OptionError as error:
      if not self._takes_all and not image.startswith(_IMAGES):
        begins = f"begins with {image[:8]!r}" if image else "has no bytes"
        error.args = (f"{error}. It {begins}; an array of pixels can be given with encode=\"jpeg\" or \"png\"",)
      raise

  def __contains__(self, key: object) -> bool:
    """Whether the sample with this key is safe on disk, from this run or one before: after `flush`, and after every 64 MB."""
    text = given.key(key)
    if not self._resumed and hash(text) not in self._seen:
      return False
    with self._lock:
      self._settle()
      try:
        call(library.writer_has, self._open_handle(), text, len(text))
      except NotFoundError:
        return False
      return True

  def __bool__(self) -> bool:
    """True, also before the first sample."""
    return True

  def __len__(self) -> int:
    """The number of samples that this Writer has added."""
    return self._added

  def flush(self) -> None:
    """Makes safe what was added: it is on disk, and was read again and compared with its hashes.

    OptionError names all samples that were refused since the last flush and not by `add`, which knows the rules of the formats for
    most samples alone. They are left out, and `len` does not count them; the others are safe. The end of the writer flushes too.

    >>> with shardpack.Writer("flushed") as writer:
    ...   writer.add("a", shardpack.Dataset("shards")[0].image)
    ...   writer.flush()
    ...   "a" in writer, "b" in writer
    (True, False)
    """
    with self._lock:
      self._send()
      self._settle()
      self._unsafe = 0
      self._flushing = Aside(call, library.writer_flush, self._open_handle())
      self._settle()
      self._raise_refused()

  def finish(self, progress: Shown = None) -> Report:
    """Packs, verifies and publishes what all workers wrote; the end of a `with` block does it for a Writer without others. Nothing
    can be added afterwards. StateError if another worker has not ended, or has never been. If it fails, or is interrupted, the
    samples are kept: `shardpack.finish(path)`, or another Writer, goes on.

    >>> writer = shardpack.Writer("finished")
    >>> writer.add("a", shardpack.Dataset("shards")[0].image)
    >>> writer.finish().samples
    1
    """
    checked(progress)
    self.flush()
    self._end()
    try:
      _parts.check_ended(self._path, self._workers)
      return self._publish(self._progress if progress is None else progress)
    finally:
      self._let_go()

  def _publish(self, progress: Shown) -> Report:
    handle = self._open_handle()
    labels = _parts.labels_of_parts(self._path)
    if not any(word.startswith(b"--missing-part") for word in self._words):
      _parts.check_labels(self._path, labels, self._alone)
    _parts.check_kinds(self._path, labels)
    resumed = _parts.resumed_of(self._path, self._workers)
    command = [b"convert", *self._words, b"--out=" + self._path, b"--", _parts.folder(self._path)]
    # Its start is waited for as any call of the library.
    self._flushing = Aside(made, library.job_release, library.writer_finish, handle)
    job = Job._of(command, self._flushing.result, f" of {given.shown(self._path)}; they stay in {self._parts()}")
    try:
      report = job.wait(progress)
    except PackError as error:
      raise self._with_way_on(error)
    finally:
      job._let_go()
    self.result = Report({**report.as_dict, "resumed": resumed}, report.exit_code, report.messages)
    return self.result

  def close(self) -> None:
    """Ends the writer without publishing: it has added all its samples. They are made safe, and kept for `shardpack.finish(path)`,
    or the next Writer.

    >>> writer = shardpack.Writer("closed")
    >>> writer.add("a", shardpack.Dataset("shards")[0].image)
    >>> writer.close()
    >>> shardpack.finish("closed").samples
    1
    """
    if self._handle is not None:
      self.flush()
      self._end()
      self._let_go()

  def _end(self) -> None:
    """It has given all its samples."""
    if self._numbers is not None:  # where links cannot be made, two workers may both have been first
      self._agree_on_labels(*self._numbers, again=True)
    _parts.end(self._path, self._worker, self._earlier)

  def _let_go(self) -> None:
    """Another writer can be this worker, even if something, such as an exception, still refers to this one."""
    own, handle, self._handle, self._owner = self._owner == os.getpid(), self._handle, None, 0
    if handle is None or not own:
      return
    under_way = (self._sending and self._sending.under_way) or (self._flushing and not self._flushing.wait(0))
    if not under_way:
      handle.release()

  def _leave(self) -> None:
    """For a Writer that nobody has finished or closed, perhaps in the end of the interpreter: without another thread."""
    if self._owner != os.getpid():
      return
    count, kept = self._added, f"are kept in {self._parts()}, and nothing is published: use `with`, or finish()"
    try:
      self._settle()
      if self._values:
        Sending(self._open_handle(), self._names, self._values, False).run()
      call(library.writer_flush, self._open_handle())
    except Exception as error:  # pylint: disable=broad-exception-caught
      kept = f"may be lost ({error})"
    self._let_go()
    if count:
      # Not a ResourceWarning: Python would not show it.
      warnings.warn(f"the Writer of {given.shown(self._path)} was not finished: its {count} samples {kept}", RuntimeWarning,
                    stacklevel=3)

  def __del__(self) -> None:
    if self._owner and os is not None:  # at the very end of the interpreter there are no modules
      self._leave()

  def __enter__(self) -> Writer:
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
    try:
      if error is not None:
        self._open_handle()
        self.flush()  # it has not ended
      elif not self._alone:
        self.close()
      elif self._handle is not None:
        self.finish()
    except BaseException:
      if error is None:
        raise
      # The exception of the block is raised, and what was safe before is so.
    finally:
      self._let_go()
    if error is not None:
      _note(error, self._way_on())

  def __repr__(self) -> str:
    earlier = f" to {self._earlier} of an earlier run" if self._earlier else ""
    return f"<Writer of {given.shown(self._path)}: {self._added} samples added{earlier}{', closed' if self._handle is None else ''}>"

  def _open_handle(self) -> Handle:
    if self._handle is None:
      raise StateError("the writer is closed")
    if self._owner != os.getpid():
      raise StateError("the writer belongs to the process before a fork; open one after, as another worker")
    return self._handle

  def _raise_refused(self) -> None:
    if not self._refused:
      return
    refused, self._refused = self._refused, []
    first = refused[0][1]
    lines = [f"{key}: {error}" if n < _MOST_EXPLAINED else key for n, (key, error) in enumerate(refused)]
    first.args = ("\n  ".join([f"{len(refused)} {'sample was' if len(refused) == 1 else 'samples were'} refused, and left out:", *lines]),)
    raise first

  def _parts(self) -> str:
    return given.shown(_parts.folder(self._path))

  def _way_on(self) -> str:
    number = "" if self._alone else f" with worker={self._worker}, workers={self._workers} and the same arguments"
    return (f"Nothing was published. The samples are kept in {self._parts()}: a Writer of {given.shown(self._path)}{number} goes on "
            "with them, and `key in writer` says which are there. To start again without them, "
            + ("pass fresh=True" if self._alone else "remove that folder"))

  def _with_way_on(self, error: PackError) -> PackError:
    shown = given.shown(self._path)
    way_on = self._way_on()
    if isinstance(error, PackUsageError):
      # The Writers of other workers have the same flags, and another one would be refused.
      keyword = (keywords_in(error.stderr, "convert") or ["..."])[0]
      way_on = (f"Nothing was published. The samples are kept in {self._parts()}: shardpack.finish({shown!r}, {keyword}) packs them with "
                "another value in the place of the Writer's. To start again without them, remove that folder")
    if "report" in (error.report or {}):  # which is written once the dataset is published
      way_on = (f"{shown} is published; the samples are kept in {self._parts()} too: shardpack.finish({shown!r}) makes the page and removes them")
    error.args = (f"{error}\n{way_on}",)
    return error


def finish(out: Path, *, progress: Shown = None, workers: int | None = None, unfinished: str = "refuse", **flags: Any) -> Report:
  """Packs, verifies and publishes what the Writers of several processes wrote for `out`, once, when all of them have ended: with the
  arguments that these were given. Others can be added, such as `jobs=8`.

  StateError names the workers that have not ended (their block was left by an exception, they were killed, or are still open):
  run these again, or `unfinished="take"` publishes what they have made safe. StateError in any case if one has never been; OptionError
  if `workers` is another number than theirs. If it fails, the samples are kept: call it again. ExistsError if an earlier call has
  published them and was killed as it removed them; what is left of them is then removed.

  >>> def write(worker: int) -> None:
  ...   with shardpack.Writer("shared", worker=worker, workers=2) as writer:
  ...     writer.add(f"{worker}", image=shardpack.Dataset("shards")[worker].image)
  >>> write(0), write(1)     # in processes of their own
  (None, None)
  >>> shardpack.finish("shared").samples
  2
  """
  path = given.absolute(out, "out")
  checked(progress)
  known = _parts.options(path)
  if known is None:
    raise NotFoundError(f"no Writer has written for {given.shown(path)}: there is no {given.shown(path)}.parts")
  count = max(known.workers, 1)
  if workers is not None and whole(workers, "workers", 32, 1) != count:
    raise OptionError(f"workers must be {count}, as the Writers of {given.shown(path)} said, not {workers}")
  if unfinished not in ("refuse", "take"):
    raise OptionError(f"unfinished must be 'refuse' or 'take', not {unfinished!r}")
  _parts.check_ended(path, count, take_unfinished=unfinished == "take")  # before this one becomes worker 0
  more = _arguments.words("convert", flags, without=("out", "dry-run"))
  words = [*known.words, *(word for word in more if word not in known.words)]
  # pylint: disable=protected-access
  writer = Writer._to_finish(path, words, known)
  try:
    return writer._publish(progress)
  finally:
    writer._let_go()


@atexit.register
def _leave_all() -> None:
  for writer in list(_open_writers):
    writer._leave()  # pylint: disable=protected-access


def _open(path: bytes, words: list[bytes], worker: int, workers: int, classes: list[bytes]) -> Handle:
  options = _c.writer_options(ctypes.sizeof(_c.writer_options))
  options.arguments = (ctypes.c_char_p * len(words))(*words)
  options.argument_count = len(words)
  options.worker, options.workers = worker, workers
  options.classes = (ctypes.c_char_p * len(classes))(*classes)
  options.class_count = len(classes)
  try:
    return made(library.writer_release, library.writer_open, path, ctypes.byref(options))
  except ExistsError as error:
    error.args = (f"{error}: in Python overwrite=True",)
    raise


def _warn_each_time(text: str) -> None:
  """Of the line that opens a Writer, in a loop or a notebook's cell too: without a registry nothing says that it was shown already.
  Filters of the user are kept to."""
  frame = sys._getframe(2)  # pylint: disable=protected-access
  warnings.warn_explicit(text, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__"), registry=None)


def _note(error: BaseException, note: str) -> None:
  """Python 3.11 has a place for it."""
  if hasattr(error, "add_note"):
    error.add_note(note)
  else:
    warnings.warn(note, RuntimeWarning, stacklevel=3)
