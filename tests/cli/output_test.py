"""What is printed where: --json and errors, -q, columns, narrow terminals, a second Ctrl-C."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios

import command
from command import jpeg


class JsonErrors(command.PackTest):
  """With --json, a command that fails says so on stdout too."""

  def check(self, code, *words, **options):
    done = self.pack(*words, "--json", expect=code, **options)
    last = json.loads(done.stdout.splitlines()[-1])
    self.assertEqual(["schema", "code", "message"], list(last))
    self.assertEqual(("shardpack.error/1", code), (last["schema"], last["code"]))
    self.assertIn(f"pack: error: {last['message']}\n", done.stderr)
    return done

  def test_every_verb_that_has_the_flag(self):
    reference = self.pack("man", "--as", "markdown").stdout
    verbs = [part.split("\n")[0] for part in reference.split("\n## pack ")[1:] if "| `--json`" in part]
    self.assertGreater(len(verbs), 9)
    for verb in verbs:
      words = [verb, "nowhere", *(["-o", "out"] if verb in ("build", "convert", "extract") else [])]
      if verb == "cat":
        words.append("key")
      self.check(2, *words)
      self.check(2, verb, "--no-such-flag")

  def test_what_comes_before_and_after(self):
    self.source()
    self.check(2, "src")  # no OUT
    self.assertEqual("", self.pack("src", "--", "--json", expect=2).stdout)
    self.pack("src", "-o", "out")
    self.check(5, "src", "-o", "out", "--seed", "3")
    self.check(2, "ls", "out", "--label", "\udcff\n日")  # a message has no bytes that JSON cannot hold
    self.write("src/cat/bad.jpg", b"no image")
    self.check(4, "src", "-o", "strict", "--strict")
    done = self.pack("src", "-o", "skips", "--max-skip", "50%", "--json", expect=3)
    self.assertEqual("shardpack.build/1", json.loads(done.stdout)["schema"])

  def test_rows_come_before_the_error(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "2")
    index = sorted((self.folder / "out").glob("*.pidx"))[1]
    index.write_bytes(b"")
    done = self.pack("ls", "out", "--json", expect=None)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    self.assertEqual([done.returncode], [row["code"] for row in rows if row.get("schema") == "shardpack.error/1"])
    self.assertEqual("shardpack.error/1", rows[-1]["schema"])

  def test_findings_are_a_result(self):
    self.source()
    self.pack("src", "-o", "out")
    next((self.folder / "out").glob("*.tar")).unlink()
    done = self.pack("validate", "out", "--json", expect=4)
    self.assertEqual("shardpack.validation/1", json.loads(done.stdout)["schema"])


class ClosedOutput(command.PackTest):
  """Results that nobody can get."""

  def test_a_closed_standard_output(self):
    self.source()
    self.pack("src", "-o", "out")
    for words in (["ls", "out"], ["info", "out"], ["validate", "out"], ["cat", "out", "cat/good-0000"], ["status", "out"],
                  ["status", "out", "--json"]):
      done = subprocess.run(["sh", "-c", '"$0" "$@" >&-', command.PACK, *words], cwd=self.folder, capture_output=True, check=False)
      self.assertEqual(6, done.returncode, (words, done.stderr))

  def test_bytes_of_a_header_are_escaped_once(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "1")
    shard = self.folder / "out/train-000000.tar"
    data = bytearray(shard.read_bytes())
    data[1] ^= 1
    shard.write_bytes(data)
    damaged = self.pack("validate", "out", expect=4).stdout
    self.assertRegex(damaged, r"tar-checksum .*actual [0-7]{6}\\x00 \)")
    self.assertNotIn("x5c", damaged)

  def test_nothing_to_check(self):
    self.source()
    self.pack("src", "-o", "out", "--shards", "2")
    none = self.pack("validate", "out", "--subset", "9/9", "--json")
    self.assertIn("warning: no shard was checked", none.stderr)
    self.assertIn("any shard: --subset has none", json.loads(none.stdout)["not_checked"])
    self.source("large", count=2000)
    self.pack("large", "-o", "one", "--shards", "1")
    late = self.pack("validate", "one", "--max-duration", "1ms", expect=2)
    self.assertIn("no shard was checked: --max-duration was over", late.stderr)
    (self.folder / "one/train-000000.tar").unlink()
    self.assertNotIn("no shard was checked", self.pack("validate", "one", expect=4).stderr)
    self.assertNotIn("warning", self.pack("validate", "out", "--subset", "2/2").stderr)

  def test_a_plan_is_no_folder(self):
    self.source()
    (self.folder / "plans").mkdir()
    refused = self.pack("plan", "src", "--write", "plans", expect=5).stderr
    self.assertIn("plans is a folder; name a file in it with --write", refused)


class Quiet(command.PackTest):

  def test_validate(self):
    self.source()
    self.pack("src", "-o", "out")
    self.assertEqual("", self.pack("validate", "out", "-q").stdout)
    self.write("out/extra.txt")
    done = self.pack("validate", "out", "-q", expect=4)
    self.assertIn("file-extra", done.stdout)
    self.assertNotIn("in what was checked", done.stdout)
    self.assertEqual("shardpack.validation/1", json.loads(self.pack("validate", "out", "-q", "--json", expect=4).stdout)["schema"])
    self.assertIn("does not exist", self.pack("validate", "nowhere", "-q", expect=2).stderr)

  def test_plan(self):
    self.source()
    done = self.pack("plan", "src", "-q", "--write", "p")
    self.assertEqual(("", ""), (done.stdout, done.stderr))
    self.assertTrue((self.folder / "p").exists())
    self.assertEqual("shardpack.plan/1", json.loads(self.pack("plan", "src", "-q", "--json").stdout)["schema"])
    self.assertIn("no image", self.pack("plan", "empty" if self.write("empty/x.txt") else "", "-q", expect=2).stderr)


class Columns(command.PackTest):

  def test_ls_with_wide_characters(self):
    for number, name in enumerate(("猫/日本", "cat/a", "фото/b")):
      self.write(f"src/{name}.jpg", jpeg(number))
    self.pack("src", "-o", "out", "--key", "path")
    wide = lambda text: sum(2 if ord(c) > 0x2E80 else 1 for c in text)
    lines = self.pack("ls", "out").stdout.splitlines()
    self.assertEqual(1, len({wide(line[:line.rindex("x")]) for line in lines}), lines)


class OnATerminal(command.PackTest):

  def start_on(self, columns, *words):
    """(process, the descriptor of its terminal)"""
    ours, theirs = pty.openpty()
    self.addCleanup(os.close, ours)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = self.start(*words, stderr=theirs, env={"TERM": "xterm", "NO_COLOR": "1"})
    os.close(theirs)
    return process, ours

  def read(self, descriptor, until=None):
    shown = b""
    while until is None or until not in shown:
      try:
        piece = os.read(descriptor, 65536)
      except OSError:
        break
      if not piece:
        break
      shown += piece
    return shown

  def test_warnings_are_broken_at_blanks_and_slashes(self):
    for number in range(3):
      self.write(f"src/a-class-with-a-name/images-of-it/o'brien-{number}.jpg", jpeg(number))
    process, terminal = self.start_on(40, "src", "-o", "out", "--progress", "never")
    shown = self.read(terminal).decode().replace("\r\n", "\n")
    process.communicate()
    warning = shown[shown.index("warning:"):].split("\npacked")[0]
    self.assertGreater(warning.count("\n"), 2)
    for line in warning.split("\n"):
      self.assertLessEqual(len(line), 40, warning)
    whole = self.pack("src", "-o", "out2").stderr
    whole = whole[whole.index("warning:"):].split("\npacked")[0]
    self.assertEqual(whole.replace(" ", "").replace("\n", ""), warning.replace(" ", "").replace("\n", ""))
    for name in (f"o'brien-{number}.jpg" for number in range(3)):
      self.assertEqual(whole.count(name), warning.count(name))

  def test_a_second_interrupt_takes_the_block_away(self):
    # The list on stdin never ends, so the run does not either.
    reading, writing = os.pipe()
    ours, theirs = pty.openpty()
    self.addCleanup(os.close, ours)
    process = self.start("-", "-o", "out", stdin=reading, stderr=theirs, env={"TERM": "xterm"})
    os.close(theirs)
    os.close(reading)
    self.read(ours, until=b"listing")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    shown = self.read(ours)
    os.close(writing)
    process.communicate()
    self.assertEqual(130, process.returncode)
    self.assertTrue(shown.endswith(b"\033[Jpack: error: interrupted\r\n"), shown)


class RerunTest(command.PackTest):

  def test_more_skips_than_a_rerun_allows(self):
    self.source(count=10)
    self.write("src/cat/bad.jpg", b"no image")
    self.pack("src", "-o", "out", "--max-skip", "50%", expect=3)
    done = self.pack("src", "-o", "out", expect=4)
    self.assertNotIn("complete", done.stderr)
    self.assertEqual("", done.stdout)
    self.assertEqual(["src", "-o", "out", "--max-skip", "10%"], done.stderr.splitlines()[-1].split()[1:])
    self.pack("src", "-o", "out", "--max-skip", "10%", expect=3)

  def test_what_changed_is_named(self):
    self.source(count=4)
    for path in sorted((self.folder / "src").rglob("*.jpg")):
      path.with_suffix(".txt").write_bytes(b"caption")
    words = ("src", "-o", "out", "--fields", "txt", "--max-skip", "50%")
    self.pack(*words)
    self.write("src/cat/good-0002.txt", b"another")  # of the same size
    self.write("src/cat/good-0000.txt", b"another caption")
    self.assertIn("the field txt of cat/good-0000.jpg has 15 bytes, 7 were packed", self.pack(*words, expect=5).stderr)
    (self.folder / "src/cat/good-0000.txt").unlink()
    self.assertIn("an input that was packed is skipped, cat/good-0000.jpg: unpaired (it lacks its part txt)", self.pack(*words, expect=5).stderr)
    self.pack("src", "-o", "kept", "--fields", "txt", "--missing-part", "keep")
    (self.folder / "src/dog/good-0001.txt").unlink()
    self.assertIn("dog/good-0001.jpg was packed with a field txt and has none",
                  self.pack("src", "-o", "kept", "--fields", "txt", "--missing-part", "keep", expect=5).stderr)

  def test_a_changed_caption_of_a_list(self):
    self.source(count=4)
    columns = ("--columns", "path=path,label=label,txt=text")
    for text, named in ((b"one", ""), (b"three", "the field txt of cat/good-0000.jpg has 5 bytes, 3 were packed"), (b"two", "the field txt, which the source makes itself, may have other content")):
      self.write("src/a.csv", b"path,label,text\ncat/good-0000.jpg,tabby," + text + b"\n")
      self.assertIn(named, self.pack("src/a.csv", "-o", "out", *columns, expect=5 if named else 0).stderr)

  def test_flags_that_plan_has_not(self):
    self.source(count=4)
    self.assertIn("belongs to pack build", self.pack("plan", "src", "--jobs", "2", expect=2).stderr)
    self.assertIn("belongs to pack build", self.pack("plan", "src", "-j2", expect=2).stderr)


if __name__ == "__main__":
  command.main()
