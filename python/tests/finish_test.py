"""shardpack.finish: of all workers, and whatever it was killed at."""

import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import unittest.mock
import warnings

import shardpack
from writing import WORK, held, image

KILLER = os.path.abspath("python/libkill_removal.so")


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

  def test_samples_with_and_without_labels_of_several_workers(self):
    """What one worker cannot know of the others is said in the end, by their parts."""
    for number, (options, labels) in enumerate((({}, ("cat", None, "dog")), ({"classes": ["dog", "cat"]}, ("cat", None, "dog")), ({}, (None, 7, None)))):
      out = f"{self.out}-{number}"
      writers = [shardpack.Writer(out, worker=worker, workers=3, **options) for worker in range(3)]  # at the same time
      for worker, label in enumerate(labels):
        writers[worker].add(f"{worker}", image(worker), label)
        writers[worker].close()
      with self.subTest(labels), self.assertRaises(shardpack.OptionError) as caught:
        shardpack.finish(out)
      one, other = ["w00000-000000", "w00002-000000"], "w00001-000000"
      have = (", ".join(one), other) if labels[0] else (other, ", ".join(one))
      self.assertIn(f"the samples of {have[0]} in {out}.parts have labels, and those of {have[1]} have none. Nothing was published: "
                    f"shardpack.finish({out!r}, missing_part=\"keep\") packs them without one; or remove "
                    + (f"{other}.* there, and run worker 1 again, with labels" if labels[0] else
                       "w00000-000000.*, w00002-000000.* there, and run worker 0, 2 again, with labels"), str(caught.exception))
      self.assertFalse(os.path.exists(out))
      report = shardpack.finish(out, missing_part="keep")
      self.assertEqual((report.samples, {key: label for key, (label, _) in held(out).items()}),
                       (3, {f"{worker}": None if label is None else str(label) for worker, label in enumerate(labels)}))
    with shardpack.Writer(self.out, worker=1, workers=2) as writer:
      writer.add("b", image(50))
    self.write(0)
    with self.assertRaisesRegex(shardpack.OptionError, "of w00001-000000 have none"):
      shardpack.finish(self.out)
    for name in os.listdir(self.out + ".parts"):
      if name.startswith("w00001-000000"):
        os.unlink(os.path.join(self.out + ".parts", name))
    self.write(1)
    self.assertEqual(shardpack.finish(self.out).samples, 4)

  def test_numbers_and_names_of_several_workers(self):
    with shardpack.Writer(self.out, worker=0, workers=2, classes=["cat", "dog"]) as writer:
      writer.add("a", image(0), "cat")
    with self.assertRaisesRegex(shardpack.OptionError, "or remove .*[.]parts to start all of them again without their samples$"):
      shardpack.Writer(self.out, worker=1, workers=2)
    os.unlink(self.out + ".parts/options.json")
    with shardpack.Writer(self.out, worker=1, workers=2) as writer:
      writer.add("b", image(1), 0)
    with self.assertRaisesRegex(shardpack.OptionError, "labels of w00000-000000 in .*parts are names, such as 'cat', and others .* such as 0. Nothing"):
      shardpack.finish(self.out)
    self.assertFalse(os.path.exists(self.out))
    shutil.rmtree(self.out + ".parts")
    self.write(0, 1, classes=["cat", "dog"])
    self.assertEqual(shardpack.finish(self.out).samples, 4)

  def test_labels_of_an_earlier_run_with_classes(self):
    with self.assertRaises(ZeroDivisionError), shardpack.Writer(self.out, classes=["cat"]) as writer:
      writer.add("a", image(0), "cat")
      print(1 / 0)
    with self.assertRaisesRegex(shardpack.OptionError, "of w00000-000000 in .* have labels, and those of w00000-000001 have none.*"
                                r"remove w00000-000001\.\* there, and run the Writer again"), \
        self.assertWarns(RuntimeWarning), shardpack.Writer(self.out, classes=["cat"]) as writer:
      writer.add("b", image(1))

  def test_samples_that_were_resumed_are_counted(self):
    with shardpack.Writer(self.out + "-alone") as writer:
      writer.add("a", image(0))
    self.assertEqual((writer.result.resumed, repr(writer.result)[:34]), (0, "<Report ok: samples=1, resumed=0, "))
    for run in range(3):  # the last of which ends
      with self.assertRaises(ZeroDivisionError), shardpack.Writer(self.out, worker=1, workers=2) as writer:
        writer.add(f"1-{run}", image(run), "cat")
        print(1 / 0)
    self.write(0, samples=3)
    with shardpack.Writer(self.out, worker=1, workers=2) as writer:
      writer.add("1-3", image(9), "cat")
    report = shardpack.finish(self.out)
    self.assertEqual((report.samples, report.resumed, report.as_dict["resumed"]), (7, 3, 3))
    with self.assertRaisesRegex(AttributeError, "no 'resumed'"):
      shardpack.validate(self.out).resumed
    with self.assertRaises(ZeroDivisionError), shardpack.Writer(self.out, overwrite=True) as writer:
      writer.add("a", image(0))
      print(1 / 0)
    with shardpack.Writer(self.out, overwrite=True) as writer:
      if "a" not in writer:
        writer.add("a", image(0))
      writer.add("b", image(1))
    self.assertEqual((writer.result.samples, writer.result.resumed), (2, 1))

  def test_what_is_not_finished_is_no_dataset_yet(self):
    self.write(0, 1)
    says = (rf"\n{self.out}.parts has the samples of a Writer that has not finished: shardpack.Writer\('{self.out}'\) .* "
            rf"shardpack.finish\('{self.out}'\) makes them the dataset$")
    for path in (self.out, self.out + "/", self.out.encode(), self.out + ".parts"):
      with self.subTest(path), self.assertRaisesRegex(OSError, says):
        shardpack.Dataset(path)
    for ask in (lambda: shardpack.load(self.out, batch=1), lambda: shardpack.validate(self.out), lambda: shardpack.convert(self.out, self.out + "-other")):
      with self.assertRaisesRegex(FileNotFoundError, says):
        ask()
    with self.assertRaises(shardpack.NotADatasetError) as caught:
      shardpack.Dataset(self.out + "-nothing")
    self.assertNotIn("Writer", str(caught.exception))

  def advised(self):
    """What is said of the Writer's samples where the dataset is opened, and the call of finish in there."""
    with self.assertRaises(shardpack.NotADatasetError) as caught:
      shardpack.Dataset(self.out)
    said = str(caught.exception).partition("\n")[2]
    return said, re.findall(r"shardpack\.finish\(.*?\)", said)

  def leave(self, worker=0, samples=1, **options):
    with self.assertRaises(ZeroDivisionError), warnings.catch_warnings(), shardpack.Writer(self.out, worker=worker, **options) as writer:
      for n in range(samples):
        writer.add(f"{worker}-{n}", image(n), "cat")
      print(1 / 0)

  def test_what_is_advised_works(self):
    kill = ("import os, shardpack, sys; w = shardpack.Writer(sys.argv[1]); w.add('0-0', open(sys.argv[2], 'rb').read(), 'cat'); w.flush(); "
            "os.kill(os.getpid(), 9)")
    picture = WORK / "one.png"
    picture.write_bytes(image(0))
    for case, begin in {"exception": self.leave, "killed": lambda: subprocess.run([sys.executable, "-c", kill, self.out, picture], check=False),
                        "a worker": lambda: (self.write(0, samples=1), self.leave(1, workers=2)), "all": lambda: self.write(0, 1, samples=1)}.items():
      with self.subTest(case):
        self.out = str(WORK / f"advised-{case}".replace(" ", "-"))
        begin()
        said, (call,) = self.advised()
        self.assertIn(f"{self.out}.parts has the samples of a Writer", said)
        self.assertEqual(call, f"shardpack.finish({self.out!r}" + ("" if case == "all" else ', unfinished="take"') + ")")
        report = eval(call)  # pylint: disable=eval-used
        samples = {"exception": 1, "killed": 1}.get(case, 2)
        self.assertEqual((report.samples, report.resumed), (samples, 0 if case == "all" else None))
        self.assertEqual("resumed=" in repr(report), case == "all")
        self.assertEqual(len(shardpack.Dataset(self.out)), samples)

  def test_nothing_is_advised_where_it_would_be_refused(self):
    self.leave(1, workers=2)  # and worker 0 has not begun
    said, calls = self.advised()
    self.assertIn("goes on with them", said)
    self.assertEqual(calls, [])
    self.out += "-empty"
    self.leave(samples=0)
    self.assertIn("options.json", os.listdir(self.out + ".parts"))
    self.assertEqual(self.advised()[0], "")

  def finish_and_kill(self, out, step):
    """The signal that ended it, or 0."""
    environment = {**os.environ, "KILL_AT": str(step), "LD_PRELOAD": KILLER}
    code = "import sys, shardpack; shardpack.finish(sys.argv[1])"
    return -subprocess.run([sys.executable, "-c", code, out], env=environment, check=False).returncode

  def test_a_finish_that_is_killed_as_it_removes_the_parts_costs_no_sample(self):
    """Wherever that is, what is published stays, whether another finish comes or other samples."""
    self.write(0, 1, samples=1, overwrite=True)
    ends = set()
    for step in range(1, 100):
      out = f"{self.out}-{step}"
      shutil.copytree(self.out + ".parts", out + ".parts")
      killed = self.finish_and_kill(out, step)
      if not killed:
        break
      self.assertEqual(killed, signal.SIGKILL)
      try:
        shardpack.finish(out)
        ends.add("published")
      except shardpack.ExistsError as error:
        self.assertRegex(str(error), "is published already: what a finish that was killed had left of its samples is removed")
        ends.add("exists")
      except shardpack.NotFoundError as error:
        self.assertRegex(str(error), "no Writer has written for")
        ends.add("not found")
      self.assertEqual(sorted(held(out)), ["0-0", "1-0"], step)
      with shardpack.Writer(out, overwrite=True) as writer:
        self.assertFalse("0-0" in writer or "1-0" in writer)
        writer.add("new", image(3))
      self.assertEqual(list(held(out)), ["new"])
      self.assertFalse(os.path.exists(out + ".parts"))
    self.assertEqual(ends, {"published", "exists", "not found"})

  def test_what_comes_as_the_parts_are_removed_stays(self):
    self.write(0, 1, overwrite=True)
    forgotten = []
    settle = shardpack.Job.wait

    def then_another_comes(job, *arguments):
      report = settle(job, *arguments)
      self.write(0, overwrite=True)
      forgotten.append(report)
      return report

    with unittest.mock.patch.object(shardpack.Job, "wait", then_another_comes):
      self.assertEqual(shardpack.finish(self.out).samples, 4)
    self.write(1, overwrite=True)
    self.assertEqual((shardpack.finish(self.out).samples, len(forgotten)), (4, 1))


if __name__ == "__main__":
  unittest.main()
