"""Every operation of augment/ against the installed torchvision, and those of OpenCV against the installed cv2, on photographs: how many values
differ, and by how much.

check(module, folders, pythons, results): `module` is the folder in which the package is, `folders` have images. `pythons`: name -> Python.
Run with such a Python, torchvision or cv2, and the folders as arguments, it is the comparison itself: a line per operation, NAME, WORST, SHARE.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIDE, IMAGES = 224, 20
# Levels off, and the share of values that may be; the rest are equal. A warp may take the neighbour of a pixel on an edge.
LIMITS = {"saturation": (1, 0.01), "hue": (1, 0.001), "grayscale": (1, 1e-4), "sharpness": (1, 0.001), "rotate": (255, 0.002),
          "affine": (255, 0.001), "bilinear": (1, 0.06), "several": (2, 0.02), "gaussian_blur": (1, 0.05), "perspective": (255, 0.001),
          "elastic": (255, 0.001), "smooth perspective": (1, 0.06), "smooth elastic": (255, 0.06), "clahe": (2, 0.5),
          "aug_mix": (255, 0.01), "smooth aug_mix": (255, 0.1)}
# Warps that are bilinear unless this parameter says otherwise.
SMOOTH = {"perspective": 8, "elastic": 3}
# What torchvision and cv2 make of the same images, in the Python that has them.
PEERS = {"torchvision": "torch", "cv2": "neighbours"}


def check(module, folders, pythons, results):
  # Where //augment/opencv is built, beside the package.
  opencv = module.resolve().parent.parent / "augment/opencv"
  environment = {**os.environ, "PYTHONPATH": f"{module}:{ROOT / 'augment'}", "LD_LIBRARY_PATH": str(opencv)}
  for peer, python in PEERS.items():
    run = subprocess.run([pythons[python], __file__, peer, *folders], env=environment, capture_output=True, text=True, check=False)
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    for name, worst, share in lines:
      levels, limit = LIMITS.get(name, (0, 0))
      good = int(worst) <= levels and float(share) <= limit
      results.add(("module", peer, "", f"augment {name}", f"{float(share):.4%}"),
                  None if good else f"{float(share):.4%} of the values differ, by {worst} levels at most; the limits are {limit:.4%} and {levels}")
    if run.returncode or len(lines) < (20 if peer == "torchvision" else 2):
      results.add(("module", peer, "", "augment", ""), (run.stderr.strip().splitlines() or ["too few operations"])[-1])


def kind_of(text):
  if text.startswith("chain("):
    return "smooth aug_mix" if ", 1)" in text else "aug_mix"
  if " " in text.replace(", ", ","):
    return "several"
  name, _, values = text.partition("(")
  if name in SMOOTH:
    numbers = values.rstrip(")").split(", ")
    return f"smooth {name}" if numbers[SMOOTH[name]:][:1] in ([], ["1"]) else name
  return "bilinear" if text.endswith(", 1)") else name


def with_torchvision():
  import operations_with_torchvision as operations  # pylint: disable=import-outside-toplevel
  import shardpack  # pylint: disable=import-outside-toplevel
  import torch  # pylint: disable=import-outside-toplevel
  torch.set_num_threads(1)

  def of(function):
    return lambda image: function(torch.from_numpy(image).permute(2, 0, 1).contiguous()).permute(1, 2, 0).numpy()
  for text, function in (*operations.operations(), *operations.larger_operations()):
    yield text, of(function)
  for bilinear, interpolation in ((1, operations.BILINEAR), (0, operations.NEAREST)):
    for severity, depth in ((3, 2), (10, 1), (10, 3)):
      for number in range(8):
        text = shardpack.Augment().aug_mix(severity, chain_depth=depth, bilinear=bilinear).draw(1, 0, number, SIDE, SIDE)
        yield text, of(lambda p, made=(text, severity, depth, interpolation): operations.ReplayedAugMix(*made)(p))


def with_cv2():
  import cv2  # pylint: disable=import-outside-toplevel,import-error
  cv2.setNumThreads(1)
  for kernel in (3, 5, 9, 23):
    yield f"median({kernel})", lambda image, k=kernel: cv2.medianBlur(image, k)

  def clahe(image, clip, tiles):
    parts = list(cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb)))
    parts[0] = cv2.createCLAHE(clip, (tiles, tiles)).apply(parts[0])
    return cv2.cvtColor(cv2.merge(parts), cv2.COLOR_YCrCb2RGB)
  for clip, tiles in ((1, 8), (4, 8), (2, 3), (40, 8)):
    yield f"clahe({clip}, {tiles})", lambda image, c=clip, t=tiles: clahe(image, c, t)


def main(peer, folders):
  import numpy  # pylint: disable=import-outside-toplevel
  import shardpack  # pylint: disable=import-outside-toplevel
  images = photographs(folders)
  found = {}
  for text, function in (with_torchvision if peer == "torchvision" else with_cv2)():
    worst, different, total = found.get(kind_of(text), (0, 0, 0))
    for image in images:
      off = numpy.abs(shardpack.apply_program(text, image.copy()).astype(int) - function(image))
      worst, different, total = max(worst, int(off.max())), different + int((off > 0).sum()), total + off.size
    found[kind_of(text)] = worst, different, total
  for name, (worst, different, total) in found.items():
    print(name, worst, different / total, sep="\t")


def photographs(folders):
  """Of files that Pillow can decode; where it is not, or there are none, drawings."""
  import numpy  # pylint: disable=import-outside-toplevel
  try:
    import PIL.Image  # pylint: disable=import-outside-toplevel
  except ImportError:
    folders = []
  files = sorted(path for folder in folders for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpeg", ".jpg", ".png"))
  images = []
  for path in files[::max(1, len(files) // IMAGES)]:
    try:
      images.append(numpy.array(PIL.Image.open(path).convert("RGB").resize((SIDE, SIDE), PIL.Image.BICUBIC)))
    except OSError:
      continue  # broken on purpose
  if images:
    return images
  y, x, c = numpy.meshgrid(numpy.arange(SIDE), numpy.arange(SIDE), numpy.arange(3), indexing="ij")
  waves = numpy.sin(x / 9 + c) + numpy.sin(y / 13 - c) + numpy.sin((x + y) / 31) + numpy.sin(x * y / 900) / 2
  return [(128 + 36 * waves + 24 * ((x // 40 + y // 50) % 2)).clip(0, 255).astype(numpy.uint8)]


if __name__ == "__main__":
  main(sys.argv[1], sys.argv[2:])
