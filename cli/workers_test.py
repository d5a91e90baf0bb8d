"""Workers that share an OUT, and what pack commit makes of their parts: nobody's finished shards are ever lost."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import command


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



class OverlapTest(command.PackTest):
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
      self.assertLessEqual(codes, {0, 2, 5})  # 2: no plan yet; 5: not all are built
      self.pack("commit", "out", "-q")
      self.assert_whole("out")
      shutil.rmtree(self.folder / "out")

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
    refused = self.pack("commit", "out", expect=5).stderr
    self.assertEqual(before, self.contents("out"))
    self.assertIn("4 of 6 shards are not built yet", refused)
    self.assertIn("Ranges to build: 2-5", refused)

  def test_what_a_commit_advises_works_word_for_word(self):
    for part in ("0", "2-3"):
      self.worker("out dir", part).communicate(timeout=60)
    shard = self.folder / "out dir/train-000003.tar"
    good = shard.read_bytes()
    shard.write_bytes(good[:700] + bytes([good[700] ^ 1]) + good[701:])
    broken = shard.read_bytes()
    refused = self.pack("commit", "out dir", expect=4).stderr
    self.assertIn("shard 3: train-000003.tar has another hash", refused)
    self.assertIn("3 of 6 shards are not built yet", refused)
    self.assertIn("Ranges to build: 1-1 3-5", refused)
    self.assertEqual(broken, shard.read_bytes(), "kept until it is built again")
    for _ in range(2):
      commands = [line.strip() for line in refused.splitlines() if line.startswith("  pack ")]
      self.assertEqual(2, len(commands), refused)
      for text in commands:
        done = subprocess.run(["sh", "-c", text.replace("pack", f"'{command.PACK}'", 1)], cwd=self.folder,
                              capture_output=True, check=False)
      refused = done.stderr.decode()
    self.assertEqual(0, done.returncode, refused)
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

  def test_shards_of_two_plans_are_never_mixed(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--seed", "9", "--write", "other")
    self.worker("out", "0-2").communicate(timeout=60)
    self.pack("build", "--plan", "other", "-o", "there", "--shards-range", "3-5", "-q")
    for path in (self.folder / "there").iterdir():
      if path.is_file():
        shutil.copy(path, self.folder / "out")
    for path in (self.folder / "there/.pack").glob("journal*"):
      shutil.copy(path, self.folder / "out/.pack")
    before = self.contents("out")
    for words in (("commit", "out"), ("build", "--plan", "plan", "-o", "out", "--shards-range", "3-5")):
      refused = self.pack(*words, expect=5).stderr
      self.assertIn("several plans", refused)
      self.assertRegex(refused, "(?s)plan xxh3:[0-9a-f]{32}.*that of this dataset")
      self.assertIn("train-000003.tar", refused)
      self.assertEqual({name: data for name, data in before.items() if "/stage/" not in name},
                       {name: data for name, data in self.contents("out").items() if "/stage/" not in name})
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
    self.pack("build", "empty", "--plan", "plan", "-o", "out", "--shards-range", "2-3", "-q", expect=3)
    self.pack("commit", "out", expect=5)
    self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", "2-3", "-q")
    self.pack("build", "--plan", "plan", "-o", "out", "-q")
    self.assert_whole("out")

  def test_skips_are_judged_again_when_all_is_published(self):
    self.write("src/cat/bad.jpg", b"")
    self.pack("plan", "src", "--shards", "2", "--write", "bad")
    self.pack("build", "--plan", "bad", "-o", "out", "--shards-range", "0-1", "-q", expect=3)
    self.pack("commit", "out", "--strict", expect=4)
    self.pack("commit", "out", "--max-skip", "10%", expect=3)
    self.pack("commit", "out", "--max-skip", "10%", expect=3)
    self.assertIn("1 of 25 inputs", self.pack("commit", "out", "--strict", expect=4).stderr)
    self.pack("build", "--plan", "bad", "-o", "out", "--strict", expect=4)
    self.pack("build", "--plan", "bad", "-o", "out", "--max-skip", "10%", expect=3)


class CompleteTest(command.PackTest):

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
    path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    published = (self.folder / "out/manifest.json").stat().st_mtime_ns
    os.utime(self.folder / "out/manifest.json", ns=(published - 10**9, published - 10**9))
    refused = self.pack(*self.words, expect=5).stderr
    self.assertIn("cat/good-0002.jpg", refused)
    self.assertIn("--overwrite", refused)
    advised = [line.strip() for line in refused.splitlines() if line.startswith("  pack validate")]
    self.assertEqual(1, len(advised), refused)
    done = subprocess.run(["sh", "-c", advised[0].replace("pack", f"'{command.PACK}'", 1)], cwd=self.folder,
                          capture_output=True, check=False)
    self.assertEqual(4, done.returncode, done.stderr)
    self.pack(*self.words, "--overwrite")
    self.assertIn("nothing to do", self.pack(*self.words).stderr)


class OverwriteTest(command.PackTest):

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

  def test_killed_after_the_exchange(self):
    """What a run leaves that was killed while the old dataset was being removed."""
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    old = self.contents("out")
    for removed in range(len(old) + 1):
      shutil.rmtree(self.folder / "out")
      shutil.copytree(self.folder / "want", self.folder / "out")
      self.write("out/.pack/replaced", ("\n".join(sorted(old)) + "\n").encode())
      self.write("out/.pack/lock")
      for name in sorted(old)[removed:]:
        self.write(f"out.pack-new/{name}", old[name])
      self.pack(*self.words)
      self.assertEqual(self.want, self.contents("out"))
      self.assertFalse((self.folder / "out.pack-new").exists())

  def test_an_out_that_is_a_link_stays_one(self):
    self.pack("src", "-o", "real/out", "--samples-per-shard", "4")
    (self.folder / "out").symlink_to("real/out")
    self.pack(*self.words)
    self.assertTrue((self.folder / "out").is_symlink())
    self.assertEqual(self.want, self.contents("real/out"))
    self.assertEqual(["out"], os.listdir(self.folder / "real"))


class HostileFilesTest(command.PackTest):

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
    self.pack("commit", "out", expect=4)
    self.assertEqual(before, self.contents("out"))

  def test_journals_with_hostile_names(self):
    self.write("precious.tar", b"mine")
    self.pack("build", "--plan", "plan", "-o", "out", "-q", "--shards-range", "0-2")
    journal = next((self.folder / "out/.pack").glob("journal-*"))
    text = journal.read_text()
    for name in ("../precious.tar", "", "/etc/passwd", "a" * 4096, "\udcff", ".pack/plan"):
      # The line's checksum no longer fits: as if the line were not there.
      journal.write_text(text.replace("train-000001.tar", name), errors="surrogateescape")
      refused = self.pack("commit", "out", expect=5).stderr
      self.assertIn("1 of 3 shards", refused)
      self.assertEqual(b"mine", (self.folder / "precious.tar").read_bytes())
    journal.write_text(text)
    self.pack("commit", "out")


if __name__ == "__main__":
  command.main()
