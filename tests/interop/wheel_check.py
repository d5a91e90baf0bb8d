"""auditwheel, with which PyPI's platform tags are checked, finds the tag of the wheel to be true; and the wheel installs
under each other Python that is there.

check(wheel, python, results): `python` has auditwheel (requirements-wheel.txt).
"""

import pathlib
import re
import shutil
import subprocess
import tempfile

PYTHONS = [f"python3.{minor}" for minor in range(9, 16)]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# All that can be done without NumPy, which is not there.
READ = """
import sys, shardpack
dataset = shardpack.Dataset(sys.argv[1])
assert len({bytes(dataset[i]["fields"]["image"]) for i in range(len(dataset))}) == 60
loader = shardpack.Loader(dataset, shardpack.Order(len(dataset), global_batch=10, seed=1))
assert len(list(loader)) == 6
"""
LINE = re.compile(r'is consistent with\s+the following platform tag:\s+"([\w.]+)"')


def check(wheel, python, results):
  results.add(("auditwheel", "", "wheel", pathlib.Path(wheel).name, ""), tag_trouble(wheel, python))
  for name in PYTHONS:
    if works(name):
      results.add((name, "", "wheel", pathlib.Path(wheel).name, ""), install_trouble(wheel, name))


def works(name):
  return shutil.which(name) and subprocess.run([name, "-c", "import venv"], capture_output=True, check=False).returncode == 0


def tag_trouble(wheel, python):
  run = subprocess.run([python, "-m", "auditwheel", "show", wheel], capture_output=True, text=True, check=False)
  found = LINE.search(run.stdout)
  tag = pathlib.Path(wheel).stem.split("-")[-1]
  return None if found and found[1] == tag else f"the name says {tag}, auditwheel: {run.stdout} {run.stderr}"


def install_trouble(wheel, name):
  with tempfile.TemporaryDirectory(prefix="shardpack wheel ") as venv:
    bin_folder = pathlib.Path(venv, "bin")
    shards = pathlib.Path(venv, "shards")
    for command in ([name, "-m", "venv", venv], [bin_folder / "pip", "install", "--no-index", "--quiet", wheel],
                    [bin_folder / "shardpack", ROOT / "testdata" / "shapes", "-o", shards, "-q"],
                    [bin_folder / "python", "-c", READ, shards], [bin_folder / "python", "-m", "shardpack", "validate", shards]):
      run = subprocess.run(command, capture_output=True, text=True, check=False)
      if run.returncode != 0:
        return f"{command}: {run.stdout} {run.stderr}"
  return None
