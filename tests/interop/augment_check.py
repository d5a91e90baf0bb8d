"""Every operation of augment/ against the installed torchvision, on photographs: how many values differ, and by how much.

check(module, folders, pythons, results): `module` is the folder in which the package is, `folders` have images. `pythons`: name -> Python.
Run with that Python and the folders as arguments, it is the comparison itself: a line per operation, NAME, WORST, SHARE.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIDE, IMAGES = 224, 20
# Levels off, and the share of values that may be; the rest are equal. A warp may take the neighbour of a pixel on an edge.
LIMITS = {"saturation": (1, 0.01), "hue": (1, 0.001), "grayscale": (1, 1e-4), "sharpness": (1, 0.001), "rotate": (255, 0.002),
          "affine": (255, 0.001), "bilinear": (1, 0.06), "several": (2, 0.02)}


def check(module, folders, pythons, results):
  run = subprocess.run([pythons["torch"], __file__, *folders], env={**os.environ, "PYTHONPATH": f"{module}:{ROOT / 'augment'}"},
                       capture_output=True, text=True, check=False)
  lines = [line.split("\t") for line in run.stdout.splitlines()]
  for name, worst, share in lines:
    levels, limit = LIMITS.get(name, (0, 0))
    good = int(worst) <= levels and float(share) <= limit
    results.add(("module", "torchvision", "", f"augment {name}", f"{float(share):.4%}"),
                None if good else f"{float(share):.4%} of the values differ, by {worst} levels at most; the limits are {limit:.4%} and {levels}")
  if run.returncode or len(lines) < 15:
    results.add(("module", "torchvision", "", "augment", ""), (run.stderr.strip().splitlines() or ["too few operations"])[-1])


def kind_of(text):
  if " " in text.replace(", ", ","):
    return "several"
  return "bilinear" if text.endswith(", 1)") else text.partition("(")[0]


def main(folders):
  import numpy  # pylint: disable=import-outside-toplevel
  import operations_with_torchvision  # pylint: disable=import-outside-toplevel
  import PIL.Image  # pylint: disable=import-outside-toplevel
  import shardpack  # pylint: disable=import-outside-toplevel
  import torch  # pylint: disable=import-outside-toplevel
  torch.set_num_threads(1)
  files = sorted(path for folder in folders for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpeg", ".jpg", ".png"))
  images = []
  for path in files[::max(1, len(files) // IMAGES)]:
    try:
      images.append(numpy.array(PIL.Image.open(path).convert("RGB").resize((SIDE, SIDE), PIL.Image.BICUBIC)))
    except OSError:
      continue  # broken on purpose
  if not images:
    images = [operations_with_torchvision.image(SIDE, SIDE)]
  found = {}
  for text, function in operations_with_torchvision.operations():
    worst, different, total = found.get(kind_of(text), (0, 0, 0))
    for image in images:
      wanted = function(torch.from_numpy(image).permute(2, 0, 1).contiguous()).permute(1, 2, 0).numpy()
      off = numpy.abs(shardpack.apply_program(text, image.copy()).astype(int) - wanted)
      worst, different, total = max(worst, int(off.max())), different + int((off > 0).sum()), total + off.size
    found[kind_of(text)] = worst, different, total
  for name, (worst, different, total) in found.items():
    print(name, worst, different / total, sep="\t")


if __name__ == "__main__":
  main(sys.argv[1:])
