"""Jobs: keywords become flags, reports and errors come back, progress comes in the caller's thread, and what stops a job lets it go on."""

import asyncio
import fractions
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import warnings

import numpy
import shardpack
from shardpack import _c, _library
from writing import WORK, image

IMAGES = WORK / "images"


def setUpModule():
  for n in range(300):
    path = IMAGES / "abc"[n % 3] / f"{n:03}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(image(n))


# Flags with which it takes seconds.
SLOW = {"resize": "exact", "size": (120, 120), "encode": "png", "color": "rgb", "samples_per_shard": 10, "shuffle": False}


class JobsTest(unittest.TestCase):

  def setUp(self):
    self.out = str(WORK / self.id().rpartition(".")[2])

  def test_reports(self):
    report = shardpack.pack(IMAGES, pathlib.Path(self.out), split={"train": 0.5, "val": 0.5}, shard_size="50kB", exclude=["a/*", "*9.png"])
    self.assertEqual((report.samples, report.skipped, report.ok, report.exit_code, report.format), (180, 0, True, 0, "webdataset"))
    self.assertEqual(report.shards, len([name for name in os.listdir(self.out) if name.endswith(".tar")]))
    self.assertEqual(sorted(report.splits), ["train", "val"])
    self.assertEqual(report.identity, shardpack.Dataset(self.out).identity)
    self.assertEqual(report.as_dict["counts"]["packed"], 180)
    with self.assertRaisesRegex(AttributeError, "no 'sampels', but .*counts"):
      report.sampels  # pylint: disable=pointless-statement
    with self.assertRaisesRegex(AttributeError, "no 'findings'"):
      report.findings  # pylint: disable=pointless-statement
    self.assertRegex(repr(report), "<Report ok: samples=180, shards=")
    converted = shardpack.convert(self.out, self.out + "-records", format="tfrecord")
    self.assertEqual((converted.samples, converted.format), (180, "tfrecord"))
    records = [os.path.join(self.out + "-records", name) for name in os.listdir(self.out + "-records") if name.endswith(".tfrecord")]
    self.assertEqual(shardpack.index(sorted(records), self.out + "-index").samples, 180)
    extracted = shardpack.extract([self.out], self.out + "-files", split="val")
    self.assertEqual(extracted.samples, len([name for _, _, names in os.walk(self.out + "-files") for name in names]))
    validated = shardpack.validate(self.out, "deep")
    self.assertEqual((validated.ok, validated.samples, validated.findings, validated.level), (True, 180, [], "deep"))

  def test_what_was_left_out_is_counted(self):
    bad = WORK / "bad"
    (bad / "a").mkdir(parents=True)
    (bad / "a" / "1.png").write_bytes(image(1))
    (bad / "a" / "2.png").write_bytes(b"not an image")
    with self.assertRaisesRegex(shardpack.PackError, r"(?s)pack build: .*--max-skip.* \(exit code 4\)") as caught:
      shardpack.pack(bad, self.out)
    self.assertEqual(caught.exception.exit_code, 4)
    with self.assertWarnsRegex(RuntimeWarning, "(?s)1 samples were left out:.*2.png: not-an-image") as warned:
      report = shardpack.pack(bad, self.out, max_skip="50%")
    self.assertEqual(warned.filename, __file__)
    self.assertFalse(report)
    self.assertEqual((report.ok, report.exit_code, report.samples, report.skipped), (False, 3, 1, 1))
    self.assertIn("not-an-image", report.messages)

  def test_warnings_of_the_program_are_warnings(self):
    folder = WORK / "gaps"
    folder.mkdir()
    for n in range(2):
      (folder / f"{n}.png").write_bytes(image(n))
    (folder / "list.csv").write_text("path,label\n0.png,0\n1.png,5\n")
    job = shardpack.Job("build", folder / "list.csv", out=self.out)
    with warnings.catch_warnings(record=True) as warned:
      warnings.simplefilter("always")
      job.wait()
      job.result()
      shardpack.extract(self.out, self.out + "-files")
    self.assertEqual([(each.category, each.filename) for each in warned], [(RuntimeWarning, __file__)] * 2)
    self.assertRegex(str(warned[0].message), r"\Athe labels of .*list.csv are 2 of the numbers 0 to 5")
    self.assertRegex(str(warned[1].message), r"(?s)\Athe labels of 2 samples are not the folders.*\n  .*pack extract .*--list")

  def test_damage_is_a_report(self):
    shardpack.pack(IMAGES, self.out, limit=20)
    shard = os.path.join(self.out, "train-000000.tar")
    with open(shard, "r+b") as file:
      file.seek(700)
      file.write(b"?")
    report = shardpack.validate(self.out)
    self.assertEqual((report.ok, report.exit_code, bool(report)), (False, 4, False))
    self.assertGreater(report.errors, 0)
    finding = report.findings[0]
    self.assertEqual((finding.severity, finding.shard), ("error", "train-000000.tar"))
    self.assertIsNone(finding.field)
    self.assertIn("file-hash", [each.id for each in report.findings])
    self.assertRegex(repr(finding), "<error .*train-000000.tar")

  def test_looking(self):
    shardpack.pack(IMAGES, self.out, split={"train": 0.5, "val": 0.5})
    stats = shardpack.stats(self.out)
    dataset = shardpack.Dataset(self.out)
    self.assertEqual((stats.samples, stats.identity, stats.shards), (len(dataset), dataset.identity, len(dataset.shards)))
    self.assertEqual({each["name"]: each["samples"] for each in stats.classes}, dict(dataset.class_counts))
    self.assertEqual((stats.ok, stats.notes), (True, []))
    shardpack.convert(self.out, self.out + "-less", format="tfrecord", limit=290)
    diff = shardpack.diff(self.out, self.out + "-less")
    self.assertEqual((diff.ok, diff.differs, diff.same, diff.counts["removed"]), (True, True, 290, 10))
    self.assertEqual({change["was"]["key"] for change in diff.changes if change["what"] == ["removed"]},
                     set(dataset.keys) - set(shardpack.Dataset(self.out + "-less").keys))
    checked = shardpack.diff(self.out, self.out + "-less", check=True)
    self.assertEqual((checked.ok, checked.exit_code), (False, 8))
    self.assertTrue(shardpack.diff(self.out, self.out, by="hash", check=True).ok)
    dups = shardpack.dups(self.out, self.out + "-less", near=True, distance=0, write_list=self.out + ".keys")
    self.assertEqual((len(dups.exact), dups.ok), (290, True))
    with open(self.out + ".keys", encoding="utf-8") as file:
      self.assertEqual(290, len([line for line in file if not line.startswith("#")]))
    news = []
    report = shardpack.report(self.out, self.out + ".html", thumbs=2, near=True, progress=news.append)
    self.assertEqual((report.ok, report.damaged, report.bytes), (True, False, os.path.getsize(self.out + ".html")))
    for given, name in ((True, self.out + "-again-report.html"), (self.out + "-page.html", self.out + "-page.html")):
      again = shardpack.convert(self.out, self.out + "-again", format="tfrecord", report=given)
      self.assertEqual((again.ok, again.as_dict["report"]["out"], again.as_dict["report"]["bytes"]), (True, name, os.path.getsize(name)))
    self.assertNotIn("report", shardpack.convert(self.out, self.out + "-again", format="tfrecord", report=False).as_dict)
    damaged = pathlib.Path(self.out + "-damaged")
    shutil.copytree(self.out, damaged)
    (damaged / "manifest.json").write_text("{")
    for look in (shardpack.stats, lambda path: shardpack.diff(path, self.out), shardpack.dups, lambda path: shardpack.report(path, self.out + ".html")):
      for path, exit_code, pattern in (("/nowhere", 2, "does not exist"), (damaged, 4, "malformed JSON")):
        with self.assertRaisesRegex(shardpack.PackError, pattern) as caught:
          look(path)
        self.assertEqual(caught.exception.exit_code, exit_code)
    with self.assertRaisesRegex(TypeError, "has no flag 'nearby'"):
      shardpack.dups(self.out, nearby=True)

  def test_failures(self):
    with self.assertRaisesRegex(RuntimeError, r"pack build: source /nowhere does not exist \(exit code 2\)") as caught:
      shardpack.pack("/nowhere", self.out)
    error = caught.exception
    self.assertEqual((error.exit_code, error.command), (2, ("pack", "build", f"--out={self.out}", "--", "/nowhere")))
    self.assertIn("/nowhere does not exist", error.stderr)
    self.assertIsInstance(error, shardpack.PackError)
    with self.assertRaisesRegex(shardpack.PackError, "does not exist"):
      shardpack.validate("/nowhere")

  def test_failures_are_what_python_has_for_them(self):
    shardpack.pack(IMAGES, self.out)
    for kinds, attributes, job in (
        ((shardpack.PackNotFoundError, shardpack.NotFoundError, FileNotFoundError), ("NOT_FOUND", "/nowhere", 2), lambda: shardpack.pack("/nowhere", "o")),
        ((shardpack.PackNotFoundError,), ("NOT_FOUND", "/nowhere --x", 2), lambda: shardpack.stats("/nowhere --x")),
        ((shardpack.PackUsageError, shardpack.OptionError, ValueError, TypeError), ("INVALID", None, 2), lambda: shardpack.pack(IMAGES, "o", format="mds")),
        ((shardpack.PackExistsError, shardpack.ExistsError, FileExistsError), ("EXISTS", self.out, 5), lambda: shardpack.pack(IMAGES, self.out, seed=3))):
      with self.assertRaises(shardpack.PackError) as caught:
        job()
      error = caught.exception
      for kind in (*kinds, RuntimeError):
        self.assertIsInstance(error, kind)
      self.assertEqual((error.code, error.path, error.exit_code), attributes)
      self.assertEqual(getattr(error, "filename", None), error.path)
      again = pickle.loads(pickle.dumps(error))
      self.assertEqual(getattr(again, "filename", None), error.path)
      self.assertEqual((type(again), str(again), vars(again)), (type(error), str(error), vars(error)))

  def test_names_of_paths_do_not_tell_failures_apart(self):
    for folder in ("locked", "is locked by", "it was replaced"):
      out = os.path.join(self.out, folder, "out")
      os.makedirs(os.path.dirname(out))
      shardpack.pack(IMAGES, out, limit=3)
      with self.assertRaises(shardpack.PackExistsError) as caught:
        shardpack.pack(IMAGES, out, limit=3, seed=3)
      self.assertEqual(caught.exception.filename, out)
    absent = os.path.join(self.out, "does not exist")
    with self.assertRaises(shardpack.PackNotFoundError) as caught:
      shardpack.pack(absent, out)
    self.assertEqual(caught.exception.filename, absent)

  def test_flags_of_messages_are_said_as_keywords(self):
    with self.assertRaisesRegex(shardpack.PackUsageError, r"\nIn Python flags are keywords: max_skip=\.\.\.$"):
      shardpack.pack(IMAGES, self.out, max_skip="200%")
    for path in ("/nowhere --max", "/nowhere"):
      with self.assertRaises(shardpack.PackError) as caught:
        shardpack.pack(path, self.out)
      self.assertNotIn("In Python", str(caught.exception))

  def test_datasets_are_paths_of_jobs(self):
    shardpack.pack(IMAGES, self.out, split={"train": 0.5, "val": 0.5}, split_by="random")
    dataset = shardpack.Dataset(self.out)
    self.assertEqual((shardpack.validate(dataset).samples, shardpack.stats(dataset).samples, shardpack.dups(dataset).exact), (300, 300, []))
    self.assertEqual(shardpack.diff(dataset, self.out).same, 300)
    self.assertEqual(shardpack.Job("validate", dataset).wait().samples, 300)
    self.assertEqual(shardpack.convert(dataset, self.out + "-all", format="tfrecord").samples, 300)
    with warnings.catch_warnings():
      warnings.simplefilter("error")
      for name, chosen in (("b", dataset.where(label="b")), ("val", dataset.split("val")), ("some", dataset.split("train")[10:30]), ("mask", dataset[dataset.labels != 1])):
        report = shardpack.convert(chosen, f"{self.out}-{name}", format="tfrecord")
        made = shardpack.Dataset(f"{self.out}-{name}")
        self.assertEqual((report.samples, made.classes, {*made.keys}), (len(chosen), ["a", "b", "c"], {*chosen.keys}))
        self.assertEqual([made.get(sample.key).image for sample in chosen], [sample.image for sample in chosen])
    for pattern, job in (("selection of samples, .*shardpack.convert", lambda: shardpack.stats(dataset[:3])), ("another order", lambda: shardpack.convert(dataset[[2, 1]], "o")),
                         ("without samples", lambda: shardpack.convert(dataset[:0], "o")), ("the join of", lambda: shardpack.convert(shardpack.Dataset([self.out, self.out + "-all"]), "o")),
                         ("exclude_keys does not go with", lambda: shardpack.convert(dataset[:3], "o", exclude_keys="k"))):
      with self.assertRaisesRegex(shardpack.OptionError, pattern):
        job()

  def test_messages_about_selections_name_what_was_given(self):
    """And not the list of keys that stands for the selection."""
    shardpack.pack(IMAGES, self.out)
    dataset, out = shardpack.Dataset(self.out), self.out + "-out"
    shardpack.convert(dataset, out, format="tfrecord")
    for _ in range(2):  # of the whole dataset, and then of another selection
      with self.assertRaises(shardpack.PackExistsError) as caught:
        shardpack.convert(dataset[:3], out, format="tfrecord")
      self.assertEqual(caught.exception.path, out)
      self.assertRegex(str(caught.exception), f"(?s)^pack convert: {out} was made with another plan:\n  the source's files differ .*\n"
                       r"Use another folder, or replace what is there. In Python: overwrite=True \(exit code 5\)\nIn Python flags are keywords: compare=True$")
      self.assertNotRegex(str(caught.exception), r"exclude|\.keys|--out")
      self.assertNotRegex(" ".join((*caught.exception.command, caught.exception.stderr)), r"exclude|\.keys")
      self.assertEqual(caught.exception.command, ("pack", "convert", "--format=tfrecord", f"--out={out}", "--", self.out))
      report = shardpack.convert(dataset[:5], out, format="tfrecord", overwrite=True)
      self.assertNotRegex(report.messages, r"exclude|\.keys")
    wait = shardpack.Job.wait
    cancelled = unittest.mock.patch.object(shardpack.Job, "wait", lambda job, _: job.cancel() or wait(job))
    with self.assertRaises(shardpack.CancelledError) as caught, cancelled:
      shardpack.convert(dataset[:200], self.out + "-slow", **SLOW)
    self.assertIn("the packing of a selection was cancelled", str(caught.exception))

  def test_selections_have_keys_of_any_bytes(self):
    with shardpack.Writer(self.out, format="tfrecord") as writer:
      for n, key in enumerate((b"#a", b"50%", b"\xff\x01", "é\x85".encode(), b"plain")):
        writer.add(key, image(n))
    dataset = shardpack.Dataset(self.out)
    self.assertEqual(shardpack.convert(dataset[[dataset.find_key("plain")]], self.out + "-one", format="tfrecord").samples, 1)

  def test_selections_are_told_apart_by_keys(self):
    shardpack.pack(IMAGES, self.out + "-some", limit=6, format="tfrecord")
    records = self.out + "-some/train-00000-of-00001.tfrecord"
    with open(records, "rb") as file:
      data = file.read()
    twice = self.out + "-twice.tfrecord"
    with open(twice, "wb") as file:
      file.write(data + data)
    shardpack.index([twice], self.out + "-twice")
    for path in (self.out + "-twice", twice):
      dataset = shardpack.Dataset(path)
      self.assertLess(len({*dataset.keys}), len(dataset))
      with self.assertRaisesRegex(shardpack.OptionError, "have the keys of some that are.*shardpack.Writer and its add_sample"):
        shardpack.convert(dataset[:3], self.out, format="tfrecord")
      self.assertFalse(os.path.exists(self.out))

  def test_selections_of_shards(self):
    bare = self.out + ".tar"
    subprocess.run(["tar", "-C", IMAGES / "a", "-cf", bare, "000.png", "003.png", "006.png"], check=True)
    self.assertEqual(shardpack.convert(shardpack.Dataset(bare)[:1], self.out + "-bare", format="tfrecord").samples, 1)
    shardpack.index([bare], self.out + "-indexed")
    self.assertEqual(shardpack.convert(shardpack.Dataset(self.out + "-indexed")[1:], self.out + "-some", format="tfrecord").samples, 2)
    # A shard alone of a packed dataset: the program takes classes from the manifest, so that it is another dataset.
    shardpack.pack(IMAGES, self.out, limit=6)
    with self.assertRaisesRegex(shardpack.OptionError, "single shard.* Select from the dataset's folder, or write .*shardpack.Writer") as caught:
      shardpack.convert(shardpack.Dataset(self.out + "/train-000000.tar")[:1], self.out + "-one", format="tfrecord")
    self.assertNotIn("exclude", str(caught.exception))
    self.assertFalse(os.path.exists(self.out + "-one"))

  def test_selections_of_a_dataset_that_was_replaced(self):
    shardpack.pack(IMAGES, self.out, limit=6, split={"train": 0.5, "val": 0.5}, split_by="random")
    dataset = shardpack.Dataset(self.out)
    selections = dataset[:2], dataset.split("val"), dataset.split("val")[:1]
    written = []
    run = shardpack._jobs._run

    def running(*arguments, **flags):
      with open(arguments[4]["exclude_keys"], "rb") as file:
        written.append(file.read())
      return run(*arguments, **flags)

    with unittest.mock.patch.object(shardpack._jobs, "_run", running):
      shardpack.convert(selections[0], self.out + "-made", format="tfrecord")
    self.assertIn(f"\n# of the dataset {dataset.identity}\n# keys: 4\n".encode(), written[0])
    with open(self.out + ".keys", "wb") as file:
      file.write(written[0])
    shardpack.pack(IMAGES, self.out, limit=7, seed=2, overwrite=True, split={"train": 0.5, "val": 0.5}, split_by="random")
    for selection in selections:
      with self.assertRaisesRegex(shardpack.OptionError, "now another dataset is there"):
        shardpack.convert(selection, self.out + "-other", format="tfrecord")
    with self.assertRaisesRegex(shardpack.PackUsageError, "is of the dataset .*, and this is "):
      shardpack.convert(self.out, self.out + "-other", format="tfrecord", exclude_keys=self.out + ".keys")

  def test_progress_is_shown_or_not(self):
    with self.assertRaisesRegex(shardpack.OptionError, "progress must be True, False or a function"):
      shardpack.pack(IMAGES, self.out, progress="yes")
    self.assertFalse(os.path.exists(self.out))

  def test_keywords(self):
    for pattern, flags in (("pack build has no flag 'shard_sise'; did you mean 'shard_size'", {"shard_sise": 1}),
                           ("has no flag 'json'", {"json": True}), ("has no flag 'levle'", {"levle": "full"}),
                           ("shuffle must be True or False, not 'no'", {"shuffle": "no"}), ("overwrite must be True or False, not 1", {"overwrite": 1}),
                           ("seed must be a str, a number", {"seed": object()}), ("seed must be a str, a number", {"seed": True}),
                           ("root must not contain a zero byte", {"root": "a\0b"})):
      with self.assertRaisesRegex(TypeError, pattern):
        shardpack.pack(IMAGES, self.out, **flags)
    for pattern, arguments in (("src must be a path or a list", (3, self.out)), ("src must be a path, not int", ([3], self.out)),
                               ("src must not be an empty list", ([], self.out)), ("out must be a path, not int", (IMAGES, 3)),
                               ("src must not be empty", ("", self.out))):
      with self.assertRaisesRegex(ValueError, pattern):
        shardpack.pack(*arguments)
    with self.assertRaisesRegex(TypeError, "'validat' is not a job; .*did you mean 'validate'"):
      shardpack.Job("validat", self.out)
    job = shardpack.Job("build", "-src", b"b", out=pathlib.Path("o"), exclude=["a", "b"], split={"a": 0.5, "b": 0.5}, shuffle=False, fsync=False,
                        size=[3, 4], ext={"png", "jpg"}, overwrite=False, seed=None, sha256=True)
    self.assertEqual(job.command, ("pack", "build", "--out=o", "--exclude=a", "--exclude=b", "--split=a=0.5,b=0.5", "--no-shuffle", "--no-fsync",
                                   "--size=3x4", "--ext=jpg,png", "--sha256", "--", "-src", "b"))
    with self.assertRaises(shardpack.PackError):
      job.wait()
    numbers = {"a": numpy.float64(0.8), "b": numpy.float32(0.1), "c": fractions.Fraction(1, 4), "d": numpy.int64(1), "e": 0.2}
    self.assertEqual(shardpack.Job("build", split=numbers).command[2], "--split=a=0.8,b=0.1,c=0.25,d=1,e=0.2")
    self.assertEqual(shardpack.Job("repair", self.out, from_=["a", "b"]).command[2:4], ("--from=a", "--from=b"))

  def test_keywords_are_the_flags_of_the_program(self):
    reference = subprocess.run(["cli/pack", "man", "--as", "markdown"], check=True, stdout=subprocess.PIPE).stdout
    made = subprocess.run([sys.executable, "python/update_flags.py"], input=reference, check=True, stdout=subprocess.PIPE).stdout.decode()
    with open(os.path.join(os.path.dirname(shardpack.__file__), "_flags.py"), encoding="utf-8") as file:
      self.assertEqual(file.read(), made)

  def test_progress(self):
    seen, times, threads = [], [], set()

    def show(progress):
      seen.append(progress)
      times.append(time.monotonic())
      threads.add(threading.get_ident())

    shardpack.pack(IMAGES, self.out, progress=show, limit=100, **SLOW)
    self.assertEqual(threads, {threading.get_ident()})
    self.assertGreater(len(seen), 1)
    self.assertGreaterEqual(min(after - before for before, after in zip(times, times[1:])), 0.0999)
    last = seen[-1]
    self.assertEqual((last.stage, last.done, last.total), ("packing", 100, 100))
    self.assertGreater(last.rate, 0)
    self.assertGreater(last.bytes, 0)

  def test_progress_is_a_line(self):
    program = f"import sys; sys.modules['tqdm.auto'] = None; import shardpack; shardpack.pack({str(IMAGES)!r}, {self.out!r}, progress=True)"
    said = subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.PIPE).stderr.decode()
    self.assertRegex(said, r"\Abuild: packing 300 of 300, [\d,]+/s.*\n\Z")

  def test_an_exception_of_progress_stops_the_job_and_it_goes_on(self):
    whole = shardpack.pack(IMAGES, self.out + "-whole", **SLOW)

    def stop(progress):
      if progress.stage == "packing" and progress.done >= 100:
        raise KeyError("enough")

    with self.assertRaisesRegex(KeyError, "enough"):
      shardpack.pack(IMAGES, self.out, progress=stop, **SLOW)
    self.assertFalse(os.path.exists(os.path.join(self.out, "manifest.json")))
    report = shardpack.pack(IMAGES, self.out, **SLOW)
    self.assertGreater(report.kept_shards, 0)
    self.assertEqual(report.identity, whole.identity)

  def test_ctrl_c_stops_the_job(self):
    program = ("import signal, shardpack; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               f"shardpack.pack({str(IMAGES)!r}, {self.out!r}, progress=lambda p: print(p.done, flush=True), **{SLOW!r})")
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    self.assertIn(b"KeyboardInterrupt", said)
    # It has ended, so the folder is free.
    self.assertEqual(shardpack.pack(IMAGES, self.out, **SLOW).samples, 300)

  def test_job(self):
    job = shardpack.Job("build", IMAGES, out=self.out, limit=200, **SLOW)
    with self.assertRaisesRegex(shardpack.StateError, "the job is still running"):
      job.result()
    self.assertIn("running", repr(job))
    news = []
    while not job.done:
      progress = job.poll(0.1)
      if progress:
        news.append(progress)
    self.assertTrue(any(each.stage == "packing" for each in news))
    self.assertIsNone(job.poll())
    self.assertEqual(job.result().samples, 200)
    self.assertEqual(job.wait().samples, 200)

  def test_poll_answers_signals(self):
    job, waits = shardpack.Job("build", IMAGES, out=self.out, **SLOW), []
    while job._handle is None:  # pylint: disable=protected-access
      job.poll(0.05)

    def hangs(_handle, wait_ms, _news, _error):
      waits.append(wait_ms)
      if len(waits) > 3:
        os.kill(os.getpid(), signal.SIGUSR1)
      return _c.WAIT

    def interrupt(*_):
      raise InterruptedError("a signal's")

    before = signal.signal(signal.SIGUSR1, interrupt)
    hangs.__name__ = "shardpack_job_poll"
    with unittest.mock.patch.object(_library.library, "job_poll", hangs), self.assertRaisesRegex(InterruptedError, "a signal's"):
      job.poll(1e9)
    signal.signal(signal.SIGUSR1, before)
    self.assertEqual(waits, [_library.WAIT_MS] * 4)
    self.assertEqual(job.wait().samples, 300)

  def test_a_job_is_cancelled(self):
    job = shardpack.Job("build", IMAGES, out=self.out, **SLOW)
    job.cancel()  # also before it has begun
    with self.assertRaisesRegex(shardpack.CancelledError, "was cancelled; the same job resumes"):
      job.wait()
    with shardpack.Job("build", IMAGES, out=self.out, **SLOW) as job:
      pass
    self.assertTrue(job.done)
    self.assertEqual(shardpack.pack(IMAGES, self.out, **SLOW).samples, 300)

  def test_await(self):
    async def both():
      first = shardpack.Job("build", IMAGES, out=self.out)
      second = shardpack.Job("build", IMAGES, out=self.out + "-2")
      return await asyncio.gather(first, second)

    reports = asyncio.run(both())
    self.assertEqual(reports[0].identity, reports[1].identity)

    async def cancelled():
      job = shardpack.Job("build", IMAGES, out=self.out + "-3", **SLOW)
      task = asyncio.ensure_future(job._awaited())  # pylint: disable=protected-access
      await asyncio.sleep(0.2)
      task.cancel()
      try:
        await task
      except asyncio.CancelledError:
        return job
      return None

    with self.assertRaises(shardpack.CancelledError):
      asyncio.run(cancelled()).wait()

  def test_a_program_that_does_not_answer_is_not_waited_for_in_the_callers_thread(self):
    program = WORK / "deaf"
    program.write_text("#!/bin/sh\nexec sleep 5\n")
    program.chmod(0o700)
    before = os.environ["SHARDPACK_PACK"]
    os.environ["SHARDPACK_PACK"] = str(program)
    try:
      begin = time.monotonic()
      job = shardpack.Job("validate", self.out)
      self.assertFalse(job.done)
      self.assertIsNone(job.poll(0.05))
      self.assertLess(time.monotonic() - begin, 5)

      def interrupt(*_):
        raise InterruptedError("a signal's")

      signal.signal(signal.SIGALRM, interrupt)
      signal.setitimer(signal.ITIMER_REAL, 0.2)
      with self.assertRaisesRegex(InterruptedError, "a signal's"):
        job._starting.result()  # pylint: disable=protected-access
      self.assertLess(time.monotonic() - begin, 5)
    finally:
      os.environ["SHARDPACK_PACK"] = before

  def test_without_a_program(self):
    before = os.environ["SHARDPACK_PACK"]
    os.environ["SHARDPACK_PACK"] = "/nowhere/pack"
    try:
      with self.assertRaisesRegex(FileNotFoundError, "there is no program /nowhere/pack"):
        shardpack.validate(self.out)
    finally:
      os.environ["SHARDPACK_PACK"] = before


if __name__ == "__main__":
  unittest.main()
