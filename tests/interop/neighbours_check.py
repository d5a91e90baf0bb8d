"""shardpack works in one process with the libraries that a training program loads, in any order of the imports: several bring
libraries of their own that shardpack has too (libtiff, libjpeg, HDF5, Abseil, zlib).

check(program, module, wheel, pythons, results): `module` is the folder in which the package is, with the system's libraries; the
wheel has its own, which each neighbour meets alone too, and may be None. `pythons`: name -> Python.
"""

import pathlib
import subprocess
import tempfile
import zipfile

import environments

HERE = pathlib.Path(__file__).resolve().parent
# The environments, in the order in which modules are looked for.
ENVIRONMENTS = ("torch", "tensorflow", "readers", "datasets", "neighbours")
NEIGHBOURS = ("torch", "tensorflow", "h5py", "cv2", "pyarrow")


def orders(pairs):
  """shardpack before each neighbour, and after, for `pairs`; before, amid and after all of them, these in both orders."""
  for name in NEIGHBOURS if pairs else ():
    yield ("shardpack", name)
    yield (name, "shardpack")
  for names in (NEIGHBOURS, NEIGHBOURS[::-1]):
    yield ("shardpack", *names)
    yield (*names[:2], "shardpack", *names[2:])
    yield (*names, "shardpack")


def check(program, module, wheel, pythons, results):
  neighbours = [environments.packages(pythons[name]) for name in ENVIRONMENTS]
  with tempfile.TemporaryDirectory(prefix="shardpack-neighbours-") as work:
    images, shards = pathlib.Path(work, "images"), pathlib.Path(work, "shards")
    for number, name in enumerate(("baseline.jpg", "gray16.png", "lossy.webp", "deflate-rgba.tif", "interlaced.gif", "palette.bmp")):
      place = images / ("cat", "dog")[number % 2] / name
      place.parent.mkdir(parents=True, exist_ok=True)
      place.write_bytes((HERE.parent.parent / "testdata" / "images" / name).read_bytes())
    subprocess.run([program, images, "-o", shards, "-q", "--image-field", "img"], check=True, stdout=subprocess.DEVNULL)
    packages = {"module": module}
    if wheel:
      packages["wheel"] = pathlib.Path(work, "wheel")
      zipfile.ZipFile(wheel).extractall(packages["wheel"])
    for name, package in packages.items():
      paths = [package, *neighbours]
      alone, trouble = load(("shardpack",), shards, work, pythons["torch"], paths)
      results.add(("neighbours", "", name, "shardpack", ""), trouble)
      for order in orders(pairs=package is not module or not wheel):
        pixels, trouble = load(order, shards, work, pythons["torch"], paths)
        if not trouble and pixels != alone:
          trouble = f"the pixels are {pixels}, and without neighbours {alone}"
        results.add(("neighbours", "", name, ", ".join(order), ""), trouble)


def load(order, shards, work, python, paths):
  """(hash of the pixels, trouble)."""
  run = subprocess.run([python, HERE / "neighbours.py", shards, work, *order], capture_output=True, text=True, check=False,
                       env={"PATH": "/usr/bin:/bin", "HOME": work, "PYTHONPATH": ":".join(map(str, paths)), "TF_CPP_MIN_LOG_LEVEL": "3"})
  trouble = None if run.returncode == 0 else f"exit code {run.returncode}: {run.stderr.strip()[-300:]}"
  return run.stdout.strip(), trouble
