"""Workers that share an OUT, and what pack commit makes of their parts: nobody's finished shards are ever lost."""

import fcntl
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

import command


class WorkersTest(command.PackTest):

  def commands(self, text):
    """The lines of `text` that are commands; the program may be named by its path."""
    lines = [re.match(r"  (?:\S*/)?pack (.*)", line) for line in text.splitlines()]
    return [f"  '{command.PACK}' {line.group(1)}" for line in lines if line]

  def rewrite(self, path, data):
    """Writes a file of the source later than out's manifest, as far as clocks of files can tell."""
    published = (self.folder / "out/manifest.json").stat().st_mtime_ns
    while True:
      path.write_bytes(data)
      if path.stat().st_mtime_ns > published:
        return

  def typed(self, text, **replaced):
    """Runs the commands that `text` tells the user to type, word for word but for a COPY or FILE that it leaves open."""
    done = None
    for line in self.commands(text):
      for word, value in replaced.items():
        line = re.sub(rf"\b{word}\b", value, line)
      done = subprocess.run(["sh", "-c", line], cwd=self.folder, capture_output=True, check=False)
      if done.returncode != 0:
        break
    self.assertIsNotNone(done, text)
    return done


class ShardsRangeTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=24)

  def test_a_range_past_the_end_touches_nothing(self):
    # The number of shards once decided what happened to be behind the end of the table of names.
    for shards in (1, 2, 8, 12, 24):
      plan, out = f"plan-{shards}", f"out-{shards}"
      self.pack("plan", "src", "--shards", str(shards), "--write", plan)
      self.pack("build", "--plan", plan, "-o", out, "--shards-range", f"0-{shards - 1}")
      before = self.contents(out)
      for part in (f"{shards}", f"0-{shards}", f"{shards - 1}-{shards + 5}", f"{shards}-{shards + 1}",
                   "0-18446744073709551615", "0-4294967295", "4294967295-99999999999999999999999"):
        refused = self.pack("build", "--plan", plan, "-o", out, "--shards-range", part, expect=2)
        self.assertIn(f"the plan has shards 0-{shards - 1}", refused.stderr)
        self.assertNotIn("run again", refused.stderr)
        self.assertEqual(before, self.contents(out), part)
      self.pack("build", "--plan", plan, "-o", "new", "--shards-range", f"{shards}-{shards}", expect=2)
      self.assertFalse((self.folder / "new").exists())
      self.pack("commit", out)

  def test_spellings_that_are_not_a_range(self):
    self.pack("plan", "src", "--shards", "8", "--write", "plan")
    for part in ("0,2", "4-6,7", "0-3,5-6", "1;2", "1 2"):
      self.assertIn("one range", self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", part, expect=2).stderr)
    for part in ("5-2", "-1", "1-", "-", "1..3", "1:3", "0x1-0x3", "+1-2", "1_0-2_0", "a-b", "1-2-3", ""):
      self.pack("build", "--plan", "plan", "-o", "out", f"--shards-range={part}", expect=2)
    self.assertFalse((self.folder / "out").exists())



class OverlapTest(WorkersTest):
  """Workers that were requeued, speculated or started twice."""

  def setUp(self):
    super().setUp()
    self.source(count=24)
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")
    self.pack("build", "--plan", "plan", "-o", "want", "-q")
    self.want = self.contents("want")

  def worker(self, out, part="0-5", *words):
    return self.start("build", "--plan", "plan", "-o", out, "--shards-range", part, "-q", *words)

  def assert_whole(self, out):
    got = self.contents(out)
    self.assertEqual(self.want.keys(), got.keys())
    self.assertEqual(self.want, got)

  def test_two_workers_on_all_shards(self):
    for turn in range(50):
      workers = [self.worker("out"), self.worker("out")]
      for each in workers:
        _, err = each.communicate(timeout=120)
        self.assertEqual(0, each.returncode, (turn, err))
      self.assertEqual([], list((self.folder / "out/.pack/stage").iterdir()), turn)
      self.pack("commit", "out", "-q")
      self.assert_whole("out")
      shutil.rmtree(self.folder / "out")

  def test_ranges_that_overlap_and_a_commit_that_is_early(self):
    for turn in range(10):
      workers = [self.worker("out", part) for part in ("0-3", "0-3", "2-5", "5")]
      codes = set()
      while any(each.poll() is None for each in workers):
        codes.add(self.pack("commit", "out", "-q", expect=None).returncode)
      for each in workers:
        _, err = each.communicate(timeout=120)
        self.assertEqual(0, each.returncode, (turn, err))
      self.assertLessEqual(codes, {0, 2, 7})  # 2: no plan yet; 7: not all are built
      self.pack("commit", "out", "-q")
      self.assert_whole("out")
      shutil.rmtree(self.folder / "out")

  def test_a_worker_that_comes_while_the_commit_removes_its_folder(self):
    self.pack("build", "--plan", "plan", "-o", "out", "-q")
    (self.folder / "out/.pack").mkdir()
    with open(self.folder / "out/.pack/lock", "w", encoding="utf-8") as lock:
      fcntl.lockf(lock, fcntl.LOCK_EX)
      late = self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "5")
      self.assertIn("is complete", late.stderr + late.stdout)
      self.pack("build", "--plan", "plan", "-o", "out", expect=5)
    self.pack("commit", "out", "-q")
    self.assert_whole("out")

  def test_a_worker_leaves_what_another_has_built(self):
    self.worker("out", "0-3").communicate(timeout=60)
    before = {name: (self.folder / "out" / name).stat().st_ino for name in self.contents("out") if name.startswith("train")}
    done = self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5")
    self.assertIn("built     2 shards", done.stderr)
    for name, inode in before.items():
      self.assertEqual(inode, (self.folder / "out" / name).stat().st_ino, name)

  def test_a_refused_commit_changes_nothing(self):
    self.worker("out", "0-1").communicate(timeout=60)
    # Another worker is at work: its stage is what a refused commit once took away.
    stage = self.folder / "out/.pack/stage/node-00000000-1-2"
    stage.mkdir()
    (stage / "train-000003.tar").write_bytes(b"half")
    before = self.contents("out")
    refused = self.pack("commit", "out", expect=7).stderr
    self.assertEqual(before, self.contents("out"))
    self.assertIn("missing 4: 2-5\n", refused)
    self.assertIn("--shards 2-5\n", refused)

  def test_what_a_commit_advises_works_word_for_word(self):
    for part in ("0", "2-3"):
      self.worker("out dir", part).communicate(timeout=60)
    shard = self.folder / "out dir/train-000003.tar"
    good = shard.read_bytes()
    shard.write_bytes(good[:700] + bytes([good[700] ^ 1]) + good[701:])
    broken = shard.read_bytes()
    refused = self.pack("commit", "out dir", expect=4).stderr
    self.assertIn("shard 3: train-000003.tar has another hash", refused)
    self.assertIn("missing 3: 1,4-5\n", refused)
    self.assertIn("--shards 1,3-5\n", refused)
    self.assertEqual(broken, shard.read_bytes(), "kept until it is built again")
    commands = [line.strip() for line in refused.splitlines() if re.match(r"  \S*pack ", line)]
    self.assertEqual(2, len(commands), refused)
    for text in commands:
      done = subprocess.run(["sh", "-c", text], cwd=self.folder, capture_output=True, check=False)
      self.assertEqual(0, done.returncode, done.stderr)
    self.assert_whole("out dir")

  def test_a_cut_and_a_missing_shard_are_named(self):
    self.worker("out").communicate(timeout=60)
    shard = self.folder / "out/train-000002.tar"
    os.truncate(shard, 512)
    (self.folder / "out/train-000004.pidx").unlink()
    refused = self.pack("commit", "out", expect=4).stderr
    self.assertIn("shard 2: train-000002.tar has 512 bytes", refused)
    self.assertIn("shard 4: train-000004.pidx is missing", refused)
    self.assertTrue(shard.exists())
    self.worker("out", "2-4").communicate(timeout=60)
    self.pack("commit", "out", "-q")
    self.assert_whole("out")

  def test_a_shard_that_may_not_be_read_is_built_again(self):
    part = ["build", "--plan", "plan", "-o", "out", "--shards-range"]
    self.pack(*part, "0-5", "-q", unprivileged=True)
    (self.folder / "out/train-000002.tar").chmod(0)
    (self.folder / "out/train-000004.pidx").chmod(0)
    refused = self.pack("commit", "out", expect=4, unprivileged=True).stderr
    self.assertIn("damaged 2: ", refused)
    self.assertIn("train-000002.tar: Permission denied", refused)
    self.assertIn("--shards 2,4\n", refused)
    self.pack(*part, "2-4", "-q", unprivileged=True)
    self.pack("commit", "out", "-q", unprivileged=True)
    self.assert_whole("out")

  def shown(self):
    return {name: data for name, data in self.contents("out").items() if "/stage/" not in name}

  def test_shards_of_two_plans_are_never_mixed(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--seed", "9", "--write", "other")
    self.worker("out", "0-2").communicate(timeout=60)
    self.pack("build", "--plan", "other", "-o", "there", "--shards-range", "3-5", "-q")
    for path in (self.folder / "there").iterdir():
      if path.is_file():
        shutil.copy(path, self.folder / "out")
    for path in (self.folder / "there/.pack").glob("journal*"):
      shutil.copy(path, self.folder / "out/.pack")
    before = self.shown()
    for words in (("commit", "out"), ("build", "--plan", "plan", "-o", "out", "--join")):
      refused = self.pack(*words, expect=5).stderr
      self.assertIn("several plans", refused)
      self.assertRegex(refused, "(?s)plan xxh3:[0-9a-f]{32}.*that of this dataset")
      self.assertIn("train-000003.tar", refused)
      self.assertEqual(before, self.shown())
    # A worker for which shards are named reads the journals of these alone, and replaces nothing either.
    shards = {path.name: path.read_bytes() for path in (self.folder / "out").glob("train*")}
    self.assertIn("nothing was replaced", self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "3-5", expect=4).stderr)
    self.assertEqual(shards, {path.name: path.read_bytes() for path in (self.folder / "out").glob("train*")})
    self.assertFalse((self.folder / "out/manifest.json").exists())

  def test_journals_without_a_plan_are_of_the_plan_there(self):
    self.worker("out").communicate(timeout=60)
    import ctypes.util  # noqa: the checksum of a line is XXH3
    lib = ctypes.util.find_library("xxhash")
    if lib is None:
      self.skipTest("no libxxhash to write an older journal with")
    xxhash = ctypes.CDLL(lib)

    class Hash(ctypes.Structure):
      _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    xxhash.XXH3_128bits.restype = Hash
    for path in (self.folder / "out/.pack").glob("journal*"):
      lines = []
      for line in filter(None, path.read_text().splitlines()):
        body = re.sub(r',"plan":"[0-9a-f]{32}"', "", line[:line.rindex(',"line":"')])
        self.assertNotIn('"plan"', body)
        digest = xxhash.XXH3_128bits(body.encode(), ctypes.c_size_t(len(body.encode())))
        lines.append(f'{body},"line":"{digest.high:016x}{digest.low:016x}"}}\n')
      path.write_text("".join(lines))
    self.pack("commit", "out", "-q")
    self.assert_whole("out")

  def test_a_killed_worker_leaves_nothing_for_ever(self):
    killed = self.worker("out", "0-5", "-j", "1", "--io-depth", "1")
    while not list((self.folder / "out").glob(".pack/stage/*/train*")):
      if killed.poll() is not None:  # too fast: once more
        shutil.rmtree(self.folder / "out")
        killed = self.worker("out", "0-5", "-j", "1", "--io-depth", "1")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    stages = os.listdir(self.folder / "out/.pack/stage")
    self.assertTrue(stages and all(f"-{boot}-{killed.pid}-" in stage for stage in stages), stages)
    # Of another machine: nobody here knows whether its run lives.
    self.write("out/.pack/stage/elsewhere-00000000-1-00000000.lock")
    self.write("out/.pack/stage/elsewhere-00000000-1-00000000/train-000000.tar", b"half")
    self.worker("out").communicate(timeout=60)
    self.assertEqual(["elsewhere-00000000-1-00000000", "elsewhere-00000000-1-00000000.lock"],
                     sorted(os.listdir(self.folder / "out/.pack/stage")))
    self.pack("commit", "out", "-q")
    self.assert_whole("out")

  def test_a_commit_that_was_killed_late_is_ended_by_the_next(self):
    self.worker("out").communicate(timeout=60)
    shutil.copytree(self.folder / "out/.pack", self.folder / "kept")
    self.pack("commit", "out", "-q")
    shutil.copytree(self.folder / "kept", self.folder / "out/.pack")
    (self.folder / "out/.pack/plan").unlink()  # it had begun to remove
    self.pack("commit", "out", "-q")
    self.assert_whole("out")
    self.worker("out").communicate(timeout=60)
    self.assert_whole("out")

  def test_a_source_that_was_not_there_is_tried_again(self):
    # An empty mount, say: what it lacked is in the source of the next run.
    (self.folder / "empty").mkdir()
    self.pack("build", "empty", "--plan", "plan", "-o", "out", "--shards-range", "2-3", "-q")
    self.pack("commit", "out", expect=7)
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "2-3", "-q")
    self.pack("build", "--plan", "plan", "-o", "out", "-q")
    self.assert_whole("out")

  def test_skips_are_judged_again_when_all_is_published(self):
    self.write("src/cat/bad.jpg", b"")
    self.pack("plan", "src", "--shards", "2", "--write", "bad")
    self.pack("build", "--plan", "bad", "-o", "out", "--shards-range", "0-1", "-q")
    self.pack("commit", "out", "--strict", expect=4)
    self.pack("commit", "out", "--max-skip", "10%", expect=3)
    self.pack("commit", "out", "--max-skip", "10%", expect=3)
    self.assertIn("1 of 25 inputs", self.pack("commit", "out", "--strict", expect=4).stderr)
    self.pack("build", "--plan", "bad", "-o", "out", "--strict", expect=4)
    self.pack("build", "--plan", "bad", "-o", "out", "--max-skip", "10%", expect=3)


class CompleteTest(WorkersTest):

  def setUp(self):
    super().setUp()
    self.source(count=12)
    self.words = ["src", "-o", "out", "--samples-per-shard", "4"]
    self.pack(*self.words)

  def test_complete_means_that_somebody_has_looked(self):
    self.assertIn("nothing to do", self.pack(*self.words).stderr)
    self.assertIn("nothing to do", self.pack("commit", "out").stderr)
    out = self.folder / "out"
    for name in ("train-000001.tar", "train-000002.pidx"):
      for damage in (lambda path: path.unlink(), lambda path: os.truncate(path, 5)):
        kept = (out / name).read_bytes()
        damage(out / name)
        for words in (self.words, ["commit", "out"]):
          refused = self.pack(*words, expect=4)
          self.assertNotIn("nothing to do", refused.stderr)
          self.assertIn(name, refused.stderr)
          self.assertIn("pack repair out", refused.stderr)
        (out / name).write_bytes(kept)
    self.pack(*self.words)

  def test_a_source_file_that_was_changed_since(self):
    path = self.folder / "src/cat/good-0002.jpg"
    data = path.read_bytes()
    self.rewrite(path, data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    refused = self.pack(*self.words, expect=5).stderr
    self.assertIn("cat/good-0002.jpg", refused)
    self.assertIn("--overwrite", refused)
    done = self.typed(refused)  # pack validate --against
    self.assertEqual(4, done.returncode, done.stderr)
    self.pack(*self.words, "--overwrite")
    self.assertIn("nothing to do", self.pack(*self.words).stderr)


  def test_a_source_file_with_an_older_time(self):
    # Newer than nothing: as `mv`, `cp -p` and archives leave it.
    path = self.folder / "src/dog/good-0003.jpg"
    data = path.read_bytes()
    self.rewrite(path, data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    os.utime(path, (10**9, 10**9))
    refused = self.pack(*self.words, expect=5).stderr
    self.assertIn("dog/good-0003.jpg", refused)
    self.assertNotIn("good-0002", refused)
    self.assertEqual(4, self.typed(refused).returncode)

  def test_a_copy_of_the_source_without_its_times(self):
    kept, fresh = self.folder / "kept", self.folder / "fresh"
    shutil.copytree(self.folder / "src", kept)  # as cp -a does
    os.rename(self.folder / "src", fresh)
    os.rename(kept, self.folder / "src")
    self.assertIn("nothing to do", self.pack(*self.words).stderr)
    for path in (self.folder / "src").rglob("*.jpg"):
      self.rewrite(path, path.read_bytes())
    refused = self.pack(*self.words, expect=5).stderr
    self.assertIn("all 12 files of the source were written after it was packed", refused)
    self.assertIn("cp -a and rsync -t", refused)
    self.assertEqual(0, self.typed(refused).returncode)

  def test_an_archive_that_was_written_again(self):
    subprocess.run(["tar", "cf", "src.tar", "src"], cwd=self.folder, check=True)
    words = ["src.tar", "-o", "of-tar"]
    identity = self.pack(*words).stdout.strip()
    self.assertIn("nothing to do", self.pack(*words).stderr)
    os.utime(self.folder / "src.tar", (10**9, 10**9))
    refused = self.pack(*words, expect=5).stderr
    self.assertIn("/src.tar", refused)
    self.assertEqual(["validate", "src.tar", "src.tar"], [shlex.split(line)[1] for line in self.commands(refused)])
    self.assertEqual(identity, self.typed(refused).stdout.decode().strip())
    self.assertIn("nothing to do", self.pack(*words).stderr)

  def test_a_manifest_without_times_is_compared_by_its_age(self):
    whole = (self.folder / "out/manifest.json").read_text()
    self.assertRegex(whole, '"times": "[0-9a-f]{32}"')
    os.utime(self.folder / "src/cat/good-0002.jpg", (10**9, 10**9))
    self.pack(*self.words, expect=5)
    self.write("out/manifest.json", self.sealed(re.sub(',\n  "times": "[0-9a-f]{32}"', "", whole)))
    self.assertIn("nothing to do", self.pack(*self.words).stderr)
    self.rewrite(self.folder / "src/cat/good-0002.jpg", (self.folder / "src/cat/good-0002.jpg").read_bytes())
    self.assertIn("cat/good-0002.jpg", self.pack(*self.words, expect=5).stderr)

  def test_a_plan_looks_at_the_source_too(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")
    words = ["build", "--plan", "plan", "-o", "out"]
    self.assertIn("nothing to do", self.pack(*words).stderr)
    path = self.folder / "src/cat/good-0002.jpg"
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    self.assertIn(f"cat/good-0002.jpg has {len(data) - 1} bytes, planned were {len(data)}", self.pack(*words, expect=5).stderr)
    path.unlink()
    holds = next(n for n in range(3) if "cat/good-0002.jpg" in self.sources_of(n))
    for part in ([], ["--shards-range", str(holds)]):
      refused = self.pack(*words, *part, expect=5).stderr
      self.assertIn("cat/good-0002.jpg is missing", refused)
      self.assertNotIn("--overwrite", refused)
    self.rewrite(path, data)
    self.assertIn("cat/good-0002.jpg", self.pack(*words, expect=5).stderr)

  def sources_of(self, shard):
    return [row["path"] for row in self.rows("out") if row["shard"] == f"train-{shard:06}.tar"]

  def test_a_late_worker_looks_at_its_part_of_the_source(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")
    words = ["build", "--plan", "plan", "-o", "out", "--shards-range"]
    for name in self.sources_of(0)[:2]:
      (self.folder / "src" / name).unlink()
    for n in (1, 2):
      said = self.pack(*words, str(n)).stderr
      self.assertIn("so have the source's files of these shards, and their times; nothing to do", said)
      self.assertNotIn("--overwrite", said)  # which a worker may not give
    self.assertIn(f"{min(self.sources_of(0)[:2])} is missing", self.pack(*words, "0", expect=5).stderr)
    for name in self.sources_of(2):
      path = self.folder / "src" / name
      self.rewrite(path, path.read_bytes())
    self.assertIn("nothing to do", self.pack(*words, "1").stderr)
    self.assertIn("all 4 files of these shards were written after it was packed", self.pack(*words, "2", expect=5).stderr)

  def test_many_files_that_differ_are_counted(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")
    names = sorted(path for path in (self.folder / "src").rglob("*.jpg"))
    for path in names[:8]:
      path.unlink()
    refused = self.pack("build", "--plan", "plan", "-o", "out", expect=5).stderr
    listed = [line.split()[0] for line in refused.splitlines() if line.endswith(" is missing")]
    self.assertEqual([str(path.relative_to(self.folder / "src")) for path in names[:5]], listed)
    self.assertIn("... and 3 more", refused)

  def test_what_a_user_has_put_there_is_no_reason_to_write(self):
    self.write("out/.pack/mine", b"mine")
    (self.folder / "out/.pack").chmod(0o555)
    for words in (self.words, ["commit", "out"]):
      self.assertIn("nothing to do", self.pack(*words, unprivileged=True).stderr)
    self.assertEqual(["mine"], os.listdir(self.folder / "out/.pack"))

  def test_the_identity_does_not_depend_on_times(self):
    before = self.contents("out")
    for path in (self.folder / "src").rglob("*.jpg"):
      os.utime(path, (10**9, 10**9))
    self.pack(*self.words[:2], "out", "--overwrite", *self.words[3:])
    after = self.contents("out")
    self.assertEqual([name for name in before if before[name] != after.get(name)], ["manifest.json"])

  def test_commit_prints_json_of_what_is_published(self):
    done = json.loads(self.pack("commit", "out", "--json").stdout)
    self.assertTrue(done["already_complete"])
    self.assertEqual(("shardpack.build/1", 3, 12), (done["schema"], done["kept_shards"], done["counts"]["packed"]))
    again = json.loads(self.pack(*self.words, "--json").stdout)
    self.assertEqual(set(done), set(again))

  def test_a_manifest_that_is_lost_or_damaged(self):
    kept = (self.folder / "out/manifest.json").read_bytes()
    for damage, words in ((None, []), (kept[:-9], []), (kept.replace(b"cat", b"cut", 1), []), (kept[:-9], ["--overwrite"])):
      (self.folder / "out/manifest.json").unlink()
      if damage:
        self.write("out/manifest.json", damage)
      before = self.contents("out")
      refused = self.pack(*self.words, *words, expect=4).stderr
      self.assertEqual(before, self.contents("out"))
      shutil.rmtree(self.folder / "copy", ignore_errors=True)
      self.pack("src", "-o", "copy", *self.words[3:])
      done = self.typed(refused, COPY="copy")
      self.assertEqual(0, done.returncode, done.stderr)
      self.assertEqual(kept, (self.folder / "out/manifest.json").read_bytes())


class WayOnTest(WorkersTest):
  """What a run that was refused tells the user to do works."""

  def setUp(self):
    super().setUp()
    self.source(count=12)
    self.words = ["src", "-o", "out dir", "--samples-per-shard", "4"]
    self.write("src/cat/bad.jpg", command.jpeg(77)[:-40])

  def good(self):
    self.write("src/cat/bad.jpg", command.jpeg(77))

  def test_an_input_that_was_skipped_and_then_fixed(self):
    refused = self.pack(*self.words, expect=4).stderr
    commands = self.commands(refused)
    self.assertEqual(2, len(commands), refused)
    self.good()
    done = subprocess.run(["sh", "-c", commands[1]], cwd=self.folder, capture_output=True, check=False)  # pack all again
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertEqual(13, self.manifest("out dir")["counts"]["packed"])
    self.assertFalse((self.folder / "out dir.pack-new").exists())

  def test_an_input_that_stays_bad(self):
    for words in ([], ["--strict"], ["--max-skip", "2%"]):
      refused = self.pack(*self.words, *words, expect=4).stderr
      commands = self.commands(refused)
      done = subprocess.run(["sh", "-c", commands[0]], cwd=self.folder, capture_output=True, check=False)  # go on without it
      self.assertEqual(3, done.returncode, done.stderr)
      self.assertIn("reused", done.stderr.decode())
      shutil.rmtree(self.folder / "out dir")

  def test_fixed_while_a_replacement_is_built(self):
    self.pack(*self.words, "--max-skip", "50%", expect=3)
    refused = self.pack(*self.words, "--strict", "--overwrite", "--seed", "3", expect=4).stderr
    self.assertIn("out dir is as it was", refused)
    self.assertIn("out dir.pack-new holds what was built to take its place", refused)
    self.good()
    commands = self.commands(refused)
    done = subprocess.run(["sh", "-c", commands[1]], cwd=self.folder, capture_output=True, check=False)
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertEqual(["out dir"], [path.name for path in self.folder.glob("out dir*")])
    self.assertEqual(13, self.manifest("out dir")["counts"]["packed"])

  def test_a_replacement_of_another_plan_is_begun_anew(self):
    self.pack(*self.words, "--max-skip", "50%", expect=3)
    self.pack(*self.words, "--strict", "--overwrite", "--seed", "3", expect=4)
    self.write("out dir.pack-new/mine", b"mine")
    self.assertIn("mine", self.pack(*self.words, "--overwrite", "--seed", "4", "--max-skip", "50%", expect=5).stderr)
    (self.folder / "out dir.pack-new/mine").unlink()
    self.pack(*self.words, "--overwrite", "--seed", "4", "--max-skip", "50%", expect=3)
    self.pack("src", "-o", "want", *self.words[3:], "--seed", "4", "--max-skip", "50%", expect=3)
    self.assertEqual(self.contents("want"), self.contents("out dir"))
    self.assertFalse((self.folder / "out dir.pack-new").exists())

  def test_a_fixed_input_after_the_first_try(self):
    self.pack(*self.words, expect=4)
    self.good()
    refused = self.pack(*self.words, expect=5).stderr
    self.assertIn("cat/bad.jpg", refused)
    self.assertEqual(0, self.typed(refused).returncode)

  def test_a_worker_names_what_it_has_skipped(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")
    done = self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-3", "-q")
    self.assertIn("cat/bad.jpg: truncated", done.stderr)
    refused = self.pack("commit", "out", expect=4).stderr
    self.assertEqual(3, self.typed(refused).returncode)


class LostPlanTest(WorkersTest):

  def setUp(self):
    super().setUp()
    self.source(count=24)
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")
    self.pack("build", "--plan", "plan", "-o", "want", "-q")
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-2", "-q")

  def test_workers_put_a_lost_or_damaged_plan_back(self):
    plan = self.folder / "out/.pack/plan"
    whole = plan.read_bytes()
    for damage in (lambda: plan.unlink(), lambda: plan.write_bytes(b""), lambda: plan.write_bytes(whole[:200]),
                   lambda: plan.write_bytes(whole[:99] + b"?" + whole[100:])):
      damage()
      self.assertIn("reused    3", self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-2").stderr)
      self.assertEqual(whole, plan.read_bytes())
    plan.unlink()
    refused = self.pack("commit", "out", expect=4).stderr
    done = self.typed(refused, FILE="plan")
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertEqual(self.contents("want"), self.contents("out"))

  def test_a_lost_plan_is_not_replaced_by_another_one(self):
    (self.folder / "out/.pack/plan").unlink()
    self.pack("plan", "src", "--samples-per-shard", "4", "--seed", "9", "--write", "other")
    before = self.contents("out")
    for part in ([], ["--shards-range", "3-5"]):
      refused = self.pack("build", "--plan", "other", "-o", "out", *part, expect=5).stderr
      self.assertIn("several plans", refused)
      self.assertIn("If the other one is what you want, the command that began it goes on with it", refused)
      self.assertIn("build it in another folder", refused)
      self.assertFalse((self.folder / "out/.pack/plan").exists())
    self.assertEqual(before, {name: data for name, data in self.contents("out").items() if name != ".pack/lock"})

  def test_workers_are_not_told_to_overwrite(self):
    other = ("plan", "src", "--samples-per-shard", "4", "--seed", "9", "--write", "other")
    self.pack(*other)
    self.pack("plan", "src", "--samples-per-shard", "4", "-f", "tfrecord", "--write", "records")
    for plan, why in (("other", "--seed was 0, is 9"), ("records", "--format was webdataset, is tfrecord")):
      refused = self.pack("build", "--plan", plan, "-o", "out", "--shards-range", "3-5", expect=5).stderr
      self.assertIn(why, refused)
      self.assertNotIn("--overwrite", refused)
      refused = self.pack("build", "--plan", plan, "-o", "out", expect=5).stderr
      self.assertIn(why, refused)
      shutil.copytree(self.folder / "out", self.folder / "kept")
      self.assertEqual(0, self.typed(refused).returncode)
      shutil.rmtree(self.folder / "out")
      os.rename(self.folder / "kept", self.folder / "out")

  def test_a_commit_says_where_the_source_has_to_be_named(self):
    os.rename(self.folder / "src", self.folder / "elsewhere")
    refused = self.pack("commit", "out", expect=7).stderr
    self.assertIn("not at", refused)
    self.assertEqual(0, self.typed(refused, SRC="elsewhere").returncode)
    want, got = self.contents("want"), self.contents("out")
    for each in (want, got):
      each.pop("manifest.json")  # it names the source
    self.assertEqual(want, got)

  def test_many_missing_ranges_are_bounded(self):
    self.pack("plan", "src", "--samples-per-shard", "1", "--write", "ones")
    for n in range(0, 24, 2):
      self.pack("build", "--plan", "ones", "-o", "many", "--shards-range", str(n), "-q")
    refused = self.pack("commit", "many", expect=7).stderr
    listed = ",".join(str(n) for n in range(1, 24, 2))
    self.assertIn(f"missing 12: {listed}\n", refused)
    self.assertIn(f"--shards {listed}\n", refused)
    self.source(name="much", count=50)
    self.pack("plan", "much", "--samples-per-shard", "1", "--write", "ones-of-much")
    for n in range(0, 50, 2):
      self.pack("build", "--plan", "ones-of-much", "-o", "more", "--shards-range", str(n), "-q")
    self.assertIn("and 5 more ranges\n", self.pack("commit", "more", expect=7).stderr)

  def test_what_a_user_has_put_into_the_folder_of_pack_stays(self):
    self.write("out/.pack/mine", b"mine")
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "3-5", "-q")
    self.assertIn(".pack/mine", self.pack("commit", "out", expect=5).stderr)
    (self.folder / "out/.pack/mine").unlink()
    self.pack("commit", "out", "-q")
    self.write("out/.pack/mine", b"mine")  # as if it had come during the commit
    self.write("out/.pack/lock")
    self.pack("commit", "out", "-q")
    self.assertEqual(["mine"], os.listdir(self.folder / "out/.pack"))
    self.pack("src", "-o", "out", "--overwrite", "--seed", "2", expect=5)
    self.assertEqual(b"mine", (self.folder / "out/.pack/mine").read_bytes())

  def test_a_journal_that_is_a_folder(self):
    (self.folder / "out/.pack/journal-x.jsonl").mkdir()
    for words in (("commit", "out"), ("build", "--plan", "plan", "-o", "out", "--join")):
      self.assertIn(".pack/journal-x.jsonl is not a file", self.pack(*words, expect=5).stderr)

  def test_the_names_are_those_of_the_plan_that_is_there(self):
    # A worker of another plan was killed before it had published that.
    shutil.rmtree(self.folder / "out")
    self.write("out/.pack/made", b"NOTES.txt\n")
    (self.folder / "out/.pack/stage").mkdir()
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-2", "-q")
    self.assertIn("train-000005.tar", (self.folder / "out/.pack/made").read_text())
    self.assertNotIn("NOTES", (self.folder / "out/.pack/made").read_text())


class OverwriteTest(WorkersTest):

  def setUp(self):
    super().setUp()
    self.source(count=12)
    self.words = ["src", "-o", "out", "--samples-per-shard", "3", "--overwrite"]
    self.pack("src", "-o", "want", "--samples-per-shard", "3")
    self.want = self.contents("want")

  def test_what_no_manifest_lists_stays(self):
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    for name in ("NOTES.txt", "weights/best.pt", ".git/config", "train-000000.tar.bak", "a b", ".hidden"):
      self.write(f"out/{name}", b"mine")
      before = self.contents("out")
      refused = self.pack(*self.words, expect=5).stderr
      self.assertIn(name.split("/")[0], refused)
      self.assertEqual(before, self.contents("out"))
      self.assertFalse((self.folder / "out.pack-new").exists())
      shutil.rmtree(self.folder / "out" / name.split("/")[0], ignore_errors=True)
      (self.folder / "out" / name).unlink(missing_ok=True)
    (self.folder / "out/empty").mkdir()
    self.assertIn("empty/", self.pack(*self.words, expect=5).stderr)
    (self.folder / "out/empty").rmdir()
    self.pack(*self.words)
    self.assertEqual(self.want, self.contents("out"))

  def test_all_that_is_in_the_way_is_named_at_once(self):
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    names = [f"note-{n}.txt" for n in range(12)]
    for name in names:
      self.write(f"out/{name}", b"mine")
    refused = self.pack(*self.words, expect=5).stderr
    self.assertIn("holds what pack has not made: 12 files and folders:\n  note-0.txt\n  note-1.txt\n", refused)
    for name in names:
      self.assertIn(f"  {name}\n", refused)
      (self.folder / "out" / name).unlink()
    self.pack(*self.words)

  def test_what_has_taken_the_place_of_a_shard_stays(self):
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    for name in ("train-000001.tar", "train-000002.pidx"):
      path = self.folder / "out" / name
      path.write_bytes(b"mine")
      before = self.contents("out")
      refused = self.pack(*self.words, expect=5).stderr
      self.assertIn(f"{name} has 4 bytes, the manifest says ", refused)
      self.assertIn("Move it away and run again", refused)
      self.assertEqual(before, self.contents("out"))
      self.assertFalse((self.folder / "out.pack-new").exists())
      path.unlink()
    self.pack(*self.words)
    self.assertEqual(self.want, self.contents("out"))

  def test_an_unfinished_build_is_replaced_but_not_what_lies_beside_it(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-1", "-q")
    self.write("out/NOTES.txt", b"mine")
    self.assertIn("NOTES.txt", self.pack(*self.words, expect=5).stderr)
    (self.folder / "out/NOTES.txt").unlink()
    self.pack(*self.words)
    self.assertEqual(self.want, self.contents("out"))

  def test_a_file_that_comes_during_the_build_stays(self):
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    self.write("out.pack-new/keep.txt", b"mine")
    self.assertIn("keep.txt", self.pack(*self.words, expect=5).stderr)
    self.assertEqual(b"mine", (self.folder / "out.pack-new/keep.txt").read_bytes())

  def assert_beside_stays(self, name="out.pack-new"):
    """An --overwrite is refused, changes nothing there, and does not tell the user to remove it."""
    before = self.contents(name)
    refused = self.pack(*self.words, expect=5).stderr
    self.assertEqual(before, self.contents(name))
    self.assertIn("out.pack-new", refused)
    self.assertNotIn("remove that folder", refused)
    self.assertNotIn("goes on with it", refused)
    return refused

  def test_what_lies_beside_stays_unless_this_command_began_it(self):
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    beside = self.folder / "out.pack-new"
    # A dataset, of another plan and of this one; one that has more in it; a build of workers.
    for samples in ("6", "3"):
      self.pack("src", "-o", "out.pack-new", "--samples-per-shard", samples)
      self.assertIn("manifest.json", self.assert_beside_stays())
      self.write("out.pack-new/thesis.txt", b"mine")
      self.assertNotIn("pack repair", self.assert_beside_stays())
      shutil.rmtree(beside)
    for samples in ("6", "3"):
      self.pack("plan", "src", "--samples-per-shard", samples, "--write", f"plan-{samples}")
      self.pack("build", "--plan", f"plan-{samples}", "-o", "out.pack-new", "--shards-range", "0")
      self.assert_beside_stays()
      shutil.rmtree(beside)
    self.write("out.pack-new/photo.jpg", b"mine")
    self.assertIn("photo.jpg", self.assert_beside_stays())
    os.rename(beside, self.folder / "photos")
    beside.symlink_to("photos")
    self.assertIn("link", self.assert_beside_stays("photos"))
    beside.unlink()
    beside.write_bytes(b"mine")
    self.assert_beside_stays("photos")
    beside.unlink()
    self.pack(*self.words)
    self.assertEqual(self.want, self.contents("out"))

  def test_what_was_begun_for_another_out_stays(self):
    self.pack("src", "-o", "other", "--samples-per-shard", "4")
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    self.pack("src", "-o", "other", "--samples-per-shard", "3", "--overwrite", "--expect", "xxh3:" + "0" * 32, expect=4)
    os.rename(self.folder / "other.pack-new", self.folder / "out.pack-new")
    self.assert_beside_stays()

  def test_an_empty_folder_beside_is_built_in(self):
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    (self.folder / "out.pack-new/.pack/stage").mkdir(parents=True)  # as of a run that was killed early
    self.pack(*self.words)
    self.assertEqual(self.want, self.contents("out"))

  def test_two_at_once(self):
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    begun = self.folder / "out.pack-new/.pack/plan"
    while True:
      first = self.start(*self.words)
      while first.poll() is None and not begun.exists():
        pass
      first.send_signal(signal.SIGSTOP)
      try:
        met = first.poll() is None and begun.exists()
        if met:
          refused = self.pack(*self.words, expect=5).stderr
      finally:
        first.send_signal(signal.SIGCONT)
      _, err = first.communicate(timeout=60)
      self.assertEqual(0, first.returncode, err)
      if met:  # else it was too fast
        break
    self.assertIn("locked by another run", refused)
    self.assertNotIn("remove that folder", refused)
    self.assertNotIn("goes on with it", refused)
    self.assertEqual(self.want, self.contents("out"))

  def test_an_out_that_is_a_link_stays_one(self):
    self.pack("src", "-o", "real/out", "--samples-per-shard", "4")
    (self.folder / "out").symlink_to("real/out")
    self.pack(*self.words)
    self.assertTrue((self.folder / "out").is_symlink())
    self.assertEqual(self.want, self.contents("real/out"))
    self.assertEqual(["out"], os.listdir(self.folder / "real"))


class HostileFilesTest(WorkersTest):

  def setUp(self):
    super().setUp()
    self.source(count=12)
    self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan")

  def test_nothing_was_begun(self):
    (self.folder / "ro").mkdir(mode=0o500)
    failed = self.pack("src", "-o", "ro/x", expect=6, unprivileged=True).stderr
    self.assertNotIn("run again", failed)
    self.assertNotIn("kept", failed)

  def test_a_plan_of_another_version(self):
    data = bytearray((self.folder / "plan").read_bytes())
    data[8] += 1
    self.write("damaged", bytes(data))
    self.pack("build", "--plan", "damaged", "-o", "out", expect=4)
    self.assertFalse((self.folder / "out").exists())
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0", "-q")
    self.write("out/.pack/plan", bytes(data))
    before = self.contents("out")
    refused = self.pack("commit", "out", expect=4).stderr
    self.assertEqual(before, self.contents("out"))
    self.assertIn("out/.pack/plan: ", refused)
    self.assertEqual(0, self.typed(refused, FILE="plan").returncode)

  def test_journals_with_hostile_names(self):
    self.write("precious.tar", b"mine")
    self.pack("build", "--plan", "plan", "-o", "out", "-q", "--shards-range", "0-2")
    journal = next((self.folder / "out/.pack").glob("journal-*"))
    text = journal.read_text()
    for name in ("../precious.tar", "", "/etc/passwd", "a" * 4096, "\udcff", ".pack/plan"):
      # The line's checksum no longer fits: as if the line were not there.
      journal.write_text(text.replace("train-000001.tar", name), errors="surrogateescape")
      refused = self.pack("commit", "out", expect=7).stderr
      self.assertIn("missing 1: ", refused)
      self.assertEqual(b"mine", (self.folder / "precious.tar").read_bytes())
    journal.write_text(text)
    self.pack("commit", "out")


class GivenPlanTest(WorkersTest):
  """A plan does not change with its source: what leads on where its inputs are not as planned."""

  def setUp(self):
    super().setUp()
    self.source(count=24)
    for path in (self.folder / "src").rglob("*.jpg"):
      os.utime(path, (10**9, 10**9))
    self.plan("plan", "--samples-per-shard", "4")
    self.pack("build", "--plan", "plan", "-o", "want", "-q")
    self.want = self.contents("want")

  def plan(self, name, *words, **options):
    return self.pack("plan", "src", *words, "--write", name, **options)

  def assert_no_dead_end(self, text):
    self.assertIn("make a new plan with pack plan, and build it in another folder", text)
    self.assertNotIn("--overwrite", text)

  def test_a_finished_dataset_whose_source_has_other_times(self):
    os.utime(self.folder / "src/dog/good-0001.jpg", (1, 1))
    self.assert_no_dead_end(self.pack("build", "--plan", "plan", "-o", "want", expect=5).stderr)
    self.assertEqual(self.want, self.contents("want"))

  def test_shards_that_were_built_before_their_files_were_changed(self):
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5", "-q")
    path = self.folder / "src/dog/good-0001.jpg"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    for words in (("--shards-range", "0-5"), ()):
      refused = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=5).stderr
      self.assertIn("dog/good-0001.jpg", refused)
      self.assert_no_dead_end(refused)
    self.assertEqual(0, self.typed(refused).returncode)  # the commit
    self.assertEqual(self.want, self.contents("out"))

  def test_a_worker_that_comes_to_a_dataset_with_skips(self):
    (self.folder / "src/dog/good-0001.jpg").unlink()
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5", "-q")
    self.pack("commit", "out", "--max-skip", "10%", "-q", expect=3)
    done = self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0", expect=None)
    self.assertNotIn("--max-skip", done.stderr)
    refused = self.pack("commit", "out", expect=4).stderr
    self.assertEqual(3, self.typed(refused).returncode, refused)

  def test_a_finished_dataset_whose_inputs_were_not_as_planned(self):
    path = self.folder / "src/dog/good-0001.jpg"
    data = path.read_bytes()

    def of_the_size():
      path.write_bytes(bytes([data[0]]) + data[:0:-1])
    for lose in (path.unlink, lambda: path.write_bytes(data + b"more"), of_the_size):
      for workers in (True, False):
        with self.subTest(lose, workers=workers):
          shutil.rmtree(self.folder / "out", ignore_errors=True)
          path.write_bytes(data)
          os.utime(path, (10**9, 10**9))
          lose()
          build = ["build", "--plan", "plan", "-o", "out"]
          if workers:
            self.pack(*build, "--shards-range", "0-5", "-q")
            self.pack("commit", "out", "--max-skip", "10%", "-q", expect=3)
          else:
            self.pack(*build, "--max-skip", "10%", "-q", expect=3)
          before = self.contents("out")
          for code, words in ((3, [*build, "--max-skip", "10%"]), (0, [*build, "--shards-range", "0-5"]),
                              (3, ["commit", "out", "--max-skip", "10%"])):
            self.assertIn("nothing to do", self.pack(*words, expect=code).stderr)
          self.typed(self.pack(*build, expect=4).stderr)
          self.assertEqual(before, self.contents("out"))
          os.utime(self.folder / "src/cat/good-0000.jpg")
          self.assertIn("cat/good-0000.jpg", self.pack(*build, "--max-skip", "10%", expect=5).stderr)
          os.utime(self.folder / "src/cat/good-0000.jpg", (10**9, 10**9))

  def test_a_bad_file_that_was_fixed_after_it_was_skipped(self):
    path = self.write("src/dog/bad.jpg", b"no image")
    self.plan("bad", "--samples-per-shard", "4")
    build = ["build", "--plan", "bad", "-o", "out", "--max-skip", "10%"]
    self.pack(*build, "-q", expect=3)
    self.assertIn("nothing to do", self.pack(*build, expect=3).stderr)
    path.write_bytes(command.jpeg(90))
    self.assertIn("dog/bad.jpg has ", self.pack(*build, expect=5).stderr)

  def test_a_plan_that_workers_could_not_build(self):
    shutil.make_archive(self.folder / "src", "tar", self.folder / "src")
    self.assertIn("cannot be shared", self.pack("plan", "src.tar", "--write", "p", expect=2).stderr)
    self.assertFalse((self.folder / "p").exists())

  def away(self, *names):
    for name in names:
      (self.folder / "away" / name).parent.mkdir(parents=True, exist_ok=True)
      (self.folder / "src" / name).rename(self.folder / "away" / name)

  def back(self):
    for path in (self.folder / "away").rglob("*.jpg"):
      path.rename(self.folder / "src" / path.relative_to(self.folder / "away"))

  def test_a_worker_with_an_empty_mount(self):
    (self.folder / "empty").mkdir()
    self.pack("build", "empty", "--plan", "plan", "-o", "out", "--shards-range", "0-1", "-q")
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "2-5", "-q")
    refused = self.pack("commit", "out", expect=4).stderr
    self.assertIn("every sample of shard train-000000.tar, train-000001.tar was bad", refused)
    self.assertIn("--shards 0-1\n", refused)
    self.assertNotIn("--max-skip", refused)
    self.assert_no_dead_end(refused)
    self.assertEqual(0, self.typed(refused).returncode)
    self.assertEqual(self.want, self.contents("out"))

  def test_a_run_with_an_empty_mount(self):
    (self.folder / "empty").mkdir()
    refused = self.pack("build", "empty", "--plan", "plan", "-o", "out", expect=4).stderr
    self.assertIn("--shards 0-5\n", refused)
    self.assert_no_dead_end(refused)
    self.assertEqual(0, self.typed(refused).returncode)
    self.assertEqual(self.want, self.contents("out"))

  def test_a_class_that_is_gone(self):
    self.plan("sorted", "--shards", "12", "--no-shuffle")
    (self.folder / "src/cat").rename(self.folder / "cat")
    refused = self.pack("build", "--plan", "sorted", "-o", "out", expect=4).stderr
    self.assertNotIn("--max-skip", refused)
    self.assert_no_dead_end(refused)
    (self.folder / "cat").rename(self.folder / "src/cat")
    self.assertEqual(0, self.typed(refused).returncode)

  def test_inputs_that_are_gone_for_a_while(self):
    for words in (["--shards-range", "0-5"], []):
      self.away("cat/good-0000.jpg")
      done = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=0 if words else 4)
      refused = self.pack("commit", "out", expect=4).stderr if words else done.stderr
      self.assertIn("--max-skip 5%", refused)
      self.assertIn("--shards ", refused)
      self.assert_no_dead_end(refused)
      self.back()
      self.assertEqual(0, self.typed(refused).returncode, refused)
      self.assertEqual(self.want, self.contents("out"))
      shutil.rmtree(self.folder / "out")

  def test_inputs_that_are_something_else_for_a_while(self):
    path, aside = self.folder / "src/cat/good-0000.jpg", self.folder / "aside.jpg"
    other = self.write("elsewhere/1.jpg", command.jpeg(500))
    stand_ins = {"not-regular": path.mkdir, "dangling": lambda: path.symlink_to("nothing"),
                 "outside-root": lambda: path.symlink_to(other), "symlink-loop": lambda: path.symlink_to(path.name)}
    for reason, stand_in in stand_ins.items():
      for words in (["--shards-range", "0-5"], []):
        with self.subTest(reason=reason, words=words):
          path.rename(aside)
          stand_in()
          done = self.pack("build", "--plan", "plan", "-o", "out", *words, expect=0 if words else 4)
          refused = self.pack("commit", "out", expect=4).stderr if words else done.stderr
          self.assertIn(f"cat/good-0000.jpg: {reason}", refused)
          self.assertIn("--shards ", refused)
          self.assert_no_dead_end(refused)
          if reason == "outside-root":
            self.assertIn("the plan decides these, give them to pack plan --write: outside-root: --follow", refused)
          path.unlink() if path.is_symlink() else path.rmdir()
          aside.rename(path)
          done = self.typed(refused)
          self.assertEqual(0, done.returncode, done.stderr)
          self.assertEqual(self.want, self.contents("out"))
        shutil.rmtree(self.folder / "out", ignore_errors=True)

  def test_a_damaged_plan_file_is_named(self):
    whole = (self.folder / "plan").read_bytes()
    for data, why in ((whole[:99] + bytes([whole[99] ^ 1]) + whole[100:], "does not match its own hash"), (b"{}", "not a plan file")):
      self.write("a plan", data)
      refused = self.pack("build", "--plan", "a plan", "-o", "out", expect=4).stderr
      self.assertIn("--plan a plan: ", refused)
      self.assertIn(why, refused)
      self.assertFalse((self.folder / "out").exists())

  def test_inputs_that_are_gone_for_good(self):
    self.away("cat/good-0000.jpg")
    refused = self.pack("build", "--plan", "plan", "-o", "out", expect=4).stderr
    commands = self.commands(refused)
    done = subprocess.run(["sh", "-c", commands[-1]], cwd=self.folder, capture_output=True, check=False)
    self.assertEqual(3, done.returncode, done.stderr)

  def test_in_place_of_a_dataset(self):
    shutil.copytree(self.folder / "want", self.folder / "out")
    self.plan("other", "--samples-per-shard", "6")
    self.away("cat/good-0000.jpg")
    refused = self.pack("build", "--plan", "other", "-o", "out", "--overwrite", expect=4).stderr
    self.assertIn("built again by the same command", refused)
    self.back()
    self.pack("build", "--plan", "other", "-o", "out", "--overwrite")

  def test_a_folder_that_could_not_be_listed(self):
    self.write("src/hidden/one.jpg", command.jpeg(78))
    (self.folder / "src/hidden").chmod(0)
    for words in ([], ["-q"]):
      done = self.plan(f"partial{len(words)}", "--samples-per-shard", "4", *words, unprivileged=True)
      self.assertIn("warning: hidden: the folder cannot be listed", done.stderr.replace("\n", " "))
    notes = json.loads(self.pack("plan", "src", "--json", unprivileged=True).stdout)["notes"]
    self.assertTrue(any("hidden: the folder cannot be listed" in note for note in notes), notes)
    (self.folder / "src/hidden").chmod(0o755)
    refused = self.pack("build", "--plan", "partial0", "-o", "out", expect=4).stderr
    self.assert_no_dead_end(refused)
    self.assertEqual(3, self.typed(refused).returncode)

  def test_a_file_that_was_empty_when_it_was_planned(self):
    late = self.write("src/cat/late.jpg", b"")
    self.plan("early")
    late.write_bytes(command.jpeg(99))
    bytes_now = late.stat().st_size
    for words in (["--strict"], ["--max-skip", "50%"]):
      done = self.pack("build", "--plan", "early", "-o", "out", *words, expect=4 if words[0] == "--strict" else 3)
      self.assertRegex(done.stderr, rf"cat/late.jpg: changed.*listed with 0 bytes, now {bytes_now}")
      if words[0] == "--strict":
        self.assert_no_dead_end(done.stderr)

  def test_a_copy_without_times(self):
    shutil.copytree(self.folder / "src", self.folder / "copy", copy_function=shutil.copyfile)
    for words in (["--shards-range", "2-3"], []):
      refused = self.pack("build", "copy", "--plan", "plan", "-o", "out", *words, expect=5).stderr
      self.assertIn(f"all {8 if words else 24} files of these shards in copy have the sizes, but not the times", refused)
      self.assertIn("cp -a", refused)
      self.assertEqual([], list((self.folder / "out").glob("train*")))
      self.assertEqual([], [path for path in (self.folder / "out/.pack/stage").iterdir()])
    subprocess.run(["cp", "-a", "src/.", "copy"], cwd=self.folder, check=True)
    self.pack("build", "copy", "--plan", "plan", "-o", "out", "-q")

  def test_files_that_were_written_again_are_no_copy(self):
    for name in ("cat/good-0000.jpg", "dog/good-0001.jpg"):
      os.utime(self.folder / "src" / name)
    self.pack("build", "--plan", "plan", "-o", "out", "--max-skip", "50%", expect=3)
    self.assertEqual({"cat/good-0000.jpg": "changed", "dog/good-0001.jpg": "changed"}, self.skips())

  def test_flags_that_a_worker_cannot_keep(self):
    for words in (["--expect", "xxh3:" + 32 * "0"], ["--strict"], ["--max-skip", "2%"]):
      refused = self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-1", *words, expect=2).stderr
      self.assertIn("give it to pack commit", refused)
    self.assertFalse((self.folder / "out").exists())

  def test_a_share_that_was_given_before(self):
    self.away("cat/good-0000.jpg")
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5")
    for words in (["--max-skip", "0"], ["--max-skip=1%"], ["--strict"]):
      refused = self.pack("commit", *words, "out", "-q", expect=4).stderr
      self.assertRegex(refused, r"commit out -q --max-skip 5%")

  def test_all_that_pack_noted_is_lost(self):
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "0-5", "-q")
    shutil.rmtree(self.folder / "out/.pack")
    for words in (["commit", "out"], ["build", "--plan", "plan", "-o", "out"],
                  ["build", "--plan", "plan", "-o", "out", "--overwrite"]):
      self.assertIn("remove the folder by hand and build again", self.pack(*words, expect=4).stderr)


if __name__ == "__main__":
  command.main()
