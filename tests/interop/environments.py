"""The environments that ./venv makes."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# What the benchmarks have too.
PEERS = {name: str(HERE.parent.parent / "benchmarks" / "peers" / f"requirements-{name}.txt") for name in ("dali-images", "streaming")}


def python_of(name, venv=HERE / "venv"):
  """The Python of an environment, which is made where it is missing; without a name, this one."""
  if name is None:
    return sys.executable
  return subprocess.run([str(venv), PEERS.get(name, name)], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def packages(python):
  """The folder of its packages, for the path of another one."""
  return str(next(pathlib.Path(python).parent.parent.glob("lib/python3*/site-packages")))
