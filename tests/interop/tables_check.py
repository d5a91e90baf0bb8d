"""Datasets in other programs: tables in pyarrow, Polars and DuckDB, sources in Grain, rows in Hugging Face's datasets.

check(program, module, pythons, results): `module` is the folder in which the package is. `pythons`: name -> Python.
"""

import os
import pathlib
import re
import subprocess
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "python" / "tests"


def check(program, module, pythons, results):
  for name, python in (("arrow", "tables"), ("grain", "tables"), ("hf", "datasets")):
    with tempfile.TemporaryDirectory(prefix="shardpack-tables-") as work:
      # The test looks for the command where Bazel puts it.
      command = pathlib.Path(work, "cli", "pack")
      command.parent.mkdir()
      command.symlink_to(program)
      run = subprocess.run([pythons[python], TESTS / f"{name}_test.py"], cwd=work, env={**os.environ, "PYTHONPATH": str(module), "TEST_TMPDIR": work},
                           capture_output=True, text=True, check=False)
    ran = re.search(r"Ran (\d+) tests", run.stderr)
    good = run.returncode == 0 and ran and int(ran[1]) > 3
    last = (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
    results.add(("module", name, "", f"python/tests/{name}_test.py", ran[1] if ran else ""), None if good else last)
