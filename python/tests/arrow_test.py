"""Tables in the programs that read Arrow's C stream: pyarrow, which checks every buffer, Polars and DuckDB. All must have what NumPy has."""

import gc
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import duckdb
import example_shards
import numpy
import polars
import pyarrow
import shardpack
from shardpack import _arrow

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))


def setUpModule():
  example_shards.make(WORK)
  subprocess.run(["cli/pack", WORK / "photos", "-o", WORK / "many", "--shards", "7", "-q"], check=True, stdout=subprocess.DEVNULL)
  flat = WORK / "flat"
  flat.mkdir()
  for n, path in enumerate(sorted((WORK / "photos" / "owl").glob("*.jpg"))):
    shutil.copy(path, os.fsencode(flat) + b"/" + (b"\xff%d.jpg" if n == 2 else b"%d.jpg") % n)
  subprocess.run(["cli/pack", flat, "-o", WORK / "unlabelled", "-f", "tfrecord", "-q"], check=True, stdout=subprocess.DEVNULL)


def datasets():
  many = shardpack.Dataset(WORK / "many")
  whole = shardpack.Dataset(WORK / "shards")
  both = shardpack.Dataset([WORK / "shards", WORK / "many"])
  return [whole, many, both, many[::-3], whole.split("val")[[3, 3, 1]], many[[]], shardpack.Dataset(WORK / "unlabelled")]


def rows(table):
  """As Arrow has them: bytes where a column has some that are not UTF-8."""
  columns = {}
  for name, column in table.items():
    values = column.tolist()
    if name in ("key", "path") and any(not value.isprintable() for value in values):
      values = [os.fsencode(value) for value in values]
    columns[name] = values
  return columns


class ArrowTest(unittest.TestCase):

  def test_pyarrow(self):
    for dataset in datasets():
      with self.subTest(dataset):
        table = dataset.table()
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        self.assertEqual(arrow.to_pydict(), rows(table))
        self.assertEqual(pyarrow.table(dataset), arrow)
        self.assertEqual(pyarrow.RecordBatchReader.from_stream(table).read_all(), arrow)

  def test_numbers_and_keys_are_not_copied(self):
    dataset = shardpack.Dataset(WORK / "many")
    arrow = pyarrow.table(dataset)
    self.assertEqual(arrow["label"].num_chunks, 7)
    for shard in range(7):
      for name, column, field in (("label", 0, None), ("size", 9, "image"), ("hash", 10, "image")):
        address = dataset._columns.of_shard(shard, column, field).ctypes.data
        self.assertEqual(arrow[name].chunk(shard).buffers()[1].address, address)
      self.assertEqual(arrow["key"].chunk(shard).buffers()[2].address, dataset._columns.of_shard(shard, 3).ctypes.data)

  def test_polars(self):
    for dataset in datasets():
      with self.subTest(dataset):
        table = dataset.table()
        frame = polars.DataFrame(table)
        self.assertEqual(frame.to_dict(as_series=False), rows(table))
    counts = polars.DataFrame(shardpack.Dataset(WORK / "many").table()).group_by("class_name").len()
    self.assertEqual(dict(counts.iter_rows()), {"cat": 20, "dog": 20, "owl": 20})

  def test_duckdb(self):
    for dataset in datasets():
      with self.subTest(dataset):
        columns = dataset.table()
        found = duckdb.sql("select * from columns").fetchall()
        self.assertEqual([tuple(row) for row in found], list(zip(*rows(columns).values())))
    dataset = shardpack.Dataset(WORK / "shards")
    ids = duckdb.sql("select id from dataset where split = 'val' and class_name = 'owl' and width >= 72 order by id").fetchnumpy()["id"]
    expected = dataset.where(label="owl", split="val", min_width=72)
    self.assertEqual(dataset.select(numpy.asarray(ids)).keys.tolist(), expected.keys.tolist())
    self.assertGreater(len(ids), 0)

  def test_memory_outlives_the_dataset_and_is_given_back(self):
    gc.collect()
    dataset = shardpack.Dataset(WORK / "many")
    expected = rows(dataset.table())
    arrow = pyarrow.table(dataset)
    column, piece = arrow["key"].chunk(3), arrow.slice(20, 9)
    del dataset
    gc.collect()
    self.assertEqual(arrow.to_pydict(), expected)
    del arrow
    gc.collect()
    self.assertEqual(piece.to_pydict(), {name: values[20:29] for name, values in expected.items()})
    self.assertTrue(set(column.to_pylist()) <= set(expected["key"]))
    del column, piece
    gc.collect()
    shardpack.Dataset(WORK / "many").__arrow_c_stream__()
    self.assertLessEqual(len(_arrow._kept), 1)

  def test_released_while_an_exception_is_on_its_way(self):
    """Where a function of Python's would lose the exception, or end the process."""
    dataset = shardpack.Dataset(WORK / "many")
    for use in (lambda: pyarrow.table(dataset)["none"], lambda: (pyarrow.table(dataset), polars.DataFrame(dataset), {}["none"]),
                lambda: pyarrow.RecordBatchReader.from_stream(dataset).read_next_batch()["none"],
                lambda: (pyarrow.RecordBatchReader.from_stream(dataset.table()), {}["none"])):
      for _ in range(20):
        with self.assertRaisesRegex(KeyError, "none"):
          use()
    gc.collect()
    shardpack.Dataset(WORK / "many").__arrow_c_stream__()
    self.assertLessEqual(len(_arrow._kept), 1)

  def test_threads(self):
    dataset, tables = shardpack.Dataset(WORK / "many"), []
    threads = [threading.Thread(target=lambda: tables.append(pyarrow.table(dataset[::-1]))) for _ in range(8)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual(len(tables), 8)
    self.assertTrue(all(table == tables[0] for table in tables))

  def test_errors_come_through(self):
    damaged = WORK / "damaged"
    shutil.copytree(WORK / "many", damaged)
    index = sorted(damaged.glob("*.pidx"))[4]
    data = bytearray(index.read_bytes())
    data[len(data) // 2] ^= 1
    index.write_bytes(data)
    with self.assertRaisesRegex((OSError, pyarrow.ArrowException), index.stem):
      pyarrow.table(shardpack.Dataset(damaged))

  def test_the_end_of_the_interpreter(self):
    """What holds tables then gives them back, or not, and there is no crash."""
    source = f"""
import duckdb, polars, pyarrow, shardpack
dataset = shardpack.Dataset({str(WORK / "many")!r})
table, frame, batches = pyarrow.table(dataset), polars.DataFrame(dataset.table()), pyarrow.RecordBatchReader.from_stream(dataset)
frame = frame.select("id", "label"); relation = duckdb.connect().execute("select * from dataset"); relation.fetchmany(1)
batches.read_next_batch(); capsule = dataset.__arrow_c_stream__()
class Late:
  kept = [table, frame, batches, relation, capsule]
  def __del__(self, kept=kept): kept[0].to_pydict()
Late.late = Late()
print("end")
"""
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "end\n", ""))


if __name__ == "__main__":
  unittest.main()
