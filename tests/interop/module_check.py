"""The Python package where torch and NumPy 2 are (its own test runs with the distribution's NumPy 1), and the example that trains.

check(program, module, python, results): `module` is the folder in which the package is.
"""

import os
import pathlib
import re
import signal
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINE = re.compile(r"epoch (\d+) step (\d+): loss ([\d.]+)")
EPOCH = re.compile(r"epoch (\d+) trained, .* images/s, accuracy ([\d.]+)")
STEPS, CADENCE = 5, 2  # of an epoch of 80 images in batches of 16; between checkpoints


def check(program, module, python, results):
  with tempfile.TemporaryDirectory(prefix="shardpack-module-") as work:
    work = pathlib.Path(work)
    results.add(("module", "NumPy 2", "", "python/tests/loader_test.py", ""), own_test(program, module, python, work))
    results.add(("module", "torch", "", "examples/train_torch.py", ""), training(program, module, python, work))


def last_words(run):
  return (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]


def own_test(program, module, python, work):
  # It looks for the command where Bazel puts it.
  (work / "cli").mkdir()
  (work / "cli" / "pack").symlink_to(program)
  run = subprocess.run([python, ROOT / "python" / "tests" / "loader_test.py"], cwd=work, env={**os.environ, "PYTHONPATH": module},
                       capture_output=True, text=True, check=False)
  ran = re.search(r"Ran (\d+) tests", run.stderr)
  return None if run.returncode == 0 and ran and int(ran[1]) > 5 else last_words(run)


def training(program, module, python, work):
  """Two epochs at once, and killed after a few steps and run again, by as many processes and by more: the same steps with the same loss.
  After the last epoch it says so, and goes on with more."""
  images = work / "images"
  subprocess.run([python, "-c", """
import pathlib, sys, numpy, PIL.Image
for n in range(100):
  folder = pathlib.Path(sys.argv[1]) / 'abcd'[n % 4]
  folder.mkdir(parents=True, exist_ok=True)
  PIL.Image.fromarray(numpy.random.default_rng(n).integers(0, 255, (40, 40, 3), numpy.uint8)).save(folder / f'{n}.png')
""", images], check=True)
  subprocess.run([program, images, "-o", work / "shards", "-q", "--split", "train=0.8,val=0.2", "--split-by", "stratified"], check=True,
                 stdout=subprocess.DEVNULL)
  whole = train(module, python, work, "whole")
  if isinstance(whole, str) or [row[:2] for row in whole] != [(epoch, step) for epoch in range(2) for step in range(STEPS)]:
    return f"trained {whole}"
  for processes in (1, 2):
    said = subprocess.run(command(python, work, processes), cwd=work / "whole", env=environment(module), capture_output=True, text=True, check=False)
    expected = "training is complete: checkpoint.pt has 2 epochs; --epochs 4 goes on with it, and another --checkpoint starts anew\n"
    if said.returncode != 0 or said.stdout != expected:
      return f"of a training that is complete it says {said.stdout!r} and {last_words(said)}"
  more = train(module, python, work, "whole", options=("--epochs", "4"))
  if isinstance(more, str) or [row[:2] for row in more] != [(epoch, step) for epoch in (2, 3) for step in range(STEPS)]:
    return f"with more epochs it trained {more}"
  for before, after in ((1, 1), (1, 2), (2, 1)):
    folder = f"{before}-{after}"
    first = train(module, python, work, folder, processes=before, kill_after=4)
    again = train(module, python, work, folder, processes=after)
    if isinstance(again, str):
      return f"{before} processes, then {after}: {again}"
    # Up to CADENCE steps are done again; the last line before the kill may have come before its checkpoint.
    repeated = len(first) + len(again) - len(whole)
    expected = whole[len(whole) - len(again):]
    if [row[:2] for row in again] != [row[:2] for row in expected] or not 0 <= repeated <= CADENCE:
      return f"{before} processes, then {after}: went on with {again} after {first}; at once it was {whole}"
    # Sums of floating-point numbers in another order differ a little.
    if max(abs(a[2] - b[2]) for a, b in zip(again, expected)) > (0 if before == after else 2e-3):
      return f"{before} processes, then {after}: the losses are {again}; at once they were {expected}"
  return None


def command(python, work, processes):
  words = [python] if processes == 1 else [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
  return words + [ROOT / "examples" / "train_torch.py", work / "shards", "--global-batch", "16", "--log-steps", "1",
                  "--checkpoint-steps", str(CADENCE)]


def environment(module):
  return {**os.environ, "PYTHONPATH": str(module), "OMP_NUM_THREADS": "1"}


def train(module, python, work, folder, processes=1, kill_after=None, options=()):
  """[(epoch, step, loss)] of a run, or what went wrong."""
  folder = work / folder
  folder.mkdir(exist_ok=True)
  with open(folder / "stderr", "w+", encoding="utf-8") as errors, \
      subprocess.Popen([*command(python, work, processes), *options], cwd=folder, text=True, env=environment(module),
                       stdout=subprocess.PIPE, stderr=errors, start_new_session=True) as run:
    rows, epochs = [], 0
    for line in run.stdout:
      found = LINE.fullmatch(line.strip())
      if found:
        rows.append((int(found[1]), int(found[2]), float(found[3])))
      epochs += bool(EPOCH.fullmatch(line.strip()))
      if len(rows) == kill_after:
        os.killpg(run.pid, signal.SIGKILL)
        break
    if kill_after is None and (run.wait() != 0 or not rows or epochs != 1 + rows[-1][0] - rows[0][0]):
      errors.seek(0)
      return f"exit code {run.returncode}, {epochs} epochs ended: {errors.read().strip()[-600:]}"
  return rows
