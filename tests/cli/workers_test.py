"""Workers that share an OUT, and what pack commit makes of their parts: nobody's finished shards are ever lost."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import command
import workers


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


class OverlapTest(workers.WorkersTest):
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
    self.assertIn("several plans", self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "3-5", expect=5).stderr)
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
    # What a source lacked is in that of the next run.
    first = json.loads(self.pack("ls", "want", "--json").stdout.splitlines()[8])["path"]
    self.write(f"torn/{first}", (self.folder / "src" / first).read_bytes())
    shutil.copystat(self.folder / "src" / first, self.folder / "torn" / first)
    self.pack("build", "torn", "--plan", "plan", "-o", "out", "--shards-range", "2-3", "-q")
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


class LostPlanTest(workers.WorkersTest):

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


class HostileFilesTest(workers.WorkersTest):

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


if __name__ == "__main__":
  command.main()
