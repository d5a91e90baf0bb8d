"""Workers that are killed and paused at random, until the dataset is whole: it is the one that a single process makes.

SHARDPACK_KILLS: how many (default 24; a long campaign takes 200). SHARDPACK_SEED: which and when; printed, to repeat a failure.
"""

import os
import random
import signal
import time

import cluster
import command

KILLS = int(os.environ.get("SHARDPACK_KILLS", "24"))
SEED = int(os.environ.get("SHARDPACK_SEED", time.time_ns() % 1_000_000))
WORKERS = 4


class CampaignTest(cluster.ClusterTest):
  shards, samples = 60, 6

  def test_random_kills(self):
    numbers = random.Random(SEED)
    kills = pauses = rounds = takeovers = 0
    begun = time.monotonic()
    while kills + pauses < KILLS:
      rounds += 1
      workers, stopped = [], []
      while not self.all_done():
        workers = [each for each in workers if each.poll() is None]
        while len(workers) < WORKERS:
          workers.append(self.worker("--join", "-j", "1", "--stale-after", "0.5s"))
        time.sleep(numbers.uniform(0, 0.06))
        victim = numbers.choice(workers)
        if victim.poll() is None and kills + pauses < KILLS:
          if numbers.random() < 0.7:
            victim.kill()
            kills += 1
          else:
            victim.send_signal(signal.SIGSTOP)
            stopped.append(victim)
            workers.remove(victim)
            pauses += 1
        if stopped and numbers.random() < 0.2:
          stopped.pop().send_signal(signal.SIGCONT)
      takeovers += sum(len(owners) > 1 for owners in self.leases().values())
      late = stopped[:len(stopped) // 2]  # these wake after the commit
      for each in stopped[len(late):]:
        each.send_signal(signal.SIGCONT)
      for each in workers + stopped[len(late):]:
        self.assertIn(each.wait(timeout=120), (0, cluster.KILLED))
      self.commit()
      for each in late:
        each.send_signal(signal.SIGCONT)
        self.assertEqual(0, each.wait(timeout=120))
      self.assert_whole()
      self.pack("validate", "out", "-q")
      self.clear()
    print(f"seed {SEED}: {kills} kills and {pauses} pauses in {rounds} rounds, {takeovers} shards taken over, "
          f"{time.monotonic() - begun:.0f} s", flush=True)

  def all_done(self):
    return self.pack("status", "out", "--plan", "plan", "-q", expect=None).returncode == 0


if __name__ == "__main__":
  command.main()
