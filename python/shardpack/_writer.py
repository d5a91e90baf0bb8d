"""Writer: samples that a program makes, packed in the order of their keys."""

from __future__ import annotations

import ctypes
import os
import re
import warnings
from array import array
from operator import index
from types import TracebackType
from typing import Any, Iterable, Mapping

from . import _arguments, _c, _parts
from ._arguments import Path
from ._aside import Aside
from ._encode import ENCODINGS, encoded
from ._errors import Error, ExistsError, NotFoundError, OptionError, PackError, StateError, UnsupportedError, nearest
from ._jobs import Job
from ._library import Handle, call, library, made
from ._options import whole
from ._progress import Shown
from ._report import Report

_IMAGE = "image"
_BATCH_BYTES = 4 << 20  # that are given to the library at once
_BATCH_VALUES = 1 << 15
# After so many bytes what was added is made safe, beside this thread. The first parts are smaller, so that little is left to do in
# the end of a small dataset.
_SAFE_BYTES, _FIRST_SAFE_BYTES, _FIRST_PARTS = 64 << 20, 16 << 20, 4
_NONE = (1 << 64) - 1  # the length of what a sample does not have
_MOST_KEY_BYTES, _MOST_LABEL_BYTES = 4096, 255
# Keys that every format can hold. Others are shown to the library one by one, which knows the rules of each.
_plain = re.compile(rb"[^\0/._\\][^\0/.\\]*(?:/[^\0/._\\][^\0/.\\]*)*").fullmatch
_MOST_PLAIN_BYTES = 64
_MOST_PLAIN_NAME = 30
# How an image begins, as far as it matters for the rules whether a field is one.
_IMAGES = (b"\xff\xd8\xff", b"\x89PN", b"GIF", b"RIF", b"BM", b"II*", b"MM\0")
_MOST_SHAPES = 4096


class Writer:
  """Writes a dataset from samples of this program, in any order and from any number of processes.

    with shardpack.Writer("shards", format="webdataset", shard_size="512MB") as writer:
      for key, jpeg, label in samples:
        if key not in writer:            # after a killed run: what is safe already
          writer.add(key, jpeg, label, txt="a caption", json={"age": 3})
    print(writer.result)                 # a Report

  Samples go to parts beside the dataset, PATH.parts, each of which is read again and compared with the hashes taken in `add`.
  At the end of the block `pack` writes them in the order of their keys, proves the shards and publishes them: the same bytes
  however the samples were shared out and however often a run was killed. Left by an exception, the samples are kept and nothing
  is published: the next Writer of the same path goes on.

  `format`: "webdataset", "tfrecord", "lmdb", "hdf5", "npy". `fields`: the names that samples must have (`None` as a value: this
  one has none), or a dict of their encodings, {"mask": "png", "embedding": "npy"}. `worker`, `workers`: of processes that write
  the same dataset, also of one alone; then `shardpack.finish(path)` publishes, once, when all have ended. `encode` ("jpeg" or
  "png") and `quality`: how images that are NumPy arrays are encoded. `order`: "key" alone. `overwrite`: replace a dataset, at
  the very end. `progress`: of the end, as for `pack`. Further keywords are flags of `pack convert` (docs/cli.md), such as
  `layout`, `shuffle`, `split`, `resize`, `jobs`.

  Lifetime: holds a lock on its part of PATH.parts. Threads: one at a time. A forked child cannot use it.
  Errors: ExistsError if there is a dataset; StateError if another Writer of this worker is open; OptionError (a ValueError and
  TypeError) for arguments.

  >>> with shardpack.Writer("drawn", format="tfrecord") as writer:
  ...   for n in range(3):
  ...     writer.add(f"drawn/{n}", image=shardpack.Dataset("shards")[n].image, label="cat", txt="a cat")
  >>> writer.result.samples, shardpack.Dataset("drawn").classes
  (3, ['cat'])
  """

  def __init__(self, path: Path, format: str = "webdataset",  # pylint: disable=redefined-builtin
               fields: Iterable[str] | Mapping[str, str] | None = None, shard_size: str | int | None = None, *, worker: int = 0,
               workers: int | None = None, encode: str | None = None, quality: int = 90, order: str = "key",
               overwrite: bool = False, progress: Shown = None, **flags: Any):
    self._path = _absolute(path, "path")
    self._alone = workers is None
    self._worker, self._workers = whole(worker, "worker", 32), 1 if workers is None else whole(workers, "workers", 32, 1)
    _order(order)
    self._encode, self._quality = _pixels_encoding(encode), _quality(quality)
    self._progress = progress
    self._encodings, self._required = _declared(fields)
    flags = {"format": format, "shard_size": shard_size, **flags}
    if format == "npy" or flags.get("layout") == "decoded":  # pixels, which come of images without loss
      flags["encode"] = "raw"
      self._encode = self._encode or "png"
    self._words = _arguments.words("convert", flags, without=("out", "overwrite", "dry-run"))
    self._begin(overwrite)
    _parts.agree(self._path, self._words, self._workers)

  def _begin(self, overwrite: bool) -> None:
    self.result: Report | None = None
    self._resumed = _parts.there_are_some(self._path)
    self._handle: Handle | None = Aside(_open, self._path, [*self._words, *([b"--overwrite"] if overwrite else [])], self._worker,
                                        self._workers).result()
    self._seen: set[int] = set()  # hashes of the keys that were added
    self._shapes: set[tuple[Any, ...]] = set()  # of samples that the library has accepted
    self._labels: dict[str | int, bytes] = {}
    self._added = self._unsafe = self._flushed = 0  # samples; bytes since the last flush, of which there were so many
    self._late: Error | None = None  # of a sample of a batch
    self._sending: Aside | None = None
    self._new_batch(())

  def _new_batch(self, names: tuple[str, ...]) -> None:
    self._names = names
    self._bytes = 0
    self._values: list[bytes | None] = []  # of each sample key, label, image, and a field for each name

  @classmethod
  def _to_finish(cls, path: bytes, words: list[bytes], workers: int) -> Writer:
    writer = cls.__new__(cls)
    writer._path, writer._words, writer._worker, writer._workers = path, words, 0, workers
    writer._progress = None
    writer._begin(b"--overwrite" in words)
    return writer

  def add(self, key: str | bytes, image: Any = None, label: str | int | None = None, *, encode: str | None = None,
          quality: int | None = None, **fields: Any) -> None:
    """Adds a sample: its key, its image, its label (None: none), and further fields by their names.

    `label`: the name of its class. Classes are numbered in the order of their names; if all are whole numbers, these are the
    labels.

    `image`: the bytes of an encoded image, or an array, with `encode` "jpeg" or "png": uint8 [h, w], [h, w, 1] or [h, w, 3]
    (PNG also with 2 or 4 channels, and uint16). Fields: bytes as they are, text as UTF-8, dicts, lists and numbers as JSON,
    arrays as .npy (or as `Writer(fields={"mask": "png"})` says, or the field's name: `png`); None: the sample does not have it.

    A sample that is refused changes nothing: ExistsError for a key that was added before, OptionError for what the format cannot
    hold. An error of the system (SystemCallError, NoMemoryError, DataLossError) ends the writer; what was safe before stays so.
    """
    try:
      text = key if type(key) is bytes else key.encode()  # type: ignore[union-attr]
    except (AttributeError, UnicodeEncodeError):
      text = _key(key)
    if type(image) is not bytes or encode is not None:
      image = self._image(image, text, encode, quality)
    if fields or self._required:
      fields = self._fields(fields, text)
    name = b"" if label is None else self._labels.get(label) or self._label(label)
    hashed = hash(text)
    if fields:
      begins = [value[:3] if value.startswith(_IMAGES) else b"" for value in fields.values()]
      shape: Any = (label is None, image[:3], *fields, *begins)
    else:
      shape = image[:3] if name else image[:4]
    if (shape not in self._shapes or hashed in self._seen or self._resumed or len(text) > _MOST_PLAIN_BYTES or
        not (text.isalnum() or _plain(text))):
      self._add_alone(_key(text), name, image, fields)
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
    if self._late is not None:
      self._raise_late()

  def _label(self, label: str | int) -> bytes:
    text = _label(label)
    self._labels[label] = text
    return text

  def _image(self, image: Any, key: bytes, encode: str | None, quality: int | None) -> bytes:
    if image is None:
      raise OptionError(f"sample {_shown(key)} lacks an image")
    encode = _pixels_encoding(encode) or self._encode
    quality = self._quality if quality is None else _quality(quality)
    if isinstance(image, (str, dict, list, tuple, int, float)):
      raise OptionError(f"image of sample {_shown(key)} is the bytes of an encoded image or an array, and not "
                        f"{type(image).__name__}")
    if encode is None and hasattr(image, "dtype"):
      raise OptionError(f"image of sample {_shown(key)} is an array: encode=\"jpeg\" or \"png\" says what is made of it")
    return encoded(image, f"image of sample {_shown(key)}", encode, quality)

  def _fields(self, fields: dict[str, Any], key: bytes) -> dict[str, bytes]:
    if self._required is not None and fields.keys() != self._required:
      for name in fields.keys() - self._required:
        raise OptionError(f"sample {_shown(key)}: the Writer has no field '{name}'{nearest(name, self._required)}")
      for name in self._required - fields.keys():
        raise OptionError(f"sample {_shown(key)} lacks the field '{name}'; {name}=None says that it has none")
    found = {}
    for name, value in fields.items():
      if type(value) is bytes:
        found[name] = value
      elif value is not None:
        encoding = self._encodings.get(name) or (ending if (ending := name.rpartition(".")[2]) in ENCODINGS else None)
        found[name] = encoded(value, f"{name} of sample {_shown(key)}", encoding, self._quality)
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
    self._sending = Aside(_add_many, self._open_handle(), self._names, self._values, flush)
    self._new_batch(self._names)

  def _settle(self) -> None:
    """Waits for the batch that was given to the library."""
    if self._sending is not None:
      late = self._sending.result()
      self._sending = None
      self._late = self._late or late

  def _add_alone(self, key: bytes, label: bytes, image: bytes, fields: dict[str, bytes]) -> None:
    self._send()
    self._settle()
    named = {_IMAGE: image, **fields}
    given = (_c.field * len(named))()
    for field, (each, value) in zip(given, named.items()):
      field.name, field.data, field.bytes = each.encode(), ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p), len(value)
    call(library.writer_add, self._open_handle(), key, len(key), label or None, given, len(named))

  def __contains__(self, key: object) -> bool:
    """Whether the sample with this key is safe on disk, from this run or one before: after `flush`, and after every 64 MB."""
    text = _key(key)
    if not self._resumed and hash(text) not in self._seen:
      return False
    self._settle()
    try:
      call(library.writer_has, self._open_handle(), text, len(text))
    except NotFoundError:
      return False
    return True

  def __len__(self) -> int:
    """The number of samples that this Writer has added."""
    return self._added

  def flush(self) -> None:
    """Makes safe what was added: it is on disk, and was read again and compared with its hashes."""
    self._send()
    self._settle()
    self._unsafe = 0
    Aside(call, library.writer_flush, self._open_handle()).result()
    self._raise_late()

  def finish(self, progress: Shown = None) -> Report:
    """Packs, proves and publishes what all workers wrote; the end of a `with` block does it for a Writer without others. Nothing
    can be added afterwards. StateError while another worker is open, or if one has never been. If it fails, or is interrupted, the
    samples are kept."""
    self.flush()
    handle = self._open_handle()
    command = [b"convert", *self._words, b"--out=" + self._path, b"--", _parts.folder(self._path)]
    try:
      job = Job._of(command, lambda: made(library.job_release, library.writer_finish, handle))
      self.result = job.wait(self._progress if progress is None else progress)
    except PackError as error:
      raise self._with_way_on(error)
    self._handle = None
    if self.result.exit_code:
      warnings.warn(f"{self.result.skipped} samples were left out of {_shown(self._path)}; they stay in {self._parts()}:\n"
                    f"{self.result.messages.strip()}", RuntimeWarning, stacklevel=3)
    else:
      _parts.forget(self._path)
    return self.result

  def close(self) -> None:
    """Ends the writer without publishing; the samples are made safe, and kept for the next one."""
    if self._handle is not None:
      self.flush()
      self._handle = None

  def __enter__(self) -> Writer:
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
    if error is None:
      if not self._alone:
        self.close()
      elif self._handle is not None:
        self.finish()
      return
    try:
      self.close()
    except Exception:  # pylint: disable=broad-exception-caught
      self._handle = None  # the exception of the block is raised, and what was safe before is so
    _note(error, self._way_on())

  def __repr__(self) -> str:
    return f"<Writer of {_shown(self._path)}: {self._added} samples added{', closed' if self._handle is None else ''}>"

  def _open_handle(self) -> Handle:
    if self._handle is None:
      raise StateError("the writer is closed")
    return self._handle

  def _raise_late(self) -> None:
    if self._late is not None:
      late, self._late = self._late, None
      late.args = (f"an earlier sample was refused, and left out: {late}",)
      raise late

  def _parts(self) -> str:
    return _shown(_parts.folder(self._path))

  def _way_on(self) -> str:
    return (f"Nothing was published. The samples are kept in {self._parts()}: a Writer of {_shown(self._path)} goes on with them, "
            "and `key in writer` says which are there")

  def _with_way_on(self, error: PackError) -> PackError:
    error.args = (f"{error}\n{self._way_on()}",)
    return error


def finish(out: Path, *, progress: Shown = None, workers: int | None = None, **flags: Any) -> Report:
  """Packs, proves and publishes what the Writers of several processes wrote for `out`, once, when all of them have ended: with the
  arguments that these were given. Others can be added, such as `jobs=8`.

  StateError while a Writer is open, or if one of the workers has never been. If it fails, the samples are kept: call it again.

  >>> def write(worker: int) -> None:
  ...   with shardpack.Writer("shared", worker=worker, workers=2) as writer:
  ...     writer.add(f"{worker}", image=shardpack.Dataset("shards")[worker].image)
  >>> write(0), write(1)     # in processes of their own
  (None, None)
  >>> shardpack.finish("shared").samples
  2
  """
  path = _absolute(out, "out")
  known = _parts.options(path)
  if known is None:
    raise NotFoundError(f"no Writer has written for {_shown(path)}: there is no {_shown(path)}.parts")
  words = [*known[0], *_arguments.words("convert", flags, without=("out", "dry-run"))]
  # pylint: disable-next=protected-access
  return Writer._to_finish(path, words, known[1] if workers is None else whole(workers, "workers", 32, 1)).finish(progress)


def _open(path: bytes, words: list[bytes], worker: int, workers: int) -> Handle:
  options = _c.writer_options(ctypes.sizeof(_c.writer_options))
  options.arguments = (ctypes.c_char_p * len(words))(*words)
  options.argument_count = len(words)
  options.worker, options.workers = worker, workers
  return made(library.writer_release, library.writer_open, path, ctypes.byref(options))


def _add_many(handle: Handle, names: tuple[str, ...], given: list[bytes | None], flush: bool) -> Error | None:
  """The error of a sample that was refused, where the rules were not known before; the others have been added."""
  late = None
  lengths = array("Q", [_NONE if value is None else len(value) for value in given])
  values = b"".join(value for value in given if value is not None)
  samples = _c.samples(ctypes.sizeof(_c.samples))
  samples.count = len(lengths) // (3 + len(names))
  samples.fields, samples.field_count = (ctypes.c_char_p * len(names))(*(name.encode() for name in names)), len(names)
  samples.bytes, samples.byte_count = ctypes.cast(ctypes.c_char_p(values), ctypes.c_void_p), len(values)
  samples.lengths = lengths.buffer_info()[0]
  try:
    call(library.writer_add_many, handle, ctypes.byref(samples))
  except (OptionError, ExistsError) as error:
    late = error
  if flush:
    call(library.writer_flush, handle)
  return late


def _absolute(path: Path, what: str) -> bytes:
  """The working folder may be another one by the time of the finish."""
  return os.path.join(os.getcwdb(), _arguments.path(path, what))


def _key(key: object) -> bytes:
  if not isinstance(key, (str, bytes)):
    raise OptionError(f"key is text, and not {type(key).__name__}")
  text = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
  if not 0 < len(text) <= _MOST_KEY_BYTES or b"\0" in text:
    raise OptionError(f"key has 1 to {_MOST_KEY_BYTES} bytes, none of them zero: {key[:100]!r}")
  return text


def _label(label: object) -> bytes:
  if hasattr(label, "__index__") and not isinstance(label, bool):
    if index(label) < 0:
      raise OptionError(f"label is a number from 0 on, or None, and not {label}")
    label = str(index(label))
  if not isinstance(label, (str, bytes)):
    raise OptionError(f"label is the name of a class, such as 'cat', or a number, and not {type(label).__name__}")
  text = label.encode("utf-8", "surrogateescape") if isinstance(label, str) else label
  if not 0 < len(text) <= _MOST_LABEL_BYTES or b"\0" in text:
    raise OptionError(f"label has 1 to {_MOST_LABEL_BYTES} bytes, none of them zero; None: no label")
  return text


def _pixels_encoding(encode: str | None) -> str | None:
  if encode not in (None, "jpeg", "png"):
    raise OptionError(f"encode is 'jpeg' or 'png', and not {encode!r}")
  return encode


def _order(order: str) -> None:
  """The library's finish sorts by key: that is what makes the bytes the same for any number of workers."""
  if order == "arrival":
    raise UnsupportedError("order=\"arrival\" is not supported: samples are packed in the order of their keys")
  if order != "key":
    raise OptionError(f"order is 'key', and not {order!r}")


def _quality(quality: int) -> int:
  if not isinstance(quality, int) or not 1 <= quality <= 100:
    raise OptionError(f"quality is a number from 1 to 100, and not {quality!r}")
  return quality


def _declared(fields: Iterable[str] | Mapping[str, str] | None) -> tuple[dict[str, str], frozenset[str] | None]:
  """The encodings that were given, and the names of the fields that samples have besides the image."""
  if fields is None:
    return {}, None
  if isinstance(fields, (str, bytes)):
    raise OptionError("fields is a list of names, and not one name")
  encodings = dict(fields) if isinstance(fields, Mapping) else {}
  for name, encoding in encodings.items():
    if encoding not in (*ENCODINGS, None):
      raise OptionError(f"fields: the encoding of {name} is one of {', '.join(ENCODINGS)}, and not {encoding!r}")
  return encodings, frozenset(fields) - {_IMAGE}


def _shown(text: bytes) -> str:
  return os.fsdecode(text).encode("utf-8", "replace").decode()


def _note(error: BaseException, note: str) -> None:
  """Python 3.11 has a place for it."""
  if hasattr(error, "add_note"):
    error.add_note(note)
  else:
    warnings.warn(note, RuntimeWarning, stacklevel=3)
