"""Runs `pack` in tests, and makes what it shall read.

  class FooTest(command.PackTest):
    def test_bar(self):
      self.write("src/cat/1.jpg", command.jpeg(1))
      done = self.pack("src", "-o", "out", expect=0)
      self.assertIn("packed", done.stderr)

Each test has an empty folder of its own, in which it runs. Only Python's standard library is used.
"""

import ctypes
import json
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zlib

# Relative to the folder that Bazel runs tests in, which has the shape of the project.
PACK = os.path.abspath(os.environ.get("SHARDPACK_PACK", "cli/pack"))
TESTDATA = pathlib.Path(os.environ.get("SHARDPACK_TESTDATA", "testdata/images")).resolve()
# <linux/capability.h>, <linux/prctl.h>: what lets root pass by file permissions.
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
PR_CAPBSET_DROP = 24


def jpeg(number=0, name="baseline.jpg"):
  """A whole JPEG whose bytes no other number has: a comment segment holds it."""
  base = (TESTDATA / name).read_bytes()
  comment = b"number %d" % number
  return base[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + base[2:]


def with_exif(tiff, number=0):
  data = jpeg(number)
  body = b"Exif\0\0" + tiff
  return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def png_chunk(kind, data):
  return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=2, height=2, extra=b"", rows=None):
  """A grayscale PNG; `rows` replaces the pixels, so that a header may promise more than there is."""
  rows = b"".join(b"\0" + bytes(width) for _ in range(height)) if rows is None else rows
  return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + extra +
          png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b""))


def drop_privileges():
  """For the program to be executed next: file permissions bind it, even when root runs the test."""
  if os.getuid() != 0:
    return
  prctl = ctypes.CDLL(None, use_errno=True).prctl
  for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
    if prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
      raise OSError(ctypes.get_errno(), "prctl(PR_CAPBSET_DROP)")


class PackTest(unittest.TestCase):
  maxDiff = None

  def setUp(self):
    self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pack-test-"))

  def tearDown(self):
    # rm copes with paths that are too long; folders without permission are opened first.
    subprocess.run(["find", str(self.folder), "-type", "d", "!", "-perm", "-700", "-exec", "chmod", "700", "{}", "+"],
                   stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["rm", "-rf", str(self.folder)], check=False)

  def write(self, path, data=b""):
    path = self.folder / os.fsdecode(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path

  def source(self, name="src", count=20, classes=("cat", "dog")):
    """Class folders with `count` good images in all."""
    for i in range(count):
      self.write(f"{name}/{classes[i % len(classes)]}/good-{i:04}.jpg", jpeg(i))
    return name

  def start(self, *words, unprivileged=False, limits=(), env=None, **options):
    def prepare():
      # Python and background jobs may leave SIGINT ignored, which the program would respect.
      signal.signal(signal.SIGINT, signal.default_int_handler)
      for limit, value in limits:
        resource.setrlimit(limit, (value, value))
      if unprivileged:
        drop_privileges()
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    clean = {key: value for key, value in os.environ.items() if key != "BUILD_WORKING_DIRECTORY"}
    return subprocess.Popen([PACK, *words], cwd=self.folder, preexec_fn=prepare, env={**clean, **(env or {})}, **options)

  def pack(self, *words, expect=0, text=True, timeout=120, **options):
    process = self.start(*words, **options)
    out, err = process.communicate(timeout=timeout)
    code = process.returncode
    if expect is not None:
      shown = " ".join(map(repr, words))
      self.assertEqual(expect, code, f"pack {shown}\n--- stdout\n{out!r}\n--- stderr\n{(err or b'').decode(errors='replace')}")
    if text:
      out, err = (None if each is None else each.decode(errors="surrogateescape") for each in (out, err))
    return subprocess.CompletedProcess(words, code, out, err)

  def skips(self, out="out"):
    """{path: reason} of skipped.jsonl; empty when there is none."""
    path = self.folder / out / "skipped.jsonl"
    if not path.exists():
      return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["path"]: row["reason"] for row in rows}

  def rows(self, *words):
    return [json.loads(line) for line in self.pack("ls", *words, "--json").stdout.splitlines()]

  def member_names(self, out="out"):
    """Of all tar shards."""
    names = []
    for shard in sorted((self.folder / out).glob("*.tar")):
      with tarfile.open(shard) as archive:
        names += archive.getnames()
    return names

  def manifest(self, out="out"):
    return json.loads((self.folder / out / "manifest.json").read_text())

  def contents(self, out="out"):
    """{name: bytes} of every file below the folder."""
    top = self.folder / out
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}

  def sealed(self, text):
    """The text of a manifest with its own hash made right."""
    # pack says what it should be.
    self.write("scratch/manifest.json", text.encode())
    said = self.pack("info", "scratch", expect=None).stderr
    expected = re.search("expected ([0-9a-f]{32}), actual", said)
    return re.sub('"self": "[0-9a-f]{32}"', f'"self": "{expected.group(1)}"', text).encode()

  def assert_nothing_published(self, out="out"):
    self.assertFalse((self.folder / out / "manifest.json").exists(), "a manifest was published")


def main():
  if not os.access(PACK, os.X_OK):
    sys.exit(f"{PACK} is missing; run through Bazel, or set SHARDPACK_PACK and SHARDPACK_TESTDATA")
  unittest.main(verbosity=2)
