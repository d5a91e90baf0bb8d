"""The Python package where torch and NumPy 2 are (its own test runs with the distribution's NumPy 1), and the example that trains.

check(program, module, python, results): `module` is the folder in which the package is.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINE = re.compile(r"epoch (\d+) step (\d+): (\d+) images, loss ([\d.]+)")
BATCH = 16


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
  """Two epochs at once, and one killed after a few steps and run again: the same steps, and the same loss in the end."""
  images = work / "images"
  subprocess.run([python, "-c", """
import pathlib, sys, numpy, PIL.Image
for n in range(100):
  folder = pathlib.Path(sys.argv[1]) / 'abc'[n % 3]
  folder.mkdir(parents=True, exist_ok=True)
  PIL.Image.fromarray(numpy.random.default_rng(n).integers(0, 255, (40, 40, 3), numpy.uint8)).save(folder / f'{n}.png')
""", images], check=True)
  subprocess.run([program, images, "-o", work / "shards", "-q"], check=True, stdout=subprocess.DEVNULL)

  def train(folder, steps=None):
    folder.mkdir(exist_ok=True)
    with subprocess.Popen([python, ROOT / "examples" / "train_torch.py", work / "shards"], cwd=folder, text=True,
                          env={**os.environ, "PYTHONPATH": module}, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
      lines = []
      for line in run.stdout:
        lines.append(LINE.fullmatch(line.strip()))
        if len(lines) == steps:
          run.kill()
      trouble = run.stderr.read()
      if run.wait() != 0 and steps is None:
        return trouble.strip().splitlines()[-1]
      return [(int(m[1]), int(m[2]), int(m[3]), m[4]) for m in lines]

  whole = train(work / "whole")
  if [row[:3] for row in whole] != [(epoch, step, BATCH) for epoch in range(2) for step in range(6)]:
    return f"trained {whole}"
  first = train(work / "killed", steps=4)
  again = train(work / "killed")
  shutil.rmtree(work / "killed")
  # The last batch before the kill may have come before its checkpoint.
  if whole[len(whole) - len(again):] != again or len(first) + len(again) - len(whole) not in (0, 1):
    return f"went on with {again} after {first}; at once it was {whole}"
  return None
