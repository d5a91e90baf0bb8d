"""Ctrl-C while a read hangs: KeyboardInterrupt comes, nothing is lost, and the interpreter ends."""

import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy
import PIL.Image

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
SECONDS = 100  # for what takes less than five, or for ever

OPEN = """
import os, signal, sys
import shardpack
signal.signal(signal.SIGINT, signal.default_int_handler)  # the caller of the test may ignore it
waiting = False
def handler(number, frame):
  global waiting
  if waiting:
    waiting = False
    raise KeyboardInterrupt
def next_is_interrupted(loader):
  global waiting
  try:
    waiting = True
    next(loader)
  except KeyboardInterrupt:
    print("interrupted", flush=True)
dataset = shardpack.Dataset(sys.argv[1])
order = shardpack.Order(len(dataset), 4, seed=1)
def loader(**options):
  return shardpack.Loader(dataset, order, **options)
def device_loader(**options):
  return shardpack.DeviceLoader(loader(decode=shardpack.Decode(8, 8), device=shardpack.Device("cpu")), **options)
def hang():
  open(os.environ["HANG_WHEN"], "w").close()
"""


def setUpModule():
  for n in range(40):
    folder = WORK / "images" / "ab"[n % 2]
    folder.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(numpy.full((9, 9, 3), n, numpy.uint8)).save(folder / f"{n}.png")
  subprocess.run(["cli/pack", WORK / "images", "-o", WORK / "shards", "-q"], check=True, stdout=subprocess.DEVNULL)


class InterruptTest(unittest.TestCase):

  def start(self, program):
    folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    for pipe in ("reached", "until"):
      os.mkfifo(folder / pipe)
    names = {f"HANG_{name.upper()}": str(folder / name) for name in ("when", "reached", "until")}
    run = subprocess.Popen([sys.executable, "-c", OPEN + program, str(WORK / "shards")], text=True,
                           env={**os.environ, **names, "LD_PRELOAD": os.path.abspath("python/libhang_reads.so")},
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    self.addCleanup(run.wait)
    self.addCleanup(run.kill)
    for stream in (run.stdin, run.stdout, run.stderr):
      self.addCleanup(stream.close)
    return run, folder

  def hangs(self, folder):
    with open(folder / "reached") as reached:
      reached.read()

  def interrupt(self, run, folder):
    """Until it says so: the first signals may come before it waits, and its handler does not mind."""
    if folder:
      self.hangs(folder)
    else:
      self.assertEqual(run.stdout.readline(), "ready\n")
    for _ in range(10 * SECONDS):
      run.send_signal(signal.SIGINT)
      if select.select([run.stdout], [], [], 0.1)[0]:
        break
    self.assertEqual(run.stdout.readline(), "interrupted\n")

  def end(self, run):
    try:
      return run.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
      run.kill()
      self.fail(f"it did not end: {run.communicate()}")

  def test_next_is_interrupted_and_goes_on(self):
    run, folder = self.start("""
signal.signal(signal.SIGINT, handler)
hang()
all = loader(epochs=1)
next_is_interrupted(all)
input()
print([batch.step for batch in all])
""")
    self.interrupt(run, folder)
    until = os.open(folder / "until", os.O_RDWR)  # from now on nothing hangs there
    (folder / "when").unlink()
    run.stdin.write("\n")
    out, errors = self.end(run)
    os.close(until)
    self.assertEqual((run.returncode, out), (0, f"{list(range(10))}\n"), errors)

  def test_a_loader_whose_read_hangs_is_let_go_and_the_interpreter_ends(self):
    for made in ("loader()", "loader(decode=shardpack.Decode(8, 8))"):
      with self.subTest(made):
        run, folder = self.start(f"""
signal.signal(signal.SIGINT, handler)
hang()
all = {made}
next_is_interrupted(all)
del all
print("closed", flush=True)
""")
        self.interrupt(run, folder)
        out, errors = self.end(run)
        self.assertEqual((run.returncode, out, errors), (0, "closed\n", ""))

  def test_a_device_loader_whose_memory_is_held_is_interrupted(self):
    run, _ = self.start("""
signal.signal(signal.SIGINT, handler)
print("ready", flush=True)
all = device_loader(prefetch_batches=1)
held = [next(all), next(all), next(all)]  # all that there is memory for
next_is_interrupted(all)
input()
held.clear()
print(next(all).step)
""")
    self.interrupt(run, None)
    run.stdin.write("\n")  # after its line was read: communicate() knows nothing of what readline() has buffered
    out, errors = self.end(run)
    self.assertEqual((run.returncode, out), (0, "3\n"), errors)

  def test_synchronize_is_interrupted(self):
    run, _ = self.start("""
import time
from shardpack import _c, _library
def hangs(handle, wait_ms, error):  # as long as it is told to wait
  time.sleep(1000 if wait_ms < 0 else wait_ms / 1000)
  return _c.WAIT
signal.signal(signal.SIGINT, handler)
batch = next(device_loader())
there, _library.library.batch_synchronize = _library.library.batch_synchronize, hangs
print("ready", flush=True)
try:
  waiting = True
  batch.synchronize()
except KeyboardInterrupt:
  print("interrupted", flush=True)
_library.library.batch_synchronize = there
input()
batch.synchronize()
print(batch.step)
""")
    self.interrupt(run, None)
    run.stdin.write("\n")
    out, errors = self.end(run)
    self.assertEqual((run.returncode, out), (0, "0\n"), errors)

  def test_a_for_over_load_is_interrupted_and_goes_on(self):
    run, folder = self.start("""
signal.signal(signal.SIGINT, handler)
hang()
all = shardpack.load(sys.argv[1], batch=4, threads=1)
def first(loader):
  for batch in loader:
    return batch
try:
  waiting = True
  first(all)
except KeyboardInterrupt:
  print("interrupted", flush=True)
state = all.state_dict()
input()
print([batch.step for batch in all], state["cursor"].split(":")[4:6])
""")
    self.interrupt(run, folder)
    until = os.open(folder / "until", os.O_RDWR)
    (folder / "when").unlink()
    run.stdin.write("\n")
    out, errors = self.end(run)
    os.close(until)
    self.assertEqual((run.returncode, out), (0, f"{list(range(10))} ['0', '0']\n"), errors)

  def test_close_of_a_loader_whose_read_hangs_ends(self):
    for how in ("all.close()", "all.__exit__(None, None, None)"):
      with self.subTest(how):
        run, folder = self.start(f"""
signal.signal(signal.SIGINT, handler)
hang()
all = shardpack.load(sys.argv[1], batch=4)
next_is_interrupted(all)
{how}
print(all, flush=True)
""")
        self.interrupt(run, folder)
        out, errors = self.end(run)
        self.assertEqual((run.returncode, out), (0, "<Loader: the loader is closed>\n"), errors)
        self.assertEqual(errors.count("a read does not end"), 1, errors)

  def test_close_is_interrupted_and_can_be_repeated(self):
    run, folder = self.start("""
signal.signal(signal.SIGINT, handler)
hang()
all = shardpack.load(sys.argv[1], batch=4)
next_is_interrupted(all)
input()
try:
  waiting = True
  all.close()
except KeyboardInterrupt:
  print("interrupted", flush=True)
print(all)
all.close()
print(all)
""")
    self.interrupt(run, folder)
    run.stdin.write("\n")
    run.stdin.flush()
    for _ in range(10 * SECONDS):
      run.send_signal(signal.SIGINT)
      if select.select([run.stdout], [], [], 0.1)[0]:
        break
    out, errors = self.end(run)
    # On a busy machine the signal may come when it has just been closed.
    self.assertRegex(out, r"^interrupted\n<Loader(: the loader is closed| at epoch 0, step 0)>\n<Loader: the loader is closed>\n$", errors)
    self.assertEqual(run.returncode, 0)

  def test_opening_is_interrupted(self):
    for made in ("device_loader()", "shardpack.ResidentLoader(dataset, order, shardpack.Device('cpu'), 8, 8)"):
      with self.subTest(made):
        run, folder = self.start(f"""
hang()
all = {made}
""")
        self.hangs(folder)
        run.send_signal(signal.SIGINT)
        _, errors = self.end(run)
        self.assertEqual(run.returncode, -signal.SIGINT, errors)
        self.assertIn("KeyboardInterrupt", errors)

  def test_an_exception_of_a_handler_is_raised(self):
    run, folder = self.start("""
def raising(number, frame):
  raise TimeoutError("enough")
signal.signal(signal.SIGINT, raising)
try:
  hang()
  all = loader()
  next(all)
except TimeoutError as error:
  print(error)
""")
    self.hangs(folder)
    run.send_signal(signal.SIGINT)
    out, errors = self.end(run)
    self.assertEqual((run.returncode, out), (0, "enough\n"), errors)


if __name__ == "__main__":
  unittest.main()
