"""Columns, tables and what a notebook shows, against the samples one by one."""

import base64
import ctypes
import errno
import gc
import html.parser
import io
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import example_shards
import numpy
import PIL.Image
import shardpack
from shardpack import _arrow, _encode

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
COLUMNS = {"labels": numpy.int64, "keys": object, "paths": object, "widths": numpy.uint32, "heights": numpy.uint32, "sizes": numpy.uint64,
           "hashes": numpy.uint64, "shard_ids": numpy.uint32}
OF_TABLE = {"key": "keys", "path": "paths", "label": "labels", "width": "widths", "height": "heights", "size": "sizes", "hash": "hashes",
            "shard": "shard_ids"}


def pack(source, out, *flags):
  subprocess.run(["cli/pack", source, "-o", out, "-q", *flags], check=True, stdout=subprocess.DEVNULL)
  return str(out)


def setUpModule():
  example_shards.make(WORK)
  pack(WORK / "photos", WORK / "one", "--shards", "1")
  pack(WORK / "photos", WORK / "many", "--shards", "7", "--fields", "txt")


class ColumnsTest(unittest.TestCase):

  def test_a_table_has_get(self):
    table = shardpack.Dataset(WORK / "one").table()
    self.assertIs(table.get("label"), table["label"])
    self.assertEqual((table.get("lable"), table.get("lable", 3)), (None, 3))
    with self.assertRaisesRegex(KeyError, "no column 'wdth', but id, key, .*did you mean 'width'"):
      table["wdth"]  # pylint: disable=pointless-statement
    # As pandas would have it.
    with self.assertRaisesRegex(TypeError, r"table.to_pandas\(\)"):
      numpy.asarray(table)

  def datasets(self):
    many = shardpack.Dataset(WORK / "many")
    yield shardpack.Dataset(WORK / "one")
    yield many
    yield many[5:50:3]
    yield shardpack.Dataset(WORK / "shards").split("val")[[7, 7, 2]]
    yield many[[]]

  def test_an_index_that_vanishes_is_an_error(self):
    """It is no field that samples lack, and no key that is not there."""
    key = shardpack.Dataset(WORK / "shards")[55].key
    for name, look in (("labels", lambda each: each.labels), ("sizes", lambda each: each.sizes), ("hashes", lambda each: each.hashes),
                       ("widths", lambda each: each.widths), ("keys", lambda each: each.keys), ("of val", lambda each: each.split("val").labels),
                       ("where", lambda each: each.where(label="cat")), ("table", lambda each: each.table()["size"]),
                       ("stream", lambda each: each.table().__arrow_c_stream__()), ("balanced", lambda each: shardpack.load(each, batch=4, weights="balanced")),
                       ("get", lambda each: each.get(key)), ("in", lambda each: key in each), ("find_key", lambda each: each.find_key(key))):
      with self.subTest(name):
        lacking = pathlib.Path(tempfile.mkdtemp(dir=WORK)) / "lacking"
        shutil.copytree(WORK / "shards", lacking)
        dataset = shardpack.Dataset(lacking)
        index, = lacking.glob("val*.pidx")
        index.unlink()
        with self.assertRaises(shardpack.Error) as raised:
          look(dataset)
        self.assertEqual(raised.exception.path, str(index))

  def test_they_are_the_samples(self):
    for dataset in self.datasets():
      with self.subTest(dataset):
        samples = list(dataset)
        expected = {"labels": [s.label for s in samples], "keys": [s.key for s in samples], "paths": [s.path for s in samples],
                    "widths": [s.width for s in samples], "heights": [s.height for s in samples], "sizes": [len(s.image) for s in samples]}
        for name, values in expected.items():
          self.assertEqual(getattr(dataset, name).tolist(), values)
        images = [sample.image for sample in samples]
        hashes = dataset.hashes.tolist()
        self.assertEqual([images.index(image) for image in images], [hashes.index(one) for one in hashes])
        for name, dtype in COLUMNS.items():
          column = getattr(dataset, name)
          self.assertEqual((column.dtype, column.shape), (dtype, (len(dataset),)))
          self.assertIs(getattr(dataset, name).base, column.base)
          self.assertFalse(column.flags.writeable)

  def test_shard_ids_name_the_shard(self):
    dataset = shardpack.Dataset(WORK / "many")
    self.assertEqual(len(set(dataset.shard_ids)), 7)
    for sample, shard in zip(dataset[::9], dataset[::9].shard_ids):
      self.assertIn(sample.image, (WORK / "many" / dataset.shards[shard]).read_bytes())

  def test_one_shard_is_a_view(self):
    """Of the index's memory, which stays as long as the array."""
    dataset = shardpack.Dataset(WORK / "one")
    for name in ("labels", "widths", "heights", "sizes", "hashes"):
      first, again = getattr(dataset, name), getattr(shardpack.Dataset(WORK / "one"), name)
      self.assertFalse(first.flags.owndata)
      # Nobody can make it writable: it is a file's memory.
      with self.assertRaises(ValueError):
        first.flags.writeable = True
      self.assertEqual(first.ctypes.data, getattr(dataset, name).ctypes.data)
      numpy.testing.assert_array_equal(first, again)
    labels, expected = dataset.labels, dataset.labels.tolist()
    del dataset
    gc.collect()
    shutil.rmtree(WORK / "one")
    self.addCleanup(pack, WORK / "photos", WORK / "one", "--shards", "1")
    self.assertEqual(labels.tolist(), expected)

  def test_a_shard_without_the_field(self):
    tars = WORK / "tars"
    tars.mkdir()
    (tars / "a.txt").write_text("no image")
    (tars / "b.jpg").write_bytes(next((WORK / "photos" / "cat").glob("*.jpg")).read_bytes())
    for name in ("a.txt", "b.jpg"):
      subprocess.run(["tar", "-C", tars, "-cf", tars / f"{name[0]}.tar", name], check=True)
    dataset = shardpack.Dataset([tars / "a.tar", tars / "b.tar"])
    self.assertEqual((dataset.sizes.tolist(), dataset.labels.tolist()), ([0, (tars / "b.jpg").stat().st_size], [-1, -1]))
    self.assertEqual(dataset.class_counts, {})
    with self.assertRaisesRegex(KeyError, "image"):
      dataset[0].image  # pylint: disable=expression-not-assigned
    with self.assertRaisesRegex(shardpack.UnsupportedError, "widths of the images are not known"):
      dataset.where(min_width=3)

  def test_names_of_any_bytes(self):
    folder = WORK / "bytes" / os.fsdecode(b"cl\xff<b>")
    folder.mkdir(parents=True)
    for name in (b"\xc3\xa9", b"\xfe", b"a&b", b"\xe4\xb8\xad"):
      shutil.copy(next((WORK / "photos" / "cat").glob("*.jpg")), os.fsencode(folder) + b"/" + name + b".jpg")
    dataset = shardpack.Dataset(pack(WORK / "bytes", WORK / "bytes_shards", "--no-shuffle", "-f", "tfrecord"))
    self.assertEqual(dataset.keys.tolist(), [sample.key for sample in dataset])
    self.assertEqual(sorted(map(os.fsencode, dataset.paths)), sorted(os.fsencode(path.relative_to(WORK / "bytes")) for path in folder.iterdir()))
    for path in dataset.paths[::-1]:
      self.assertEqual(dataset[dataset.paths.tolist().index(path)].path, path)
    self.assertEqual(dataset[::-1].keys.tolist(), dataset.keys.tolist()[::-1])
    shown = dataset._repr_html_()
    shown.encode()
    self.assertIn("cl\\xff&lt;b&gt;", shown)
    self.assertEqual(_arrow.text_format([(numpy.array([2, 3], numpy.uint64), numpy.frombuffer(b"\xc3\xa9a", numpy.uint8))]), "U")
    self.assertEqual(_arrow.text_format([(numpy.array([1, 3], numpy.uint64), numpy.frombuffer(b"\xc3\xa9a", numpy.uint8))]), "Z")
    self.assertEqual(_arrow.text_format([(numpy.array([1], numpy.uint64), numpy.frombuffer(b"\xc3", numpy.uint8))]), "Z")


class TableTest(unittest.TestCase):

  def test_it_is_a_mapping_of_columns(self):
    dataset = shardpack.Dataset(WORK / "shards")
    table = dataset.table()
    self.assertEqual(list(table), ["id", "key", "path", "label", "class_name", "split", "width", "height", "size", "hash", "shard"])
    self.assertEqual({name: column.dtype for name, column in dict(table).items()},
                     {"id": numpy.uint64, "class_name": object, "split": object,
                      **{name: COLUMNS[column] for name, column in OF_TABLE.items()}})
    for name, column in OF_TABLE.items():
      numpy.testing.assert_array_equal(table[name], getattr(dataset, column))
    samples = list(dataset)
    self.assertEqual(table["class_name"].tolist(), [sample.class_name for sample in samples])
    self.assertEqual(table["split"].tolist(), [sample.split for sample in samples])
    self.assertEqual(table["id"].tolist(), list(range(60)))
    self.assertIs(table["split"], table["split"])
    with self.assertRaises(KeyError):
      table["colour"]

  def test_streams_that_nobody_takes(self):
    dataset = shardpack.Dataset(WORK / "shards")
    dataset.__arrow_c_stream__()
    for _ in range(50):
      dataset.table().__arrow_c_stream__(None)
    self.assertLessEqual(len(_arrow._exports), 2)
    self.assertLessEqual(len(_arrow._kept), 2)


class Consumer:
  """What a program in C does with a stream."""

  def __init__(self, capsule):
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    self.capsule, self.address = capsule, pointer(capsule, b"arrow_array_stream")
    self.stream = _arrow._Stream.from_address(self.address)

  def get(self, function, into):
    ctypes.memset(ctypes.addressof(into), 0xAA, ctypes.sizeof(into))  # nothing may be left as it was
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(function)(self.address, ctypes.addressof(into)) == 0
    return into

  def schema(self):
    return self.get(self.stream.get_schema, _arrow._Schema())

  def next(self):
    return self.get(self.stream.get_next, _arrow._Array())

  def close(self):
    release(self.stream)


def release(struct):
  ctypes.CFUNCTYPE(None, ctypes.c_void_p)(struct.release)(ctypes.addressof(struct))
  assert not struct.release


def child(parent, n):
  return type(parent).from_address((ctypes.c_void_p * parent.n_children).from_address(parent.children)[n])


def int64s(array):
  assert (array.offset, array.null_count, array.n_children, bool(array.dictionary)) == (0, 0, 0, False)
  data = (ctypes.c_void_p * array.n_buffers).from_address(array.buffers)[1]
  return list((ctypes.c_int64 * array.length).from_address(data))


class StreamTest(unittest.TestCase):

  def setUp(self):
    gc.collect()
    shardpack.Dataset(WORK / "many").__arrow_c_stream__()  # what others left
    self.dataset = shardpack.Dataset(WORK / "many")
    self.names = list(self.dataset.table())

  def kept(self):
    gc.collect()
    _arrow._exports.drop_untaken()
    _arrow.drop_released()
    return len(_arrow._kept)

  def test_a_consumer_moves_and_releases(self):
    before = self.kept()
    labels, consumer = self.names.index("label"), Consumer(self.dataset.__arrow_c_stream__())
    schema = consumer.schema()
    self.assertEqual([child(schema, n).name.decode() for n in range(schema.n_children)], self.names)
    moved_schema = _arrow._Schema.from_buffer_copy(child(schema, labels))
    child(schema, labels).release = None
    release(schema)
    self.assertEqual((moved_schema.format, moved_schema.name), (b"l", b"label"))
    ids, arrays, moved = [], [], []
    while (array := consumer.next()).release:
      arrays.append(array)
      self.assertEqual((array.offset, array.length), (0, child(array, 0).length))
      ids += int64s(child(array, 0))
      moved.append(_arrow._Array.from_buffer_copy(child(array, labels)))
      child(array, labels).release = None
    consumer.close()
    expected = self.dataset.labels.tolist()
    del self.dataset
    for array in arrays:
      release(array)
    self.assertEqual(self.kept(), before + len(moved) + 1)
    self.assertEqual(ids, list(range(60)))
    self.assertEqual((len(moved), [label for array in moved for label in int64s(array)]), (7, expected))
    for array in moved:
      release(array)
    release(moved_schema)
    self.assertEqual(self.kept(), before)

  def test_a_consumer_that_stops(self):
    before = self.kept()
    for steps in range(3):
      consumer = Consumer(self.dataset[::2].__arrow_c_stream__())
      arrays = [consumer.next() for _ in range(steps)]
      for array in arrays:
        if array.release:
          release(array)
      consumer.close()
      del consumer
    self.assertEqual(self.kept(), before)

  def test_errors_are_told(self):
    damaged = WORK / "damaged_index"
    shutil.copytree(WORK / "many", damaged)
    index = sorted(damaged.glob("*.pidx"))[4]
    data = bytearray(index.read_bytes())
    data[len(data) // 2] ^= 1
    index.write_bytes(data)
    with self.assertRaisesRegex(shardpack.DataLossError, index.stem):
      shardpack.Dataset(damaged).table().__arrow_c_stream__()

    def batches():
      yield [_arrow.numbers(numpy.arange(3))]
      raise ValueError("too \0 late")

    consumer = Consumer(_arrow.stream([_arrow.Field("a", "l")], batches()))
    release(consumer.next())
    array, ask = _arrow._Array(), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    self.assertEqual(ask(consumer.stream.get_next)(consumer.address, ctypes.addressof(array)), errno.EIO)
    message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(consumer.stream.get_last_error)(consumer.address)
    self.assertEqual(message, b"ValueError: too \\0 late")
    consumer.close()


class Page(html.parser.HTMLParser):
  """Checks that elements are closed, and keeps what is in them."""

  def __init__(self, text):
    super().__init__()
    self.open, self.images, self.words, self.seen = [], [], [], set()
    self.feed(text)
    self.close()
    assert not self.open, self.open

  def handle_starttag(self, tag, attrs):
    self.seen.add(tag)
    for name, value in attrs:
      assert name in ("style", "title", "alt", "src"), name
      assert name != "src" or value.startswith("data:image/png;base64,"), value
      assert "url(" not in value or name != "style"
    if tag == "img":
      self.images.append(dict(attrs))
    elif tag != "br":
      self.open.append(tag)

  def handle_endtag(self, tag):
    assert self.open.pop() == tag

  def handle_data(self, data):
    self.words.append(data)


class HtmlTest(unittest.TestCase):

  def test_counts_splits_classes_and_thumbnails(self):
    dataset = shardpack.Dataset(WORK / "shards")
    page = Page(dataset._repr_html_())
    text = " ".join(page.words)
    for part in ("60 samples", "train 48, val 12", "3 classes", "cat", "dog", "owl", dataset.identity):
      self.assertIn(part, text)
    self.assertLessEqual(page.seen, {"div", "p", "b", "br", "small", "table", "tr", "td", "img"})
    self.assertEqual(len(page.images), 24)
    for image in page.images:
      shown = PIL.Image.open(io.BytesIO(base64.b64decode(image["src"].partition(",")[2])))
      original = PIL.Image.open(io.BytesIO(dataset.get(image["title"]).image)).convert("RGB")
      scale = 56 / min(original.size)
      resized = original.resize([round(side * scale) for side in original.size], PIL.Image.BILINEAR)
      left, top = [round((side - 56) / 2) for side in resized.size]
      self.assertLess(numpy.abs(numpy.asarray(shown).astype(int) - numpy.asarray(resized.crop((left, top, left + 56, top + 56)))).mean(), 8)
    self.assertIn("7 of 60 samples", Page(dataset[3:10]._repr_html_()).words[0])
    Page(dataset[[]]._repr_html_())

  def test_damaged_images_are_said_to_be(self):
    damaged = WORK / "damaged"
    shutil.copytree(WORK / "shards", damaged)
    sample = shardpack.Dataset(damaged).where(label="dog")[2]
    shard = damaged / (sample.split + "-000000.tar")
    data = bytearray(shard.read_bytes())
    data[data.index(sample.image) + 99] ^= 1
    shard.write_bytes(data)
    shown = shardpack.Dataset(damaged)._repr_html_()
    self.assertEqual(len(Page(shown).images), 23)
    self.assertIn(f"{sample.key}: cannot be decoded", shown)
    # None is left to stand in for it.
    alone = shardpack.Dataset(damaged).where(label="dog")[2:3]._repr_html_()
    self.assertEqual((len(Page(alone).images), "cannot be decoded" in alone), (0, True))

  def test_many_classes_are_bounded(self):
    folder = WORK / "crowd"
    for n in range(60):
      (folder / f"class{n}").mkdir(parents=True)
      for i in range(1 + (n == 7)):
        PIL.Image.fromarray(numpy.full((9, 9, 3), n, numpy.uint8)).save(folder / f"class{n}" / f"{i}.png")
    page = Page(shardpack.Dataset(pack(folder, WORK / "crowd_shards"))._repr_html_())
    self.assertIn("and 36 smaller classes", page.words)
    self.assertIn("class7", page.words)
    self.assertLessEqual(len(page.images), 13)

  def test_png(self):
    pixels = numpy.random.default_rng(0).integers(0, 255, (5, 9, 3), numpy.uint8)
    numpy.testing.assert_array_equal(numpy.asarray(PIL.Image.open(io.BytesIO(_encode.png(pixels, "pixels")))), pixels)


if __name__ == "__main__":
  unittest.main()
