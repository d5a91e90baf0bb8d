"""The program from outside: every exit code, typing errors, help, stdout and stderr, each verb on what build made."""

import io
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import tarfile
import time

import command
from command import TESTDATA, jpeg

VERBS = ["build", "plan", "status", "commit", "validate", "info", "ls", "cat", "extract", "completions", "man"]


class ExitCodeTest(command.PackTest):

  def test_0_done(self):
    self.source()
    done = self.pack("src", "-o", "out", expect=0)
    self.assertRegex(done.stdout, r"\Adataset xxh3:[0-9a-f]{32}\n\Z")
    self.assertIn("packed    20 of 20 images", done.stderr)
    self.assertIn("pack validate out", done.stderr)
    self.assertIn("--no-shuffle", done.stderr)
    self.pack("validate", "out", expect=0)

  def test_2_usage(self):
    self.source()
    self.assertIn("Usage", self.pack(expect=2).stderr)
    self.assertIn("pack src -o src-shards", self.pack("src", expect=2).stderr)

  def test_3_skipped(self):
    self.source(count=200)
    self.write("src/cat/zero.jpg")
    done = self.pack("src", "-o", "out", expect=3)
    self.assertIn("zero.jpg", done.stderr)
    self.assertEqual({"cat/zero.jpg": "empty"}, self.skips())
    self.pack("src", "-o", "out", expect=3)  # complete already: still 3
    self.pack("validate", "out", expect=0)

  def test_4_too_many_bad(self):
    self.source(count=20)
    self.write("src/cat/zero.jpg")
    refused = self.pack("src", "-o", "out", expect=4)
    self.assertIn("cat/zero.jpg", refused.stderr)
    self.assertIn("--max-skip", refused.stderr)
    self.assert_nothing_published()
    self.pack("src", "-o", "out", "--max-skip", "10%", expect=3)  # the journal was kept

  def test_4_damage(self):
    self.source()
    self.pack("src", "-o", "out")
    shard = next((self.folder / "out").glob("*.tar"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.chmod(0o644)
    shard.write_bytes(data)
    found = self.pack("validate", "out", expect=4)
    self.assertIn("error", found.stdout)
    self.assertGreater(json.loads(self.pack("validate", "out", "--json", expect=4).stdout)["errors"], 0)

  def test_4_expect(self):
    self.source()
    self.pack("src", "-o", "out", "--expect", "xxh3:" + "0" * 32, expect=4)
    self.assert_nothing_published()
    identity = self.pack("src", "-o", "other").stdout.split()[1]
    self.pack("src", "-o", "out", "--expect", identity, expect=0)
    # Also where nothing is left to do.
    for words in ([], ["--compare"], ["--json"], ["--report"]):
      self.assertIn("--expect says", self.pack("src", "-o", "out", "--expect", "xxh3:" + "0" * 32, *words, expect=4).stderr)
    said = self.pack("src", "-o", "out", "--expect", identity).stderr
    self.assertRegex(said, "(?m)^holds +20 of 20 images")
    self.assertNotIn("packed    ", said)

  def test_4_a_shard_that_vanished_meanwhile(self):
    self.source(count=3000)
    process = self.start("src", "-o", "out", "--samples-per-shard", "2", "-q")
    shard = self.folder / "out/train-000000.tar"
    deadline = time.monotonic() + 30
    while not (self.folder / "out/train-000000.pidx").exists() and time.monotonic() < deadline:
      time.sleep(0.001)
    shard.unlink()
    _, err = process.communicate(timeout=60)
    self.assertEqual(4, process.returncode, err)
    self.assertIn("train-000000.tar is missing", err.decode())
    self.assert_nothing_published()
    self.pack("src", "-o", "out", "--samples-per-shard", "2", "-q")
    self.pack("validate", "out")

  def test_5_conflict(self):
    self.source()
    self.write("out/notes.txt", b"mine")
    self.assertIn("notes.txt", self.pack("src", "-o", "out", expect=5).stderr)
    self.assertEqual({"notes.txt": b"mine"}, self.contents())
    self.pack("src", "-o", "other")
    self.assertIn("seed", self.pack("src", "-o", "other", "--seed", "1", expect=5).stderr)
    self.pack("src", "-o", "other", "--seed", "1", "--overwrite", expect=0)

  def test_6_no_space(self):
    self.source(count=60)
    refused = self.pack("src", "-o", "out", limits=[(resource.RLIMIT_FSIZE, 16384)], expect=6)
    self.assertIn("run again", refused.stderr)
    self.assert_nothing_published()
    self.pack("src", "-o", "out", expect=0)  # resumes

  def test_6_standard_output(self):
    self.source()
    self.pack("src", "-o", "out")
    with open("/dev/full", "wb") as full:
      self.assertIn("standard output", self.pack("ls", "out", stdout=full, expect=6).stderr)
      self.pack("--help", stdout=full, expect=6)

  def test_130_and_143(self):
    self.source(count=3000)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
      out = f"out-{code}"
      process = self.start("src", "-o", out, "--samples-per-shard", "2")
      deadline = time.monotonic() + 30
      while not (self.folder / out / ".pack/plan").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
      begin = time.monotonic()
      process.send_signal(number)
      _, err = process.communicate(timeout=30)
      self.assertLess(time.monotonic() - begin, 5)
      self.assertEqual(code, process.returncode, err)
      self.assertIn(f"src -o {out} --samples-per-shard 2", err.decode())
      self.assertFalse((self.folder / out / "manifest.json").exists())


class TypingErrorTest(command.PackTest):

  def test_the_nearest_is_suggested(self):
    self.source()
    for words, meant in ((["valdate", "out"], "validate"), (["src", "-o", "out", "--shard-sise", "1GB"], "--shard-size"),
                         (["src", "-o", "out", "-f", "webdatset"], "webdataset"), (["src", "-o", "out", "-shards", "3"], "--shards"),
                         (["validate", "out", "--levle", "full"], "--level"), (["validate", "out", "--level", "fulll"], "full"),
                         (["completions", "bsh"], "bash")):
      self.assertIn(meant, self.pack(*words, expect=2).stderr)
    self.assertEqual(["src"], os.listdir(self.folder))

  def test_help_of_each_verb(self):
    for verb in VERBS:
      page = self.pack(verb, "-h")
      self.assertEqual("", page.stderr)
      self.assertLessEqual(len(page.stdout.splitlines()), 42)
      self.assertEqual(page.stdout, self.pack("help", verb).stdout)
    overview = self.pack("-h").stdout
    for verb in VERBS:
      self.assertIn(f"\n  {verb} ", overview)
    self.assertRegex(self.pack("--version").stdout, r"\Apack \d+\.\d+\.\d+ .*commit \w+\+?\)\n.*xxhash")

  def test_an_output_named_like_a_file(self):
    self.source()
    for name, hint in (("x.tar", "-o x -f webdataset --shards 1"), ("x.tfrecord", "-o x -f tfrecord --shards 1"),
                       ("x.h5", "--shards 1"), ("x.lmdb", "--shards 1")):
      self.assertIn(hint, self.pack("src", "-o", name, expect=2).stderr)

  def test_flags_that_do_not_go_together(self):
    self.source()
    for words in (["--shards", "2", "--samples-per-shard", "3"], ["--split", "a=1", "--split-by", "dir"],
                  ["-f", "tfrecord", "--layout", "ustar"], ["--shards-range", "0-1"], ["--split-by", "stratified"]):
      self.pack("src", "-o", "out", *words, expect=2)
    self.assertFalse((self.folder / "out").exists())


class VerbTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=50, classes=("cat", "dog", "ship"))
    self.pack("src", "-o", "out", "--split", "train=0.8,val=0.2", "--samples-per-shard", "10")

  def test_plan_says_what_build_does(self):
    plan = json.loads(self.pack("plan", "src", "--samples-per-shard", "10", "--json").stdout)
    self.assertEqual("shardpack.plan/1", plan["schema"])
    self.assertEqual(50, plan["samples"])
    self.pack("src", "-o", "again", "--samples-per-shard", "10")
    shards = self.manifest("again")["shards"]
    self.assertEqual([shard["name"] for shard in plan["shards"]], [shard["name"] for shard in shards])
    for planned, made in zip(plan["shards"], shards):
      self.assertEqual(planned["samples"], made["records"])
      self.assertLessEqual(made["bytes"], planned["bound_bytes"])
    self.assertIn("train-000000.tar", self.pack("src", "--dry-run", "--samples-per-shard", "10").stdout)

  def test_workers_make_the_same_dataset(self):
    self.pack("src", "-o", "one", "--samples-per-shard", "5")
    self.pack("plan", "src", "--samples-per-shard", "5", "--write", "the.plan")
    self.pack("plan", "src", "--write", "the.plan", expect=5)
    parts = [self.start("build", "--plan", "the.plan", "-o", "two", "--shards-range", part) for part in ("0-3", "4-6", "7-9")]
    for part in parts[:2]:
      self.assertEqual(0, part.wait(60), part.stderr.read())
    self.assertEqual(0, parts[2].wait(60))
    self.pack("build", "--plan", "the.plan", "-o", "two", "--seed", "3", expect=2)
    self.pack("commit", "two")
    self.assertEqual(self.contents("one"), self.contents("two"))
    self.pack("commit", "two", expect=0)  # published already
    for part in parts:
      part.communicate()

  def test_a_plan_takes_away_only_what_a_killed_run_has_left(self):
    part = self.write(".the.plan.pack-part", b"SPKPL")
    self.pack("plan", "src", "--write", "the.plan")
    self.assertFalse(part.exists())
    part = self.write(".b.plan.pack-part", b"mine")
    self.assertIn("move it away", self.pack("plan", "src", "--write", "b.plan", expect=5).stderr)
    self.assertEqual(b"mine", part.read_bytes())
    part.unlink()
    part.symlink_to("the.plan")
    done = self.pack("plan", "src", "--write", "b.plan", expect=5)
    self.assertNotIn("another run", done.stderr)
    self.assertTrue(part.is_symlink() and (self.folder / "the.plan").exists())
    part.unlink()
    self.write(".b.plan.pack-part", b"").chmod(0)
    done = self.pack("plan", "src", "--write", "b.plan", expect=5, unprivileged=True)
    self.assertIn("ermission denied); move it away", done.stderr)

  def test_commit_needs_all_parts(self):
    self.pack("plan", "src", "--samples-per-shard", "5", "--write", "the.plan")
    self.pack("build", "--plan", "the.plan", "-o", "two", "--shards-range", "0-3")
    self.assertIn("missing 6: 4-9\n", self.pack("commit", "two", expect=7).stderr)
    self.pack("commit", "src", expect=2)
    self.pack("commit", "nowhere", expect=2)

  def test_info(self):
    text = self.pack("info", "out").stdout
    for part in ("webdataset", "50 in", "cat 17, dog 17, ship 16", "50 jpg", "xxh3:"):
      self.assertIn(part, text)
    info = json.loads(self.pack("info", "out", "--json").stdout)
    self.assertEqual(("shardpack.info/1", 50, ["cat", "dog", "ship"]), (info["schema"], info["records"], info["classes"]))
    self.assertEqual([17, 17, 16], info["class_counts"])
    shard = sorted(str(path) for path in (self.folder / "out").glob("*.tar"))[0]
    self.assertEqual(self.manifest()["shards"][0]["records"], json.loads(self.pack("info", shard, "--json").stdout)["records"])

  def test_ls(self):
    rows = self.rows("out")
    self.assertEqual(50, len(rows))
    self.assertEqual({"cat", "dog", "ship"}, {row["class"] for row in rows})
    for row in rows:
      self.assertEqual((self.folder / "src" / row["path"]).stat().st_size, row["bytes"])
      self.assertEqual((40, 24), (row["width"], row["height"]))
    self.assertEqual(17, len(self.rows("out", "--label", "dog")))
    self.assertEqual(17, len(self.rows("out", "--label", "1")))
    self.assertEqual(3, len(self.rows("out", "--limit", "3")))
    self.assertEqual(50, len(self.rows("out", "--split", "val")) + len(self.rows("out", "--split", "train")))
    self.assertIn("did you mean dog", self.pack("ls", "out", "--label", "dgo", expect=2).stderr)
    self.assertIn("did you mean val", self.pack("ls", "out", "--split", "vla", expect=2).stderr)

  def test_cat(self):
    for row in self.rows("out")[:5]:
      want = (self.folder / "src" / row["path"]).read_bytes()
      self.assertEqual(want, self.pack("cat", "out", row["key"], text=False).stdout)
      self.assertEqual(want, self.pack("cat", "out", "--record", str(row["id"]), text=False).stdout)
    for words in (["no-such-key"], ["--record", "50"], [], ["cat/x", "--record", "1"], ["--record", "1", "--field", "x"]):
      self.pack("cat", "out", *words, expect=2)

  def test_cat_spares_the_terminal(self):
    ours, theirs = pty.openpty()
    self.pack("cat", "out", "--record", "1", stdout=theirs, expect=2)
    process = self.start("cat", "out", "--record", "1", "--force", stdout=theirs)
    self.assertIn(b"\xff\xd8", os.read(ours, 100))
    process.kill()
    process.communicate()
    os.close(theirs)
    os.close(ours)

  def test_extract(self):
    done = self.pack("extract", "out", "again")
    self.assertIn("50 files", done.stderr)
    self.assertEqual(self.contents("src"), self.contents("again"))
    self.pack("extract", "out", "again", expect=5)
    self.pack("extract", "out", "deep/er", "--label", "dog")
    self.assertEqual(17, len(self.contents("deep/er")))
    self.write("file", b"mine")
    self.pack("extract", "out", "file", expect=5)
    self.assertEqual(b"mine", (self.folder / "file").read_bytes())

  def test_extract_withholds_what_is_damaged(self):
    shard = sorted((self.folder / "out").glob("*.tar"))[0]
    with tarfile.open(shard) as archive:
      member = next(each for each in archive if each.name.endswith(".jpg"))
    shard.chmod(0o644)
    with open(shard, "r+b") as file:
      file.seek(member.offset_data + 40)
      byte = file.read(1)
      file.seek(member.offset_data + 40)
      file.write(bytes([byte[0] ^ 1]))
    done = self.pack("extract", "out", "again", expect=3)
    self.assertIn("withheld", done.stderr)
    self.assertEqual(49, len(self.contents("again")))
    self.pack("extract", str(shard), "lone", expect=0)  # without an index nothing says that the image has changed
    os.truncate(shard, 700)
    self.pack("extract", str(shard), "cut", expect=4)

  def test_datasets_of_older_versions(self):
    """Their indexes have the whole name of the shard, train-000000.tar.pidx."""
    shutil.copytree(TESTDATA.parent / "old/long-index-names", self.folder / "old")
    self.assertTrue((self.folder / "old/train-000000.tar.pidx").exists())
    for level in ("quick", "full", "deep"):
      self.pack("validate", "old", "--level", level)
    self.assertEqual(4, len(self.rows("old")))
    self.assertIn("samples 4 in 2 shards", " ".join(self.pack("info", "old").stdout.split()))
    self.pack("extract", "old", "files")
    self.assertEqual({"cat/a.png", "cat/b.png", "dog/c.png", "dog/d.png"}, self.contents("files").keys())
    self.pack("validate", "old", "--against", "files")
    self.pack("convert", "old", "-o", "new", "--samples-per-shard", "2")
    self.assertEqual({"manifest.json", "train-000000.tar", "train-000000.pidx", "train-000001.tar", "train-000001.pidx"},
                     self.contents("new").keys())
    self.assertEqual([row["key"] for row in self.rows("old")], [row["key"] for row in self.rows("new")])
    (self.folder / "old/train-000001.tar.pidx").unlink()
    self.assertIn("file-missing", self.pack("validate", "old", expect=4).stdout)

  def test_a_pattern_for_shards_meets_shards_alone(self):
    self.source()
    for fmt, suffix in (("webdataset", ".tar"), ("tfrecord", ".tfrecord"), ("lmdb", ".lmdb"), ("hdf5", ".h5")):
      self.pack("src", "-o", fmt, "-f", fmt, "--samples-per-shard", "10")
      shards = sorted(path.name for path in (self.folder / fmt).glob(f"*{suffix}*"))
      self.assertEqual([shard["name"] for shard in self.manifest(fmt)["shards"]], shards)
      self.assertEqual([name.removesuffix(suffix) + ".pidx" for name in shards],
                       sorted(path.name for path in (self.folder / fmt).glob("*.pidx")))

  def test_foreign_shards(self):
    with tarfile.open(self.folder / "foreign.tar", "w") as archive:
      for i in range(3):
        for name, data in ((f"a/{i}.jpg", jpeg(i)), (f"a/{i}.cls", b"%d" % i)):
          path = self.write(f"tmp/{name}", data)
          archive.add(path, arcname=name)
    rows = self.rows("foreign.tar")
    self.assertEqual(["a/0", "a/1", "a/2"], [row["key"] for row in rows])
    self.assertEqual([0, 1, 2], [row["label"] for row in rows])
    self.assertEqual(40, rows[0]["width"])
    self.assertEqual(jpeg(1), self.pack("cat", "foreign.tar", "a/1", text=False).stdout)
    self.pack("extract", "foreign.tar", "again")
    self.assertEqual(jpeg(2), (self.folder / "again/a/2.jpg").read_bytes())
    self.pack("info", "foreign.tar", "src", expect=2)
    self.pack("info", "nowhere", expect=2)

  def test_extract_writes_nothing_outside(self):
    with tarfile.open(self.folder / "evil.tar", "w") as archive:
      for name in ("../../outside.jpg", "/tmp/pack-test-absolute.jpg"):
        info = tarfile.TarInfo(name)
        data = jpeg(1)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
      link = tarfile.TarInfo("link.jpg")
      link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
      archive.addfile(link)
    before = set(os.listdir(self.folder))
    done = self.pack("extract", "evil.tar", "again", expect=None)
    self.assertIn(done.returncode, (0, 3, 4))
    self.assertLessEqual(set(os.listdir(self.folder)) - before, {"again"})
    self.assertFalse(os.path.exists("/tmp/pack-test-absolute.jpg"))
    for path in (self.folder / "again").rglob("*"):
      self.assertFalse(path.is_symlink())

  def test_results_and_progress_are_apart(self):
    self.pack("src", "-o", "json-out", "--json", "--progress", "json")
    done = self.pack("src", "-o", "json-again", "--json", "--progress", "json")
    summary = json.loads(done.stdout)
    self.assertEqual("shardpack.build/1", summary["schema"])
    self.assertEqual(50, summary["counts"]["packed"])
    first = done.stderr.splitlines()[0]
    self.assertEqual("shardpack.progress/1", json.loads(first)["schema"])
    quiet = self.pack("src", "-o", "quiet", "-q")
    self.assertEqual("", quiet.stderr)
    self.assertRegex(quiet.stdout, r"\Adataset xxh3:")

  def test_a_reader_that_goes_away(self):
    # More than a pipe holds, so that a write meets the closed end.
    self.source("many", count=3000)
    self.pack("many", "-o", "many-out", "-q")
    process = self.start("ls", "many-out", "--json")
    process.stdout.read(10)
    process.stdout.close()
    self.assertEqual(b"", process.stderr.read())
    self.assertEqual(0, process.wait(30))
    process.stderr.close()

  def test_closed_descriptors(self):
    done = subprocess.run(["sh", "-c", f'exec "{command.PACK}" src -o closed-out >&- 2>&- <&-'], cwd=self.folder, check=False)
    self.assertEqual(0, done.returncode)
    self.pack("validate", "closed-out")

  def test_the_folder_where_the_user_stands(self):
    elsewhere = self.folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copytree(self.folder / "src", elsewhere / "pictures")
    self.pack("pictures", "-o", "out", env={"BUILD_WORKING_DIRECTORY": str(elsewhere)})
    self.assertTrue((elsewhere / "out/manifest.json").exists())

  def test_a_live_block_only_on_a_terminal(self):
    for env, live in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, True)):
      ours, theirs = pty.openpty()
      self.source("big", count=400)
      shutil.rmtree(self.folder / "big-out", ignore_errors=True)
      process = self.start("big", "-o", "big-out", "--samples-per-shard", "1", stderr=theirs, env=env)
      os.close(theirs)
      shown = b""
      while True:
        try:
          piece = os.read(ours, 65536)
        except OSError:
          break
        if not piece:
          break
        shown += piece
      os.close(ours)
      process.communicate(timeout=60)
      self.assertEqual(0, process.returncode, shown)
      self.assertEqual(live, b"\x1b[J" in shown, (env, shown[:2000]))
      self.assertEqual(env == {"TERM": "xterm"}, b"\x1b[1m" in shown, env)


if __name__ == "__main__":
  command.main()
