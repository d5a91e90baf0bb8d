"""Writers: what they pack is what was added, whatever the format, the number of processes and the kills."""

import concurrent.futures
import contextlib
import errno
import functools
import io
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock
import warnings

import numpy
import PIL.Image

import shardpack
from shardpack import _c, _errors
from writing import WORK, expected, held, image, pixels, samples

# A program that writes samples, and may be killed: `count` of them, those of one worker of several.
PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import shardpack
from writing import samples
path, count, worker, workers = sys.argv[1], *map(int, sys.argv[2:])
with shardpack.Writer(path, worker=worker, workers=workers if workers > 1 else None, shard_size="100kB") as writer:
  for n, (key, data, label, text) in enumerate(samples(count)):
    if n % workers == worker and key not in writer:
      writer.add(key, data, label, txt=text)
      if n % 50 == 0:
        writer.flush()
"""


def write(path, of, **options):
  with shardpack.Writer(path, **options) as writer:
    for key, data, label, text in of:
      writer.add(key, data, label, txt=text)
  return writer.result


def start(path, count, worker=0, workers=1):
  program = PROGRAM.format(tests=os.path.dirname(os.path.abspath(__file__)))
  return subprocess.Popen([sys.executable, "-c", program, path, str(count), str(worker), str(workers)], stderr=subprocess.PIPE)


class OnDevice:
  """A tensor of a GPU as other packages show it."""

  def __array__(self):
    raise TypeError

  def __dlpack_device__(self):
    return 2, 0


class WriterTest(unittest.TestCase):

  def setUp(self):
    self.out = str(WORK / self.id().rpartition(".")[2])
    warnings.filterwarnings("ignore", ".*packed without the part", RuntimeWarning)

  def test_what_was_added_is_packed(self):
    of = samples(3000)
    report = write(self.out, of, shard_size="1MB")
    self.assertEqual(held(self.out), expected(of))
    self.assertEqual((report.samples, report.skipped, report.ok), (3000, 0, True))
    self.assertGreater(report.shards, 1)
    self.assertEqual(report.identity, shardpack.Dataset(self.out).identity)
    self.assertFalse(os.path.exists(self.out + ".parts"))
    self.assertTrue(shardpack.validate(self.out).ok)

  def test_four_formats_hold_the_same(self):
    of = [(key, data, label, None) for key, data, label, _ in samples(100)]
    for format in ("webdataset", "tfrecord", "lmdb", "hdf5"):  # pylint: disable=redefined-builtin
      out = f"{self.out}-{format}"
      self.assertEqual(write(out, of, format=format).format, format)
      indexed = shardpack.Dataset(out)
      self.assertEqual(len(indexed), 100)
      self.assertEqual(held(out), expected(of))

  def test_arrays_become_arrays(self):
    with shardpack.Writer(self.out, format="npy") as writer:
      for n in range(40):
        writer.add(f"{n:02}", pixels(n), "ab"[n % 2])
    found = numpy.load(os.path.join(self.out, next(name for name in os.listdir(self.out) if name.endswith(".npy")), "images.npy"))
    numpy.testing.assert_array_equal(found, [pixels(n) for n in range(40)])

  def test_values_of_fields(self):
    embedding = numpy.linspace(0, 1, 7, dtype="float32")
    mask = numpy.arange(12, dtype="uint8").reshape(3, 4)
    with shardpack.Writer(self.out, fields={"mask": "png", "npy": "npy", "json": "json", "txt": None, "count": None}) as writer:
      writer.add("all", image(0), mask=mask, npy=embedding, json={"a": [1, numpy.int64(2)], "é": None, "x": embedding}, txt="für",
                 count=numpy.int32(7))
      writer.add("none", image(1), mask=None, npy=None, json=None, txt=None, count=None)
      with self.assertRaisesRegex(shardpack.OptionError, "lacks the field 'count'"):
        writer.add("a", image(2), mask=mask, npy=embedding, json={}, txt="")
      with self.assertRaisesRegex(TypeError, "no field 'tzt'; did you mean 'txt'"):
        writer.add("a", image(2), mask=mask, npy=embedding, json={}, tzt="", count=1)
    found = held(self.out)
    fields = found["all"][1]
    numpy.testing.assert_array_equal(numpy.asarray(PIL.Image.open(io.BytesIO(fields["mask"]))), mask)
    numpy.testing.assert_array_equal(numpy.load(io.BytesIO(fields["npy"])), embedding)
    self.assertEqual(fields["json"], '{{"a":[1,2],"é":null,"x":{}}}'.format(str(embedding.tolist()).replace(" ", "")).encode())
    self.assertEqual((fields["txt"], fields["count"]), ("für".encode(), b"7"))
    self.assertEqual(found["none"], (None, {"image": image(1)}))

  def test_images_of_arrays(self):
    random_of = numpy.random.default_rng(1)
    arrays = {f"{dtype}-{channels}": random_of.integers(0, numpy.iinfo(dtype).max, (9, 7) + ((channels,) if channels else ())).astype(dtype)
              for dtype in ("uint8", "uint16", ">u2") for channels in (0, 1, 2, 3, 4)}
    with shardpack.Writer(self.out, encode="png") as writer:
      for key, array in arrays.items():
        writer.add(key.replace(">", "b"), array)
        writer.add(key.replace(">", "b") + "-f", numpy.asfortranarray(array[::-1, ::2]))
      writer.add("jpeg", pixels(3), encode="jpg", quality=77)
    found = {key: fields["image"] for key, (_, fields) in held(self.out).items()}
    out = io.BytesIO()
    PIL.Image.fromarray(pixels(3)).save(out, "JPEG", quality=77)
    self.assertEqual(found.pop("jpeg"), out.getvalue())
    self.assertTrue(shardpack.validate(self.out, "deep").ok)
    for key, array in arrays.items():
      if array.dtype == "uint8":
        name = key.replace(">", "b")
        numpy.testing.assert_array_equal(numpy.asarray(PIL.Image.open(io.BytesIO(found[name]))).reshape(array.shape), array)
        numpy.testing.assert_array_equal(numpy.asarray(PIL.Image.open(io.BytesIO(found[name + "-f"]))),
                                         array[::-1, ::2].reshape(9, 4, -1).squeeze())
    gray = numpy.asarray(PIL.Image.open(io.BytesIO(found["uint16-0"])))
    numpy.testing.assert_array_equal(gray, arrays["uint16-0"])
    numpy.testing.assert_array_equal(numpy.asarray(PIL.Image.open(io.BytesIO(found["bu2-1"]))), arrays[">u2-1"][:, :, 0])

  def test_pixels_of_16_bits_are_not_made_8(self):
    for options in ({"format": "npy"}, {"format": "hdf5", "layout": "decoded"}):
      with shardpack.Writer(self.out, overwrite=True, **options) as writer:
        with self.assertRaisesRegex(shardpack.OptionError, "image of sample a must be of uint8"):
          writer.add("a", numpy.zeros((9, 7), numpy.uint16))
        writer.add("a", pixels(1))

  def test_threads_take_turns(self):
    def add(n):
      writer.add(f"{n:04}", image(n % 7), "cat", **[{}, {"txt": "a cat"}, {"json": {"n": n}}][n % 3])
    for out in range(3):
      with shardpack.Writer(f"{self.out}-{out}", missing_part="keep") as writer, concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(999)))
      found = held(f"{self.out}-{out}")
      self.assertEqual(len(found), 999)
      for key, (_, fields) in found.items():
        self.assertEqual(set(fields), {"image", *(["txt"], ["json"])[int(key) % 3 - 1]} if int(key) % 3 else {"image"}, key)

  def test_wrong_arguments_are_named_and_change_nothing(self):
    with shardpack.Writer(self.out, missing_part="keep") as writer:
      add = writer.add
      for key in ("good", "other"):
        add(key, image(0), 1, txt="x")
      for error, pattern, arguments in (
          (ValueError, r"sample a: label must be .*, not an array of 1 dimensions: of a one-hot label .*argmax", ("a", image(1), numpy.eye(3)[1])),
          (ValueError, r"sample a: label must be .*, not an array of 1 dimensions", ("a", image(1), numpy.eye(3, dtype=int)[1])),
          (TypeError, "key must be text, not int", (3, image(1))),
          (ValueError, "key must have 1 to 4096 bytes", ("", image(1))),
          (ValueError, "key must have 1 to 4096 bytes", ("a\0b", image(1))),
          (shardpack.ExistsError, "the key good was added before", ("good", image(1))),
          (TypeError, "sample a lacks an image", ("a",)),
          (TypeError, "image of sample a must be the bytes of an encoded image or an array, not str", ("a", "x")),
          (TypeError, "not OnDevice; it lies on a device: copy it to the host first", ("a", OnDevice())),
          (TypeError, "image of sample a is an array: encode=", ("a", pixels(0))),
          (TypeError, "label must be the name of a class, such as 'cat', or a number, not float", ("a", image(1), 3.5)),
          (ValueError, "label must be a number of at least 0, or None, not -1", ("a", image(1), -1)),
          (ValueError, "label must have 1 to 255 bytes", ("a", image(1), "")),
          (ValueError, "label must be a number of at most 999999, not 1000000", ("a", image(1), 1000000)),
          (ValueError, "a number, not list", ("a", image(1), ["x"])),
          (ValueError, "a number, not float", ("a", image(1), 1.0)),
          (ValueError, "a number, not bool", ("a", image(1), True)),
          (ValueError, '"../a": it is absolute', ("../a", image(1))),
          (ValueError, "dot in its last component", ("a.b", image(1)))):
        with self.assertRaisesRegex(error, pattern):
          add(*arguments)
      for pattern, fields in (('field "TXT" is not a lower-case extension', {"TXT": "x"}), ('two fields "png"', {"png": b"x"}),
                              ("json of sample a cannot be written as JSON", {"json": {"x": float("nan")}}),
                              ("txt of sample a must be bytes, text, an array or JSON, not object", {"txt": object()}),
                              ("npy of sample a is an array of Python's objects", {"npy": numpy.array([{}])}),
                              ("mask.png of sample a: a PNG must be made of", {"mask.png": numpy.zeros((2, 2), "float32")}),
                              ("encode must be 'jpeg' or 'png'", {"encode": "tiff"}), ("quality must be a number", {"encode": "png", "quality": 0})):
        with self.assertRaisesRegex(shardpack.OptionError, pattern):
          add("a", image(1), None, **fields)
      self.assertEqual(len(writer), 2)
    self.assertEqual(sorted(held(self.out)), ["good", "other"])

  def test_wrong_options(self):
    for pattern, options in (("no flag 'shard_sise'; did you mean 'shard_size'", {"shard_sise": 1}), ("fields must be a list of names", {"fields": "txt"}),
                             ("encoding of mask must be one of jpeg, png, npy, json", {"fields": {"mask": "gif"}}),
                             ("encode must be 'jpeg' or 'png'", {"encode": "gif"}), ("worker 2 of 2", {"worker": 2, "workers": 2}),
                             ("workers must be a number from 1", {"workers": 0}), ("order must be 'key'", {"order": "random"}), ("no flag 'out'", {"out": "x"})):
      with self.assertRaisesRegex(TypeError, pattern):
        shardpack.Writer(self.out, **options)
    with self.assertRaisesRegex(shardpack.UnsupportedError, "samples are packed in the order of their keys"):
      shardpack.Writer(self.out, order="arrival")
    with self.assertRaisesRegex(TypeError, "path must be a path, not int"):
      shardpack.Writer(3)
    write(self.out, samples(3))
    with self.assertRaisesRegex(FileExistsError, "is a dataset already; .* in Python overwrite=True"):
      shardpack.Writer(self.out)
    self.assertEqual(write(self.out, samples(4), overwrite=True).samples, 4)

  def test_values_that_cannot_be_packed_are_refused_alone(self):
    """Whatever refuses them: the samples after them are added."""
    long = numpy.zeros(2, [(f"a field with a long name {n}", "f4") for n in range(4000)])
    deep = functools.reduce(lambda inner, _: [inner], range(100_000), [])
    with shardpack.Writer(self.out, format="tfrecord") as writer:
      for name, value, pattern in (("txt", "\ud800", "txt of sample a is text that UTF-8 cannot hold"), ("json", deep, "json of sample a cannot be written as JSON"),
                                   ("f.jpeg", numpy.zeros((1, 70_000), "uint8"), "f.jpeg of sample a: no JPEG can be made of uint8")):
        with self.assertRaisesRegex(shardpack.OptionError, pattern):
          writer.add("a", image(0), **{name: value})
        with self.assertRaisesRegex(shardpack.OptionError, "(?s)^1 sample was refused"):
          writer.add_many([f"{name[:3]}-1", "a", f"{name[:3]}-2"], [image(0)] * 3, **{name: [None, value, None]})
      for fields in ({"cut\0here": b"x"}, {"cut\0here": None}):
        with self.assertRaisesRegex(shardpack.OptionError, "the name of a field must not contain a zero byte"):
          writer.add("a", image(0), **fields)
      writer.add("long", image(1), array=long)
    found = held(self.out)
    self.assertEqual(sorted(found), sorted(["long", *(f"{name}-{n}" for name in ("txt", "jso", "f.j") for n in (1, 2))]))
    numpy.testing.assert_array_equal(numpy.load(io.BytesIO(found["long"][1]["array"]), max_header_size=1 << 20), long)

  def test_names_of_every_format_are_refused_at_once(self):
    for options, key, fields, pattern in (({"format": "npy", "encode": "png"}, "a", {"txt": "x"}, "npy holds only images, not the field txt"),
                                          ({"format": "lmdb"}, "a", {"txt": "x"}, "lmdb holds only images"),
                                          ({"format": "lmdb", "layout": "raw"}, "k" * 512, {}, "lmdb holds keys of at most 511 bytes"),
                                          ({"format": "hdf5"}, "a", {"keys": "x"}, "hdf5 cannot hold a field named keys"),
                                          ({"format": "hdf5"}, "k" * 1025, {}, "hdf5 holds keys of at most 1024 bytes"),
                                          ({"format": "hdf5", "layout": "decoded"}, "a", {"txt": "x"}, "hdf5 holds only images"),
                                          ({"format": "webdataset"}, "k" * 150, {}, "a ustar name has at most 100 bytes")):
      with self.subTest(**options), shardpack.Writer(f"{self.out}-{len(key)}-{options['format']}{len(options)}", **options) as writer:
        writer.add("good", image(0))
        with self.assertRaisesRegex(shardpack.OptionError, pattern):
          writer.add(key, image(1), **fields)

  def test_columns_are_samples(self):
    """The same dataset as by add, whatever the columns are, and one that goes on after them."""
    images = [image(n) for n in range(50)]
    keys = [f"{n % 7}/{n}" for n in range(50)]
    labels = [n % 3 for n in range(50)]
    with shardpack.Writer(WORK / "by-add") as writer:
      for row in zip(keys, images, labels):
        writer.add(*row)
    columns = ((keys, images, labels), ([key.encode() for key in keys], tuple(images), numpy.array(labels)), (keys, images, list(map(str, labels))),
               (numpy.array(keys), numpy.array(images, dtype=object), labels))
    for number, (given, pictures, named) in enumerate(columns):
      with self.subTest(number=number), shardpack.Writer(WORK / f"by-columns-{number}") as writer:
        writer.add_many(given[:20], pictures[:20], named[:20])
        writer.add(given[20], pictures[20], int(named[20]))
        writer.add_many(given[21:], pictures[21:], named[21:])
        self.assertEqual(len(writer), 50)
      self.assertEqual(shardpack.Dataset(WORK / f"by-columns-{number}").identity, shardpack.Dataset(WORK / "by-add").identity)
    # In several batches.
    with unittest.mock.patch.object(shardpack._writer, "_BATCH_BYTES", 4 * len(images[0])), shardpack.Writer(WORK / "in-batches") as writer:
      writer.add_many(keys, images, labels)
    self.assertEqual(shardpack.Dataset(WORK / "in-batches").identity, shardpack.Dataset(WORK / "by-add").identity)
    with shardpack.Writer(WORK / "with-fields", fields=["txt"]) as writer:
      writer.add_many(keys, images, txt=[f"of {key}" for key in keys])
    self.assertEqual(held(WORK / "with-fields"),
                     {key: (None, {"image": each, "txt": f"of {key}".encode()}) for key, each in zip(keys, images)})

  def test_columns_are_iterated(self):
    """An index of a table's column may be a label, in another order."""

    class Shuffled(list):

      def __getitem__(self, at):
        return super().__getitem__(slice(None) if isinstance(at, slice) else len(self) - 1 - at)

    keys, images, labels = [str(n) for n in range(9)], [image(n) for n in range(9)], ["cat", "dog", "owl"] * 3
    for fields in ({}, {"txt": keys}):
      out = f"{self.out}-{len(fields)}"
      with unittest.mock.patch.object(shardpack._writer, "_BATCH_BYTES", 4 * len(images[0])), shardpack.Writer(out) as writer:
        writer.add_many(Shuffled(keys), Shuffled(images), Shuffled(labels), **{name: Shuffled(column) for name, column in fields.items()})
      self.assertEqual(held(out), {key: (label, {"image": each, **({"txt": key.encode()} if fields else {})})
                                   for key, each, label in zip(keys, images, labels)})

  def test_columns_with_wrong_labels(self):
    with shardpack.Writer(self.out) as writer:
      with self.assertRaisesRegex(shardpack.OptionError, r"(?s)^2 samples were refused.*\n  b: sample b: label must have 1 to 255.*\n  d: sample d: label must be a number"):
        writer.add_many(["a", "b", "c", "d"], [image(n) for n in range(4)], ["cat", "", "dog", -1])
      self.assertEqual(len(writer), 2)
    self.assertEqual({key: label for key, (label, _) in held(self.out).items()}, {"a": "cat", "c": "dog"})

  def test_columns_with_wrong_keys(self):
    wrong = ["bad\0key", "", "k" * 4097, 7, "\ud800", "a", "a"]
    with shardpack.Writer(self.out) as writer:
      with self.assertRaisesRegex(shardpack.OptionError, r"(?s)^7 samples were refused.*'bad\\x00key': key must have 1 to .*\n  '': key must have .*"
                                  r"\n  'k{100}': .*\n  7: key must be text, not int\n  '\\ud800': key is text that UTF-8 cannot hold.*"
                                  r"\n  a: .*\n  a: [^\n]*$"):
        writer.add_many([*wrong[:5], "a", *wrong[5:], "b"], [image(n) for n in range(9)], txt=list("012345678"))
      self.assertEqual(len(writer), 2)
      writer.flush()  # nothing is left to say
    self.assertEqual({key: fields["txt"] for key, (_, fields) in held(self.out).items()}, {"a": b"5", "b": b"8"})

  def test_what_is_no_column(self):
    with shardpack.Writer(self.out) as writer:
      for pattern, arguments, fields in (("keys must be a column, .* not str", ("ab", [image(0), image(1)]), {}),
                                         ("images must be a column, .* not bytes", (["a", "b"], b"xx"), {}),
                                         ("labels must be a column, .* not str", (["a", "b"], [image(0), image(1)], "xy"), {}),
                                         ("txt must be a column, .* not str", (["a", "b"], [image(0), image(1)]), {"txt": "xy"}),
                                         *((f"{name} is an argument of add", (["a"], [image(0)]), {name: ["x"]})
                                           for name in ("key", "image", "label", "encode", "quality"))):
        with self.subTest(pattern), self.assertRaisesRegex(shardpack.OptionError, pattern):
          writer.add_many(*arguments, **fields)
      self.assertEqual(len(writer), 0)
      writer.add("a", image(0))
    self.assertEqual(list(held(self.out)), ["a"])

  def test_columns_with_wrong_samples(self):
    with shardpack.Writer(WORK / "wrong-columns") as writer:
      with self.assertRaisesRegex(shardpack.OptionError, "labels has 1 entries, and keys 2"):
        writer.add_many(["a", "b"], [image(0), image(1)], labels=["cat"])
      with self.assertRaisesRegex(shardpack.OptionError, r"(?s)1 sample was refused.*b/\.\./c"):
        writer.add_many(["a", "b/../c", "c"], [image(0), image(1), image(2)])
      with self.assertRaises(shardpack.ExistsError):
        writer.add_many(["d", "a", "e"], [image(3), image(4), image(5)])
      with self.assertRaises(shardpack.ExistsError):
        writer.add_many(["f", "f"], [image(6), image(7)])
      with self.assertRaises(shardpack.OptionError):
        writer.add_many(["g", "bad\0key"], [image(8), image(9)])
      writer.add_many([], [])
    self.assertEqual(sorted(shardpack.Dataset(WORK / "wrong-columns").keys), ["a", "c", "d", "e", "f", "g"])

  def test_a_sample_refused_in_a_batch_is_named_and_the_others_are_added(self):
    sound, webp = b"RIFF\0\0\0\0WAVEfmt ", image(1, "WEBP")  # alike in what the Writer looks at
    with warnings.catch_warnings(record=True) as warned:
      warnings.simplefilter("always")
      with shardpack.Writer(self.out, max_skip="60%") as writer:
        writer.add("a", sound, webp=b"x")
        writer.add("b", webp, webp=b"x")
        writer.add("c", sound, webp=b"x")
        writer.add("b2", webp, webp=b"x")
        writer.add("d", image(2))  # not refused itself
        with self.assertRaisesRegex(shardpack.OptionError, "(?s)2 samples were refused, and left out:.*  b: .*  b2: ") as caught:
          writer.flush()
        self.assertEqual(caught.exception.key, "b")
        self.assertEqual(len(writer), 3)
        self.assertTrue("a" in writer and "b" not in writer)
        writer.add("e", image(3))
    self.assertEqual(sorted(held(self.out)), ["d", "e"])
    self.assertEqual((writer.result.exit_code, writer.result.skipped), (3, 2))
    self.assertRegex(str(warned[-1].message), "2 samples were left out")
    self.assertTrue(os.path.exists(self.out + ".parts"))

  def test_flags_are_refused_before_the_first_sample(self):
    for pattern, flags in (("format mds: expected one of webdataset", {"format": "mds"}), ("shard_size 5XB: expected a size", {"shard_size": "5XB"}),
                           ("split train=0.8,val=0.5: the shares add up", {"split": "train=0.8,val=0.5"}), ("resize shortst:.*mean shortest", {"resize": "shortst"}),
                           ("layout ustar: the layouts of tfrecord", {"format": "tfrecord", "layout": "ustar"}),
                           ("interpolation is for images that are re-encoded", {"interpolation": "area"}),
                           ("resize needs size", {"resize": "shortest"}), ("format mds", {"format": "mds", "worker": 1, "workers": 2}),
                           ("progress must be True, False or a function", {"progress": "yes"})):
      with self.subTest(flags), self.assertRaisesRegex(shardpack.OptionError, pattern):
        shardpack.Writer(self.out, **flags)
      self.assertFalse(os.path.exists(self.out + ".parts"))
    with unittest.mock.patch.dict(os.environ, SHARDPACK_PACK="/nowhere"):  # as where only parts are written
      shardpack.Writer(self.out, shard_size="7MB").close()

  def test_a_finish_whose_flags_are_refused_says_how_to_go_on(self):
    for workers in (None, 2):
      out = f"{self.out}{workers}"
      for worker in range(workers or 1):
        with contextlib.suppress(ZeroDivisionError), shardpack.Writer(out, worker=worker, workers=workers) as writer:
          writer.add(str(worker), image(worker))
          writer.close()
      with self.assertRaises(shardpack.PackUsageError) as caught:
        shardpack.finish(out, format="mds")
      self.assertRegex(str(caught.exception), rf"kept in .*: shardpack.finish\('{out}', format=...\) packs them with another value")
      self.assertEqual(shardpack.finish(out, format="tfrecord").samples, workers or 1)

  def test_classes_that_are_given_keep_their_numbers(self):
    names = ["owl", "cat", "dog", "elk"]
    for out, labels in (("train", ("cat", "dog", "owl")), ("val", ("dog", 0, numpy.int64(0)))):
      with shardpack.Writer(WORK / out, classes=names, missing_part="keep") as writer:
        for n, label in enumerate(labels):
          writer.add(f"{out}/{n}", image(n), label)
        for pattern, label in (("sample x: label 'dgo' is not among the 4 classes of the Writer; did you mean 'dog'", "dgo"),
                               ("sample x: label 4 is not among .*0 to 3, 'owl', 'cat', 'dog', 'elk'", 4),
                               ("sample x: label 'zebra' is not among the 4 classes of the Writer: 'owl', 'cat', 'dog', 'elk'", "zebra"),
                               ("label must be a number of at least 0", -1)):
          with self.assertRaisesRegex(shardpack.OptionError, pattern):
            writer.add("x", image(9), label)
        writer.add_many([f"{out}/many"], [image(8)], ["cat"])
        writer.add(f"{out}/none", image(7))
    both = shardpack.Dataset([WORK / "train", WORK / "val"])
    self.assertEqual((both.classes, both.labels.tolist()), (names, [1, 2, 0, 1, -1, 2, 0, 0, 1, -1]))
    for pattern, classes in (("must be a list of names, in the order of their labels, not str", "cat"), ("must not be an empty list", []),
                             ("classes has 'a' twice", ["a", "b", "a"]), ("and 3 is none", [3]), ("a list of names.*: a set has no order", {"a", "b"}),
                             ("a list of names.*: a frozenset has no order", frozenset("ab")), ("from 0 to 1, each once", {"a": 1, "b": 2}),
                             ("from 0 to 1, each once", {"a": 0, "b": 0}), ("a dict of the number of each name", {0: "a", 1: "b"}),
                             ("a dict of the number of each name", {"a": True, "b": False})):
      with self.assertRaisesRegex(shardpack.OptionError, pattern):
        shardpack.Writer(self.out, classes=classes)

  def test_classes_may_be_given_with_their_numbers(self):
    with shardpack.Writer(self.out, classes={"dog": 1, "cat": numpy.int64(0)}) as writer:
      writer.add("a", image(0), "dog")
      writer.add("b", image(1), 0)
    self.assertEqual((shardpack.Dataset(self.out).classes, shardpack.Dataset(self.out).labels.tolist()), (["cat", "dog"], [1, 0]))
    shardpack.Writer(self.out, overwrite=True, classes={"dog": 1, "cat": 0}.keys()).close()

  def test_workers_agree_on_classes(self):
    for worker in range(2):
      with shardpack.Writer(self.out, classes=["b", "a"], worker=worker, workers=2) as writer:
        writer.add(str(worker), image(worker), "ab"[worker])
    with self.assertRaisesRegex(shardpack.OptionError, "have other classes: 'b', 'a', not none"):
      shardpack.Writer(self.out, worker=1, workers=2)
    shardpack.finish(self.out)
    self.assertEqual((shardpack.Dataset(self.out).classes, shardpack.Dataset(self.out).labels.tolist()), (["b", "a"], [1, 0]))

  def test_a_writer_alone_goes_on_with_the_same_classes(self):
    names = ["owl", "cat"]
    with contextlib.suppress(ZeroDivisionError), shardpack.Writer(self.out, classes=names) as writer:
      writer.add("a", image(0), "cat")
      raise ZeroDivisionError
    for classes, shown in ((None, "none"), (names[::-1], "'cat', 'owl'")):
      with self.assertRaisesRegex(shardpack.OptionError, f"has samples of a Writer with other classes: 'owl', 'cat', not {shown}; give the same classes="):
        shardpack.Writer(self.out, classes=classes)
    with shardpack.Writer(self.out, classes=names) as writer:
      writer.add("b", image(1), "owl")
    dataset = shardpack.Dataset(self.out)
    self.assertEqual((dataset.classes, {sample.key: sample.label for sample in dataset}), (names, {"a": 1, "b": 0}))

  def test_samples_of_a_run_before_have_the_classes(self):
    with contextlib.suppress(ZeroDivisionError), shardpack.Writer(self.out) as writer:
      writer.add("a", image(0), "emu")
      raise ZeroDivisionError
    with self.assertRaisesRegex(shardpack.OptionError, "have the label emu, which is not among the 2 classes"):
      shardpack.Writer(self.out, classes=["a", "b"])

  def test_what_is_no_image_is_refused_at_once(self):
    with shardpack.Writer(self.out) as writer:
      writer.add("a", image(0), "cat")
      for data, pattern in ((b"notanimage", "sample k is .* JPEG, PNG.* with a max_skip above 0 among .* It begins with b'notanima'.*encode="),
                            (b"", "sample k .* It has no bytes"), (b"RIFF\0\0\0\0WAVEfmt ", "sample k is .* JPEG, PNG.* with a max_skip above 0 among the arguments the finish leaves such samples out$")):
        with self.assertRaisesRegex(shardpack.OptionError, pattern):
          writer.add("k", data, "cat")
      with self.assertRaisesRegex(shardpack.OptionError, "sample k--max-skip is .* JPEG"):
        writer.add("k--max-skip", b"notanimage", "cat")
      with self.assertRaisesRegex(shardpack.OptionError, "(?s)2 samples were refused, and left out:.*  d: .*no bytes.*  e: .*b'notanima'"):
        writer.add_many(["b", "c", "d", "e"], [image(1), image(2), b"", b"notanimage"], ["cat"] * 4)
      for n, kind in enumerate(("JPEG", "WEBP", "GIF", "BMP", "TIFF")):
        writer.add(f"kind{n}", image(n, kind), "cat")
      self.assertEqual(len(writer), 8)
    self.assertEqual(writer.result.samples, 8)

  def test_a_writer_without_samples_is_true(self):
    with shardpack.Writer(self.out) as writer:
      self.assertTrue(writer)
      writer.add("a", image(0))

  def test_images_at_hand(self):
    class Own(numpy.ndarray):
      pass
    gray, colour = PIL.Image.fromarray(pixels(0)[:, :, 0]), PIL.Image.fromarray(pixels(0))
    with shardpack.Writer(self.out, encode="png", fields={"mask": "png"}) as writer:
      writer.add("own", pixels(0).view(Own), mask=gray)
      writer.add("gray", gray, mask=None)
      writer.add("colour", colour, mask=None)
      writer.add("alpha", colour.convert("RGBA"), mask=None)
      writer.add("jpeg", colour, encode="jpeg", quality=numpy.int64(90), mask=None)
      for pattern, data, options in (("PIL.Image of mode P, .*convert", colour.convert("P"), {}), ("a JPEG must be made of", colour.convert("RGBA"), {"encode": "jpeg"}),
                                     (r"not PosixPath; .*path.read_bytes\(\)", WORK / "a.jpg", {}), (r"not str; .*read_bytes\(\)", "a.jpg", {}),
                                     ("quality must be a number from 1 to 100", colour, {"encode": "jpeg", "quality": numpy.int64(0)})):
        with self.assertRaisesRegex(shardpack.OptionError, pattern):
          writer.add("x", data, mask=None, **options)
      with self.assertRaisesRegex(shardpack.OptionError, r"mask of sample x must be .*not PosixPath; .*read_bytes\(\)"):
        writer.add("x", colour, mask=WORK / "a.png")
    dataset = shardpack.Dataset(self.out)
    for key in ("own", "colour"):
      numpy.testing.assert_array_equal(dataset.get(key).decode(), pixels(0))
    for data in (dataset.get("gray").image, dataset.get("own").fields["mask"]):
      numpy.testing.assert_array_equal(PIL.Image.open(io.BytesIO(data)), pixels(0)[:, :, 0])
    self.assertEqual(PIL.Image.open(io.BytesIO(dataset.get("alpha").image)).mode, "RGBA")
    with shardpack.Writer(self.out + "-none") as writer:
      with self.assertRaisesRegex(shardpack.OptionError, "encode=\"jpeg\" or \"png\" says"):
        writer.add("x", colour)
      with self.assertRaisesRegex(shardpack.OptionError, "quality is of JPEG, and the image of sample x is encoded as PNG"):
        writer.add("x", colour, encode="png", quality=50)
      writer.add("x", image(0))

  def test_samples_of_datasets_are_copied(self):
    of = samples(20)
    write(self.out, of)
    with shardpack.Writer(self.out + "-copy", format="tfrecord") as writer:
      for sample in shardpack.Dataset(self.out):
        writer.add_sample(sample)
      writer.add_sample(shardpack.Dataset(self.out)[0], key="other")
      with self.assertRaisesRegex(shardpack.OptionError, "sample must be a shardpack.Sample, not bytes"):
        writer.add_sample(image(0))
    copied = held(self.out + "-copy")
    self.assertEqual(copied.pop("other"), held(self.out)[shardpack.Dataset(self.out)[0].key])
    self.assertEqual(copied, expected(of))

  def test_columns_may_be_anything_that_is_iterated(self):
    with shardpack.Writer(self.out) as writer:
      writer.add_many((str(n) for n in range(3)), (image(n) for n in range(3)), numpy.arange(3), txt=iter("abc"))
      writer.add("x", image(9), numpy.int64(2))
      with self.assertRaisesRegex(shardpack.OptionError, "images must be a column, .* not int"):
        writer.add_many(["y"], 3)
    self.assertEqual(shardpack.Dataset(self.out).labels.tolist(), [0, 1, 2, 2])

  def test_left_by_an_exception_it_keeps_the_samples_and_publishes_nothing(self):
    of = samples(30)
    whole = write(self.out + "-whole", of)
    with self.assertRaises(ZeroDivisionError) as caught, warnings.catch_warnings(record=True) as warned:
      warnings.simplefilter("always")
      with shardpack.Writer(self.out) as writer:
        for key, data, label, text in of[:20]:
          writer.add(key, data, label, txt=text)
        1 / 0  # pylint: disable=pointless-statement
    said = caught.exception.__notes__[0] if sys.version_info >= (3, 11) else str(warned[0].message)
    self.assertRegex(said, f"Nothing was published. The samples are kept in {self.out}.parts: a Writer of .* goes on with them")
    self.assertFalse(os.path.exists(self.out))
    with self.assertRaisesRegex(shardpack.StateError, "the writer is closed"):
      writer.add("x", image(0))
    with shardpack.Writer(self.out) as writer:
      self.assertEqual([sample[0] in writer for sample in of], [True] * 20 + [False] * 10)
      with self.assertRaisesRegex(shardpack.ExistsError, "was added before"):
        writer.add(*of[3][:3])
      for key, data, label, text in of[20:]:
        writer.add(key, data, label, txt=text)
    self.assertEqual(writer.result.identity, whole.identity)

  def leave(self, *keys, **options):
    with contextlib.suppress(ZeroDivisionError), shardpack.Writer(self.out, **options) as writer:
      for n, key in enumerate(keys):
        writer.add(key, image(n), "early")
      raise ZeroDivisionError

  def test_samples_of_an_earlier_run_are_told(self):
    with warnings.catch_warnings():
      warnings.simplefilter("error")
      warnings.filterwarnings("ignore", "Nothing was published")
      self.leave("a", "b")
    with self.assertWarnsRegex(RuntimeWarning, rf"goes on with 2 samples that an earlier run has added \({self.out}.parts\): `if key not in "
                                               r"writer` leaves them as they are; Writer\(..., fresh=True\) begins anew") as caught:
      writer = shardpack.Writer(self.out)
    self.assertEqual(caught.filename, __file__)
    with writer:
      self.assertIn("0 samples added to 2 of an earlier run", repr(writer))
      for add in (lambda: writer.add("a", image(7), "early"), lambda: writer.add_many(["a"], [image(7)], ["early"])):
        with self.assertRaisesRegex(shardpack.ExistsError, "the key a was added before by an earlier run, whose samples .*parts keeps: `if key "
                                                           "not in writer` skips it, fresh=True begins anew"):
          add()
      writer.add("c", image(2), "early")
      with self.assertRaisesRegex(shardpack.ExistsError, "the key c was added before$"):
        writer.add("c", image(2), "early")
    self.assertEqual(writer.result.samples, 3)

  def test_a_fresh_writer_begins_anew(self):
    for options, others in (({}, {}), ({"classes": ["late"]}, {}), ({}, {"worker": 1, "workers": 2})):
      self.leave("a", "b", overwrite=True, **others)
      with warnings.catch_warnings():
        warnings.simplefilter("error")
        with shardpack.Writer(self.out, fresh=True, overwrite=True, **options) as writer:
          self.assertNotIn("a", writer)
          writer.add("a", image(5), "late")
      self.assertEqual(held(self.out), {"a": ("late", {"image": image(5)})})
      self.assertFalse(os.path.exists(self.out + ".parts"))
    with self.assertRaisesRegex(shardpack.OptionError, "fresh must be True or False, not 1"):
      shardpack.Writer(self.out, fresh=1)
    with self.assertRaisesRegex(shardpack.OptionError, "fresh=True is of a Writer alone"):
      shardpack.Writer(self.out, fresh=True, worker=0, workers=2)
    self.leave("a", "b", overwrite=True)
    with self.assertRaisesRegex(shardpack.ExistsError, "is a dataset already: overwrite=True"):
      shardpack.Writer(self.out, fresh=True)
    with shardpack.Writer(self.out, overwrite=True) as writer:
      with self.assertRaisesRegex(shardpack.StateError, "another writer is at work in .*parts, which fresh=True would remove: it is a Writer of this process"):
        shardpack.Writer(self.out, fresh=True, overwrite=True)
      self.assertTrue("a" in writer and "b" in writer)
    self.assertEqual(writer.result.samples, 2)

  def test_samples_of_an_earlier_run_are_told_each_time(self):
    with warnings.catch_warnings():
      warnings.filterwarnings("ignore", "Nothing was published")
      self.leave("a", "b")
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stderr(said):
      warnings.simplefilter("default")
      warnings.showwarning = lambda message, *_: said.write(f"{message}\n")
      for _ in range(3):
        shardpack.Writer(self.out).close()
      warnings.simplefilter("ignore")
      shardpack.Writer(self.out).close()
    self.assertEqual(said.getvalue().count("goes on with 2 samples"), 3)
    with warnings.catch_warnings(), self.assertRaises(RuntimeWarning):
      warnings.simplefilter("error")
      shardpack.Writer(self.out)

  def test_other_files_are_refused_when_it_is_opened(self):
    os.mkdir(self.out)
    shardpack.Writer(self.out).close()  # an empty folder
    shutil.rmtree(self.out + ".parts")
    with open(os.path.join(self.out, "a.jpg"), "wb") as file:
      file.write(image(0))
    for path, why in ((self.out, r"is not empty and holds no dataset \(first entry: a.jpg\)"), (os.path.join(self.out, "a.jpg"), "is a file")):
      for options in ({}, {"overwrite": True}, {"fresh": True}, {"worker": 0, "workers": 2}):
        with self.assertRaisesRegex(shardpack.ExistsError, why) as caught:
          shardpack.Writer(path, **options)
        self.assertEqual((caught.exception.path, caught.exception.filename), (path, path))
        self.assertFalse(os.path.exists(path + ".parts"))

  def test_a_full_disk_says_what_stays(self):
    def full(*_):
      raise _errors.of("NO_MEMORY", _c.error_info(system_errno=errno.ENOSPC, record=-1, offset=-1, id=-1))
    writer = shardpack.Writer(self.out)
    with unittest.mock.patch("shardpack._writer.add_one", full), self.assertRaisesRegex(
        OSError, f"samples that were made safe before stay in {self.out}.parts: make room") as caught:
      writer.add("a", image(0))
    self.assertEqual(caught.exception.errno, errno.ENOSPC)
    writer.close()

  def test_in_is_true_for_what_is_safe(self):
    with shardpack.Writer(self.out) as writer:
      writer.add("a", image(0))
      writer.add("b", image(1))
      self.assertFalse("a" in writer or "b" in writer)
      writer.flush()
      self.assertTrue("a" in writer and b"b" in writer)
      self.assertNotIn("c", writer)
      big = os.urandom(9 << 20)
      for n in range(8):  # after 64 MB
        writer.add(f"big/{n}", image(2) + big)
      writer.add("last", image(3))
      self.assertNotIn("last", writer)
      self.assertIn("big/0", writer)

  def test_workers_and_finish(self):
    of = samples(60)
    whole = write(self.out + "-one", of, format="tfrecord", shard_size="10kB")
    options = {"format": "tfrecord", "shard_size": "10kB"}
    with self.assertRaisesRegex(shardpack.NotFoundError, "no Writer has written for"):
      shardpack.finish(self.out)
    for worker in range(3):
      if worker == 2:
        with self.assertRaisesRegex(shardpack.StateError, "worker 2 of 3 has not begun"):
          shardpack.finish(self.out)
        with self.assertRaisesRegex(shardpack.OptionError, "other arguments: .*--shard-size=10kB, not .*=20kB"):
          shardpack.Writer(self.out, worker=worker, workers=3, format="tfrecord", shard_size="20kB")
      with shardpack.Writer(self.out, worker=worker, workers=3, **options) as writer:
        for key, data, label, text in of[worker::3]:
          writer.add(key, data, label, txt=text)
        with self.assertRaisesRegex(shardpack.StateError, "another writer is worker .*: it is a Writer of this process, .*close"):
          shardpack.Writer(self.out, worker=worker, workers=3, **options)
      self.assertIsNone(writer.result)
    self.assertEqual(shardpack.finish(self.out, jobs=1).identity, whole.identity)
    self.assertEqual(held(self.out), expected(of))
    self.assertFalse(os.path.exists(self.out + ".parts"))

  def test_a_finish_that_fails_can_be_repeated(self):
    writer = shardpack.Writer(self.out, expect="xxh3:" + "0" * 32)
    writer.add("a", image(0))
    with self.assertRaisesRegex(shardpack.PackError, r"(?s)--expect says.*The samples are kept in .*\.parts"):
      writer.finish()
    del writer
    with shardpack.Writer(self.out) as writer:
      self.assertIn("a", writer)
    self.assertEqual(writer.result.samples, 1)

  def test_a_page_that_fails_leaves_the_dataset(self):
    options = {"format": "tfrecord", "report": True}
    with shardpack.Writer(self.out + "-whole", **options) as writer:
      writer.add("a", image(0))
    most = os.path.getsize(self.out + "-whole-report.html") // 2
    self.assertLess(max(os.path.getsize(os.path.join(self.out + "-whole", name)) for name in os.listdir(self.out + "-whole")), most)
    writer = shardpack.Writer(self.out, **options)
    writer.add("a", image(0))
    writer.flush()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with self.assertRaisesRegex(shardpack.PackError, r"(?s)is published all the same.*are kept in .*\.parts too.*shardpack.finish") as caught:
      resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
      try:
        writer.finish()
      finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    self.assertNotIn("Nothing was published", str(caught.exception))
    self.assertEqual((list(held(self.out)), caught.exception.exit_code), (["a"], 6))
    # As the message says.
    self.assertTrue(shardpack.finish(self.out).ok)
    self.assertTrue(os.path.exists(self.out + "-report.html"))
    self.assertFalse(os.path.exists(self.out + ".parts"))

  def test_after_a_failed_finish_others_can_write_while_its_exception_is_kept(self):
    writer = shardpack.Writer(self.out, expect="xxh3:" + "0" * 32)
    writer.add("a", image(0))
    errors = []
    for finish in (writer.finish, lambda: shardpack.finish(self.out), lambda: shardpack.finish(self.out)):
      with self.assertRaisesRegex(shardpack.PackError, "--expect says") as caught:
        finish()
      errors.append((caught, caught.exception.with_traceback(None)))
      with self.assertRaisesRegex(shardpack.StateError, "the writer is closed"):
        writer.add("b", image(1))
    with shardpack.Writer(self.out + "2", worker=0, workers=2) as first:
      first.add("a", image(0))
    for _ in range(2):
      try:
        shardpack.finish(self.out + "2")
      except shardpack.StateError as error:
        errors.append(error)  # with its frames
    self.assertEqual([str(error) for error in errors[3:]], ["worker 1 of 2 has not begun"] * 2)
    with self.assertRaisesRegex(shardpack.OptionError, "late|refused"):
      with shardpack.Writer(self.out + "3", max_skip="60%") as late:
        sound, webp = b"RIFF\0\0\0\0WAVEfmt ", image(1, "WEBP")
        late.add("a", sound, webp=b"x")
        late.add("b", webp, webp=b"x")
    with self.assertRaisesRegex(shardpack.StateError, "the writer is closed"):
      late.add("c", image(0))

  def test_writers_on_other_machines_have_other_notes(self):
    """Of the same number of process: each is in the middle of writing them."""
    calls = []
    link = os.link

    def another_comes(own, name):
      calls.append(own)
      if len(calls) == 1:
        shardpack.Writer(self.out, worker=1, workers=2).close()
      return link(own, name)

    with unittest.mock.patch.object(os, "link", another_comes):
      shardpack.Writer(self.out, worker=0, workers=2).close()
    self.assertEqual(len({*calls}), 2)

  def test_a_closed_writer_refuses_samples_at_once(self):
    def ended_block(workers):
      with shardpack.Writer(f"{self.out}-{workers}", worker=0, workers=workers) as writer:
        writer.add("a", image(0), "c")
      return writer

    for writer in (ended_block(1), ended_block(None)):
      with self.assertRaisesRegex(shardpack.StateError, "the writer is closed"):
        writer.add("b", image(0), "c")
      self.assertEqual(len(writer), 1)

  def test_a_worker_that_did_not_end_is_named(self):
    of = samples(60)

    def write_half(worker, fails=False):
      with shardpack.Writer(self.out, worker=worker, workers=2) as writer:
        for key, data, label, text in of[worker::2]:
          if key not in writer:
            writer.add(key, data, label, txt=text)
          if fails and len(writer) == 10:
            raise ZeroDivisionError

    write_half(0)
    with self.assertRaisesRegex(shardpack.OptionError, "is of 2 workers, and this is a Writer without workers="):
      shardpack.Writer(self.out)
    with self.assertRaisesRegex(shardpack.OptionError, "is of 2 workers, and this is 3 workers"):
      shardpack.Writer(self.out, worker=2, workers=3)
    with warnings.catch_warnings(), self.assertRaises(ZeroDivisionError):
      warnings.simplefilter("ignore")
      write_half(1, fails=True)
    with self.assertRaisesRegex(shardpack.StateError, "worker 1 has not ended: .*Run it again .*unfinished=\"take\""):
      shardpack.finish(self.out)
    with self.assertRaisesRegex(shardpack.OptionError, "unfinished must be 'refuse' or 'take', not True"):
      shardpack.finish(self.out, unfinished=True)
    with self.assertRaisesRegex(shardpack.OptionError, "workers must be 2, as the Writers of .* said, not 1"):
      shardpack.finish(self.out, workers=1)
    shutil.copytree(self.out + ".parts", self.out + "-taken.parts")
    self.assertEqual(shardpack.finish(self.out + "-taken", unfinished="take").samples, 40)
    write_half(1)
    again = shardpack.Writer(self.out, worker=0, workers=2)  # it has ended, and begins again
    with self.assertRaisesRegex(shardpack.StateError, "worker 0 has not ended"):
      shardpack.finish(self.out)
    again.close()
    self.assertEqual(shardpack.finish(self.out).samples, 60)
    self.assertFalse(os.path.exists(self.out + ".parts"))

  def test_a_killed_worker_is_named(self):
    code = ("import os, sys, shardpack; writer = shardpack.Writer(sys.argv[1], worker=1, workers=2); "
            "writer.add('b', open(sys.argv[2], 'rb').read()); writer.flush(); os.kill(os.getpid(), 9)")
    with shardpack.Writer(self.out, worker=0, workers=2) as writer:
      writer.add("a", image(0))
    (WORK / "killed.png").write_bytes(image(1))
    self.assertEqual(subprocess.run([sys.executable, "-c", code, self.out, str(WORK / "killed.png")], check=False).returncode, -9)
    with self.assertRaisesRegex(shardpack.StateError, "worker 1 has not ended"):
      shardpack.finish(self.out)
    self.assertFalse(os.path.exists(self.out))

  def test_the_finish_replaces_what_the_workers_may_replace(self):
    write(self.out, samples(3))
    with self.assertRaisesRegex(shardpack.OptionError, "overwrite must be True or False, not 'no'"):
      shardpack.Writer(self.out, overwrite="no")
    with shardpack.Writer(self.out, worker=0, workers=1, overwrite=True) as writer:
      writer.add("a", image(0))
    self.assertEqual(shardpack.finish(self.out).samples, 1)

  def test_a_writer_that_nobody_ends_says_so_and_keeps_its_samples(self):
    writer = shardpack.Writer(self.out)
    for n in range(100):
      writer.add(str(n), image(n))
    with self.assertWarnsRegex(RuntimeWarning, "was not finished: its 100 samples are kept in .*parts, and nothing is published"):
      del writer
    code = "import sys, shardpack; w = shardpack.Writer(sys.argv[1])\nfor n in range(50): w.add(str(n), open(sys.argv[2], 'rb').read())"
    (WORK / "left.png").write_bytes(image(1))
    done = subprocess.run([sys.executable, "-c", code, self.out + "2", str(WORK / "left.png")], check=True, stderr=subprocess.PIPE)
    self.assertIn(b"its 50 samples are kept", done.stderr)
    with self.assertRaisesRegex(shardpack.StateError, "worker 0 has not ended"):
      shardpack.finish(self.out + "2")
    for out, count in ((self.out, 100), (self.out + "2", 50)):
      with shardpack.Writer(out) as writer:
        self.assertTrue(all(str(n) in writer for n in range(count)))

  def test_without_samples_nothing_is_published(self):
    with self.assertRaisesRegex(shardpack.StateError, "no sample was added"):
      with shardpack.Writer(self.out):
        pass
    self.assertFalse(os.path.exists(self.out))

  def test_keys_and_labels_are_bytes(self):
    keys = {"a b/ü", "../x//y", "." * 70, os.fsdecode(b"\xff\xfe"), "x.jpg"}
    with shardpack.Writer(self.out, format="tfrecord") as writer:
      for n, key in enumerate(sorted(keys)):
        writer.add(key, image(n), os.fsdecode(b"caf\xe9"))
    found = held(self.out)
    self.assertEqual(set(found), keys)
    self.assertEqual({label for label, _ in found.values()}, {os.fsdecode(b"caf\xe9")})

  def test_numbers_beside_names_are_refused(self):
    """They would be names, and 7 not label 7."""
    for number, labels in enumerate(((7, "cat"), ("cat", numpy.int64(7)), ("07", 7))):
      out, refused = WORK / f"mixed-{number}", "label must be a number in all samples or a name in all: '(cat|07)' is .* and 7 a number"
      with self.subTest(labels=labels), shardpack.Writer(out) as writer:
        writer.add("a", image(0), labels[0])
        writer.add("b", image(1), "8")
        with self.assertRaisesRegex(shardpack.OptionError, refused):
          writer.add("c", image(2), labels[1])
        with self.assertRaisesRegex(shardpack.OptionError, "(?s)^1 sample was refused.*" + refused):
          writer.add_many(["d", "e"], [image(3), image(4)], [labels[1], labels[0]])
      self.assertEqual(sorted(held(out)), ["a", "b", "e"])
    with self.assertRaisesRegex(shardpack.OptionError, "(?s)^1 sample was refused.*\n  b: sample b: label"), shardpack.Writer(self.out) as writer:
      writer.add_many(["a", "b"], [image(0), image(1)], [7, "cat"])  # the first one counts, whatever its hash

  def test_numbers_beside_names_of_others_are_refused(self):
    """Of another worker, or of an earlier run: what it calls 10 would be label 1."""
    for number, (first, second) in enumerate(((10, "cat"), ("cat", 10))):
      refused = "'cat' is a name and 10 a number, .*; the samples in .*parts, of other workers or an earlier run, count too"
      out = WORK / f"others-{number}"
      with shardpack.Writer(out, worker=0, workers=2) as writer:
        writer.add("a", image(0), first)
      with shardpack.Writer(out, worker=1, workers=2) as writer:
        writer.add("b", image(1), "8")
        with self.assertRaisesRegex(shardpack.OptionError, refused):
          writer.add("c", image(2), second)
        with self.assertRaisesRegex(shardpack.OptionError, "(?s)^1 sample was refused.*" + refused):
          writer.add_many(["d", "e"], [image(3), image(4)], [second, first])
      shardpack.finish(out)
      self.assertEqual({key: label for key, (label, _) in held(out).items()}, {"a": str(first), "b": "8", "e": str(first)})
      out = WORK / f"earlier-{number}"
      with self.assertRaises(ZeroDivisionError), shardpack.Writer(out) as writer:
        writer.add("a", image(0), first)
        print(1 / 0)
      with shardpack.Writer(out) as writer:
        with self.assertRaisesRegex(shardpack.OptionError, refused):
          writer.add("b", image(1), second)
      self.assertEqual(sorted(held(out)), ["a"])
      with shardpack.Writer(out, overwrite=True) as writer:  # what is published is gone from there
        writer.add("b", image(1), second)
      out = WORK / f"refused-{number}"
      with self.assertRaises(shardpack.OptionError), shardpack.Writer(out, format="lmdb") as writer:
        writer.add("a", image(0), first, txt="not in this format")
      with shardpack.Writer(out, format="lmdb") as writer:  # no sample is left of that
        writer.add("a", image(0), second)
      self.assertEqual(held(out)["a"][0], str(second))

  def test_numbers_beside_names_are_refused_at_the_end_where_there_are_no_links(self):
    """There two workers may both have been first."""
    with unittest.mock.patch.object(os, "link", side_effect=OSError(errno.EPERM, "no links")):
      writers = [shardpack.Writer(self.out, worker=worker, workers=2) for worker in range(2)]
      writers[0].add("a", image(0), 10)
      os.unlink(f"{self.out}.parts/labels.json")  # as if it came later
      writers[1].add("b", image(1), "cat")
      for end in (writers[0].close, lambda: writers[0].__exit__(None, None, None)):
        with self.assertRaisesRegex(shardpack.OptionError, "'cat' is a name and 10 a number"):
          end()
      writers[1].close()
    with self.assertRaisesRegex(shardpack.StateError, "worker 0 has not ended"):
      shardpack.finish(self.out)

  def test_all_samples_have_a_label_or_none_has(self):
    for number, (first, second) in enumerate((("cat", None), (None, "cat"), (3, None), ("7", None))):
      refused = "sample b has (no|a) label, and the samples before it have (one|none).*missing_part=\"keep\""
      for options in ({}, {"txt": "x"}):
        out = f"{self.out}-{number}-{len(options)}"
        with self.subTest(out), shardpack.Writer(out) as writer:
          writer.add("a", image(0), first, **options)
          with self.assertRaisesRegex(shardpack.OptionError, refused):
            writer.add("b", image(1), second, **options)
          with self.assertRaisesRegex(shardpack.OptionError, "(?s)^1 sample was refused.*" + refused):
            writer.add_many(["c", "b"], [image(2), image(3)], [first, second], **{name: ["y", "z"] for name in options})
          with self.assertRaisesRegex(shardpack.OptionError, "(?s)^2 samples were refused.*sample d has"):
            writer.add_many(["d", "e"], [image(4), image(5)], [second, second])
        self.assertEqual(sorted(held(out)), ["a", "c"])
    with shardpack.Writer(self.out, missing_part="keep") as writer:
      writer.add_many(["a", "b", "c"], [image(0), image(1), image(2)], ["cat", None, "dog"])
      writer.add("d", image(3))
    self.assertEqual(shardpack.Dataset(self.out).labels.tolist(), [0, -1, 1, -1])

  def test_samples_of_an_earlier_run_have_labels_too(self):
    self.leave("a")
    with shardpack.Writer(self.out) as writer, self.assertRaisesRegex(shardpack.OptionError, "sample b has no label"):
      writer.add("b", image(1))

  def test_numbers_are_labels(self):
    with shardpack.Writer(self.out) as writer:
      for label in (10, 2, numpy.int64(0)):
        writer.add(f"{label:02}", image(label), label)
    dataset = shardpack.Dataset(self.out)
    self.assertEqual({dataset[n]["key"]: dataset[n]["label"] for n in range(3)}, {"00": 0, "02": 2, "10": 10})
    self.assertEqual(dataset.classes, [str(n) for n in range(11)])

  def test_a_refused_sample_leaves_no_class_behind(self):
    with shardpack.Writer(self.out, format="tfrecord") as writer:
      writer.add("a", image(0), "2")
      writer.add("b", image(1), "10")
      with self.assertRaisesRegex(shardpack.OptionError, "image/encoded"):
        writer.add("c", image(2), "oops", **{"image/encoded": b"x"})
      with self.assertRaisesRegex(shardpack.OptionError, "image/encoded"):
        writer.add_many(["d", "e"], [image(3), image(4)], ["oops", "3"], **{"image/encoded": [b"x", None]})
    dataset = shardpack.Dataset(self.out)
    self.assertEqual({sample.key: sample.label for sample in dataset}, {"a": 2, "b": 10, "e": 3})
    self.assertEqual(len(dataset.classes), 11)

  def test_names_of_fields_are_free_but_for_the_arguments(self):
    with shardpack.Writer(self.out) as writer:
      writer.add("a", image(0), **{"self": b"x", "keys": b"y"})
      writer.add_many(["b"], [image(1)], **{"self": [b"x"]})
      with self.assertRaisesRegex(shardpack.OptionError, "the name of a field is text that UTF-8 cannot hold"):
        writer.add("c", image(2), **{"\ud800": b"x"})
      with self.assertRaisesRegex(shardpack.OptionError, "2 samples were refused"):
        writer.add_many(["c", "d"], [image(2), image(3)], **{"\ud800": [b"x", b"y"]})
      with self.assertRaisesRegex(shardpack.OptionError, "quality must be a number from 1 to 100, not b'5'"):
        writer.add("c", image(2), quality=b"5")
      with self.assertRaisesRegex(shardpack.OptionError, "quality is of arrays.*sample c"):
        writer.add("c", image(2), quality=5)
    self.assertEqual([sorted(fields) for _, fields in held(self.out).values()], [["image", "keys", "self"], ["image", "self"]])

  def test_misspelt_arguments_are_no_fields(self):
    with shardpack.Writer(self.out) as writer:
      for name, pattern in (("lable", "would be a field: did you mean 'label'"), ("labels", "label= of add"), ("class_name", "label= of add"),
                            ("split", r"splits come from Writer\(split="), ("qualty", "did you mean 'quality'")):
        with self.assertRaisesRegex(shardpack.OptionError, f"'{name}' is no argument of add.*{pattern}"):
          writer.add("a", image(0), **{name: "cat"})
      with self.assertRaisesRegex(shardpack.OptionError, "'lables' is no argument .* did you mean 'labels'"):
        writer.add_many(["a"], [image(0)], lables=["cat"])
      self.assertEqual(len(writer), 0)
      writer.add("a", image(0), table=b"x", glass=b"x", code=b"x", image2=b"x", label_text=b"x")
    with shardpack.Writer(self.out + "-declared", fields=["labels", "split"]) as writer:
      writer.add("a", image(0), labels=b"x", split="val")
    with shardpack.Writer(self.out + "-copy") as writer:
      writer.add_sample(shardpack.Dataset(self.out + "-declared")[0])
    self.assertEqual(held(self.out + "-copy"), {"a": (None, {"image": image(0), "labels": b"x", "split": b"val"})})

  def test_other_words_for_a_label_are_no_fields_without_one(self):
    with shardpack.Writer(self.out) as writer:
      for name in ("target", "y", "category", "category_id", "class_", "classname", "Target", "label_id", "class-idx"):
        with self.subTest(name), self.assertRaisesRegex(shardpack.OptionError, f"'{name}' is no argument of add.*has no label: .* label= of add"):
          writer.add("a", image(0), **{name: "3"})
      with self.assertRaisesRegex(shardpack.OptionError, "labels= of add_many"):
        writer.add_many(["a"], [image(0)], target=["3"])
      writer.add("a", image(0), "cat", target="3", y="4")
      writer.add_many(["b"], [image(1)], ["cat"], category=["5"])
    for fields in (["target"], None):
      with shardpack.Writer(f"{self.out}-{fields}", fields=fields) as writer:
        if fields:
          writer.add("a", image(0), target="3")
        else:
          writer.add("a", image(0), caption="3", year="2000", history="x")

  def test_keys_are_shown_escaped_and_shortened(self):
    for key in (image(0), image(0)[:300].replace(b"\0", b"\x1b"), b"\x1b[31m" + b"x" * 1000, "a\x1b[31m\n", "\x9b31m"):
      writer = shardpack.Writer(self.out, fresh=True)
      for call in (lambda key=key: writer.add(key, "a/b"), lambda key=key: writer.add(key, image(0), 1.5),
                   lambda key=key: writer.add_many([key], ["a/b"]), lambda key=key: writer.add_many([key], [b"none"]),
                   lambda key=key: writer.add(key, image(0), quality=5)):
        with self.assertRaises(shardpack.OptionError) as caught:
          call()
        said = str(caught.exception)
        self.assertTrue("x" * 201 not in said or "the image of the sample" in said, said)  # the library only escapes
        self.assertTrue(said.replace("\n", "").isprintable(), ascii(said))
        self.assertLess(len(said), 1600)
      writer.close()
    with shardpack.Writer(self.out, fresh=True) as writer:
      with self.assertRaisesRegex(shardpack.OptionError, "sample \xe9t\xe9 lacks an image"):
        writer.add("\xe9t\xe9")
      writer.add("a", image(0))

  def test_a_forked_child_has_no_writer(self):
    with shardpack.Writer(self.out) as writer:
      writer.add("a", image(0))
      child = os.fork()
      if child == 0:
        try:
          writer.add("b", image(1), txt="x")
        except shardpack.StateError:
          os._exit(7)
        os._exit(1)
      self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
    self.assertEqual(list(held(self.out)), ["a"])

  def kill_and_go_on(self, count, workers, kills):
    """Starts the workers again and again, and kills each at random times, until all samples are there."""
    chance = random.Random(self.id())
    times = []  # of runs that have all the samples to write; the first one may read programs from the disk
    for n in range(2):
      began = time.monotonic()
      self.assertEqual(start(f"{self.out}-timed{n}", count).wait(), 0)
      times.append(time.monotonic() - began)
    seconds = min(times)
    killed = 0
    for worker in range(workers):
      while True:
        running = start(self.out, count, worker, workers)
        if killed < kills * (worker + 1) / workers:
          time.sleep(chance.uniform(0.1, 1) * seconds)
          running.send_signal(signal.SIGKILL)
        said = running.communicate()[1].decode()
        if running.returncode == 0:
          break
        if "is a dataset already" in said:  # killed while it removed what is packed
          break
        if running.returncode != -signal.SIGKILL:
          self.assertIn("exit code 5", said)  # the program that a killed finish has started is at it
        killed += 1
    self.assertGreater(killed, 0)

  def finish_at_last(self):
    """Once no program that another one has left is at it."""
    while os.path.exists(self.out + ".parts"):
      try:
        shardpack.finish(self.out)
      except shardpack.ExistsError:  # killed while it removed what is packed
        break
      except shardpack.PackError as error:
        self.assertEqual(error.exit_code, 5, error)

  def test_what_a_killed_finish_has_published_is_accepted(self):
    of = samples(30)
    with self.assertRaises(shardpack.PackError):
      write(self.out, of, expect="xxh3:" + "0" * 32)
    identity = shardpack.convert(self.out + ".parts", self.out).identity  # as the program does that the finish has started
    with shardpack.Writer(self.out) as writer:
      self.assertTrue(all(sample[0] in writer for sample in of))
    self.assertEqual(writer.result.identity, identity)
    self.assertFalse(os.path.exists(self.out + ".parts"))

  def test_a_dataset_of_others_is_not_replaced(self):
    with self.assertRaises(shardpack.PackError):
      write(self.out, samples(30), expect="xxh3:" + "0" * 32)
    identity = write(self.out + "-other", samples(3)).identity
    shutil.rmtree(self.out)
    os.rename(self.out + "-other", self.out)
    with self.assertRaises(shardpack.PackError) as caught:
      with shardpack.Writer(self.out):
        pass
    self.assertEqual(caught.exception.exit_code, 5)
    self.assertEqual(shardpack.Dataset(self.out).identity, identity)

  def test_killed_at_random_times_it_goes_on(self):
    of = samples(600)
    whole = write(self.out + "-whole", of, shard_size="100kB")
    self.kill_and_go_on(600, 1, 12)
    self.assertEqual(shardpack.Dataset(self.out).identity, whole.identity)

  def test_sixteen_processes_killed_at_random_times(self):
    of = samples(600)
    whole = write(self.out + "-whole", of, shard_size="100kB")
    self.kill_and_go_on(600, 16, 12)
    chance = random.Random(1)
    for _ in range(4):  # the finish too; the program that it has started goes on by itself
      finishing = subprocess.Popen([sys.executable, "-c", f"import shardpack; shardpack.finish({self.out!r})"], stderr=subprocess.DEVNULL)
      time.sleep(chance.uniform(0.1, 0.4))
      finishing.kill()
      finishing.wait()
    self.finish_at_last()
    self.assertEqual(shardpack.Dataset(self.out).identity, whole.identity)


if __name__ == "__main__":
  unittest.main()
