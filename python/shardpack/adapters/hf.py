"""Hugging Face `datasets`, in and out.

  from shardpack.adapters import hf
  train = hf.to_dataset(shardpack.Dataset("shards").split("train"))      # images are read when a row is
  hf.write(datasets.load_dataset("cifar10", split="train"), "shards", format="webdataset")
"""

from __future__ import annotations

import base64
import dataclasses
import io
import os
import warnings
from typing import Any, ClassVar, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import datasets
import fsspec
import pyarrow
import shardpack
from datasets.features.features import register_feature
from shardpack import _source
from shardpack._encode import json_of
from shardpack._text import encoded
from shardpack._writer import OF_ADD

__all__ = ["ShardpackImage", "to_dataset", "write"]

_AT_ONCE = 256  # rows


@dataclasses.dataclass
class ShardpackImage(datasets.Image):
  """An Image feature whose bytes are in a packed dataset: a row has the number of its sample, which is read when it is decoded. Its path,
  shardpack://..., is for a plain Image to which a column is cast: fsspec opens it.

  source, identity: the dataset, as shardpack pickles it; each process opens it when it is needed.

  >>> import datasets
  >>> from shardpack.adapters import hf
  >>> issubclass(hf.ShardpackImage, datasets.Image)
  True
  """

  source: str = ""
  identity: str = ""
  pa_type: ClassVar[Any] = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string(), "id": pyarrow.uint64()})
  _type: str = dataclasses.field(default="ShardpackImage", init=False, repr=False)

  def decode_example(self, value: Any, token_per_repo_id: Any = None) -> Any:
    """The PIL.Image of a row."""
    if isinstance(value, dict) and value["bytes"] is None and value.get("id") is not None:
      value = {"bytes": self.bytes_of([value])[0], "path": None}
    return super().decode_example(value, token_per_repo_id)

  def cast_storage(self, storage: Any) -> pyarrow.StructArray:
    """Rows that have a number as they are."""
    if pyarrow.types.is_struct(storage.type) and storage.type.get_field_index("id") >= 0:
      return datasets.table.array_cast(storage, self.pa_type)
    plain = datasets.Image().cast_storage(storage)
    return pyarrow.StructArray.from_arrays([plain.field("bytes"), plain.field("path"), pyarrow.nulls(len(plain), pyarrow.uint64())],
                                           fields=list(self.pa_type), mask=plain.is_null())

  def embed_storage(self, storage: pyarrow.StructArray, *arguments: Any, **options: Any) -> pyarrow.StructArray:
    """With the bytes in the rows: save_to_disk and the hub ask for that."""
    del arguments, options
    rows = storage.to_pylist()
    images = pyarrow.array(self.bytes_of(rows), pyarrow.binary())
    paths = pyarrow.array([None if row is None or row.get("id") is not None else row["path"] for row in rows], pyarrow.string())
    return pyarrow.StructArray.from_arrays([images, paths, storage.field("id")], fields=list(self.pa_type), mask=storage.is_null())

  def bytes_of(self, rows: Sequence[Any]) -> List[Optional[bytes]]:
    """The encoded images of rows as they are stored; None where there is none."""
    wanted = [n for n, row in enumerate(rows) if row is not None and row["bytes"] is None and row.get("id") is not None]
    images: List[Optional[bytes]] = [None if row is None else row["bytes"] for row in rows]
    if wanted:
      dataset = _source.opened_once(self.source, self.identity)
      for n, sample in zip(wanted, dataset.__getitems__([rows[n]["id"] for n in wanted])):
        images[n] = sample.image
    return images


with warnings.catch_warnings():
  warnings.simplefilter("ignore")  # that it is experimental
  register_feature(ShardpackImage, "ShardpackImage")


class _Samples(fsspec.AbstractFileSystem):  # type: ignore[misc,unused-ignore]
  """The encoded images of datasets as files."""

  protocol = "shardpack"

  def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:  # type: ignore[override,unused-ignore]
    if mode != "rb":
      raise shardpack.UnsupportedError(f"{path} is read-only")
    dataset, number = self._sample(path)
    return io.BytesIO(dataset[number].image)

  def info(self, path: str, **_: Any) -> Dict[str, Any]:
    """What fsspec asks for."""
    dataset, number = self._sample(path)
    return {"name": path, "size": int(dataset.sizes[number]), "type": "file"}

  def _sample(self, path: str) -> Tuple[shardpack.Dataset, int]:
    try:
      number, identity, source = self._strip_protocol(path).split("/")
      wanted, text = int(number), base64.urlsafe_b64decode(source + "=" * (-len(source) % 4)).decode()
      return _source.opened_once(text, identity), wanted
    except shardpack.Error:
      raise
    except (LookupError, TypeError, ValueError):
      raise FileNotFoundError(f"{path} is not a sample of a shardpack.Dataset") from None


def _paths(source: str, identity: str, numbers: Iterable[int]) -> List[str]:
  """With half of the identity, which is enough to notice another dataset there."""
  place = f"{identity[:len('xxh3:') + 16]}/{base64.urlsafe_b64encode(source.encode()).decode().rstrip('=')}"
  return [f"shardpack://{number}/{place}" for number in numbers]


fsspec.register_implementation("shardpack", _Samples, clobber=True)


def to_dataset(dataset: shardpack.Dataset, *, fields: Sequence[str] = (), lazy: bool = True) -> datasets.Dataset:
  """A datasets.Dataset with a row a sample: image (an Image feature), label (a ClassLabel; None if it has none), key, and `fields`.

  lazy: the images stay where they are, and each is read and verified when its row is decoded; Datasets that are made of it, pickled,
  or saved and loaded again need `import shardpack.adapters.hf`, and the shards. Otherwise, as for the hub, they are copied into Hugging
  Face's cache, as a plain Image. Of lazy rows, cast_column("image", datasets.Image(decode=False)) has paths in place of bytes:
  fsspec.open(row["image"]["path"]) reads these, in every process that has imported this. `fields` are copied in any case: as strings if all
  samples' are UTF-8 (json, txt), else as bytes; None where a sample lacks one.

  >>> import shardpack
  >>> from shardpack.adapters import hf
  >>> rows = hf.to_dataset(shardpack.Dataset("shards").split("val"), fields=["txt"])
  >>> rows.column_names, rows.features["label"].names
  (['image', 'label', 'key', 'txt'], ['cat', 'dog', 'owl'])
  >>> rows[0]["image"].size == (rows.num_rows and shardpack.Dataset("shards").split("val")[0].decode().shape[1::-1])
  True
  """
  if not isinstance(dataset, shardpack.Dataset):
    raise TypeError(f"dataset must be a shardpack.Dataset, not {type(dataset).__name__}")
  columns = {name: _field(dataset, name) for name in fields}
  names = dataset.classes
  features = {
      "image": datasets.Image(),
      "label": datasets.ClassLabel(names=names) if names else datasets.Value("int64"),
      "key": datasets.Value("string"),
      **{name: datasets.Value("string" if values.type == pyarrow.string() else "binary") for name, values in columns.items()},
  }
  if not lazy:
    return datasets.Dataset.from_generator(_rows, features=datasets.Features(features), gen_kwargs={"dataset": dataset, "columns": columns})
  source, identity, _ = dataset.__reduce__()[1]
  features["image"] = ShardpackImage(source=source, identity=identity)
  count = len(dataset)
  ids = pyarrow.array(range(count) if dataset._ids is None else dataset._ids, pyarrow.uint64())  # pylint: disable=protected-access
  paths = pyarrow.array(_paths(source, identity, ids.to_pylist()), pyarrow.string())
  images = pyarrow.StructArray.from_arrays([pyarrow.nulls(count, pyarrow.binary()), paths, ids], fields=list(ShardpackImage.pa_type))
  labels = pyarrow.array(dataset.labels, mask=dataset.labels < 0)
  table = pyarrow.table({"image": images, "label": labels, "key": pyarrow.array(_utf8(dataset.keys), pyarrow.string()), **columns})
  return datasets.Dataset(table, info=datasets.DatasetInfo(features=datasets.Features(features)))


def _utf8(texts: Any) -> List[str]:
  """Bytes that are not UTF-8, which Arrow's strings cannot hold, are escaped."""
  return [encoded(text).decode("utf-8", "backslashreplace") for text in texts]


def _field(dataset: shardpack.Dataset, name: str) -> pyarrow.Array:
  """Its bytes in all samples, as text if they are."""
  if name in ("image", "label", "key"):
    raise shardpack.OptionError(f"fields: {name!r} is a column already")
  values: List[Optional[bytes]] = []
  for first in range(0, len(dataset), _AT_ONCE):
    ids = range(first, min(first + _AT_ONCE, len(dataset)))
    values += [row.get(name) for row in dataset._read_dicts(ids, (name,))]  # pylint: disable=protected-access
  found = pyarrow.array(values, pyarrow.binary())
  try:
    return found.cast(pyarrow.string())
  except pyarrow.ArrowInvalid:
    return found


def _rows(dataset: shardpack.Dataset, columns: Dict[str, pyarrow.Array]) -> Iterator[Dict[str, Any]]:
  for first in range(0, len(dataset), _AT_ONCE):
    for sample in dataset.__getitems__(range(first, min(first + _AT_ONCE, len(dataset)))):
      row = {"image": {"bytes": sample.image, "path": _utf8([os.path.basename(sample.path)])[0]},
             "label": None if sample.label < 0 else sample.label, "key": _utf8([sample.key])[0]}
      yield {**row, **{name: values[sample.id].as_py() for name, values in columns.items()}}


def write(hf_dataset: datasets.Dataset, out: Any, *, image: str = "image", label: Optional[str] = "label", key: Optional[str] = None,
          **flags: Any) -> Any:
  """Packs a datasets.Dataset: one sample a row, with the encoded images as they are in its files. Returns the Writer's Report.

  image, label, key: the columns that have them. A label is the name of a ClassLabel, or text, or a whole number; None or -1: the sample
  has none. label=None: no sample has one, and a column "label" is left out. key=None: the rows' numbers, with leading zeros. Every other
  column is a field: text and bytes as they are, all else as JSON, None: the sample lacks it. Those of a ClassLabel keep
  their numbers, also classes that no row has; other names are numbered in their order, and labels that are whole numbers keep these.
  Images that are not encoded anywhere (arrays) become PNG. flags: those of shardpack.Writer, such as format= and shard_size=.

  OptionError for a column that is not there, a row without a key, a label that is none, a column whose name no field can have (key,
  label, image, encode, quality: rename_column or remove_columns), and one that JSON cannot hold (times, decimals, lists of bytes; not a
  number). ExistsError for two rows with one key. A DatasetDict is written split
  by split.

  >>> import shardpack
  >>> from shardpack.adapters import hf
  >>> rows = hf.to_dataset(shardpack.Dataset("shards").split("val"))
  >>> report = hf.write(rows, "again", key="key", format="tfrecord")
  >>> again = shardpack.Dataset("again")
  >>> len(again), again.format, again.classes
  (12, 'tfrecord', ['cat', 'dog', 'owl'])
  """
  if not isinstance(hf_dataset, datasets.Dataset):
    raise TypeError(f"hf_dataset must be a datasets.Dataset, not {type(hf_dataset).__name__}"
                    + ("; write each of its splits to a folder of its own" if isinstance(hf_dataset, dict) else ""))
  features = hf_dataset.features
  for what, name in (("image", image), ("label", label), ("key", key)):
    if name is not None and name not in features and not (what == "label" and name == "label"):
      raise shardpack.OptionError(f"{what}: there is no column {name!r}, but " + ", ".join(map(repr, features)))
  if not isinstance(features[image], datasets.Image):
    raise shardpack.OptionError(f"image: the column {image!r} is not an Image but {features[image]}")
  left_out = {image, label or "label", key}
  if unnamed := sorted(OF_ADD & {*features} - left_out):
    raise shardpack.OptionError(f"the column {unnamed[0]!r} cannot be a field of that name: rename_column gives it another, remove_columns "
                                "leaves it out" + (", key='key' takes the keys from it" if unnamed[0] == "key" else ""))
  for name in [name for name in features if name not in left_out]:
    _check_field(name, features.arrow_schema.field(name).type)
  label_of = _labeller(features[label]) if label in features else lambda value: None
  raw = hf_dataset.with_format("arrow")
  digits = max(6, len(str(len(hf_dataset))))
  given = set()
  if isinstance(features.get(label), datasets.ClassLabel) and features[label].names:
    flags.setdefault("classes", features[label].names)
  flags.setdefault("missing_part", "keep")  # their mark of a row without a label is -1
  with shardpack.Writer(out, **flags) as writer:
    writer._named.update({*features} - left_out)  # pylint: disable=protected-access
    for first in range(0, len(hf_dataset), _AT_ONCE):
      rows = raw[first:first + _AT_ONCE].to_pylist()
      images = _encoded(features[image], [row[image] for row in rows])
      for n, (row, data) in enumerate(zip(rows, images), first):
        named = f"{n:0{digits}d}" if key is None else _key(row[key], n)
        if named in given:  # a key that is in the writer may be of a run before
          raise shardpack.ExistsError(f"row {n}: the key {named!r} is an earlier row's too; key=None numbers the rows")
        given.add(named)
        if named not in writer:
          fields = {field: _as_field(value, field, n) for field, value in row.items() if field not in left_out}
          writer.add(named, data, label_of(row.get(label)), **fields)
  return writer.result


def _key(value: Any, row: int) -> Union[str, bytes]:
  if value is None:
    raise shardpack.OptionError(f"row {row} has no key; key=None numbers the rows")
  return value if isinstance(value, bytes) else str(value)


def _labeller(feature: Any) -> Any:
  """Makes the label of a sample, which Writer.add judges."""
  def label(value: Any) -> Any:
    if value is None or (type(value) is int and value == -1):
      return None
    if not isinstance(feature, datasets.ClassLabel):
      return value
    if not 0 <= value < feature.num_classes:
      raise shardpack.OptionError(f"label {value} has no name: the column's classes are {feature.num_classes}")
    return str(feature.int2str(value))
  return label


def _encoded(feature: datasets.Image, rows: List[Any]) -> List[bytes]:
  """The bytes of images, from wherever they are."""
  if isinstance(feature, ShardpackImage):
    rows = [{"bytes": data, "path": None} for data in feature.bytes_of(rows)]
  images = []
  for row in rows:
    if row is None or (row["bytes"] is None and row["path"] is None):
      raise shardpack.OptionError("a row has no image")
    images.append(row["bytes"] if row["bytes"] is not None else _read(row["path"]))
  return images


def _read(path: str) -> bytes:
  with datasets.utils.file_utils.xopen(path, "rb") as file:
    return file.read()  # type: ignore[no-any-return]


def _check_field(name: str, kind: Any) -> None:
  """OptionError for a column whose values are neither text, bytes nor JSON."""
  types = pyarrow.types
  if not (types.is_binary(kind) or types.is_large_binary(kind)) and (wrong := _not_json(kind)) is not None:
    raise shardpack.OptionError(f"the column {name!r} has {wrong}, of which JSON has no form: cast_column makes text of it, remove_columns "
                                "leaves it out")


def _not_json(kind: Any) -> Any:
  """What of an Arrow type has no form in JSON; None: nothing."""
  types = pyarrow.types
  if isinstance(kind, pyarrow.BaseExtensionType):
    return _not_json(kind.storage_type)
  if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
    return _not_json(kind.value_type)
  if types.is_struct(kind):
    return next(filter(None, (_not_json(kind.field(n).type) for n in range(kind.num_fields))), None)
  plain = types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_string, types.is_large_string
  return None if any(is_plain(kind) for is_plain in plain) else kind


def _as_field(value: Any, name: str, row: int) -> Any:
  return value if value is None or isinstance(value, (str, bytes)) else json_of(value, f"the column {name!r} of row {row}")
