"""What an operator does to a folder in which workers build, and what befalls single nodes."""

import contextlib
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tarfile
import threading
import time

import cluster
from cluster import ELSEWHERE


class OverwriteTest(cluster.ClusterTest):

  def overwrite(self, expect):
    return self.pack("build", "src", "-o", "out", "-q", "--overwrite", expect=expect, timeout=90).stderr

  def test_live_workers_keep_their_folder(self):
    live = self.paused("--join")
    refused = self.overwrite(5)
    self.assertIn("is being built by the worker", refused)
    self.assertFalse((self.folder / "out.pack-new").exists())
    self.assertRegex(self.commit(expect=7), r"missing \d: .*\n  held \d of them: \d.*, by workers that are at work \(pack status out --wait\)\n")
    live.send_signal(signal.SIGCONT)
    self.ends(live)
    self.assertRegex(self.pack("validate", "out", expect=4).stdout, r"`\S*pack commit out` if workers have built all shards")
    self.commit()
    self.assert_whole()

  def test_workers_that_have_ended_do_not_hold_it(self):
    self.work("--shards", "0")
    killed = self.paused("--join")
    killed.kill()
    killed.communicate()
    self.overwrite(0)
    self.assertFalse((self.out / ".pack").exists())

  def test_a_worker_of_another_machine_that_beats(self):
    self.work("--shards", "0")
    beat = self.out / ".pack/owners" / ELSEWHERE
    facts = {"beat": 1, "seconds": 1, "shards": 0, "rows": 0, "shard_seconds": 0, "ended": False, "building": []}
    ended = threading.Event()

    def beats():
      while not ended.wait(0.2):
        facts["beat"] += 1
        beat.with_suffix(".new").write_text(json.dumps(facts) + "\n")
        beat.with_suffix(".new").rename(beat)
    beat.write_text(json.dumps(facts) + "\n")
    thread = threading.Thread(target=beats)
    thread.start()
    try:
      self.assertIn(ELSEWHERE, self.overwrite(5))
    finally:
      ended.set()
      thread.join()

  def test_a_beat_that_cannot_be_read_says_nothing_of_its_worker(self):
    self.work("--shards", "0")
    beat = self.out / ".pack/owners" / ELSEWHERE
    beat.write_text(json.dumps({"beat": 1, "seconds": 1, "shards": 0, "rows": 0, "shard_seconds": 0, "ended": True, "building": []}) + "\n")
    env = {"LD_PRELOAD": cluster.SHIM, "SHARDPACK_FAULT_ROOT": str(beat), "SHARDPACK_FAULT_ONLY": "open", "SHARDPACK_FAULT_AT": "1",
           "SHARDPACK_FAULT_DO": str(errno.EIO)}
    self.pack("build", "src", "-o", "out", "-q", "--overwrite", env=env, expect=6)
    self.overwrite(0)

  def test_a_folder_that_was_removed_under_a_worker(self):
    for begin_again in (False, True):
      worker = self.paused("--join")
      shutil.rmtree(self.out)
      if begin_again:
        self.work("--worker", "1/2")
      worker.send_signal(signal.SIGCONT)
      said = self.ends(worker, expect=6)
      self.assertIn("was removed or replaced", said)
      self.assertNotIn("Finished shards are kept", said)
      self.clear()


class CommitTest(cluster.ClusterTest):
  """A signal during a commit. The shard is large enough to be read for a while."""

  def test_a_signal_before_the_manifest(self):
    os.makedirs(self.folder / "big")
    for n in range(30):
      data = bytearray((cluster.command.TESTDATA / "baseline.jpg").read_bytes())
      (self.folder / f"big/{n}.jpg").write_bytes(bytes(data) + bytes([n]) * (12 << 20))
    self.pack("plan", "big", "--shards", "1", "--write", "bigplan", "-q")
    self.pack("build", "--plan", "bigplan", "-o", "out", "--join", "-q", "--no-fsync")
    before = set(self.contents())
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
      commit = self.start("commit", "out", "--json", "--no-fsync")
      # It reads the shard now.
      self.wait_for(lambda: any("train-000000.tar" in path for path in self.open_files(commit)), commit)  # pylint: disable=cell-var-from-loop
      commit.send_signal(number)
      out, err = commit.communicate(timeout=60)
      self.assertEqual(code, commit.returncode, err)
      self.assertEqual(code, json.loads(out)["code"])
      self.assertIn(b"Nothing was published", err)
      self.assertEqual(before, set(self.contents()))
    self.pack("commit", "out", "-q", "--no-fsync")

  def open_files(self, process):
    found = []
    for descriptor in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
      with contextlib.suppress(FileNotFoundError):  # it was closed after it was listed
        found.append(os.readlink(descriptor))
    return found


class SourceTest(cluster.ClusterTest):

  def test_a_node_whose_source_is_not_mounted(self):
    (self.folder / "empty").mkdir()
    for words in (("--join",), ("--join", "--no-wait"), ("--worker", "1/2"), ("--shards", "0")):
      refused = self.pack("build", "empty", "--plan", "plan", "-o", "out", "-q", *words, expect=5).stderr
      self.assertIn("missing in empty", refused)
      self.assertEqual([], list(self.out.glob("train*")))
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_a_disk_that_goes_while_a_worker_builds(self):
    worker = self.paused("--join")
    # The folders stay: a worker may have them open.
    for path in list((self.folder / "src").rglob("*.jpg")):
      path.rename(self.folder / path.name)
    worker.send_signal(signal.SIGCONT)
    self.assertIn("missing in", self.ends(worker, expect=5))
    for shard in self.out.glob("train*.tar"):
      with tarfile.open(shard) as members:
        self.assertIsNotNone(members.next(), "an empty shard was published")

  def test_each_worker_names_its_own_skips(self):
    shutil.copytree(self.folder / "src", self.folder / "torn", copy_function=shutil.copy2)
    gone = sorted((self.folder / "torn").rglob("*.jpg"))[::2]
    for path in gone:
      path.unlink()
    bad = self.pack("build", "torn", "--plan", "plan", "-o", "out", "-q", "--worker", "1/2").stderr
    self.assertIn("vanished", bad)
    self.assertNotIn("vanished", self.work("--join"))

  def test_skips_are_named_before_others_are_left_the_rest(self):
    held = self.paused("--shards", "5")
    first = json.loads(self.pack("ls", "want", "--json").stdout.splitlines()[0])
    (self.folder / "src" / first["path"]).unlink()
    said = self.work("--worker", "1/1", "--no-wait", "--stale-after", "600s", expect=7)
    self.assertIn("vanished", said)
    self.assertIn("other workers hold", said)
    held.kill()


class BadSectorTest(cluster.ClusterTest):
  """A disk that cannot read one file of the source: the shard is noted, and the worker builds the others."""

  def bad_disk(self, *names):
    return {"LD_PRELOAD": cluster.SHIM, "SHARDPACK_FAULT_ROOT": str(self.folder / "src" / os.path.join(*names)),
            "SHARDPACK_FAULT_EACH": "read", "SHARDPACK_FAULT_DO": str(errno.EIO)}

  def test_one_file(self):
    rows = [json.loads(line) for line in self.pack("ls", "want", "--json").stdout.splitlines()]
    bad = [row["path"] for row in rows if row["shard"] == "train-000002.tar"][2]
    env = self.bad_disk(bad)
    for workers in (1, 2, 3):
      said = self.work("--join", expect=6, env=env)
      self.assertIn(f"{bad}: Input/output error", said)
      self.assertIn("is an input of shard 2", said)
      status = self.pack("status", "out", expect=7).stdout
      self.assertIn("5 of 6 done", status)
      self.assertRegex(status, rf"failed   2  {workers} workers?: read .*{bad}: Input/output error")
      self.assertEqual([(2, workers)], [(each["shard"], each["workers"])
                                        for each in json.loads(self.pack("status", "out", "--json", expect=7).stdout)["failed"]])
      self.assertRegex(self.commit(expect=7), rf"missing 1: 2\n  failed 1: shard 2: {workers} workers?: read .*{bad}: Input/output")
    self.assertIn("3 workers have failed at shard 2", self.work("--join", expect=4, env=env))
    self.work("--shards", "2")
    self.assertNotIn("failed", self.pack("status", "out").stdout)
    self.commit()
    self.assert_whole()

  def test_another_node_can_read_it(self):
    first = json.loads(self.pack("ls", "want", "--json").stdout.splitlines()[1])
    self.work("--join", expect=6, env=self.bad_disk(first["path"]))
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_a_disk_that_reads_nothing(self):
    said = self.work("--join", expect=6, env=self.bad_disk("")).splitlines()
    self.assertIn("Input/output error", said[0])
    self.assertEqual([], list(self.out.glob(".pack/failed/*")), "no shard is to blame")


class OtherBytesTest(cluster.ClusterTest):

  def test_a_noted_shard_that_was_cut(self):
    self.work("--worker", "1/1")
    shard = self.out / "train-000005.tar"
    bytes_then = shard.stat().st_size
    os.truncate(shard, 100)
    refused = self.work("--join", expect=4)
    self.assertRegex(refused, r"has the hash [0-9a-f]{32}, and this worker has made [0-9a-f]{32} "
                              rf"\(100 bytes, and {bytes_then}\)")
    self.assertIn("--shards 5", refused)
    self.assertEqual(100, shard.stat().st_size)
    self.work("--shards", "5")
    self.commit()
    self.assert_whole()

  def test_a_strange_file_under_the_name_of_a_shard(self):
    self.work("--shards", "0")
    self.write("out/train-000005.tar", b"strange")
    self.assertIn("No worker has noted that file", self.work("--join", expect=5))

  def test_a_worker_with_other_bytes_leaves_none_of_them(self):
    self.work("--worker", "1/1")
    shutil.copytree(self.folder / "src", self.folder / "bad", copy_function=shutil.copy2)
    for path in (self.folder / "bad").rglob("*.jpg"):
      facts, data = path.stat(), path.read_bytes()
      path.write_bytes(data.replace(b"number", b"NUMBER"))
      os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    (self.out / "train-000003.tar").unlink()
    self.pack("build", "bad", "--plan", "plan", "-o", "out", "-q", "--join", expect=4)
    self.assertFalse((self.out / "train-000003.tar").exists())
    self.assertIn("5 of 6 done", self.pack("status", "out", expect=7).stdout)
    self.work("--join")
    self.commit()
    self.assert_whole()


class StatusTest(cluster.ClusterTest):

  def test_a_published_dataset_that_is_not_whole(self):
    self.work("--join")
    self.commit()
    shard = self.out / "train-000002.tar"
    data = shard.read_bytes()
    for lose in (shard.unlink, lambda: shard.write_bytes(data[:99])):
      lose()
      for words in ((), ("--wait",), ("--plan", "plan")):
        refused = self.pack("status", "out", *words, expect=4, timeout=20).stderr
        self.assertIn("train-000002.tar", refused)
        self.assertIn("repair", refused)
      shard.write_bytes(data)
    self.pack("status", "out")

  def test_waiting_for_what_can_never_be(self):
    self.write("file", b"x")
    self.write("other/notes.txt", b"x")
    for path in ("file", "other", "file/below"):
      for words in ((), ("--plan", "plan")):
        self.assertIn(path, self.pack("status", "--wait", path, *words, expect=2, timeout=20).stderr)

  def test_what_is_waited_for_is_named(self):
    waiting = self.start("status", "--wait", "out", stderr=subprocess.PIPE)
    self.running.append(waiting)
    line = waiting.stderr.readline()
    self.assertIn(b"waiting for out, which does not exist yet", line)
    self.work("--join")
    self.commit()
    waiting.communicate(timeout=60)
    self.assertEqual(0, waiting.returncode)


class JsonTest(cluster.ClusterTest):
  """A command that fails ends its standard output with a line of JSON, whatever ends it."""

  def error(self, process, code):
    out, err = process.communicate(timeout=60)
    self.assertEqual(code, process.returncode, err)
    self.assertEqual(1, len(out.splitlines()), out)
    said = json.loads(out.splitlines()[-1])
    self.assertEqual(("shardpack.error/1", code), (said["schema"], said["code"]))

  def test_standard_input_that_ends_at_once(self):
    self.error(self.start(*self.words("--join", "--stop-with-stdin", "--json")), 143)

  def test_status_that_waits(self):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
      waiting = self.start("status", "--wait", "--json", "out")
      waiting.stderr.readline()
      waiting.send_signal(number)
      self.error(waiting, code)

  def test_a_second_signal(self):
    self.work("--shards", "0")
    lease = self.out / ".pack/lease/000"
    (lease / "000003.1").write_text(ELSEWHERE)
    worker = self.worker("--join", "--json", "--stale-after", "600s")
    self.wait_for(lambda: len(list(self.out.glob("train*.pidx"))) == self.shards - 1, worker)
    worker.send_signal(signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM):
      worker.send_signal(number)
    worker.send_signal(signal.SIGCONT)
    out, _ = worker.communicate(timeout=60)
    self.assertIn(json.loads(out.splitlines()[-1])["code"], (130, 143))


class PlanTest(cluster.ClusterTest):

  def test_damaged_rows_do_not_end_a_commit(self):
    self.work("--join")
    path = self.out / ".pack/plan"
    plan = bytearray(path.read_bytes())
    rows, found = self.shards * self.samples, 0
    for at in range(16, len(plan) - 4 * rows, 8):
      labels = struct.unpack_from(f"<{rows}i", plan, at)
      if labels.count(0) == rows // 2 == labels.count(1):  # the folders look the same
        struct.pack_into("<i", plan, at + 4 * (rows // 2), 300_000_000)
        found += 1
    self.assertIn(found, (1, 2))
    path.write_bytes(plan)
    self.commit()
    self.assert_whole()

  def test_damaged_rows_are_not_shown(self):
    plan = bytearray((self.folder / "plan").read_bytes())
    plan[24] ^= 1
    self.write("damaged", plan)
    said = self.pack("build", "--plan", "damaged", "-o", "out", "--join", "--dry-run", expect=4).stderr
    self.assertIn("does not match its own hash", said)


class CutPlanTest(cluster.ClusterTest):

  def test_the_plan_that_is_cut_is_named(self):
    shutil.copy(self.folder / "plan", self.folder / "mine")
    worker = self.paused("--join", "--json", plan="mine")
    (self.folder / "mine").write_bytes(b"")
    worker.send_signal(signal.SIGCONT)
    out, err = worker.communicate(timeout=60)
    self.assertEqual(6, worker.returncode, err)
    self.assertIn(f"pack: error: {self.folder / 'mine'} became shorter while it was in use", err.decode())
    self.assertEqual(6, json.loads(out.splitlines()[-1])["code"])
    self.work("--join")
    self.commit()
    self.assert_whole()


class WaitingTest(cluster.ClusterTest):

  def test_a_list_is_no_build(self):
    self.pack("list", "src", "--write", "lists", "-q")
    self.assertIn("holds a list of pack list", self.pack("status", "--wait", "lists", expect=2).stderr)


  def test_a_worker_that_waits_looks_now_and_then(self):
    log = self.folder / "calls"
    holder = self.paused("--shards", "0")
    waiting = self.worker("--shards", "0", env={"LD_PRELOAD": cluster.SHIM, "SHARDPACK_FAULT_ROOT": str(self.out),
                                                "SHARDPACK_FAULT_LOG": str(log)})
    time.sleep(2)
    waiting.terminate()
    waiting.communicate(timeout=60)
    holder.send_signal(signal.SIGCONT)
    self.ends(holder)
    calls = log.read_text().count("\n")
    self.assertGreater(calls, 20)
    self.assertLess(calls, 2000)


class WordsTest(cluster.ClusterTest):

  def test_the_source_that_was_given_is_named(self):
    shutil.copytree(self.folder / "src", self.folder / "mnt", copy_function=shutil.copy2)
    done = self.pack("build", "mnt", "--plan", "plan", "-o", "want")
    self.assertIn("--against mnt)", " ".join(done.stderr.split()))

  def test_a_flag_is_named_as_it_was_typed(self):
    refused = self.pack("build", "src", "-o", "out", "--no-wait", expect=2).stderr
    self.assertIn("--no-wait is for workers", refused)
    refused = self.pack("build", "--plan", "plan", "-o", "out", "--no-shuffle", expect=2).stderr
    self.assertIn("--no-shuffle is decided by the plan", refused)
    self.assertFalse(re.search("--shuffle", refused))


if __name__ == "__main__":
  cluster.main()
