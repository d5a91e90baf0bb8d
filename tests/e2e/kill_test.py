"""A build that is killed or interrupted at any time goes on at the next run, to the same bytes as one left alone.

SHARDPACK_KILLS: how many times to kill (default 8). SHARDPACK_SEED: when; printed, to repeat a failure.
"""

import os
import random
import shutil
import signal
import subprocess
import time

import pack_runs
from pack_runs import DONE_WITH_SKIPS, PACK

KILLS = int(os.environ.get("SHARDPACK_KILLS", "8"))
SEED = int(os.environ.get("SHARDPACK_SEED", time.time_ns() % 1_000_000))
# Seconds that a run may take to stop after a polite signal.
STOP_SECONDS = 5


class KillTest(pack_runs.PackTest):

  def command(self, fmt, out):
    # Durable, on one thread and with small shards: long enough to be hit in the middle.
    return [PACK, self.source, "-o", out, *pack_runs.FORMATS[fmt], "--samples-per-shard", "20", "-q",
            "-j", "1", "--io-depth", "2"]

  def uninterrupted(self, fmt, suffix=""):
    out = self.scratch / f"{fmt}-uninterrupted{suffix}"
    begin = time.monotonic()
    pack_runs.run(self.command(fmt, out), expect=DONE_WITH_SKIPS)
    seconds = time.monotonic() - begin
    return pack_runs.contents(out), seconds

  def test_sigkill(self):
    numbers = random.Random(SEED)
    print(f"seed {SEED}, {KILLS} kills a format", flush=True)
    for fmt in pack_runs.FORMATS:
      with self.subTest(format=fmt, seed=SEED):
        want, seconds = self.uninterrupted(fmt)
        out = self.scratch / f"{fmt}-killed"
        landed = with_shards = builds = 0
        while landed < KILLS:
          process = pack_runs.start(self.command(fmt, out))
          try:
            # Up to the whole time that is left: builds make progress, and some kills hit the commit.
            process.wait(timeout=numbers.uniform(0, seconds))
          except subprocess.TimeoutExpired:
            process.kill()
          output, _ = process.communicate()
          if process.returncode == -signal.SIGKILL:
            landed += 1
            with_shards += pack_runs.journal_lines(out) > 0
            continue
          self.assertEqual(DONE_WITH_SKIPS, process.returncode, output)
          self.assert_same(want, out)
          builds += 1
          shutil.rmtree(out)
        # What the last kill has left is finished too.
        pack_runs.run(self.command(fmt, out), expect=DONE_WITH_SKIPS)
        self.assert_same(want, out)
        print(f"{fmt}: {landed} kills, {with_shards} of them after the first shard, {builds + 1} builds finished",
              flush=True)

  def test_signals(self):
    """Ctrl-C and SIGTERM: an orderly end with an exit code of its own, within seconds; then the same bytes."""
    for fmt, (number, code) in (("webdataset", (signal.SIGINT, 130)), ("tfrecord", (signal.SIGTERM, 143))):
      with self.subTest(format=fmt, signal=number.name):
        want, _ = self.uninterrupted(fmt, "-before-signals")
        out = self.scratch / f"{fmt}-{number.name}"
        self.interrupt(self.command(fmt, out), out, number, code)
        self.assertNotIn("manifest.json", pack_runs.contents(out))
        pack_runs.run(self.command(fmt, out), expect=DONE_WITH_SKIPS)
        self.assert_same(want, out)

  def interrupt(self, command, out, number, code):
    """Sends the signal once a few shards are finished."""
    for _ in range(20):
      process = pack_runs.start(command)
      while process.poll() is None and pack_runs.journal_lines(out) < 3:
        time.sleep(0.001)
      process.send_signal(number)
      begin = time.monotonic()
      output, _ = process.communicate(timeout=60)
      if process.returncode == DONE_WITH_SKIPS:
        shutil.rmtree(out)  # it was faster than the signal
        continue
      self.assertEqual(code, process.returncode, output)
      self.assertLess(time.monotonic() - begin, STOP_SECONDS)
      return
    self.fail("no signal came in time")


if __name__ == "__main__":
  pack_runs.main()
