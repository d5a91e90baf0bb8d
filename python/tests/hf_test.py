"""Hugging Face datasets, in and out."""

import contextlib
import io
import os
import pathlib
import pickle
import tempfile
import unittest
import unittest.mock

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
os.environ.update(HF_HOME=str(WORK / "hf"), HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

# pylint: disable=wrong-import-position
import datasets
import example_shards
import fsspec
import numpy
import pandas
import PIL.Image
import shardpack
from shardpack.adapters import hf


def pixels(image):
  return numpy.asarray(image.convert("RGB")).tolist()


class ToDatasetTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    example_shards.make(WORK)

  def setUp(self):
    self.dataset = shardpack.Dataset(WORK / "shards")

  def same(self, rows, dataset):
    self.assertEqual(len(rows), len(dataset))
    for row, sample in zip(rows, dataset):
      self.assertEqual((pixels(row["image"]), row["label"], row["key"]),
                       (pixels(PIL.Image.open(io.BytesIO(sample.image))), sample.label, sample.key))

  def test_rows_are_samples(self):
    for dataset in (self.dataset, self.dataset.split("val"), self.dataset[40:30:-2], shardpack.Dataset([WORK / "shards"] * 2)[58:62]):
      rows = hf.to_dataset(dataset)
      self.assertEqual(rows.features["label"], datasets.ClassLabel(names=["cat", "dog", "owl"]))
      self.assertIsInstance(rows.features["image"], datasets.Image)
      self.same(rows, dataset)

  def test_images_are_not_copied(self):
    rows = hf.to_dataset(self.dataset)
    self.assertLess(rows.data.nbytes, 60 * 250)
    row = rows.data.column("image").to_pylist()[3]
    self.assertEqual((row["bytes"], row["id"], row["path"][:14]), (None, 3, "shardpack://3/"))

  def test_a_plain_image_reads_them_too(self):
    """A cast loses the numbers of the samples."""
    val = self.dataset.split("val")
    rows = hf.to_dataset(val)
    self.same(rows.cast_column("image", datasets.Image()), val)
    cast = rows.cast_column("image", datasets.Image(decode=False))
    with fsspec.open(cast[3]["image"]["path"]) as file:
      self.assertEqual((cast[3]["image"]["bytes"], file.read()), (None, val[3].image))
    self.assertEqual(fsspec.url_to_fs("shardpack://")[0].size(cast[3]["image"]["path"]), len(val[3].image))
    self.same(pickle.loads(pickle.dumps(rows.cast_column("image", datasets.Image()))), val)
    rows.cast_column("image", datasets.Image()).save_to_disk(WORK / "plain")
    self.same(datasets.load_from_disk(WORK / "plain"), val)
    hf.write(cast, WORK / "written", key="key")
    self.assertEqual(shardpack.Dataset(WORK / "written").get(val[3].key).image, val[3].image)
    for wrong in ("shardpack://3", "shardpack://x/xxh3:/W10", "shardpack://1/xxh3:/!"):
      with self.assertRaisesRegex(FileNotFoundError, "is not a sample"):
        fsspec.open(wrong).open()
    with self.assertRaises(shardpack.UnsupportedError):
      fsspec.open(cast[3]["image"]["path"], "wb").open()
    other = cast[3]["image"]["path"].replace("xxh3:", "xxh3:0")
    with self.assertRaisesRegex(shardpack.OptionError, "is not what it was"):
      fsspec.open(other).open()

  def test_what_datasets_does_with_rows(self):
    rows = hf.to_dataset(self.dataset, fields=["txt", "json"])
    self.assertEqual((rows[3]["txt"], rows[3]["json"]), (self.dataset[3].text(), self.dataset[3].text("json")))
    rows = rows.remove_columns(["txt", "json"])
    self.same(rows.select([5, 1]), self.dataset[[5, 1]])
    self.same(rows.filter(lambda row: row["label"] == 1), self.dataset.where(label="dog"))
    self.same(rows.shuffle(seed=1).sort("key"), sorted(self.dataset, key=lambda sample: sample.key))
    self.same(rows.map(lambda row: {"length": len(row["key"])}), self.dataset)
    # What was looked at, datasets encodes again.
    self.assertEqual(rows.map(lambda row: {"width": row["image"].size[0]})["width"][:], [sample.decode().shape[1] for sample in self.dataset])
    self.same(datasets.concatenate_datasets([rows, rows]).select(range(50, 70)), [*self.dataset[50:], *self.dataset[:10]])
    self.same(pickle.loads(pickle.dumps(rows)), self.dataset)
    self.same(list(rows.to_iterable_dataset()), self.dataset)
    self.assertEqual([pixels(image) for image in rows[4:6]["image"]], [pixels(row["image"]) for row in rows.select([4, 5])])
    smaller = rows.map(lambda row: {"image": row["image"].resize((8, 8))})
    self.assertEqual(smaller[3]["image"].size, (8, 8))
    self.assertEqual(rows.with_format("numpy")[2]["image"].tolist(), pixels(rows[2]["image"]))

  def test_saved_rows(self):
    rows = hf.to_dataset(self.dataset)
    rows.save_to_disk(WORK / "saved")
    self.same(datasets.load_from_disk(WORK / "saved"), self.dataset)
    # Those have the bytes.
    self.assertEqual(datasets.load_from_disk(WORK / "saved").data.column("image").to_pylist()[3],
                     {"bytes": self.dataset[3].image, "path": None, "id": 3})
    plain = hf.to_dataset(self.dataset, fields=["txt"], lazy=False)
    self.assertEqual(type(plain.features["image"]), datasets.Image)
    self.same(plain, self.dataset)
    self.assertEqual(plain[9]["txt"], self.dataset[9].text())
    self.assertEqual(plain.cast_column("image", datasets.Image(decode=False))[9]["image"]["bytes"], self.dataset[9].image)

  def test_a_dataset_that_is_gone(self):
    example_shards.make(WORK / "gone")
    rows = hf.to_dataset(shardpack.Dataset(WORK / "gone" / "shards"))
    data = pickle.dumps(rows)
    (WORK / "gone").rename(WORK / "away")
    with self.assertRaisesRegex(FileNotFoundError, "not on this machine"):
      pickle.loads(data)[0]

  def test_wrong_arguments(self):
    with self.assertRaises(TypeError):
      hf.to_dataset("shards")
    with self.assertRaisesRegex(FileNotFoundError, "mask"):
      hf.to_dataset(self.dataset, fields=["mask"])
    with self.assertRaisesRegex(ValueError, "column already"):
      hf.to_dataset(self.dataset, fields=["label"])


class WriteTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    example_shards.make(WORK / "in")

  def setUp(self):
    self.dataset = shardpack.Dataset(WORK / "in" / "shards")

  def test_there_and_back(self):
    for number, rows in enumerate((hf.to_dataset(self.dataset, fields=["txt", "json"]), hf.to_dataset(self.dataset, fields=["txt", "json"], lazy=False))):
      out = WORK / f"back{number}"
      report = hf.write(rows, out, key="key", format="tfrecord")
      again = shardpack.Dataset(out)
      self.assertEqual((report.samples, again.format, again.class_counts), (60, "tfrecord", self.dataset.class_counts))
      for sample in self.dataset:
        other = again.get(sample.key)
        self.assertEqual((other.fields, other.class_name), (sample.fields, sample.class_name))

  def test_classes_keep_their_numbers(self):
    names = ["owl", "cat", "elk", "dog"]
    rows = hf.to_dataset(self.dataset)
    features = datasets.Features({**rows.features, "label": datasets.ClassLabel(names=names)})
    rows = datasets.Dataset.from_list([{"key": str(n), "label": label, "image": rows[n]["image"]} for n, label in enumerate((3, 0, 1))],
                                      features=features)
    hf.write(rows, WORK / "with-classes", key="key")
    again = shardpack.Dataset(WORK / "with-classes")
    self.assertEqual((again.classes, again.labels.tolist()), (names, [3, 0, 1]))

  def test_pandas(self):
    table = self.dataset.table()
    frame = table.to_pandas()
    self.assertEqual((list(frame), frame["label"].tolist()), (list(table), self.dataset.labels.tolist()))
    self.assertEqual(frame.groupby("class_name")["width"].max()["cat"], self.dataset.where(label="cat").widths.max())
    with self.assertRaisesRegex(TypeError, r"table.to_pandas\(\)"):
      pandas.DataFrame(table)

  def test_other_columns(self):
    features = datasets.Features({"picture": datasets.Image(), "kind": datasets.Value("string"), "boxes": datasets.List(datasets.Value("int64")),
                                  "note": datasets.Value("string")})
    photo = next((WORK / "in" / "photos" / "cat").glob("*.jpg"))
    array = numpy.random.default_rng(0).integers(0, 255, (9, 7, 3), numpy.uint8)
    rows = datasets.Dataset.from_dict({"picture": [str(photo), array], "kind": ["x", "y"], "boxes": [[1, 2], []], "note": ["n", None]},
                                      features=features)
    hf.write(rows, WORK / "other", image="picture", label="kind")
    again = shardpack.Dataset(WORK / "other")
    first, second = again.get("000000"), again.get("000001")
    self.assertEqual((first.image, first.class_name, first.json("boxes"), first.text("note")), (photo.read_bytes(), "x", [1, 2], "n"))
    self.assertEqual((second.decode().tolist(), second.class_name, "note" in second.fields), (array.tolist(), "y", False))
    unlabelled = hf.write(rows.remove_columns(["kind"]), WORK / "unlabelled", image="picture")
    self.assertEqual((unlabelled.samples, shardpack.Dataset(WORK / "unlabelled").labels.tolist()), (2, [-1, -1]))
    for wrong, message in ((dict(image="none"), "no column 'none'"), (dict(image="kind"), "not an Image"), (dict(image="picture", key="id"), "'id'"),
                           (dict(image="picture", label="class"), "'class'")):
      with self.assertRaisesRegex(ValueError, message):
        hf.write(rows, WORK / "wrong", **wrong)
    with self.assertRaisesRegex(TypeError, "splits"):
      hf.write(datasets.DatasetDict(train=rows), WORK / "wrong")
    self.assertFalse((WORK / "wrong").exists())

  def rows(self, /, **columns):
    """Small images beside these columns."""
    count = len(next(iter(columns.values())))
    arrays = numpy.random.default_rng(1).integers(0, 255, (count, 8, 8, 3), numpy.uint8)
    found = datasets.Dataset.from_dict({"image": list(arrays), **columns})
    return found.cast_column("image", datasets.Image())

  def test_two_rows_with_one_key(self):
    flushed_each = unittest.mock.patch.multiple("shardpack._writer", _BATCH_BYTES=1, _FIRST_SAFE_BYTES=1, _SAFE_BYTES=1)
    for name, patched in (("far", flushed_each), ("near", contextlib.nullcontext())):
      with patched, self.assertRaisesRegex(shardpack.ExistsError, "row 2: the key 'a' is an earlier row's too"):
        hf.write(self.rows(id=["a", "b", "a"]), WORK / name, key="id")
      # What a run before has made safe is no such row.
      self.assertEqual(hf.write(self.rows(id=["a", "b", "c"]), WORK / name, key="id").samples, 3)

  def test_keys(self):
    hf.write(self.rows(id=[b"k\xff", b"x"]), WORK / "bytes", key="id")
    self.assertEqual(sorted(map(os.fsencode, shardpack.Dataset(WORK / "bytes").keys)), [b"k\xff", b"x"])
    hf.write(self.rows(id=[7, 30]), WORK / "numbers", key="id")
    self.assertEqual(sorted(shardpack.Dataset(WORK / "numbers").keys), ["30", "7"])
    with self.assertRaisesRegex(shardpack.OptionError, "row 1 has no key"):
      hf.write(self.rows(id=["a", None]), WORK / "none", key="id")

  def test_columns_whose_names_no_field_can_have(self):
    for name in ("quality", "encode", "key"):
      with self.assertRaisesRegex(shardpack.OptionError, f"the column '{name}' cannot be a field of that name: rename_column"):
        hf.write(self.rows(**{name: [5, 6]}), WORK / "refused")
    with self.assertRaisesRegex(shardpack.OptionError, "the column 'image'"):
      hf.write(self.rows(n=[1]).add_column("picture", [None]).cast_column("picture", datasets.Image()), WORK / "refused", image="picture")
    with self.assertRaisesRegex(shardpack.OptionError, "the column 'label'"):
      hf.write(self.rows(label=[1], kind=["x"]), WORK / "refused", label="kind")
    self.assertFalse((WORK / "refused.parts").exists())
    hf.write(self.rows(label=[3], note=["n"]), WORK / "unlabelled2", label=None)
    (sample,) = shardpack.Dataset(WORK / "unlabelled2")
    self.assertEqual((sample.label, sorted(sample.fields)), (-1, ["image", "note"]))
    hf.write(self.rows(self=["me"]), WORK / "named_self")
    self.assertEqual(shardpack.Dataset(WORK / "named_self")[0].text("self"), "me")

  def test_columns_that_json_cannot_hold(self):
    """They are refused before anything is written."""
    times = datasets.Value("timestamp[s]")
    for feature in (times, datasets.Value("date32"), datasets.Value("decimal128(5,2)"), datasets.List(datasets.Value("binary")),
                    {"at": datasets.List(times)}, datasets.Image()):
      rows = self.rows(n=[1, 2]).add_column("odd", [None, None]).cast_column("odd", feature)
      with self.subTest(feature), self.assertRaisesRegex(shardpack.OptionError, "^the column 'odd' has .*, of which JSON has no form"):
        hf.write(rows, WORK / "refused_column")
      self.assertFalse((WORK / "refused_column.parts").exists())
    for name, values in (("nan", [0.5, float("nan")]), ("inf", [[0.5], [1.0, float("inf")]])):
      with self.assertRaisesRegex(shardpack.OptionError, "^the column 'odd' of row 1 cannot be written as JSON"):
        hf.write(self.rows(odd=values), WORK / name)
    hf.write(self.rows(odd=[[1, 2], None], raw=[b"\xff", b""], deep=[{"a": [True]}, {"a": []}]), WORK / "held")
    first, second = (shardpack.Dataset(WORK / "held").get(f"{n:06d}") for n in range(2))
    self.assertEqual((first.json("odd"), first["raw"], first.json("deep"), "odd" in second.fields), ([1, 2], b"\xff", {"a": [True]}, False))

  def test_labels_that_are_numbers(self):
    labels = [*range(12), -1, None]
    hf.write(self.rows(label=labels), WORK / "numbered")
    again = shardpack.Dataset(WORK / "numbered")
    self.assertEqual([again.get(f"{n:06d}").label for n in range(14)], [*range(12), -1, -1])
    for wrong in ([1.0], [True], [-2], [[1]]):
      with self.assertRaisesRegex(shardpack.OptionError, "label must be"):
        hf.write(self.rows(label=wrong), WORK / f"label {wrong}")


if __name__ == "__main__":
  unittest.main()
