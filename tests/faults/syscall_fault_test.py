"""Each file-system call of each verb fails once, and the process is killed at those that write.

Checked each time: the exit code is 6 (or the call did not matter, and the result is that of an undisturbed run), the
inputs are as before, the same command run again ends as an undisturbed one, and nothing is left behind.

The calls are those of one recorded run. A run in CI takes a sample of them, at least one of each kind of call on each
kind of file. SHARDPACK_FAULTS=all takes every call, SHARDPACK_FAULTS=N about N a case; SHARDPACK_FAULT_CASES=build,ls
takes the cases whose names begin so. SHARDPACK_SEED: another sample (printed, to repeat a failure).
SHARDPACK_FAULT_KNOWN=0 passes over nothing that is known. By hand, after building //cli:pack and the shim:

  SHARDPACK_PACK=bazel-bin/cli/pack SHARDPACK_FAULT_SHIM=bazel-bin/tests/faults/libfault_shim.so \
    SHARDPACK_FAULT_CASES=commit SHARDPACK_FAULTS=all PYTHONPATH=tests/e2e python3 tests/faults/syscall_fault_test.py
"""

import concurrent.futures
import dataclasses
import errno
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import pack_runs
import sample_images
from pack_runs import PACK

SHIM = os.path.abspath(os.environ.get("SHARDPACK_FAULT_SHIM", "tests/faults/libfault_shim.so"))
SEED = int(os.environ.get("SHARDPACK_SEED", "11"))
HOW_MANY = os.environ.get("SHARDPACK_FAULTS", "24")
ONLY = tuple(filter(None, os.environ.get("SHARDPACK_FAULT_CASES", "").split(",")))
WORKERS = int(os.environ.get("SHARDPACK_FAULT_WORKERS", "3"))
PASS_OVER_KNOWN = os.environ.get("SHARDPACK_FAULT_KNOWN", "1") != "0"
IO_ERROR, KILLED = 6, -signal.SIGKILL
READ_ERRORS = ("read-error", "source-unreadable")
# One thread each, so that the calls come in nearly the same order each time.
ONE = ["-j", "1"]
BUILD = ["--samples-per-shard", "4", "-q", "--io-depth", "1", *ONE]

READS = ("read", "pread", "pread64", "readv", "preadv", "preadv64", "preadv2", "preadv64v2", "readdir", "readdir64",
         "getdents", "stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "fstatat", "fstatat64", "statx",
         "statvfs", "statvfs64", "access", "readlink", "readlinkat")


def actions(call):
  """What is done at a call of that name: error numbers, or words that the shim knows."""
  if call == "open":
    return [errno.EMFILE, errno.EIO]
  if call in READS:
    return [errno.EIO]
  if call.startswith("mmap"):
    return [errno.ENOMEM]
  if call in ("close", "fsync", "fdatasync"):
    return [errno.EIO, "kill-after"]
  if call == "create":
    return [errno.ENOSPC, errno.EMFILE, "kill-before", "kill-after"]
  if call in ("rename", "renameat", "renameat2", "link", "linkat", "symlink", "mkdir", "mkdirat"):
    return [errno.EIO, errno.ENOSPC, "kill-before", "kill-after", "lost"]
  return [errno.EIO, errno.ENOSPC, "kill-before", "kill-after"]


@dataclasses.dataclass(frozen=True)
class Known:
  """A defect that is known, whose checks are passed over until it is fixed."""
  case: str    # the beginning of its name
  call: str    # a pattern of "call path"
  action: str  # "error", "kill", "lost" or "" for any
  why: str


# None may be left here for long: an entry says what happens, and goes with the fix.
KNOWN = ()


def content(path):
  return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"


def tree(folder):
  """{path: a hash, or 'folder'} of all below the folder."""
  found = {}
  for path in sorted(pathlib.Path(folder).rglob("*")):
    name = path.relative_to(folder)
    if path.parent.name == ".pack" and path.name.startswith("journal"):
      # Each run of a worker has one of its own, and lines come in the order in which shards were finished.
      found.setdefault(str(name.parent / "journals"), set()).update(filter(None, path.read_bytes().splitlines()))
    else:
      found[str(name)] = content(path)
  return found


def without_state(files):
  """The same without what an unfinished dataset keeps for itself: its files are named by the process that made them."""
  return {path: hashed for path, hashed in files.items() if ".pack" not in pathlib.Path(path).parts}


def without_times(text):
  return re.sub(r"[0-9.]+ s\b", "# s", text)


class Case:
  """A command in a folder of its own. `base` is what that folder holds before; `shared` are inputs outside of it."""

  # `allowed`: exit codes of a failed call; 4 with a finding of READ_ERRORS is that of validate.
  # `then`: a second command, whose result shall be the same in the end.
  def __init__(self, name, words, base=None, reads_only=False, allowed=(IO_ERROR,), then=None):
    self.name, self.words, self.base, self.reads_only = name, words, base, reads_only
    self.allowed, self.then = allowed, then

  def fill(self, place):
    shutil.rmtree(place, ignore_errors=True)
    if self.base is None:
      place.mkdir(parents=True)
    else:
      shutil.copytree(self.base, place, symlinks=True)

  def command(self, place):
    return self.at(self.words, place)

  def files(self, place):
    """What shall be the same after each run; all of it where nothing follows."""
    return without_state(tree(place)) if self.then else tree(place)

  @staticmethod
  def at(words, place):
    return [str(word).replace("@", str(place)) for word in words]


@dataclasses.dataclass
class Result:
  code: int
  out: str
  err: str


class Reference:
  """An undisturbed run: how it ends, what there is then, and how the same command ends that finds it done."""

  def __init__(self, result, files, again, in_the_end):
    self.result, self.files, self.again, self.in_the_end = result, files, again, in_the_end

  def ends_like(self, case, got, place):
    return (got.code == self.result.code and case.files(place) == self.files and
            (not case.reads_only or without_times(got.out) == without_times(self.result.out)))


class FaultTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    cls.root = cls.scratch / "root"  # what the shim looks at
    cls.inputs = cls.root / "inputs"
    cls.logs = cls.scratch / "logs"
    cls.logs.mkdir()
    cls.inputs.mkdir(parents=True)
    make_inputs(cls.inputs)

  @classmethod
  def tearDownClass(cls):
    shutil.rmtree(cls.scratch, ignore_errors=True)

  def run_pack(self, command, **fault):
    env = dict(os.environ, LD_PRELOAD=SHIM)  # which also saves the waits for the disk
    if fault:
      env.update(SHARDPACK_FAULT_ROOT=str(self.root), **fault)
    try:
      done = subprocess.run(command, env=env, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
      return Result(None, "", "did not end in 60 s")
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

  def check_case(self, case):
    local = threading.local()
    numbers = iter(range(1_000_000))
    lock = threading.Lock()
    untouched = tree(self.inputs)

    def here():
      """This thread's folder, and how an undisturbed run ends in it."""
      if not hasattr(local, "place"):
        with lock:
          local.number = next(numbers)
        local.place = self.root / f"{case.name}-{local.number}"
        case.fill(local.place)
        result = self.run_pack(case.command(local.place))
        self.assertIn(result.code, (0, 3), f"{case.name} does not work undisturbed: {result.err}")
        files = case.files(local.place)
        again = None if case.reads_only else self.run_pack(case.command(local.place)).code
        if case.then:
          self.assertEqual(0, self.run_pack(case.at(case.then, local.place)).code)
        local.reference = Reference(result, files, again, tree(local.place))
      return local.place, local.reference

    place, _ = here()
    case.fill(place)
    log = self.logs / f"{case.name}.calls"
    self.run_pack(case.command(place), SHARDPACK_FAULT_LOG=str(log))
    calls = [line.split(" ", 2)[1:] for line in log.read_text(errors="replace").splitlines()]
    chosen = choose(calls, case)
    failures = []

    def check(number, call, path, action):
      place, want = here()
      case.fill(place)
      hit = self.logs / f"{case.name}-{local.number}.hit"
      hit.unlink(missing_ok=True)
      got = self.run_pack(case.command(place), SHARDPACK_FAULT_LOG=str(hit), SHARDPACK_FAULT_AT=str(number),
                          SHARDPACK_FAULT_DO=str(action))
      if not hit.exists():
        return None  # this run took fewer calls
      call, path = hit.read_text(errors="replace").rstrip("\n").split(" ", 2)[1:]
      if PASS_OVER_KNOWN and known_defect(case, call, path, action):
        return None
      if want.ends_like(case, got, place):
        return None  # it did not matter
      wrong = []
      if got.code == want.result.code:
        wrong.append(f"ends as if all were well, but {difference(want.files, case.files(place)) or got.out[:300]}")
      elif got.code not in ((KILLED,) if str(action).startswith("kill") else case.allowed):
        wrong.append(f"exit code {got.code}")
      elif got.code == 4 and not any(finding in got.out for finding in READ_ERRORS):
        wrong.append("exit code 4 without a finding that says so")
      elif got.code != KILLED and not got.err.strip() + got.out.strip():
        wrong.append("no message names the error")
      if not case.reads_only:
        done = case.files(place) == want.files
        again = self.run_pack(case.command(place))
        if again.code not in (want.result.code, want.again if done else want.result.code):
          wrong.append(f"the same command again: exit code {again.code}: {again.err.strip()[:300]}")
        elif case.files(place) != want.files:
          wrong.append(f"after the same command again {difference(want.files, case.files(place))}")
        elif case.then:
          end = self.run_pack(case.at(case.then, place))
          if end.code != 0 or tree(place) != want.in_the_end:
            wrong.append(f"in the end: exit code {end.code}, {difference(want.in_the_end, tree(place))}: {end.err[:200]}")
      if not wrong:
        return None
      where = path.replace(str(self.root), "")
      return (f"{case.name}: call {number}, {call} of {where}: {name_of(action)}: {'; '.join(wrong)}\n"
              f"      said: {got.err.strip()[:300]}")

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
      for failure in pool.map(lambda each: check(*each), chosen):
        if failure:
          print(failure, flush=True)  # a whole sweep takes minutes
          failures.append(failure)
    if tree(self.inputs) != untouched:
      failures.append(f"{case.name}: the inputs changed: {difference(untouched, tree(self.inputs))}")
    for number in range(next(numbers)):
      shutil.rmtree(self.root / f"{case.name}-{number}", ignore_errors=True)
    return len(calls), len(chosen), failures

  def test_every_verb(self):
    print(f"seed {SEED}, {HOW_MANY} a case", flush=True)
    total = []
    for case in cases(self.inputs):
      if ONLY and not case.name.startswith(ONLY):
        continue
      begin = time.monotonic()
      calls, checks, failures = self.check_case(case)
      print(f"{case.name}: {calls} calls, {checks} checks, {len(failures)} wrong, "
            f"{time.monotonic() - begin:.1f} s", flush=True)
      total += failures
    self.assertEqual(0, len(total), "see above")

  def test_the_shim_hits(self):
    """A check of the checker: calls are counted, and the process ends at the one that is named."""
    case = Case("shim", [PACK, self.inputs / "src", "-o", "@/out", *BUILD])
    place = self.root / "shim"
    case.fill(place)
    log = self.logs / "shim.calls"
    self.assertEqual(0, self.run_pack(case.command(place), SHARDPACK_FAULT_LOG=str(log)).code)
    lines = log.read_text().splitlines()
    self.assertGreater(len(lines), 100)
    case.fill(place)
    hit = self.logs / "shim.hit"
    got = self.run_pack(case.command(place), SHARDPACK_FAULT_AT="100", SHARDPACK_FAULT_DO="kill-before",
                        SHARDPACK_FAULT_LOG=str(hit))
    self.assertEqual(KILLED, got.code)
    self.assertRegex(hit.read_text(), r"^100 [a-z0-9]+ /.*\n$")


def name_of(action):
  return action if isinstance(action, str) else errno.errorcode[action]


def known_defect(case, call, path, action):
  kind = ("lost" if action == "lost" else "kill") if isinstance(action, str) else "error"
  return next((known for known in KNOWN if case.name.startswith(known.case) and
               re.search(known.call, f"{call} {path}") and known.action in ("", kind)), None)


def difference(want, got):
  missing = [name for name in want if name not in got]
  more = [name for name in got if name not in want]
  other = [name for name in want if name in got and want[name] != got[name]]
  return ", ".join(f"{word} {', '.join(names[:4])}" for word, names in
                   (("missing:", missing), ("left behind:", more), ("other bytes:", other)) if names)


def choose(calls, case):
  """All pairs of a call and what is done at it, or a sample with one of each kind of call and file at least."""
  numbers = random.Random(f"{SEED} {case.name}")
  groups = {}
  for number, (call, path) in enumerate(calls, 1):
    for action in actions(call):
      if case.reads_only and isinstance(action, str):
        continue  # nothing is written that could be left half done
      role = re.sub(r"[0-9]+", "#", path)
      groups.setdefault((call, role, name_of(action)), []).append((number, call, path, action))
  if HOW_MANY == "all":
    return sorted((each for group in groups.values() for each in group), key=lambda each: each[0])
  kinds = list(groups.values())
  numbers.shuffle(kinds)
  wanted = int(HOW_MANY)
  chosen = []
  while kinds and len(chosen) < wanted:
    for group in kinds:
      if group and len(chosen) < wanted:
        chosen.append(group.pop(numbers.randrange(len(group))))
    kinds = [group for group in kinds if group]
  return chosen


# ---- the cases

def undisturbed(*words):
  pack_runs.run([PACK, *words, "-q"], expect=0)


def make_inputs(inputs):
  source = inputs / "src"
  sample_images.write_class_folders(source, pack_runs.TESTDATA, 12, classes=2, seed=4)
  for image in source.rglob("*.jpg"):
    image.with_suffix(".txt").write_text(f"a caption of {image.name}\n")
  (inputs / "list.csv").write_text("path,label\n" + "".join(
      f"{image.relative_to(source)},{image.parent.name}\n" for image in sorted(source.rglob("*.jpg"))))
  (inputs / "classes.txt").write_text("class-0\nclass-1\n")
  subprocess.run(["tar", "-C", str(source), "-cf", str(inputs / "src.tar"), "."], check=True)
  build = ["--samples-per-shard", "4", "--no-fsync"]
  for fmt in ("webdataset", "tfrecord", "lmdb", "hdf5"):
    undisturbed(source, "-o", inputs / fmt, "-f", fmt, *build)
    foreign = inputs / f"foreign-{fmt}"
    shutil.copytree(inputs / fmt, foreign)
    (foreign / "manifest.json").unlink()
    for index in foreign.rglob("*.pidx"):
      index.unlink()
  undisturbed("plan", source, *build[:2], "--write", inputs / "plan")
  for fmt in ("webdataset", "hdf5"):
    # A shard, the index of another one, and both of a third.
    out = inputs / f"damaged-{fmt}" / "out"
    shutil.copytree(inputs / fmt, out)
    for shard, suffixes in ((0, ("shard",)), (1, ("index",)), (2, ("shard", "index"))):
      names = json.loads((out / "manifest.json").read_text())["shards"][shard]
      for suffix in suffixes:
        (out / (names["name"] if suffix == "shard" else names["index"]["name"])).unlink()
  workers = inputs / "workers"
  undisturbed("build", "--plan", inputs / "plan", "-o", workers / "out", "--shards-range", "0-0", "--no-fsync")
  undisturbed("build", "--plan", inputs / "plan", "-o", workers / "out", "--shards-range", "1-2", "--no-fsync")
  older = inputs / "older"  # what --overwrite replaces
  undisturbed(source, "-o", older / "out", "--samples-per-shard", "3", "--no-fsync")
  for fmt in ("webdataset", "lmdb"):
    (inputs / f"place-{fmt}").mkdir()
    shutil.copytree(inputs / f"foreign-{fmt}", inputs / f"place-{fmt}" / "out")


def cases(inputs):
  source = inputs / "src"
  copied = inputs / "copied"  # packed before its source lost its times
  shutil.copytree(source, inputs / "copied-src")
  undisturbed(inputs / "copied-src", "-o", copied / "out", "--samples-per-shard", "4", "--no-fsync")
  for path in (inputs / "copied-src").rglob("*.*"):
    os.utime(path, (1, 1))
  yield Case("build-webdataset", [PACK, source, "-o", "@/out", *BUILD, "--sha256", "--sidecar-index", "dali,wids"])
  yield Case("build-tfrecord", [PACK, source, "-o", "@/out", *BUILD, "-f", "tfrecord"])
  yield Case("build-lmdb", [PACK, source, "-o", "@/out", *BUILD, "-f", "lmdb"])
  yield Case("build-hdf5", [PACK, source, "-o", "@/out", *BUILD, "-f", "hdf5"])
  yield Case("build-npy", [PACK, source, "-o", "@/out", *BUILD, "-f", "npy", "--encode", "raw", "--resize", "crop",
                           "--size", "8x8", "--color", "rgb"])
  yield Case("build-probe", [PACK, source, "-o", "@/out", *BUILD, "--dedupe", "report", "--min-size", "2"])
  yield Case("build-sidecars", [PACK, source, "-o", "@/out", *BUILD, "--fields", "txt", "--classes",
                                inputs / "classes.txt"])
  yield Case("build-list", [PACK, inputs / "list.csv", "--root", source, "-o", "@/out", *BUILD])
  yield Case("build-archive", [PACK, inputs / "src.tar", "-o", "@/out", *BUILD, "--input-format", "archive"])
  yield Case("build-overwrite", [PACK, source, "-o", "@/out", *BUILD, "--overwrite"], base=inputs / "older")
  yield Case("build-compare", [PACK, inputs / "copied-src", "-o", "@/out", *BUILD, "--compare"], base=inputs / "copied")
  yield Case("plan", [PACK, "plan", source, "--samples-per-shard", "4", "-q", "--write", "@/plan"])
  yield Case("build-plan", [PACK, "build", "--plan", inputs / "plan", "-o", "@/out", "-q", "--io-depth", "1", *ONE])
  yield Case("build-range", [PACK, "build", "--plan", inputs / "plan", "-o", "@/out", "-q", "--io-depth", "1", *ONE,
                             "--shards-range", "0-2"], then=[PACK, "commit", "@/out", "-q"])
  yield Case("commit", [PACK, "commit", "@/out", "-q", "--io-depth", "1"], base=inputs / "workers")
  for fmt in ("webdataset", "hdf5"):
    # What cannot be read of the source or of the dataset is damage to be repaired or listed, as any other.
    yield Case(f"repair-{fmt}", [PACK, "repair", "@/out", "-q", "--io-depth", "1", *ONE],
               base=inputs / f"damaged-{fmt}", allowed=(IO_ERROR, 3))
  yield Case("convert", [PACK, "convert", inputs / "webdataset", "-o", "@/out", "-f", "tfrecord", *BUILD])
  yield Case("convert-lmdb", [PACK, "convert", inputs / "lmdb", "-o", "@/out", *BUILD])
  yield Case("convert-foreign", [PACK, "convert", *sorted((inputs / "foreign-hdf5").iterdir()), "-o", "@/out", *BUILD])
  yield Case("index-place", [PACK, "index", "@/out", "-q", *ONE], base=inputs / "place-webdataset")
  yield Case("index-lmdb", [PACK, "index", "@/out", "-q", *ONE], base=inputs / "place-lmdb")
  yield Case("index-out", [PACK, "index", inputs / "foreign-tfrecord", "-o", "@/out", "-q", *ONE])
  for fmt in ("webdataset", "hdf5"):
    yield Case(f"validate-{fmt}", [PACK, "validate", inputs / fmt, "-q", *ONE], reads_only=True,
               allowed=(IO_ERROR, 4))
  yield Case("validate-deep", [PACK, "validate", inputs / "lmdb", "-q", *ONE, "--level", "deep", "--against", source],
             reads_only=True, allowed=(IO_ERROR, 4))
  yield Case("validate-quick", [PACK, "validate", inputs / "tfrecord", "-q", *ONE, "--level", "quick"],
             reads_only=True, allowed=(IO_ERROR, 4))
  yield Case("validate-foreign", [PACK, "validate", *sorted((inputs / "foreign-tfrecord").iterdir()), "-q", *ONE],
             reads_only=True, allowed=(IO_ERROR, 4))
  yield Case("extract", [PACK, "extract", inputs / "webdataset", "@/out", "-q"])
  yield Case("info", [PACK, "info", inputs / "webdataset"], reads_only=True)
  yield Case("ls", [PACK, "ls", inputs / "webdataset", "--long"], reads_only=True)
  yield Case("ls-foreign", [PACK, "ls", *sorted((inputs / "foreign-tfrecord").iterdir())], reads_only=True)
  yield Case("cat", [PACK, "cat", inputs / "webdataset", "--record", "5"], reads_only=True)


if __name__ == "__main__":
  for needed in (PACK, SHIM):
    if not os.access(needed, os.R_OK):
      sys.exit(f"{needed} is missing; run through Bazel, or set SHARDPACK_PACK, SHARDPACK_TESTDATA and "
               "SHARDPACK_FAULT_SHIM")
  unittest.main(verbosity=2)
