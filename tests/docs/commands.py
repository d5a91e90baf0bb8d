"""Runs every command that README.md and the pages of docs/ tell a reader to type, word for word.

What counts as a command, on every page: the lines of blocks marked sh or console, and of blocks that are indented by four
blanks. In a block with lines that begin with "$ " those are the commands, and the lines below each are what it prints on a
terminal; elsewhere every line is a command. Each block runs in a folder of its own (those of a page that says ONE_FOLDER, in
one), in the order of its lines, with what a reader is told to have: see Folder. Commands named in the text, as in `pack man --as markdown`, must be understood.

Of what is printed every character is compared, but for durations, rates and memory, the folder, which is /home/me on a
page, and for hashes: one on the page stands for one that is printed, wherever it appears again.
"""

import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import fcntl

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

PACK = os.path.abspath(os.environ.get("PACK", "cli/pack"))
PAGES = ("README.md", "docs/*.md", "docs/formats/*.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ONE_FOLDER = "<!-- commands: one folder -->"
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}.*|)\n)+")
INLINE = re.compile(r"(?<!`)(?<!Usage: )`(pack [^`]+)`(?!`)")
# Needs what a test has not: a network, a GPU, root, data sets of others, an hour. The command, and why.
NOT_RUN = {
    "./bazelw test //...": "it would run this test",
    "./bazelw build //python:shardpack": "a build",
    "./bazelw run --config=deb //packaging:debs -- debs": "packaging/debs/check runs it",
    "./bazelw run --config=deb //packaging:debs -- --source debs": "packaging/debs/check_source runs it",
    "./bazelw build //packaging:wheel": "a build",
    "pip install bazel-bin/packaging/portable/shardpack-*.whl numpy": "//packaging/portable:wheel_test installs it",
    "./bazelw build //packaging:tarball": "a build",
    "tar -xf bazel-bin/packaging/portable/shardpack-*-linux-x86_64.tar.gz": "//packaging/portable:tarball_test unpacks it",
    "sudo apt-get install ./debs/shardpack_*.deb ./debs/libshardpack0_*.deb ./debs/libshardpack-dev_*.deb ./debs/python3-shardpack_*.deb":
        "packaging/debs/check installs them",
    "sudo apt-get install libabsl20220623 libgif7 libisal2 libjpeg62-turbo liblcms2-2 liblmdb0 liblzma5 libpng16-16 libsqlite3-0 libtbb12 libtiff6 "
    "libutf8proc2 libwebp7 libwebpdemux2 libwebpmux3 libxxhash0 libzstd1 zlib1g": "//packaging/tree:linked_test compares them",
    "pip uninstall shardpack": "//packaging/portable:wheel_test does",
    "sudo apt-get purge shardpack libshardpack0 libshardpack-dev libshardpack-opencv0 python3-shardpack": "packaging/debs/check does",
    "sbatch --dependency=afterany:$(sbatch --parsable jobs/build.sbatch) jobs/commit.sbatch": "tests/interop/engines_check.py does",
    "kubectl apply -f jobs": "a cluster; //tests/cluster:drivers_test runs what it starts",
    "podman build -t shardpack -f packaging/Containerfile .": "packaging/debs/check runs the Containerfile's commands",
    "podman run --rm -v \"$PWD:/data\" shardpack photos -o shards": "packaging/debs/check runs the Containerfile's commands",
    "cuda/gpu_check/pack /tmp/gpu-check --nvjpeg libnvjpeg.so.13 --images photos": "//tests/gpu_check",
    "/tmp/gpu-check/run": "a GPU; //tests/gpu_check runs it on the fake",
    "python3 benchmarks/end_to_end/bench.py --small CIFAR --large IMAGENET --update-docs": "data sets, hours",
    "python3 benchmarks/peers/bench.py --small CIFAR --large IMAGENET --update-docs": "data sets, hours",
    "sudo python3 benchmarks/loading/bench.py --large FOLDER": "root, hours",
}
# What has to be there before a block of that one command.
BEFORE = {
    "h5repack -l images:CHUNK=16x64x64x3 -f images:SHUF -f images:GZIP=6 shards/train-00000-of-00001.h5 small.h5":
        "pack photos -q -o shards -f hdf5 --layout decoded --resize crop --size 64 --color rgb --encode raw --shards 1",
    "pack diff shards-v1/ shards-v2/": "pack photos -q -o shards-v1 && pack convert shards-v1 -q -o shards-v2",
    "pack dups train/ val/ --near": "pack photos -q -o train && pack photos -q -o val",
    "pack commit shards/": "pack plan photos -q --shards 4 --write p && pack build --plan p --shards-range 0-3 -o shards -q",
}
# A line of capitals alone stands for something that was still to be written.
UNFINISHED = re.compile(r"\b(TODO|FIXME|TBD|LOREM|PLACEHOLDER)\b|\bto be (measured|written|done)\b|^[A-Z_]{3,}$", re.MULTILINE)
VARIABLE = re.compile(r"\b\d[\d.,]* ([kMGT]?B/s|m?s\b)|\b\d[\d.,]*(?= (images|samples)/s)|(?<=peak memory )\d[\d.,]* [kMGT]?B")
DIGEST = re.compile(r"\b[0-9a-f]{32}\b")


def page_names():
  return [str(path.relative_to(ROOT)) for pattern in PAGES for path in sorted(ROOT.glob(pattern))]


def blocks(text):
  """The blocks of commands of a page, as lists of lines."""
  found = []
  def take(match):
    assert match.group(1), f"a block of code that does not say of what: {match.group(0)[:60]}"
    if match.group(1) in ("sh", "console"):
      found.append((match.start(), match.group(2)))
    return re.sub(r"[^\n]", "x", match.group(0))  # what is not indented cannot be found below
  # A block has a language, so that none is forgotten.
  rest = FENCE.sub(take, text)
  found += [(match.start(), re.sub(r"^ {4}", "", match.group(0), flags=re.MULTILINE)) for match in INDENTED.finditer(rest)
            if match.group(0).strip()]
  return [block.strip("\n").split("\n") for _, block in sorted(found)]


def commands(block):
  """[(command, what it prints or None)]; a command that ends in a backslash goes on in the next line."""
  shown = any(line.startswith("$ ") for line in block)
  found, goes_on = [], False
  for line in block:
    if goes_on:
      found[-1][0] += "\n" + line
    elif line.startswith("$ "):
      found.append([line[2:], []])
    elif shown:
      found[-1][1].append(line)
    elif line.strip() and not line.startswith("#"):
      found.append([line, None])
    goes_on = line.endswith("\\")
  return [(command, printed) for command, printed in found]


def without_comment(command):
  return re.sub(r"\s+# .*", "", command).strip()


class Folder:
  """Where a block runs: photos/ of three classes, shards/ packed from it (unless the block makes it), shards of another
  tool as tar and LMDB, the project's testdata/ and examples/, and `./bazelw run` with //cli:pack and //:install, which starts what was
  built."""

  def __init__(self, path, block):
    self.path, self.exported = path, ""
    self.environment = {**os.environ, "PATH": f"{path / 'bin'}:{os.environ['PATH']}", "HOME": str(path / "home"), "TERM": "dumb",
                        "LC_ALL": "C.UTF-8", "PAGER": "cat"}
    self.environment.pop("BUILD_WORKING_DIRECTORY", None)
    for name in ("bin", "home"):
      (path / name).mkdir()
    (path / "bin" / "pack").symlink_to(PACK)
    for name in ("testdata/shapes", "examples/linked"):
      shutil.copytree(ROOT / name, path / name)  # in a test's folder the files are links
    bazelw = path / "bazelw"
    bazelw.write_text('#!/bin/sh\ncommand="$1 $2 $3"; shift 3\n[ "$command" = "run //cli:pack --" ] && exec pack "$@"\n'
                      '[ "$command" = "run //:install --" ] || exit 99\n'
                      f'export BUILD_WORKING_DIRECTORY="$PWD"\ncd "{ROOT}" && exec packaging/tree/install.sh "$@"\n')
    bazelw.chmod(0o755)
    self.write_photos()
    text = "\n".join(block)
    if not re.search(r"-o shards\b", text) and text not in BEFORE:
      self.quietly("pack photos -o shards --split train=0.9,val=0.1")
    if re.search(r"imagenet-|wds/|lmdb-", text):
      self.write_foreign_shards()
    if text in BEFORE:
      self.quietly(BEFORE[text])

  def write_photos(self):
    bases = [(ROOT / "testdata" / "images" / name).read_bytes() for name in sample_images.BASES]
    for label, name in enumerate(("cat", "dog", "frog")):
      (self.path / "photos" / name).mkdir(parents=True)
      for i in [*range(1, 70), 502]:
        image = sample_images.with_comment(bases[i % len(bases)], b"%d of %d" % (i, label))
        (self.path / "photos" / name / f"{i:04d}.jpg").write_bytes(image)

  def write_foreign_shards(self):
    for target, shard, files in (("wds", "*.tar", "wds/{split}-000000.tar"), (".", "*.tar", "imagenet-{split}.tar"),
                                 (".", "*.lmdb", "lmdb-{split}")):
      for split in ("train", "val"):
        kind = "lmdb" if shard == "*.lmdb" else "webdataset"
        (self.path / target).mkdir(exist_ok=True)
        # Keys are paths, and a dataset has each once.
        self.quietly(f"pack photos -o made -f {kind} --shards 1 --include '*{'1' if split == 'train' else '2'}.jpg'")
        made, = (self.path / "made").glob(shard)
        made.rename(self.path / files.format(split=split))
        shutil.rmtree(self.path / "made")

  def quietly(self, command):
    subprocess.run(["bash", "-c", command], cwd=self.path, env=self.environment, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)

  def type(self, command):
    """(exit code, what a terminal of 200 columns shows)."""
    if command.startswith(("export ", "source ", "cd ")):
      self.exported += command + "\n"
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    script = "set -o pipefail\n" + self.exported + (command if not self.exported.endswith(command + "\n") else "")
    with subprocess.Popen(["timeout", "60", "bash", "-c", script], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=theirs, start_new_session=True) as run:
      os.close(theirs)
      shown = b""
      while True:
        try:
          piece = os.read(ours, 65536)
        except OSError:  # EIO: nobody has the other end any more
          piece = b""
        if not piece:
          break
        shown += piece
    os.close(ours)
    return run.returncode, shown.decode(errors="surrogateescape").replace("\r\n", "\n")


def comparable(text, digests):
  """The text with numbers that vary taken out, and hashes by the order in which they come."""
  return DIGEST.sub(lambda hash: digests.setdefault(hash.group(0), f"HASH-{len(digests) + 1}"), VARIABLE.sub("N", text))


class DocumentedCommands(unittest.TestCase):
  maxDiff = None

  def run_blocks(self, page, blocks_of_a_folder):
    """The blocks one after another in one folder."""
    with tempfile.TemporaryDirectory() as work:
      path = pathlib.Path(work).resolve()
      folder = Folder(path, [line for block in blocks_of_a_folder for line in block])
      on_page, printed = {}, {}
      for block in blocks_of_a_folder:
        for command, expected in commands(block):
          if without_comment(command) in NOT_RUN:
            continue
          code, shown = folder.type(command)
          # A reader that goes away early ends a pipe so.
          self.assertIn(code, (0, 141) if "| head" in command else (0,), f"{page}: {command}\n{shown}")
          if expected is None:
            continue
          shown = shown.rstrip("\n").replace(str(path), "/home/me")
          self.assertEqual(comparable("\n".join(expected), on_page), comparable(shown, printed), f"{page}: {command}")

  def test_every_block(self):
    count = 0
    for page in page_names():
      text = (ROOT / page).read_text()
      found = blocks(text)
      count += len(found)
      for together in [found] if ONE_FOLDER in text else [[block] for block in found]:
        with self.subTest(page=page, block=together[0][0]):
          self.run_blocks(page, together)
    self.assertGreater(count, 25)

  def test_what_is_not_run_is_on_a_page(self):
    typed = {without_comment(command) for page in page_names() for block in blocks((ROOT / page).read_text())
             for command, _ in commands(block)}
    self.assertEqual(set(), set(NOT_RUN) - typed)
    self.assertEqual(set(), set(BEFORE) - typed)

  def test_every_page_is_finished(self):
    for page in page_names():
      text = (ROOT / page).read_text()
      with self.subTest(page=page):
        self.assertIsNone(UNFINISHED.search(FENCE.sub("", text)))
        # A heading has something below it.
        self.assertIsNone(re.search(r"^(#+) .*\n+(?:\Z|(?=\1 ))", FENCE.sub("text\n", text), re.MULTILINE))
    for text in ("MINUTES", "TODO: measure", "to be measured"):
      self.assertIsNotNone(UNFINISHED.search(text), text)

  def test_commands_in_the_text_are_understood(self):
    """Verb, flags and values of each, by asking for help with them."""
    for page in page_names():
      text = FENCE.sub("", (ROOT / page).read_text())
      for command in sorted(set(INLINE.findall(text))):
        words = [word for word in command.split("|")[0].split()[1:] if word != "..."]
        with self.subTest(page=page, command=command):
          done = subprocess.run([PACK, *words, "--help"], capture_output=True, text=True, check=False)
          self.assertEqual(0, done.returncode, f"{command}\n{done.stderr}")

  def test_links_lead_to_pages_and_headings(self):
    anchor = lambda heading: re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    for page in page_names():
      for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", FENCE.sub("", (ROOT / page).read_text())):
        path = pathlib.Path(os.path.normpath(ROOT / pathlib.Path(page).parent / target)) if target else ROOT / page
        with self.subTest(page=page, link=target, heading=heading):
          if path.suffix == ".md" and path.is_relative_to(ROOT / "docs") and "decisions" not in path.parts:
            self.assertTrue(path.is_file())
            self.assertTrue(not heading or heading in map(anchor, re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)))

  def test_the_comparison_sees_a_difference(self):
    same = lambda a, b: comparable(a, {}) == comparable(b, {})
    self.assertTrue(same("in 0.1 s (73,259 images/s, 67.5 MB/s in), peak memory 23.5 MB", "in 1.5 s (1 images/s, 1 kB/s in), peak memory 9 MB"))
    self.assertFalse(same("60 images, 25.7 MB", "60 images, 25.8 MB"))
    first, second = "0" * 32, "1" * 32
    self.assertTrue(same(f"{first} {first}", f"{second} {second}"))
    self.assertFalse(same(f"{first} {first}", f"{first} {second}"))


if __name__ == "__main__":
  unittest.main()
