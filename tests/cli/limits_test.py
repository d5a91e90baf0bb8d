"""Limits of the process - open files, memory - are never a fact about an input, and what a user names is never read without end."""

import json
import os
import resource
import unicodedata

import command
from command import jpeg

IO_ERROR = 6


class OpenFilesTest(command.PackTest):
  """More shards than the process may have open files."""

  SHARDS, LIMIT = 150, [(resource.RLIMIT_NOFILE, 128)]

  def setUp(self):
    super().setUp()
    self.source(count=self.SHARDS)
    self.pack("src", "-o", "many", "--samples-per-shard", "1", "-q", "--no-fsync")

  def test_every_verb(self):
    many = self.pack("ls", "many").stdout
    self.assertEqual(self.SHARDS, len(many.splitlines()))
    limited = {"limits": self.LIMIT}
    self.assertEqual(many, self.pack("ls", "many", **limited).stdout)
    self.pack("validate", "many", "--level", "deep", "--against", "src", **limited)
    self.pack("info", "many", **limited)
    self.pack("extract", "many", "back", "-q", **limited)
    self.assertEqual(self.SHARDS, sum(1 for path in (self.folder / "back").rglob("*.jpg")))
    self.pack("convert", "many", "-o", "one", "-f", "tfrecord", "-q", "--no-fsync", **limited)
    self.assertEqual(self.SHARDS, self.manifest("one")["counts"]["packed"])
    self.pack("convert", "many", "-o", "again", "--samples-per-shard", "1", "-q", "--no-fsync", **limited)
    bench = self.pack("bench", "many", "--epochs", "1", expect=None, **limited)
    self.assertEqual(0, bench.returncode, bench.stderr)
    self.assertNotIn("bad", bench.stderr)

  def test_foreign_shards(self):
    for path in (self.folder / "many").iterdir():
      if path.suffix != ".tar":
        path.unlink()
    shards = sorted(str(path) for path in (self.folder / "many").iterdir())
    self.pack("validate", *shards, "-q", limits=self.LIMIT)
    self.pack("convert", *shards, "-o", "packed", "-q", "--no-fsync", limits=self.LIMIT)
    self.pack("index", "many", "-q", "--no-fsync", limits=self.LIMIT)
    self.pack("validate", "many", "-q", limits=self.LIMIT)

  def test_a_build_that_may_open_nothing_is_not_poisoned(self):
    self.pack("src", "-o", "want", "--samples-per-shard", "6", "-q", "--no-fsync")
    for most in (7, 8, 9, 10, 12):
      out = f"out-{most}"
      build = ["src", "-o", out, "--samples-per-shard", "6", "-q", "--no-fsync"]
      done = self.pack(*build, expect=None, limits=[(resource.RLIMIT_NOFILE, most)])
      self.assertIn(done.returncode, (0, IO_ERROR), done.stderr)
      if done.returncode == IO_ERROR:
        self.assertIn("Too many open files", done.stderr)
        self.assertIn("ulimit -n", done.stderr)
      self.pack(*build)
      self.assertEqual(self.contents("want"), self.contents(out))


class MemoryTest(command.PackTest):

  def test_no_memory_is_no_internal_error(self):
    self.source(count=40)
    self.pack("src", "-o", "out", "--samples-per-shard", "2", "-q", "--no-fsync")
    self.pack("src", "-o", "bare/out", "--samples-per-shard", "2", "-q", "--no-fsync")
    for path in (self.folder / "bare/out").iterdir():
      if path.suffix != ".tar":
        path.unlink()
    failed = 0
    for megabytes in (56, 60, 64, 68, 72, 76, 80, 88, 96, 128):
      for words in (["validate", "out", "-q"], ["validate", "out", "--level", "deep", "-q"], ["info", "out"], ["ls", "out"],
                    ["index", "bare/out", "-o", f"index-{megabytes}", "-q", "--no-fsync"],
                    ["convert", "out", "-o", f"convert-{megabytes}", "-q", "--no-fsync"],
                    ["src", "-o", f"build-{megabytes}", "-q", "--no-fsync"],
                    ["plan", "src", "--write", f"plan-{megabytes}", "-q"]):
        done = self.pack(*words, expect=None, limits=[(resource.RLIMIT_AS, megabytes << 20)])
        what = f"{words} in {megabytes} MB: exit code {done.returncode}: {done.stderr}"
        if done.returncode == 127 or "error while loading shared libraries" in done.stderr:
          continue  # the program did not even begin
        self.assertIn(done.returncode, (0, IO_ERROR), what)
        if done.returncode == IO_ERROR:
          failed += 1
          self.assertRegex(done.stderr, r"out of memory|Cannot allocate|cannot start", what)
    self.assertGreater(failed, 0, "no limit was low enough to be met")


class GivenFileTest(command.PackTest):
  """What a flag names is read to a bound, or not at all."""

  def setUp(self):
    super().setUp()
    self.source(count=4)
    os.mkfifo(self.folder / "fifo")
    (self.folder / "folder").mkdir()
    self.pack("src", "-o", "packed", "-q")

  def refused(self, *words, named):
    done = self.pack(*words, expect=2, timeout=20, limits=[(resource.RLIMIT_AS, 2 << 30)])
    self.assertIn(named, done.stderr)
    return done.stderr

  def test_config(self):
    build = ["src", "-o", "out", "--config"]
    for name in ("/dev/zero", "fifo", "folder"):
      self.assertIn("not a regular file", self.refused(*build, name, named=f"--config: {name}"))
    self.assertIn("No such file", self.refused(*build, "absent", named="--config: "))
    self.write("large", b"#" * (2 << 20))
    self.refused(*build, "large", named="the limit is")
    self.write("deep", b"[" + b"a." * 20000 + b"a]\nx=1\n")
    self.refused(*build, "deep", named="deep: line 1: more than 8 tables within each other")
    self.write("deep-key", b"\n" + b"a." * 20000 + b"a=1\n")
    self.refused(*build, "deep-key", named="line 2: ")
    self.write("many", b"".join(b"[a%d.b.c.d]\nx=1\n" % i for i in range(20000)))
    self.refused(*build, "many", named="there is no verb")
    self.refused("-q", "validate", "out", named="the verb comes before all flags: pack validate ...")
    self.assert_nothing_published()
    self.write("good", b"samples-per-shard = 2\n[build]\nseed = 7 # a.b.c\nexclude = 'a.b.c.d.e.f.g.h.i.j.k'\n")
    self.pack(*build, "good", "-q")
    self.assertEqual(2, len(self.manifest()["shards"]))

  def test_other_files(self):
    for name in ("/dev/zero", "fifo", "folder"):
      self.refused("src", "-o", "out", "--classes", name, named="--classes: ")
      self.refused("index", "packed", "-o", "out", "--classes", name, named="--classes: ")
      self.refused("build", "--plan", name, "-o", "out", named="--plan: ")
    for kind in ("list", "csv", "jsonl", "coco"):
      for name in ("/dev/zero", "fifo"):
        self.refused(name, "--input-format", kind, "--root", "src", "-o", "out", named="not a regular file")
    for name in ("/dev/zero", "fifo"):
      self.refused(name, "--input-format", "archive", "-o", "out", named="regular file")
    self.assert_nothing_published()


class TerminalTest(command.PackTest):
  """Nothing that drives a terminal or turns its text around reaches it, wherever it comes from."""

  C1, OVERRIDE, ESCAPE = "\u009b2J", "\u202egpj", "\x1b]0;title\x07"

  def checked(self, *words, expect):
    done = self.pack(*words, expect=expect, text=False, env={"LC_ALL": "C.UTF-8"})
    for stream in (done.stdout, done.stderr):
      text = stream.decode()  # UTF-8, whatever the names are
      for character in text:
        harmful = unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\n\t"
        self.assertFalse(harmful, f"{words}: U+{ord(character):04X} in {text!r}")
    return done

  def test_every_verb(self):
    hostile = [f"a{self.C1}b", f"c{self.OVERRIDE}d", f"e{self.ESCAPE}f", os.fsdecode(b"\xff\x9bg"), "two\nlines"]
    for number, name in enumerate(hostile):
      for i in range(3):
        self.write(f"src/{name}/{name}-{i}.jpg", jpeg(10 * number + i))
    self.write(f"src/{hostile[0]}/{hostile[1]}-bad.jpg", b"<html>")
    out = f"o{self.C1}{self.OVERRIDE}"
    self.checked("src", "-o", out, "--max-skip", "100%", expect=3)
    self.checked("src", "-o", "json", "--max-skip", "100%", "--json", "--progress", "json", expect=3)
    for words in (["info", out], ["ls", out], ["ls", out, "--long"], ["validate", out], ["plan", "src"],
                  ["extract", out, f"x{self.C1}"], ["convert", out, "-o", f"y{self.C1}", "-f", "tfrecord"]):
      for json_flag in ([], ["--json"]):
        words = [words[0], *words[1:]]
        if json_flag and words[0] in ("extract", "convert"):
          continue
        # Names that are written otherwise are listed.
        done = self.checked(*words, *json_flag, expect=3 if words[0] == "extract" else 0)
        if json_flag:
          for line in [done.stdout] if words[0] in ("info", "validate", "plan") else done.stdout.splitlines():
            json.loads(line)
    key = json.loads(self.pack("ls", out, "--json").stdout.splitlines()[0])["key"]
    self.checked("cat", out, key + self.C1, expect=2)
    shard = next((self.folder / out).glob("*.tar"))
    data = bytearray(shard.read_bytes())
    data[600] ^= 0xff
    shard.write_bytes(data)
    self.checked("validate", out, expect=4)
    done = self.checked("validate", out, "--json", expect=4)
    json.loads(done.stdout)

  def test_messages(self):
    for flag in ("--format", "--split", f"--un{self.C1}known", "--seed", "--exclude", "--config", "--classes"):
      self.checked("src", "-o", "out", flag, f"v{self.C1}{self.OVERRIDE}{self.ESCAPE}", expect=2)
    self.source(count=4)
    for name, data in (("list.jsonl", b'{"path":"\xff\xc2\x9b.jpg","label":1}\n'),
                       ("torn.jsonl", b'{"path":"cat/good-0000.jpg","lab\xc2\x9b\xe2\x80\xae\n'),
                       ("list.csv", b"path,label\n\xff\xc2\x9b.jpg,a\n\"\xe2\x80\xae,b\n"),
                       ("other.csv", b"p\xc2\x9bath,la\xffbel\nx,y\n"),
                       ("coco.json", b'{"images":[{"id":1,"file_name":"\xc2\x9b\xe2\x80\xae\xff.jpg"}]}'),
                       ("torn.json", b'{"images":[\xc2\x9b'),
                       ("config.toml", b"fo\xc2\x9brmat = 3\n[bu\xe2\x80\xaeild]\nx=1\n")):
      self.write(name, data)
      words = ["--config", name, "src"] if name.startswith("config") else [name, "--root", "src"]
      self.checked(*words, "-o", "out", expect=2)


if __name__ == "__main__":
  command.main()
