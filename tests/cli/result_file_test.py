"""The files of `pack report -o`, `pack dups --write-list` and `--report`: what they replace, and where they may be."""

import json
import os
import pathlib
import shutil
import signal
import time

import command
from command import jpeg

COMMANDS = (("report", "-o"), ("dups", "--write-list"))


class ResultFileTest(command.PackTest):

  def refused(self, dataset, place, expect, says):
    for verb, flag in COMMANDS:
      before = self.contents(".")
      self.assertIn(says, self.pack(verb, dataset, flag, place, expect=expect).stderr)
      self.assertEqual(before, self.contents("."))

  def test_never_below_a_dataset(self):
    self.source(count=6)
    self.pack("src", "-o", "lm", "-f", "lmdb")
    self.pack("src", "-o", "other")
    (self.folder / "other/sub").mkdir()
    os.symlink("other/sub", self.folder / "link")
    shard = next((self.folder / "lm").glob("*.lmdb"))
    inside = f"lm/{shard.name}"
    self.refused("lm", f"{inside}/data.mdb", 2, "lies in the dataset")
    self.refused("lm", f"{inside}/new", 2, "lies in the dataset")
    self.refused("lm", "other/sub/x.html", 2, "lies in the dataset")
    self.refused("lm", "link/x.html", 2, "lies in the dataset")
    self.assertIn("lies in the dataset", self.pack("src", "-o", "third", "--report", "other/sub/x.html", expect=2).stderr)
    # A folder with another program's manifest.json is not a dataset.
    self.write("web/manifest.json", b'{"name": "mine"}')
    (self.folder / "web/pages").mkdir()
    self.pack("report", "lm", "-o", "web/pages/x.html")
    # A shard without its dataset.
    (self.folder / "lm/manifest.json").unlink()
    self.refused(inside, f"{inside}/data.mdb", 2, "lies in the source")
    self.refused(inside, f"{inside}/new", 2, "lies in the source")

  def test_never_a_shard_indexed_in_place(self):
    self.source(count=6)
    for name, options in (("tars", []), ("lmdbs", ["-f", "lmdb"])):
      self.pack("src", "-o", f"{name}-made", *options)
      (self.folder / name).mkdir()
      shard = next(path for path in (self.folder / f"{name}-made").iterdir() if path.name.endswith((".tar", ".lmdb")))
      shutil.move(shard, self.folder / name)
      self.pack("index", name, "-o", f"{name}-index")
    self.refused("tars-index", f"tars/{next((self.folder / 'tars').iterdir()).name}", 2, "lies in the source")
    inside = f"lmdbs/{next((self.folder / 'lmdbs').iterdir()).name}"
    for name in ("data.mdb", "new"):
      self.refused("lmdbs-index", f"{inside}/{name}", 2, "lies in the source")

  def test_replaces_what_pack_wrote_there(self):
    self.source(count=4)
    self.write("src/cat/again.jpg", jpeg(0))
    self.pack("src", "-o", "wds", "--samples-per-shard", "2")
    shards = sorted(str(path.relative_to(self.folder)) for path in (self.folder / "wds").glob("*.tar"))
    self.write("plain.tar", (self.folder / shards[0]).read_bytes())
    # A name was forgotten, and the shell put a shard into its place.
    self.refused(shards[1], "plain.tar", 5, "is in the way of")
    self.refused("wds", "src/cat/again.jpg", 5, "is in the way of")
    self.write("notes.txt", b"what I meant to keep\n")
    self.refused("wds", "notes.txt", 5, "is in the way of")
    self.write("page.html", b"<!DOCTYPE html><title>mine</title>")
    self.assertIn("is in the way of --report", self.pack("src", "-o", "out", "--report", "page.html", expect=5).stderr)
    self.assertFalse((self.folder / "out").exists())
    self.write("val.json", self.pack("validate", "wds", "--json").stdout.encode())
    self.assertIn("one of the inputs", self.pack("report", "wds", "-o", "val.json", "--validation", "val.json", expect=2).stderr)
    for verb, flag in COMMANDS:
      self.write(verb)  # an empty file, as of mktemp
      for _ in range(2):
        self.pack(verb, "wds", flag, verb)
    self.refused("wds", "-", 2, "not to standard output")
    self.refused("wds", "nodir/k", 2, "there is no folder nodir")
    self.assertIn("no list of pack dups", self.pack("dups", "wds", "--write-list", "report", expect=5).stderr)
    self.assertIn("no page of pack report", self.pack("report", "wds", "-o", "dups", expect=5).stderr)

  def test_a_signal_is_answered(self):
    self.source(count=2000)
    self.pack("src", "-o", "out", "-q")
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
      process = self.start("dups", "out", "--near", "--json", "--progress", "never")
      # Its threads look at images once the command line is read.
      while "\nThreads:\t1\n" in pathlib.Path(f"/proc/{process.pid}/status").read_text():
        self.assertIsNone(process.poll())
        time.sleep(0.001)
      process.send_signal(number)
      out, err = process.communicate(timeout=60)
      self.assertEqual((code, b"pack: error: interrupted\n"), (process.returncode, err))
      self.assertEqual({"schema": "shardpack.error/1", "code": code, "message": "interrupted"}, json.loads(out))


if __name__ == "__main__":
  command.main()
