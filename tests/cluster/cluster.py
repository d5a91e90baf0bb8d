"""What the tests here share: a plan of small shards, workers of it, and the dataset that one process makes.

  class FooTest(cluster.ClusterTest):
    def test_bar(self):
      self.worker("--join").communicate()
      self.commit()
      self.assert_whole()
"""

import json
import os
import pathlib
import shutil
import signal
import time

import command
from command import PACK  # noqa: F401  pylint: disable=unused-import

SHIM = os.path.abspath(os.environ.get("SHARDPACK_FAULT_SHIM", "tests/faults/libfault_shim.so"))
CLOCK_SHIM = os.path.abspath(os.environ.get("SHARDPACK_CLOCK_SHIM", "tests/cluster/libclock_shim.so"))
KILLED = -signal.SIGKILL
# A worker's name as another machine would have it.
ELSEWHERE = "elsewhere-00000000-1-0123456789abcdef"


class ClusterTest(command.PackTest):
  shards, samples = 6, 4

  def setUp(self):
    super().setUp()
    self.source(count=self.shards * self.samples)
    self.pack("plan", "src", "--samples-per-shard", str(self.samples), "--write", "plan", "-q")
    self.pack("build", "--plan", "plan", "-o", "want", "-q")
    self.want = self.contents("want")
    self.out = self.folder / "out"
    self.running = []

  def tearDown(self):
    for each in self.running:
      if each.poll() is None:
        each.kill()
      each.communicate()
    super().tearDown()

  def words(self, *words, plan="plan"):
    return ["build", "--plan", plan, "-o", "out", "-q", *words]

  def worker(self, *words, plan="plan", **options):
    process = self.start(*self.words(*words, plan=plan), **options)
    self.running.append(process)
    return process

  def ends(self, process, expect=0, timeout=60):
    out, err = process.communicate(timeout=timeout)
    err = err.decode(errors="replace")
    self.assertEqual(expect, process.returncode, err)
    return err

  def work(self, *words, expect=0, **options):
    return self.ends(self.worker(*words, **options), expect)

  def commit(self, expect=0):
    return self.pack("commit", "out", "-q", expect=expect).stderr

  def assert_whole(self, out="out"):
    got = self.contents(out)
    self.assertEqual(self.want.keys(), got.keys())
    self.assertEqual(self.want, got)

  def clear(self):
    shutil.rmtree(self.out, ignore_errors=True)

  def leases(self, generation="*"):
    """{shard: [owner of each generation]}"""
    found = {}
    for path in sorted(self.out.glob(f".pack/lease/*/*.{generation}")):
      found.setdefault(int(path.name.partition(".")[0]), []).append(path.read_text())
    return found

  def wait_for(self, what, process=None, seconds=60):
    until = time.monotonic() + seconds
    while not what():
      self.assertLess(time.monotonic(), until, "waited for too long")
      if process is not None and process.poll() is not None:
        return False
      time.sleep(0.002)
    return True

  def staged(self):
    """Shards that are being written, and are not published yet."""
    try:
      names = {path.name for path in self.out.glob(".pack/stage/*/train-*.tar")}
    except FileNotFoundError:  # a worker that ends removes its folder
      return set()
    return {name for name in names if not (self.out / name).exists()}

  def noted(self):
    """The shards that journals call finished."""
    lines = [line for path in self.out.glob(".pack/journal-*") for line in path.read_text().splitlines() if line.endswith("}")]
    return {line["file"]["name"] for line in map(json.loads, lines) if not line.get("pending")}

  def paused(self, *words, **options):
    """A worker that is stopped (SIGSTOP) while it builds: it holds a lease, and has begun a file."""
    for _ in range(200):
      process = self.worker(*words, "-j", "1", "--io-depth", "1", **options)
      if self.wait_for(self.staged, process):
        process.send_signal(signal.SIGSTOP)
        self.wait_for(lambda: process.poll() is not None or state_of(process) == "T")
        # Whether it was caught in time, and not between a shard and the line that notes it.
        if self.staged() and process.poll() is None and {path.name for path in self.out.glob("train-*.tar")} <= self.noted():
          return process
        process.send_signal(signal.SIGCONT)
      process.communicate()
      self.clear()
    self.fail("no worker was caught at work")


def state_of(process):
  """The letter of /proc/PID/stat: T for a stopped process."""
  return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


main = command.main
