"""The crash table of workers: what happens to the dataset when a worker or a commit is killed, paused, too early, late, or alone on
an odd machine. Each time, the dataset is the one that a single process makes, byte for byte, and nothing else is left.
"""

import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import cluster
import command
from cluster import ELSEWHERE, KILLED, SHIM

WRITES = ("create", "link", "rename", "unlink", "mkdir", "write", "pwrite", "fsync", "fdatasync", "symlink", "ftruncate")


class KillTest(cluster.ClusterTest):
  """A kill before and after each call that changes something, of workers and of commits."""

  shards, samples = 2, 2

  def shim(self, **settings):
    return {"LD_PRELOAD": SHIM, "SHARDPACK_FAULT_ROOT": str(self.out),
            **{f"SHARDPACK_FAULT_{name}": str(value) for name, value in settings.items()}}

  def calls(self, *words):
    """[(number, name, path)] of an undisturbed run."""
    log = self.folder / "calls"
    log.unlink(missing_ok=True)
    self.pack(*words, env=self.shim(LOG=log), expect=None)
    rows = [line.split(" ", 2) for line in log.read_text().splitlines()]
    return [(int(number), name, path) for number, name, path in rows if name.startswith(WRITES)]

  def each_kill(self, words, prepare, heal):
    prepare()
    calls = self.calls(*words)
    killed = 0
    for number, name, path in calls:
      # After one call is before the next.
      for action in ("kill-before", "kill-after") if number == calls[-1][0] else ("kill-before",):
        prepare()
        done = self.pack(*words, env=self.shim(AT=number, DO=action), expect=None)
        killed += done.returncode == KILLED
        with self.subTest(call=number, name=name, path=path, action=action):
          heal()
          self.assert_whole()
    return len(calls), killed

  def test_a_worker_killed_at_each_call(self):
    def heal():
      self.work("--join", "-j", "1")
      self.commit()
    calls, killed = self.each_kill(self.words("--join", "-j", "1", "--io-depth", "1"), self.clear, heal)
    print(f"worker: {calls} calls that write, {killed} kills", flush=True)
    self.assertGreater(killed, 40)

  def test_a_commit_killed_at_each_call(self):
    self.work("--join")
    shutil.copytree(self.out, self.folder / "built")

    def prepare():
      self.clear()
      shutil.copytree(self.folder / "built", self.out)
    calls, killed = self.each_kill(["commit", "out", "-q"], prepare, self.commit)
    print(f"commit: {calls} calls that write, {killed} kills", flush=True)
    self.assertGreater(killed, 20)

  def test_a_line_that_is_torn(self):
    """A worker killed within a write of its journal; the shard itself is in place."""
    self.work("--join")
    shutil.copytree(self.out, self.folder / "built")
    name = next((self.out / ".pack").glob("journal-*")).name
    whole = (self.out / ".pack" / name).read_bytes()
    last = len(whole.rstrip(b"\n").rpartition(b"\n")[2])
    for left_out in (1, 2, last // 2, last):
      self.clear()
      shutil.copytree(self.folder / "built", self.out)
      (self.out / ".pack" / name).write_bytes(whole[:-left_out])
      with self.subTest(left_out=left_out):
        self.assertIn("missing 1", self.commit(expect=7))
        self.work("--join")
        self.commit()
        self.assert_whole()

  def test_a_reply_that_is_lost(self):
    """A network file system repeats a call whose reply it has not seen, and reports what the second one met."""
    words = self.words("--join", "-j", "1", "--io-depth", "1")
    calls = self.calls(*words)
    for name, error, codes in (("link", errno.EEXIST, (0,)), ("rename", errno.ENOENT, (0, 6)), ("unlink", errno.ENOENT, (0,)),
                               ("mkdir", errno.EEXIST, (0,))):
      count = sum(call.startswith(name) for _, call, _ in calls)
      self.assertGreater(count, 0, name)
      for number in range(1, count + 1):
        self.clear()
        with self.subTest(call=number, name=name):
          done = self.pack(*words, env=self.shim(ONLY=name, AT=number, DO=f"lost={error}"), expect=None)
          self.assertIn(done.returncode, codes, done.stderr)
          self.work("--join")
          self.commit()
          self.assert_whole()

  def test_a_disk_that_fails_after_the_manifest_is_in_place(self):
    self.work("--join")
    shutil.copytree(self.out, self.folder / "built")
    calls = self.calls("commit", "out", "-q")
    placed = next(number for number, name, path in calls if path.endswith("/manifest.json"))
    late = [number for number, name, _ in calls if number > placed and name == "fsync"]
    self.assertNotEqual([], late)
    for number in late:
      self.clear()
      shutil.copytree(self.folder / "built", self.out)
      said = self.pack("commit", "out", "-q", env=self.shim(AT=number, DO=errno.EIO), expect=6).stderr
      self.assertIn("Input/output error", said)
      self.assertTrue((self.out / "manifest.json").exists())
      self.commit()
      self.assert_whole()

  def test_another_worker_heals_while_the_killed_one_was_of_another_machine(self):
    """Its lock tells nothing: only that its beat stands still."""
    killed = 0
    calls = [call for call in self.calls(*self.words("--join", "-j", "1", "--io-depth", "1"))
             if call[1].startswith(("link", "fdatasync", "fsync")) or "journal" in call[2]]
    for number, name, path in calls[::3]:
      self.clear()
      done = self.pack(*self.words("--join", "-j", "1", "--io-depth", "1"), env=self.shim(AT=number, DO="kill-after"), expect=None)
      killed += done.returncode == KILLED
      self.make_foreign()
      with self.subTest(call=number, name=name, path=path):
        self.work("--join", "--stale-after", "0.3s")
        self.commit()
        self.assert_whole()
    self.assertGreater(killed, 5)

  def make_foreign(self):
    """Gives what a killed worker has left the name of one of another machine."""
    names = {path.name for path in (self.out / ".pack/owners").glob("*")} if (self.out / ".pack/owners").exists() else set()
    for name in names:
      for path in sorted(self.out.glob(f".pack/**/*{name}*"), key=lambda path: -len(path.parts)):
        path.rename(path.parent / path.name.replace(name, ELSEWHERE))
      for path in self.out.glob(".pack/lease/*/*"):
        if path.read_text() == name:
          path.write_text(ELSEWHERE)


class LeaseTest(cluster.ClusterTest):

  def test_a_dead_worker_of_this_machine_is_replaced_at_once(self):
    dead = self.paused("--join")
    dead.kill()
    dead.communicate()
    begun = time.monotonic()
    self.work("--join", "--stale-after", "600s")
    self.assertLess(time.monotonic() - begun, 60, "its lock is free: nobody waits for its beat")
    self.assertIn(2, [len(owners) for owners in self.leases().values()])
    self.commit()
    self.assert_whole()

  def test_a_lease_of_another_machine_that_never_beats(self):
    lease = self.out / ".pack/lease/000"
    for text in (ELSEWHERE, "", "torn-00"):
      self.clear()
      self.work("--shards", "0")
      (lease / "000003.1").write_text(text)
      self.work("--worker", "4/6", "--no-wait", "--stale-after", "600s", expect=7)
      begun = time.monotonic()
      self.work("--join", "--stale-after", "0.4s")
      self.assertGreater(time.monotonic() - begun, 0.3)
      self.assertEqual(2, len(self.leases()[3]), text)
      self.commit()
      self.assert_whole()

  def test_a_worker_that_beats_keeps_its_lease(self):
    """A stopped process is followed for a while: as long as somebody writes its beat, it is waited for."""
    slow = self.paused("--join", "--stale-after", "600s")
    beat = next((self.out / ".pack/owners").iterdir())
    facts = json.loads(beat.read_text())
    other = self.worker("--join", "--stale-after", "0.5s")
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
      facts["beat"] += 1
      beat.with_suffix(".new").write_text(json.dumps(facts) + "\n")
      beat.with_suffix(".new").rename(beat)
      time.sleep(0.05)
    self.assertIsNone(other.poll(), "it should wait for the shard that is held")
    self.assertNotIn(2, [len(owners) for owners in self.leases().values()])
    slow.send_signal(signal.SIGCONT)
    self.ends(slow)
    self.ends(other)
    self.commit()
    self.assert_whole()

  def test_a_worker_paused_for_longer_than_the_lease(self):
    slow = self.paused("--join")
    self.work("--join", "--stale-after", "0.4s")
    slow.send_signal(signal.SIGCONT)
    self.ends(slow)
    self.assertIn(2, [len(owners) for owners in self.leases().values()])
    self.commit()
    self.assert_whole()

  def test_a_worker_woken_after_the_commit(self):
    for words in (("--join",), ("--worker", "1/1"), ("--shards", "0-5")):
      slow = self.paused(*words)
      self.work("--join", "--stale-after", "0.4s")
      self.commit()
      self.assert_whole()
      slow.send_signal(signal.SIGCONT)
      self.ends(slow)
      self.assert_whole()  # it has left nothing behind
      self.clear()

  def test_a_worker_that_was_itself_stopped_takes_nobody_for_dead(self):
    """The time in which an observer stood still says nothing about those it observes."""
    held = self.paused("--worker", "1/1", "--stale-after", "600s")
    observer = self.worker("--join", "--stale-after", "8s")
    mine = len(self.leases())
    self.wait_for(lambda: len(list(self.out.glob("train*.pidx"))) >= self.shards - mine, observer)
    time.sleep(0.5)
    observer.send_signal(signal.SIGSTOP)
    time.sleep(9)
    observer.send_signal(signal.SIGCONT)
    time.sleep(1)
    self.assertNotIn(2, [len(owners) for owners in self.leases().values()])
    held.send_signal(signal.SIGCONT)
    self.ends(held)
    self.ends(observer)
    self.commit()
    self.assert_whole()

  def test_takeover_now(self):
    slow = self.paused("--shards", "0")
    self.work("--shards", "0", "--no-wait", "--stale-after", "600s", expect=7)
    self.work("--shards", "0", "--takeover", "now", "--stale-after", "600s")
    slow.send_signal(signal.SIGCONT)
    self.ends(slow)
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_one_winner_a_generation(self):
    for turn in range(10):
      workers = [self.worker("--join", "-j", "1", "--takeover", "now" if turn % 2 else "stale") for _ in range(5)]
      for each in workers:
        self.ends(each)
      for path in self.out.glob(".pack/lease/*/*"):
        self.assertRegex(path.read_text(), r"^\S+-[0-9a-f]{8}-\d+-[0-9a-f]{16}$")
      self.commit()
      self.assert_whole()
      self.clear()


class CommitTest(cluster.ClusterTest):

  def test_commits_at_once(self):
    for _ in range(15):
      self.work("--join")
      commits = [self.start("commit", "out") for _ in range(4)]
      identities = set()
      for each in commits:
        out, err = each.communicate(timeout=60)
        self.assertEqual(0, each.returncode, err)
        identities.add(out)
      self.assertEqual(1, len(identities), identities)
      self.assert_whole()
      self.clear()

  def test_commits_at_once_without_locks(self):
    env = {"LD_PRELOAD": SHIM, "SHARDPACK_FAULT_ROOT": str(self.out), "SHARDPACK_FAULT_EACH": "fcntl",
           "SHARDPACK_FAULT_DO": str(errno.ENOLCK)}
    for _ in range(5):
      self.work("--join", env=env)
      commits = [self.start("commit", "out", env=env) for _ in range(3)]
      for each in commits:
        _, err = each.communicate(timeout=60)
        self.assertEqual(0, each.returncode, err)
      self.assert_whole()
      self.clear()

  def test_what_is_missing_and_what_is_damaged(self):
    self.work("--shards", "0-1,3")
    refused = self.commit(expect=7)
    self.assertIn("missing 3: 2,4-5\n", refused)
    self.typed(refused)
    self.assert_whole()
    self.clear()
    self.work("--join")
    shard = self.out / "train-000005.tar"
    data = shard.read_bytes()
    shard.write_bytes(data[:600] + bytes([data[600] ^ 1]) + data[601:])
    broken = self.contents()
    refused = self.commit(expect=4)
    self.assertRegex(refused, r"damaged 1: shard 5: train-000005.tar has another hash")
    self.assertEqual(broken, self.contents(), "nothing is removed")
    self.typed(refused)
    self.assert_whole()

  def test_a_named_shard_is_not_replaced_while_it_is_published(self):
    self.work("--join")
    shard = self.out / "train-000005.tar"
    broken = shard.read_bytes()[:-512] + b"x" * 512
    shard.write_bytes(broken)
    with open(self.out / ".pack/lock", "a+b") as lock:
      self.share(lock, fcntl.F_RDLCK)  # as a commit does
      self.assertIn("is being published", self.work("--shards", "5", expect=6))
      self.assertEqual(broken, shard.read_bytes())
      self.share(lock, fcntl.F_UNLCK)
    self.work("--shards", "5")
    self.commit()
    self.assert_whole()

  def share(self, file, kind):
    whole = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)  # struct flock
    fcntl.fcntl(file, 37, whole)  # F_OFD_SETLK

  def typed(self, text):
    for line in re.findall(r"^  (\S*pack .*)$", text, re.MULTILINE):
      done = subprocess.run(["sh", "-c", line], cwd=self.folder, capture_output=True, check=False)
      self.assertEqual(0, done.returncode, (line, done.stderr))


class OddMachineTest(cluster.ClusterTest):

  def other_bytes(self):
    """The source of a node that has other bytes, with the sizes and times of the plan."""
    shutil.copytree(self.folder / "src", self.folder / "bad", copy_function=shutil.copy2)
    for path in (self.folder / "bad").rglob("*.jpg"):
      facts, data = path.stat(), path.read_bytes()
      path.write_bytes(data.replace(b"number", b"NUMBER"))
      os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

  def test_a_worker_with_other_bytes_replaces_nothing(self):
    self.other_bytes()
    good = self.paused("--shards", "0-5")
    self.pack("build", "bad", "--plan", "plan", "-o", "out", "-q", "--join", "--stale-after", "0.4s")
    before = {path.name: path.read_bytes() for path in self.out.glob("train*")}
    good.send_signal(signal.SIGCONT)
    refused = self.ends(good, expect=4)
    self.assertRegex(refused, r"has the hash [0-9a-f]{32}, and this worker has made [0-9a-f]{32}; nothing was replaced")
    self.assertEqual(before, {path.name: path.read_bytes() for path in self.out.glob("train*")})

  def xxh3(self, data):
    class Hash(ctypes.Structure):
      _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    hashed = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    hashed.restype = Hash
    digest = hashed(data, ctypes.c_size_t(len(data)))
    return struct.pack("<QQ", digest.low, digest.high)

  def test_a_plan_of_another_version_on_one_node(self):
    plan = (self.folder / "plan").read_bytes()
    for version in (4, 7):
      head = plan[:8] + struct.pack("<I", version) + plan[12:16]
      # Older ones end with a hash of all, newer ones with that of their first bytes and what is after the rows.
      rows_end = struct.unpack("<Q", plan[-32:-24])[0]
      hashed = head + (plan[16:-16] if version < 6 else plan[rows_end:-16])
      (self.folder / "other").write_bytes(head + plan[16:-16] + self.xxh3(hashed))
      first = self.paused("--worker", "1/2")
      before = sorted(path.name for path in self.out.glob("train*"))
      refused = self.pack("build", "--plan", "other", "-o", "out", "--join", "-q", expect=2).stderr
      self.assertIn("version", refused)
      self.assertEqual(before, sorted(path.name for path in self.out.glob("train*")))
      first.send_signal(signal.SIGCONT)
      self.ends(first)
      self.work("--join")
      self.commit()
      self.assert_whole()
      self.clear()

  def test_a_slice_of_the_plan_that_is_damaged_on_one_node(self):
    """Its worker names the shard, and builds no other sample in its place; the others are not concerned."""
    plan = bytearray((self.folder / "plan").read_bytes())
    plan[plan.rindex(b".jpg", 0, struct.unpack("<Q", plan[-32:-24])[0])] ^= 1  # the last name: of the last shard
    (self.folder / "bad").write_bytes(plan)
    self.pack("build", "--plan", "bad", "-o", "out", "-q", "--shards", "0", expect=4)
    self.assertFalse((self.out / ".pack/plan").exists(), "nobody else shall have it")
    self.work("--shards", "0")
    for words in (["--shards", "5"], ["--worker", "6/6"], ["--join"]):
      refused = self.pack("build", "--plan", "bad", "-o", "out", "-q", *words, expect=4).stderr
      self.assertIn("bad is damaged: its slice of shard 5 (train-000005.tar) does not match its own hash", refused)
    self.pack("build", "--plan", "bad", "-o", "out", "-q", "--shards", "0-4")
    self.assertIn("shard 5", self.pack("build", "--plan", "bad", "-o", "out", "-q", expect=4).stderr)
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_another_plan_on_one_node(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--seed", "9", "--write", "other", "-q")
    self.work("--worker", "1/2")
    before = self.contents()
    refused = self.pack("build", "--plan", "other", "-o", "out", "--join", "-q", expect=5).stderr
    self.assertIn("another plan", refused)
    self.assertEqual(before, self.contents())
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_a_full_disk_on_one_node(self):
    """The node may write files of 4 kB at most; a file-size limit is met like the end of a disk."""
    self.work("--join", expect=6, limits=[(resource.RLIMIT_FSIZE, 14_000)])
    self.assertEqual([], list(self.out.glob(".pack/failed/*")), "the shard is not to blame")
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_a_full_disk_that_all_share(self):
    self.out.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(self.out)], stderr=subprocess.DEVNULL,
                             check=False).returncode == 0
    if not mounted:
      self.skipTest("nothing may be mounted here")
    try:
      for _ in range(2):
        process = self.worker("--join", "-j", "1")
        # Another program fills the disk while the workers are at work.
        self.wait_for(lambda: list(self.out.glob(".pack/stage/*/train*")) or process.poll() is not None)
        with open(self.out / ".pack/ballast", "ab", buffering=0) as fill:
          try:
            while fill.write(bytes(4096)):
              pass
          except OSError:
            pass
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, 6))
      subprocess.run(["mount", "-o", "remount,size=64m", str(self.out)], check=True)
      (self.out / ".pack/ballast").unlink()
      self.work("--join")
      self.commit()
      self.assert_whole()
    finally:
      subprocess.run(["umount", "-l", str(self.out)], check=True)

  def test_a_file_system_without_links(self):
    for error in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
      env = {"LD_PRELOAD": SHIM, "SHARDPACK_FAULT_ROOT": str(self.out), "SHARDPACK_FAULT_EACH": "link",
             "SHARDPACK_FAULT_DO": str(error)}
      for words in (("--join",), ("--worker", "1/2"), ("--shards", "0")):
        refused = self.work(*words, expect=2, env=env)
        self.assertIn("a file cannot have two names", refused)
        self.assertIn("One process can", refused)
        self.assertFalse(self.out.exists(), "it was refused before anything was written")
      # One process needs none.
      self.pack(*self.words(), env=env)
      self.assert_whole()
      self.clear()

  def test_clocks_an_hour_apart(self):
    off = lambda seconds: {"LD_PRELOAD": cluster.CLOCK_SHIM, "SHARDPACK_CLOCK_OFF": str(seconds)}
    for turn in range(3):
      workers = [self.worker("--join", "-j", "1", env=off(seconds)) for seconds in (-3600, 0, 3600)]
      for each in workers:
        self.ends(each)
      if turn == 0:
        self.assertNotIn(2, [len(owners) for owners in self.leases().values()], "nobody was taken for dead")
      self.commit()
      self.assert_whole()
      self.clear()

  def test_a_disk_that_fails_is_not_the_shards_fault(self):
    for error in (errno.EIO, errno.ESTALE, errno.EACCES):
      env = {"LD_PRELOAD": SHIM, "SHARDPACK_FAULT_ROOT": str(self.out), "SHARDPACK_FAULT_EACH": "fdatasync",
             "SHARDPACK_FAULT_DO": str(error)}
      self.work("--shards", "0")
      with self.subTest(error=errno.errorcode[error]):
        for _ in range(4):
          self.work("--join", expect=6, env=env)
        self.assertEqual([], list(self.out.glob(".pack/failed/*")))
        self.work("--join")
        self.commit()
        self.assert_whole()
      self.clear()

  def test_a_shard_that_fails_is_left_alone_after_three_workers(self):
    self.work("--shards", "0")
    failed = self.out / ".pack/failed"
    for n in range(3):
      (failed / f"000004.node{n}-00000000-1-0123456789abcde{n}").write_text("read: Input/output error")
    refused = self.work("--join", expect=4)
    self.assertIn("3 workers have failed at shard 4", refused)
    self.assertIn("Input/output error", refused)
    self.assertIn("failed   4", self.pack("status", "out", expect=7).stdout)
    self.assertIn("5 of 6 done", self.pack("status", "out", "--wait", expect=7, timeout=20).stdout)  # nobody would end it
    self.work("--shards", "4")
    self.pack("status", "out", "-q")
    self.commit()
    self.assert_whole()

  def test_indices_that_are_not_dense(self):
    for number in ("3", "7", "9"):
      env = {"SLURM_ARRAY_TASK_ID": number, "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "9",
             "SLURM_ARRAY_TASK_COUNT": "3"}
      refused = self.work("--worker", "auto", expect=2, env=env)
      self.assertIn("--join", refused)
    self.assertFalse(self.out.exists())


class StopTest(cluster.ClusterTest):

  def test_stop_with_stdin(self):
    held = self.paused("--worker", "1/1", "--stale-after", "600s")
    process = self.worker("--join", "--stop-with-stdin", "--stale-after", "600s", stdin=subprocess.PIPE)
    self.wait_for(lambda: len(list((self.out / ".pack/owners").iterdir())) == 2)
    time.sleep(0.2)
    self.assertIsNone(process.poll())
    process.stdin.close()
    self.assertEqual(143, process.wait(timeout=20))
    process.stdin = None
    held.send_signal(signal.SIGCONT)
    self.ends(held)
    self.commit()
    self.assert_whole()


if __name__ == "__main__":
  command.main()
