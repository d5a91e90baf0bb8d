"""The Python package with the frameworks that it has adapters for, each in its own process, by the programs of frameworks/.

check(program, module, pythons, results): `module` is the folder in which the package is; `pythons`: name -> Python. Alone:

  frameworks_check.py PACK MODULE [NAME...]     # programs by name, such as use_torch; all without
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import environments

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900
# Each program, and the environments whose packages it needs: Python is the first one's.
PROGRAMS = {
    "use_torch": ("torch",),
    "use_torchdata": ("torch", "frameworks"),
    "use_torchvision": ("torch",),
    "use_lightning": ("torch", "frameworks"),
    "use_transformers": ("torch", "transformers"),
    "use_jax": ("frameworks",),
    "use_tensorflow": ("tensorflow",),
}


def make_shards(program, work):
  """60 images of three classes in two splits, with boxes, captions and masks: noise, in which every pixel tells its place."""
  sys.path.insert(0, str(HERE.parent.parent / "python" / "tests"))
  import example_shards  # pylint: disable=import-outside-toplevel
  import numpy  # pylint: disable=import-outside-toplevel
  import PIL.Image  # pylint: disable=import-outside-toplevel
  photos = work / "photos"
  example_shards.write_photos(photos)
  for number, photo in enumerate(sorted(photos.glob("*/*.??g"))):
    size = PIL.Image.open(photo).size[::-1]
    noise = numpy.random.default_rng(number).integers(0, 256, size, numpy.uint8)
    PIL.Image.fromarray(noise).save(photo.with_suffix(".mask.png"))
  subprocess.run([
      program, photos, "-o", work / "shards", "-q", "--fields", "json,txt,mask.png:mask", "--image-field", "img", "--split",
      "train=0.8,val=0.2", "--split-by", "stratified"
  ], check=True, stdout=subprocess.DEVNULL)
  return work / "shards"


def run(name, program, module, pythons, shards):
  """None, or what went wrong."""
  needed = PROGRAMS[name]
  path = ":".join(map(str, (module, *(environments.packages(pythons[each]) for each in needed[1:]))))
  environment = {
      **os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3", "SHARDPACK_PACK": str(program), "CUDA_VISIBLE_DEVICES": ""
  }
  try:
    ended = subprocess.run([pythons[needed[0]], HERE / "frameworks" / f"{name}.py", shards], env=environment, capture_output=True,
                           text=True, check=False, timeout=SECONDS)
  except subprocess.TimeoutExpired:
    return f"took more than {SECONDS} s"
  return None if ended.returncode == 0 else f"exit code {ended.returncode}: {ended.stderr.strip()[-1000:]}"


def check(program, module, pythons, results, names=tuple(PROGRAMS)):
  with tempfile.TemporaryDirectory(prefix="shardpack-frameworks-") as work:
    shards = make_shards(program, pathlib.Path(work))
    for name in names:
      results.add(("frameworks", PROGRAMS[name][-1], "", f"frameworks/{name}.py", ""), run(name, program, module, pythons, shards))


def main(program, module, *names):
  import interop_check  # pylint: disable=import-outside-toplevel
  names = names or tuple(PROGRAMS)
  pythons = {each: environments.python_of(each) for name in names for each in PROGRAMS[name]}
  results = interop_check.Results()
  check(pathlib.Path(program).resolve(), pathlib.Path(module).resolve(), pythons, results, names)
  results.print_table()
  print(f"{results.passed} passed, {results.failed} failed")
  return 1 if results.failed else 0


if __name__ == "__main__":
  sys.exit(main(*sys.argv[1:]))
