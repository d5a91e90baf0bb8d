"""Exceptions: each is what people catch, says where, and comes out of a pickle as it went in."""

import copy
import errno
import errno
import os
import pickle
import unittest

import shardpack
from shardpack import _c, _errors
from writing import WORK, image

# What callers expect to catch.
ALSO = {
    "CancelledError": RuntimeError, "CursorError": ValueError, "DataLossError": OSError, "DeniedError": PermissionError,
    "DeviceError": RuntimeError, "ExistsError": FileExistsError, "InternalError": RuntimeError, "NoAnswerError": TimeoutError,
    "NoMemoryError": MemoryError, "NotADatasetError": FileNotFoundError, "NotFoundError": FileNotFoundError, "OptionError": ValueError,
    "OutOfRangeError": IndexError, "PackError": RuntimeError, "PackExistsError": FileExistsError, "PackNotFoundError": FileNotFoundError,
    "PackUsageError": ValueError, "StateError": ValueError, "SystemCallError": OSError,
    "UnsupportedError": ValueError,
}


class ErrorsTest(unittest.TestCase):

  def test_each_is_an_error_and_a_built_in_one(self):
    kinds = {name for name in dir(_errors) if isinstance(getattr(_errors, name), type) and issubclass(getattr(_errors, name), shardpack.Error)}
    self.assertEqual(kinds, {*ALSO, "Error"})
    for name, also in ALSO.items():
      kind = getattr(shardpack, name)
      self.assertTrue(issubclass(kind, shardpack.Error) and issubclass(kind, also), name)
    self.assertTrue(issubclass(shardpack.OptionError, TypeError))

  def test_they_are_pickled_with_all_they_say(self):
    for name in ALSO:
      error = getattr(shardpack, name)("what happened")
      error.code, error.path, error.shard, error.key, error.field = "X", "p", "s", "k", "f"
      error.record, error.offset, error.id = 1, 2, 3
      if isinstance(error, OSError):
        error.errno = 5
      if isinstance(error, shardpack.PackError):
        error.exit_code, error.command, error.stderr, error.report = 4, ("pack", "build"), "said", {"a": 1}
      if name == "CursorError":
        error.differences = [("seed", 1, 2)]
      for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        self.assertIs(type(again), type(error))
        self.assertEqual((str(again), again.args, vars(again)), ("what happened", error.args, vars(error)))
        self.assertEqual(getattr(again, "errno", None), getattr(error, "errno", None))

  def test_a_full_disk_is_no_lack_of_memory(self):
    for number in (errno.ENOSPC, errno.EDQUOT):
      error = _errors.of("NO_MEMORY", _c.error_info(system_errno=number, record=-1, offset=-1, id=-1))
      self.assertEqual((type(error), error.errno, error.code), (shardpack.SystemCallError, number, "IO"))
    for number in (0, errno.EAGAIN):
      error = _errors.of("NO_MEMORY", _c.error_info(system_errno=number, record=-1, offset=-1, id=-1))
      self.assertEqual((type(error), error.code), (shardpack.NoMemoryError, "NO_MEMORY"))

  def test_what_is_not_a_dataset(self):
    (WORK / "empty").mkdir()
    (WORK / "text").write_text("x")
    for path in ("/nowhere", WORK / "empty", WORK / "text"):
      for kind in (shardpack.NotADatasetError, FileNotFoundError, ValueError):
        with self.assertRaises(kind):
          shardpack.Dataset(os.fspath(path))

  def test_what_is_not_known_is_none(self):
    error = shardpack.PackError("x")
    for name in ("code", "path", "shard", "key", "field", "record", "offset", "id", "report"):
      self.assertIsNone(getattr(error, name))
    self.assertEqual((error.exit_code, error.command, shardpack.CursorError("x").differences), (-1, (), ()))

  def test_those_of_the_system_say_so_as_python_s_do(self):
    with self.assertRaises(FileNotFoundError) as caught:
      shardpack.Dataset("/nowhere/it/is")
    error = caught.exception
    for each in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
      self.assertEqual((each.filename, each.errno, each.strerror), (error.path, errno.ENOENT, os.strerror(errno.ENOENT)))
      self.assertEqual((str(each), error.path.startswith("/nowhere/it/is")), (error.args[0], True))
    self.assertIsNone(shardpack.DataLossError("x").filename)

  def test_damage_says_where(self):
    with shardpack.Writer(WORK / "shards") as writer:
      for n in range(3):
        writer.add(f"k{n}", image(n))
    shard = WORK / "shards" / "train-000000.tar"
    content = bytearray(shard.read_bytes())
    content[content.index(image(1)) + 20] ^= 1
    shard.write_bytes(content)
    with self.assertRaises(OSError) as caught:
      shardpack.Dataset(os.fspath(WORK / "shards"))[1]  # pylint: disable=expression-not-assigned
    error = pickle.loads(pickle.dumps(caught.exception))
    self.assertEqual((type(error), error.code, error.shard, error.key, error.record), (shardpack.DataLossError, "DATA_LOSS", "train-000000.tar", "k1", 1))


if __name__ == "__main__":
  unittest.main()
