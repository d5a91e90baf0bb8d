"""Interrupted runs go on to the same bytes; two runs into one OUT do not disturb each other."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import command


class ResumeTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=900, classes=("cat", "dog", "ship"))
    self.words = ["src", "--samples-per-shard", "10", "--split", "train=0.9,val=0.1", "-q"]
    begin = time.monotonic()
    self.pack(*self.words, "-o", "want")
    self.seconds = time.monotonic() - begin
    self.want = self.contents("want")

  def start_until(self, name, out):
    """A run that has written .pack/`name`. It holds the lock: that comes first."""
    process = self.start(*self.words, "-o", out)
    while not (self.folder / out / ".pack" / name).exists():
      self.assertIsNone(process.poll(), "the run ended before anybody looked")
      time.sleep(0.001)
    return process

  def test_interrupted_at_random_moments(self):
    rng = random.Random(7)
    interrupted = turn = 0
    # Moments are shares of a time that was measured once: some runs end before theirs comes.
    while interrupted < 8:
      turn += 1
      self.assertLess(turn, 40, "a test that never meets a running build proves nothing")
      out = f"out-{turn}"
      for _ in range(3):
        process = self.start(*self.words, "-o", out)
        try:
          process.wait(rng.uniform(0, self.seconds))
        except subprocess.TimeoutExpired:
          process.send_signal(rng.choice((signal.SIGINT, signal.SIGTERM)))
        begin = time.monotonic()
        _, err = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - begin, 5)
        # Negative: the signal came before the program could ask for it.
        self.assertIn(process.returncode, (0, 130, 143, -signal.SIGINT, -signal.SIGTERM), err)
        interrupted += process.returncode in (130, 143)
      self.pack(*self.words, "-o", out)
      self.assertEqual(self.want.keys(), self.contents(out).keys())
      self.assertEqual(self.want, self.contents(out))
      shutil.rmtree(self.folder / out)

  def test_the_printed_command_resumes(self):
    process = self.start_until("journal.jsonl", "out it's")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    self.assertEqual(130, process.returncode, err)
    resume = err.decode().rstrip().splitlines()[-1].strip()
    done = subprocess.run(["sh", "-c", resume], cwd=self.folder, capture_output=True, check=False)
    self.assertEqual(0, done.returncode, (resume, done.stderr))
    self.assertEqual(self.want, self.contents("out it's"))

  def test_a_second_signal_ends_at_once(self):
    process = self.start_until("plan", "out")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    process.communicate(timeout=30)
    self.assertLess(time.monotonic() - begin, 1)
    self.assertIn(process.returncode, (130, 143))
    self.pack(*self.words, "-o", "out")
    self.assertEqual(self.want, self.contents("out"))

  def test_two_runs_into_one_out(self):
    first = self.start_until("plan", "out")
    first.send_signal(signal.SIGSTOP)
    try:
      begin = time.monotonic()
      self.assertIn("another run", self.pack(*self.words, "-o", "out", expect=5).stderr)
      self.assertIn("another run", self.pack(*self.words, "-o", "out", "--overwrite", expect=5).stderr)
      self.assertLess(time.monotonic() - begin, 5)
    finally:
      first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=60)
    self.assertEqual(0, first.returncode, err)
    self.assertEqual(self.want, self.contents("out"))

  def test_many_runs_at_once(self):
    runs = [self.start(*self.words, "-o", "out") for _ in range(6)]
    codes = []
    for run in runs:
      _, err = run.communicate(timeout=120)
      codes.append(run.returncode)
      self.assertIn(run.returncode, (0, 5), err)
    self.assertIn(0, codes)
    self.assertEqual(self.want, self.contents("out"))

  def test_a_changed_plan_is_refused(self):
    self.interrupt("out")
    refused = self.pack("src", "-o", "out", "--seed", "9", "--samples-per-shard", "10", expect=5).stderr
    self.assertIn("seed", refused)
    self.assertIn("split", refused)

  def test_a_finished_dataset_names_an_input_that_differs(self):
    self.source("few", count=12)
    self.pack("few", "-o", "out")
    counts = "(12 were listed, 12 are now): "
    good = (self.folder / "few/dog/good-0003.jpg").read_bytes()
    self.write("few/dog/good-0003.jpg", good + b"x")
    self.assertIn(counts + f"dog/good-0003.jpg has {len(good) + 1} bytes, {len(good)} were packed", self.pack("few", "-o", "out", expect=5).stderr)
    self.write("few/dog/good-0003.jpg", good)
    (self.folder / "few/dog/good-0003.jpg").rename(self.folder / "few/dog/renamed.jpg")
    self.assertIn(counts + "dog/good-0003.jpg was packed and is gone", self.pack("few", "-o", "out", expect=5).stderr)
    self.write("few/dog/good-0003.jpg", good)
    self.assertIn("(12 were listed, 13 are now): dog/renamed.jpg is new", self.pack("few", "-o", "out", expect=5).stderr)

  def test_samples_of_one_path_are_not_taken_for_gone(self):
    for name in ("a", "b"):
      self.source(name, count=4)
      self.write(f"{name}/cat/good-0000.jpg", command.jpeg(ord(name)))
      self.pack(name, "-o", name + "o", "--shards", "1")
    words = ("convert", "ao/train-000000.tar", "bo/train-000000.tar", "-o", "both", "--key", "index")
    self.pack(*words)
    self.write("b/cat/good-0000.jpg", command.jpeg(1000))
    self.pack("b", "-o", "bo", "--shards", "1", "--overwrite")
    self.assertNotIn("is gone", self.pack(*words, expect=5).stderr)

  def test_a_changed_input_is_refused_and_named(self):
    self.interrupt("out")
    for path in (self.folder / "src").rglob("*.jpg"):
      path.write_bytes(path.read_bytes())  # same size, another time
    self.assertIn(".jpg", self.pack(*self.words, "-o", "out", expect=5).stderr)

  def interrupt(self, out):
    process = self.start_until("journal.jsonl", out)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    self.assertEqual(130, process.returncode)


class ChangedInputsTest(command.PackTest):
  """Files that were rewritten with their size while a build was interrupted: only their times tell."""

  def setUp(self):
    super().setUp()
    self.source("few", count=12)
    self.few = ["few", "--samples-per-shard", "4"]
    self.pack(*self.few, "-o", "before")
    rows = self.rows("before")
    self.of_shard = [[row["path"] for row in rows if row["shard"] == f"train-{n:06}.tar"] for n in range(3)]

  def halt(self, *words, built=1):
    """What a run of these words leaves that was killed when shards 0 to `built` - 1 were finished: a worker's part is that."""
    self.pack("plan", *self.few, "--write", "few.plan")
    out = words[words.index("-o") + 1]
    if "--overwrite" in words:
      self.pack(*words[:-1], "--seed", "8")  # what is to be replaced
      # One that cannot commit leaves all that it has built.
      self.pack(*words, "--expect", "xxh3:" + "0" * 32, expect=4)
      for journal in (self.folder / f"{out}.pack-new/.pack").glob("journal*"):
        # Killed right after the others were published, before it could note that.
        lines = [line for line in filter(None, journal.read_text().splitlines())
                 if json.loads(line)["shard"] < built or "pending" in json.loads(line)]
        journal.write_text("".join(line + "\n" for line in lines))
    else:
      self.pack("build", "--plan", "few.plan", "-o", out, "--shards-range", f"0-{built - 1}", "-q")

  def change(self, name):
    """Other bytes, the same size, another time."""
    path = self.folder / "few" / name
    data = path.read_bytes()
    was = path.stat().st_mtime_ns
    path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    os.utime(path, ns=(was + 10**9, was + 10**9))

  def test_a_file_of_a_finished_shard_that_was_changed_is_packed_again(self):
    words = [*self.few, "-o", "out"]
    self.halt(*words)
    self.change(self.of_shard[0][0])
    self.assertNotIn("reused", self.pack(*words).stderr)
    self.pack(*self.few, "-o", "fresh")
    self.assertEqual(self.contents("fresh"), self.contents("out"))
    self.assertIn("nothing to do", self.pack(*words).stderr)

  def test_a_file_that_was_changed_and_changed_back(self):
    words = [*self.few, "-o", "out"]
    path = self.folder / "few" / self.of_shard[0][0]
    data, time_ns = path.read_bytes(), path.stat().st_mtime_ns
    self.halt(*words, built=3)
    self.change(self.of_shard[0][0])
    self.pack(*words, "--expect", "xxh3:" + "0" * 32, expect=4)  # all is built, nothing published
    path.write_bytes(data)
    os.utime(path, ns=(time_ns, time_ns))
    self.pack(*words)
    self.assertEqual(self.contents("before"), self.contents("out"))

  def test_a_commit_vouches_for_the_times_of_what_was_built(self):
    self.halt(*self.few, "-o", "out", built=3)
    self.change(self.of_shard[1][0])
    self.pack(*self.few, "-o", "out", "--expect", "xxh3:" + "0" * 32, expect=4)
    self.pack("commit", "out")
    self.pack(*self.few, "-o", "fresh")
    self.assertEqual(self.contents("fresh"), self.contents("out"))

  def test_a_file_of_a_shard_that_was_not_built_is_a_conflict(self):
    words = [*self.few, "-o", "out"]
    self.halt(*words)
    self.change(self.of_shard[1][0])
    refused = self.pack(*words, expect=5).stderr
    self.assertIn(f"{self.of_shard[1][0]} was changed since", refused)
    typed = [line.strip() for line in refused.splitlines() if " --overwrite" in line]
    done = subprocess.run(["sh", "-c", typed[-1]], cwd=self.folder, capture_output=True, check=False)
    self.assertEqual(0, done.returncode, done.stderr)
    self.pack(*self.few, "-o", "fresh")
    self.assertEqual(self.contents("fresh"), self.contents("out"))

  def test_overwrite_takes_the_files_as_they_are(self):
    words = [*self.few, "-o", "out", "--overwrite"]
    self.halt(*words)
    for shard in (0, 1):  # one that is built and one that is not
      self.change(self.of_shard[shard][0])
    self.pack(*words)
    self.pack(*self.few, "-o", "fresh")
    self.assertEqual(self.contents("fresh"), self.contents("out"))
    self.assertFalse((self.folder / "out.pack-new").exists())

  def test_a_bad_file_that_was_fixed_with_the_same_size(self):
    bad = self.folder / "few/cat/good-0002.jpg"
    data = bad.read_bytes()
    bad.write_bytes(bytes(len(data)))
    for out, flags in (("a", []), ("b", ["--overwrite"])):
      bad.write_bytes(bytes(len(data)))
      os.utime(bad, (10**9, 10**9))
      words = ["few", "--samples-per-shard", "4", "-o", out]
      if flags:
        self.pack(*words, "--max-skip", "50%", "--seed", "4", expect=3)
      self.pack(*words, *flags, expect=4)
      bad.write_bytes(data)
      self.pack(*words, *flags)  # the command that is printed for a fixed input, and the same one
      self.assertEqual(12, self.manifest(out)["counts"]["packed"])

  def test_a_worker_does_not_choose_between_two_plans(self):
    self.halt(*self.few, "-o", "out", built=2)
    self.change(self.of_shard[0][0])
    self.pack("plan", *self.few, "--write", "later.plan")
    refused = self.pack("build", "--plan", "later.plan", "-o", "out", "--shards-range", "0-1", expect=5).stderr
    self.assertIn(self.of_shard[0][0], refused)
    self.assertIn("the plan that the other workers have", refused)
    self.assertNotIn("--overwrite", refused)

if __name__ == "__main__":
  command.main()
