"""The package's types, as its users' tools see them: mypy --strict over the package, the examples and types_of_users.py, stubtest, which compares the
types with the names at run time, and pyright's verdict on whether the types of all public names are complete.

check(module, pythons, results): `module` is the folder in which the package is. `pythons`: name -> Python.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# NumPy's and torch's types are those of the environment of torch; the other frameworks are not there.
CONFIG = """
[mypy]
strict = True
pretty = False
cache_dir = {cache}

# torch has functions without types, backward() for one.
untyped_calls_exclude = torch

[mypy-shardpack.adapters.*]
# Classes of frameworks that are not there.
disallow_subclassing_any = False

[mypy-shardpack.ray]
disallow_untyped_decorators = False

[mypy-{frameworks}]
ignore_missing_imports = True
follow_imports = skip
"""
FRAMEWORKS = ("accelerate", "datasets", "fsspec", "grain", "jax", "jaxlib", "lightning", "pandas", "pytorch_lightning", "pyarrow", "pyspark", "ray",
              "tensorflow", "torchdata", "tqdm", "transformers")


def check(module, pythons, results):
  with tempfile.TemporaryDirectory(prefix="shardpack-types-") as work:
    work = pathlib.Path(work)
    for name, absent in (("mypy", FRAMEWORKS), ("stubtest", (*FRAMEWORKS, "PIL", "torch"))):  # stubtest imports what it has itself
      (work / f"{name}.ini").write_text(CONFIG.format(cache=work / name, frameworks=",".join(f"{each}.*" for each in absent)))
    environment = {**os.environ, "MYPYPATH": str(module), "PYTHONPATH": str(module), "PYTHONDONTWRITEBYTECODE": "1"}
    python, options = pythons["types"], ["--config-file", work / "mypy.ini", "--python-executable", pythons["torch"]]
    for name, words in (
        ("shardpack", ["-m", "mypy", *options, "-p", "shardpack"]),
        ("examples", ["-m", "mypy", *options, *EXAMPLES]),
        ("a user's program", ["-m", "mypy", *options, HERE / "types_of_users.py"]),
        ("stubtest", ["-m", "mypy.stubtest", "--mypy-config-file", work / "stubtest.ini", "--allowlist",
                      HERE / "stubtest_allowed.txt", "shardpack"]),
    ):
      results.add(("types", "mypy", "", name, ""), trouble_of(run([python, *words], work, environment)))
    results.add(("types", "pyright", "", "public names", ""), incomplete(python, module, work))


def run(words, work, environment):
  return subprocess.run([str(word) for word in words], cwd=work, env=environment, capture_output=True, text=True, check=False)


def trouble_of(done):
  if done.returncode == 0 and re.search(r"(?i)success: no issues", done.stdout):
    return None
  return f"exit code {done.returncode}: {(done.stdout.strip() or done.stderr.strip())[-1500:]}"


def incomplete(python, module, work):
  """Public names whose type pyright does not know, or only in part; adapters have base classes of frameworks that are not there."""
  program = pathlib.Path(python).with_name("basedpyright")
  environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(module)}
  done = run([program, "--pythonpath", python, "--outputjson", "--ignoreexternal", "--verifytypes", "shardpack"], work, environment)
  try:
    report = json.loads(done.stdout)["typeCompleteness"]
  except (ValueError, KeyError):
    return f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}"
  if report["exportedSymbolCounts"]["withKnownType"] < 20:
    return f"it looked at {report['exportedSymbolCounts']}"
  unknown = [f"{symbol['name']}: {'; '.join(each['message'] for each in symbol['diagnostics'][:1])}" for symbol in report["symbols"]
             if symbol["isExported"] and not symbol["isTypeKnown"] and not symbol["name"].startswith("shardpack.adapters.")]
  return f"{len(unknown)} names without a complete type, first {unknown[:5]}" if unknown else None
