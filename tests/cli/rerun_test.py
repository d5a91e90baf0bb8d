"""The same command again: on a dataset that is complete, on one whose source has changed, and with --overwrite."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess

import command
import workers


class CompleteTest(workers.WorkersTest):

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


class WayOnTest(workers.WorkersTest):
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

  def test_an_input_that_is_mended_after_it_was_left_out(self):
    self.pack(*self.words, "--max-skip", "50%", expect=3)
    self.good()
    self.assertIn("files differ (13 were listed, 13 are now); some were skipped then, see skipped.jsonl, and may be mended",
                  self.pack(*self.words, expect=5).stderr)

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
    as_it_was = self.pack(*self.words, "--max-skip", "50%", expect=3).stderr
    self.assertIn("out dir.pack-new holds what an interrupted --overwrite has built", as_it_was)
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


class OverwriteTest(workers.WorkersTest):

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


if __name__ == "__main__":
  command.main()
