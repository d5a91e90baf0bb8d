"""shardpack.finish: of all workers."""

import os
import unittest

import shardpack
from writing import WORK, image


class FinishTest(unittest.TestCase):

  def setUp(self):
    self.out = str(WORK / self.id().rpartition(".")[2])

  def write(self, *workers, of=2, samples=2, **options):
    for worker in workers:
      with shardpack.Writer(self.out, worker=worker, workers=of, **options) as writer:
        for n in range(samples):
          writer.add(f"{worker}-{n}", image(10 * worker + n), "cat")
          writer.flush()

  def test_every_worker_has_begun(self):
    self.write(2, of=4)
    for unfinished in ("refuse", "take"):
      for _ in range(2):
        with self.assertRaisesRegex(shardpack.StateError, "worker 0, 1, 3 of 4 has not begun"):
          shardpack.finish(self.out, unfinished=unfinished)
    self.write(3, 1, of=4)
    with self.assertRaisesRegex(shardpack.StateError, "worker 0 of 4 has not begun"):
      shardpack.finish(self.out)
    self.assertFalse(os.path.exists(self.out))
    self.write(0, of=4)
    self.assertEqual(shardpack.finish(self.out).samples, 8)


if __name__ == "__main__":
  unittest.main()
