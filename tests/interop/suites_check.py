"""Frameworks take the package's datasets and loaders for their own: their tests (suites.py, and those that Grain's wheel brings,
grain_suite.py), the examples of the adapters' docstrings, and those of docs/ that need a framework.

check(program, module, pythons, results): `module` is the folder in which the package is. `pythons`: name -> Python.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import environments

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "python" / "tests"))
import example_shards  # noqa: E402  pylint: disable=wrong-import-position

# What runs, the environments whose packages it has, the first of which has the Python, and how many tests there are at least.
SUITES = (
    ("torch", ["suites.py", "TorchDataLoader"], ("torch",), 5),
    ("torchdata", ["suites.py", "StatefulDataLoader"], ("frameworks", "torch"), 2),
    ("Grain", ["suites.py", "Grain"], ("tables",), 1),
    ("Grain's own tests", ["grain_suite.py", "source"], ("tables", "suites"), 15),
    ("Grain's own tests", ["grain_suite.py", "data_sources"], ("tables", "suites"), 7),
    ("torch", [ROOT / "python/tests/doctest_test.py", "torch", "torchdata", "lightning"], ("frameworks", "torch"), 4),
    ("transformers", [ROOT / "python/tests/doctest_test.py", "transformers"], ("torch", "transformers"), 4),
    ("JAX", [ROOT / "python/tests/doctest_test.py", "jax"], ("frameworks",), 4),
    ("Grain", [ROOT / "python/tests/doctest_test.py", "grain"], ("tables",), 4),
    ("HF datasets", [ROOT / "python/tests/doctest_test.py", "hf"], ("datasets",), 4),
    ("TensorFlow", [ROOT / "python/tests/doctest_test.py", "tf"], ("tensorflow",), 4),
    ("torch, pycocotools, transformers", [ROOT / "tests/docs/python_page.py", "torch", "coco", "transformers"],
     ("torch", "augmenters", "transformers"), 2),
    ("Grain's own tests", ["grain_suite.py", "data_loader"], ("tables", "suites"), 100),
)
RAN = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)


def write_numbered(program, work):
  """The dataset `numbered`: 100 samples in order, each with its number in the field txt."""
  photos = work / "numbers"
  photos.mkdir()
  image = (ROOT / "testdata" / "images" / "baseline.jpg").read_bytes()
  for number in range(100):
    (photos / f"{number:02d}.jpg").write_bytes(image)
    (photos / f"{number:02d}.txt").write_text(str(number))
  subprocess.run([program, photos, "-o", work / "numbered", "-q", "--fields", "txt", "--no-shuffle"], check=True, stdout=subprocess.DEVNULL)


def check(program, module, pythons, results):
  with tempfile.TemporaryDirectory(prefix="shardpack-suites-") as work:
    work = pathlib.Path(work)
    (work / "cli").mkdir()  # where Bazel puts it
    (work / "cli" / "pack").symlink_to(program)
    example_shards.make(work, program)
    write_numbered(program, work)
    for framework, (script, *words), needed, least in SUITES:
      ran, trouble = run(HERE / script, words, [pythons[name] for name in needed], module, work, program)
      if not trouble and ran < least:
        trouble = f"only {ran} tests ran"
      results.add(("suites", framework, "", f"{pathlib.Path(script).name} {' '.join(words)}", ran), trouble)


def run(script, words, pythons, module, work, program):
  """(number of tests, trouble)"""
  path = ":".join([str(module), str(HERE), *map(environments.packages, pythons)])
  environment = {**os.environ, "PYTHONPATH": path, "SHARDPACK_PACK": str(program), "PYTHONDONTWRITEBYTECODE": "1",
                 "TMPDIR": str(work), "TF_CPP_MIN_LOG_LEVEL": "3", "HF_HOME": str(work / "huggingface")}
  done = subprocess.run([pythons[0], script, *words], cwd=work, env=environment, capture_output=True, text=True, check=False)
  ran = RAN.search(done.stderr + done.stdout)
  trouble = None if done.returncode == 0 and ran else f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-1500:]}"
  return int(ran[1]) if ran else 0, trouble
