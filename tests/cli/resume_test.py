"""Interrupted runs go on to the same bytes; two runs into one OUT do not disturb each other."""

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
    counts = "(12 were packed, 12 are listed): "
    good = (self.folder / "few/dog/good-0003.jpg").read_bytes()
    self.write("few/dog/good-0003.jpg", good + b"x")
    self.assertIn(counts + f"dog/good-0003.jpg has {len(good) + 1} bytes, {len(good)} were packed", self.pack("few", "-o", "out", expect=5).stderr)
    self.write("few/dog/good-0003.jpg", good)
    (self.folder / "few/dog/good-0003.jpg").rename(self.folder / "few/dog/renamed.jpg")
    self.assertIn(counts + "dog/good-0003.jpg was packed and is gone", self.pack("few", "-o", "out", expect=5).stderr)
    self.write("few/dog/good-0003.jpg", good)
    self.assertIn("(12 were packed, 13 are listed): dog/renamed.jpg is new", self.pack("few", "-o", "out", expect=5).stderr)

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


if __name__ == "__main__":
  command.main()
