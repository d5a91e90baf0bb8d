"""Packs, validates and converts with a `pack` that was installed somewhere, as a user would."""

import os
import pathlib
import subprocess

FORMATS = ("tfrecord", "lmdb", "hdf5", "webdataset")
# Of every codec one; the archive goes through libarchive.
IMAGES = ("baseline.jpg", "gray16.png", "lossy.webp", "deflate-rgba.tif", "interlaced.gif", "palette.bmp")


def run(*command, **options):
  """Its output. Nothing of the environment but PATH, so that no library is found by chance."""
  done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                        errors="surrogateescape", env={"PATH": options.pop("path", "/usr/bin:/bin"), "LC_ALL": "C"},
                        check=False, **options)
  if done.returncode != 0:
    raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
  return done.stdout


def round_trip(pack, images, work):
  """Through all formats and back; the folder that comes out has the bytes that went in."""
  work = pathlib.Path(work)
  for number, name in enumerate(IMAGES):
    place = work / "src" / ("cat", "dog")[number % 2] / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes((pathlib.Path(images) / name).read_bytes())
  run("tar", "-C", work / "src", "-czf", work / "src.tar.gz", ".")
  run(pack, "src.tar.gz", "-o", "start", "--sha256", cwd=work)
  last = "start"
  for name in FORMATS:
    run(pack, "convert", last, "-o", name, "-f", name, cwd=work)
    run(pack, "validate", name, "--against", "src", cwd=work)
    last = name
  run(pack, last, "-o", "pixels", "-f", "npy", "--encode", "raw", "--color", "rgb", "--depth", "8", "--resize", "exact",
      "--size", "8", cwd=work)
  run(pack, "extract", last, "-o", "back", cwd=work)
  for path in (work / "src").rglob("*.*"):
    back = work / "back" / path.relative_to(work / "src")
    if not back.exists() or back.read_bytes() != path.read_bytes():
      raise AssertionError(f"{back} is not {path}; there are {sorted(os.listdir(work / 'back'))}")
