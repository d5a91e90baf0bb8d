"""Plans of more than 16 MiB, which the first worker copies into OUT while it builds its first shards."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import cluster
import command


class LargePlanTest(cluster.ClusterTest):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    # In memory, where there is some: other file systems take half a minute for names as long as these.
    cls.shared = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else os.environ.get("TEST_TMPDIR")))
    cls.addClassCleanup(shutil.rmtree, cls.shared)
    long = "x" * 230
    for number in range(1000):
      (cls.shared / f"large/{number:04}").mkdir(parents=True)
      for each in range(65):
        (cls.shared / f"large/{number:04}/{long}{each:03}.jpg").symlink_to(command.TESTDATA / "baseline.jpg")
    for name, shards in (("big", 100), ("other", 99)):
      subprocess.run([cluster.PACK, "plan", cls.shared / "large", "--shards", str(shards), "--follow",
                      "--write", cls.shared / name, "-q"], check=True, stderr=subprocess.DEVNULL)
    cls.data = (cls.shared / "big").read_bytes()
    assert len(cls.data) > 16 << 20

  def setUp(self):
    super().setUp()
    self.big, self.other, self.damaged = self.shared / "big", self.shared / "other", self.folder / "damaged"
    data = bytearray(self.data)
    data[4 * 65000 - 100] ^= 255
    self.damaged.write_bytes(data)
    self.there = self.out / ".pack/plan"

  def assert_blames_no_shard(self):
    self.assertEqual([], list(self.out.glob(".pack/failed/*")))

  # The copy takes its place by the second rename; the first is that of the names of what is made.
  def end_at_the_copy(self, action, expect):
    self.clear()
    shim = {"LD_PRELOAD": cluster.SHIM, "SHARDPACK_FAULT_ROOT": str(self.out), "SHARDPACK_FAULT_ONLY": "rename",
            "SHARDPACK_FAULT_AT": "2", "SHARDPACK_FAULT_DO": action}
    said = self.work("--shards", "0-3", plan=self.big, env=shim, expect=expect)
    self.assertEqual([], list(self.out.glob("*.tar*")))
    self.assertEqual(len(self.data), self.there.stat().st_size)
    self.assertNotEqual(self.data, self.there.read_bytes())
    self.assert_blames_no_shard()
    return said

  def test_it_is_a_copy_that_is_put_back(self):
    self.work("--join", plan=self.big)
    self.assertEqual((1, 1), (self.there.stat().st_nlink, self.big.stat().st_nlink))
    self.assertEqual(self.data, self.there.read_bytes())
    self.there.unlink()
    self.work("--join", plan=self.damaged, expect=4)
    self.work("--join", plan=self.big)
    self.assertEqual(self.data, self.there.read_bytes())
    self.commit()
    self.assertFalse((self.out / ".pack").exists())

  def test_a_damaged_one_blames_no_shard(self):
    for _ in range(3):
      self.assertIn("is damaged: its slice of shard 99", self.work("--join", plan=self.damaged, expect=4))
      self.assertEqual([], list(self.out.glob("*.tar*")))
    self.assert_blames_no_shard()
    self.work("--join", plan=self.big)
    self.assertEqual(self.data, self.there.read_bytes())
    self.commit()

  def test_a_worker_killed_before_the_copy_is_in_place(self):
    self.end_at_the_copy("kill-before", cluster.KILLED)
    self.assertIn("shards   0 of 100 done", self.pack("status", "out", expect=7).stdout)
    self.assertIn("was made with another plan:", self.work("--join", plan=self.other, expect=5))
    self.work("--join", plan=self.big)
    self.assertEqual(self.data, self.there.read_bytes())
    self.commit()
    self.assertFalse((self.out / ".pack").exists())
    self.end_at_the_copy("kill-before", cluster.KILLED)
    self.pack("build", "--plan", self.other, "-o", "out", "-q", "--overwrite")
    self.assertEqual(["out"], [path.name for path in self.folder.glob("out*")])

  def test_a_disk_that_fails(self):
    self.assertIn("Input/output error", self.end_at_the_copy("5", 6))
    self.work("--shards", "0", plan=self.big)
    self.assertEqual(self.data, self.there.read_bytes())

  def test_a_worker_that_is_stopped(self):
    for number in range(5):
      self.clear()
      worker = self.worker("--join", plan=self.big)
      self.wait_for(self.there.exists, worker)
      time.sleep(0.02 * number)
      worker.terminate()
      worker.communicate(timeout=60)
      self.assertIn(worker.returncode, (0, 143))
      self.assert_blames_no_shard()
      if list(self.out.glob("*.tar*")):
        self.assertEqual(self.data, self.there.read_bytes())

  def test_of_two_at_once_one_is_built(self):
    workers = [self.worker("--shards", str(number), plan=plan) for number, plan in enumerate((self.big, self.other))]
    said = [worker.communicate(timeout=60)[1].decode() for worker in workers]
    codes = [worker.returncode for worker in workers]
    self.assertEqual([0, 5], sorted(codes), said)
    self.assertIn("was made with another plan:", said[codes.index(5)])
    first = codes.index(0)
    self.assertEqual((self.big, self.other)[first].read_bytes(), self.there.read_bytes())
    self.assertEqual([f"train-{first:06}.tar"], [path.name for path in self.out.glob("*.tar")])

  def test_several_of_it_at_once(self):
    workers = [self.worker("--worker", f"{number}/3", "--join", plan=self.big) for number in (1, 2, 3)]
    for worker in workers:
      self.ends(worker)
    self.assertEqual(self.data, self.there.read_bytes())
    self.commit()


if __name__ == "__main__":
  cluster.main()
