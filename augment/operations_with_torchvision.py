"""Prints what torchvision makes of a small image: a line per operation, PROGRAM, a tab, the RGB bytes in hex.

Run by hand with the Python of `tests/interop/venv torch`; program_test.cc compares with
testdata/operations_torchvision.txt, and tests/interop/augment_check.py with photographs and the installed torchvision.

usage: operations_with_torchvision.py >testdata/operations_torchvision.txt
"""

import math
import re

import numpy
import torch
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F

BILINEAR, NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def image(width, height):
  """The image of TestImage in program_test.cc."""
  y, x, c = numpy.meshgrid(numpy.arange(height), numpy.arange(width), numpy.arange(3), indexing="ij")
  return ((x * 11 + y * 7 * (c + 1) + ((x * y * (c + 3)) ^ (x + y * 5)) % 61) % 256).astype(numpy.uint8)


def shear(pixels, x, y):
  return F.affine(pixels, angle=0.0, translate=[0, 0], scale=1.0, center=[0, 0],
                  shear=[math.degrees(math.atan(x)), math.degrees(math.atan(y))])


def move(pixels, x, y):
  return F.affine(pixels, angle=0.0, translate=[x, y], scale=1.0, shear=[0.0, 0.0])


def perspective(pixels, corners, **options):
  height, width = pixels.shape[-2:]
  start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
  return F.perspective(pixels, start, [corners[i:i + 2] for i in range(0, 8, 2)], **options)


def noise(seed, count):
  """SampleRandom({seed}, 0 ... count - 1) of images/augment/random_numbers.cc."""
  golden = numpy.uint64(0x9E3779B97F4A7C15)

  def mixed(x):
    x = (x ^ x >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
    return x ^ x >> numpy.uint64(31)

  state = numpy.array([seed], numpy.uint64)
  for _ in range(3):
    state = mixed(state + golden)
  return mixed(state + numpy.arange(1, count + 1, dtype=numpy.uint64) * golden)


def elastic(pixels, alpha, sigma, seed, **options):
  """torchvision's ElasticTransform.make_params and transform of a square image, with the noise of augment/elastic_field.cc."""
  height, width = pixels.shape[-2:]
  random = noise(seed, height * width)
  moves = [torch.from_numpy((part.astype(numpy.float32) * numpy.float32(2**-23) - numpy.float32(1)).reshape(1, 1, height, width))
           for part in (random >> numpy.uint64(40), random & numpy.uint64(0xFFFFFF))]
  if sigma > 0:
    size = int(8 * sigma + 1) | 1
    moves = [F.gaussian_blur(move, [size, size], [sigma, sigma]) for move in moves]
  field = torch.concat([moves[0] * alpha / width, moves[1] * alpha / height], 1).permute([0, 2, 3, 1])
  return F.elastic(pixels, field, fill=0, **options)


def blended(pixels, chains, weight):
  """The sum of torchvision's AugMix: (weight, function) of each chain, and the image's own weight."""
  mixed = torch.tensor(weight) * pixels
  for share, function in chains:
    mixed.add_(torch.tensor(share) * function(pixels))
  return mixed.to(torch.uint8)


class ReplayedAugMix(v2.AugMix):
  """torchvision's AugMix, whose random numbers are what a program of aug_mix(severity, depth=) says."""

  NAMES = {"shear_x": "ShearX", "shear_y": "ShearY", "translate_x": "TranslateX", "translate_y": "TranslateY", "rotate": "Rotate",
           "brightness": "Brightness", "saturation": "Color", "contrast": "Contrast", "sharpness": "Sharpness", "posterize": "Posterize",
           "solarize": "Solarize", "autocontrast": "AutoContrast", "equalize": "Equalize"}
  # What an operation's parameter is, of torchvision's magnitude.
  SHOWN = {"TranslateX": int, "TranslateY": int, "Solarize": lambda magnitude: 255 * magnitude,
           **dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), lambda magnitude: 1 + magnitude)}

  def __init__(self, program, severity, depth, interpolation):
    calls = [(name, float(value or 0)) for name, value in re.findall(r"(\w+)(?:\(([^,)]*)[^)]*\))?", program)]
    weights = [value for name, value in calls if name == "chain"]
    super().__init__(severity, len(weights), depth, interpolation=interpolation)
    self.weights = iter(([calls[-1][1], 1.0], weights))
    self.items = iter([call for call in calls if call[0] not in ("chain", "blend")])

  def _sample_dirichlet(self, params):
    return torch.tensor([next(self.weights)])

  def _get_random_item(self, dct):
    name, value = next(self.items)
    kind = self.NAMES[name]
    magnitudes, signed = dct[kind]
    return kind, (lambda bins, height, width: self.chosen(kind, value, magnitudes(bins, height, width), signed), False)

  def chosen(self, kind, value, magnitudes, signed):
    """Those of torchvision's magnitudes that the program has drawn, in every bin."""
    if magnitudes is None:
      return None
    for bin_ in range(self.severity):
      for sign in (1, -1) if signed else (1,):
        if self.SHOWN.get(kind, float)(sign * float(magnitudes[bin_])) == value:
          return torch.full((10,), sign * float(magnitudes[bin_]))
    raise ValueError(f"torchvision has no {kind} of {value}: {magnitudes}")


def operations():
  for f in (0, 0.1, 0.55, 1.37, 1.9):
    yield f"brightness({f})", lambda p, f=f: F.adjust_brightness(p, f)
    yield f"contrast({f})", lambda p, f=f: F.adjust_contrast(p, f)
    yield f"saturation({f})", lambda p, f=f: F.adjust_saturation(p, f)
    yield f"sharpness({f})", lambda p, f=f: F.adjust_sharpness(p, f)
  for h in (-0.5, -0.27, -0.1, 0.1, 0.5):
    yield f"hue({h})", lambda p, h=h: F.adjust_hue(p, h)
  for bits in (0, 1, 4, 7, 8):
    yield f"posterize({bits})", lambda p, b=bits: F.posterize(p, b)
  for t in (0, 51, 127.5, 204, 255):
    yield f"solarize({t})", lambda p, t=t: F.solarize(p, t)
  for g in (0.4, 0.9, 1.0, 1.6, 2.5):
    yield f"gamma({g})", lambda p, g=g: F.adjust_gamma(p, g)
  yield "gamma(0.8, 1.2)", lambda p: F.adjust_gamma(p, 0.8, 1.2)
  yield "invert", F.invert
  yield "autocontrast", F.autocontrast
  yield "equalize", F.equalize
  yield "grayscale", lambda p: F.rgb_to_grayscale(p, num_output_channels=3)
  for s in (-0.3, -0.09, 0.09, 0.3, 0.99):
    yield f"shear_x({s})", lambda p, s=s: shear(p, s, 0.0)
    yield f"shear_y({s})", lambda p, s=s: shear(p, 0.0, s)
  for t in (-20, -3, 1, 4, 8):
    yield f"translate_x({t})", lambda p, t=t: move(p, t, 0)
    yield f"translate_y({t})", lambda p, t=t: move(p, 0, t)
  for d in (-135, -29, -9, 9, 27.5):
    yield f"rotate({d})", lambda p, d=d: F.rotate(p, d)
  for d in (-31, 9, 13):
    yield (f"affine({d}, 2, -1, 1.2, 5, 3)",
           lambda p, d=d: F.affine(p, angle=d, translate=[2, -1], scale=1.2, shear=[5.0, 3.0]))
  yield "rotate(9, 0, 128)", lambda p: F.rotate(p, 9, fill=128)
  yield "affine(4, 0, 0, 1.3, 0, 0, 1)", lambda p: F.affine(p, angle=4, translate=[0, 0], scale=1.3, shear=[0.0, 0.0], interpolation=BILINEAR)
  # Not such that a source lies halfway between two pixels, where the rounding of torchvision's 32-bit coefficients would decide.
  corners = [1, 2, 11, 0, 10, 9, 2, 10]
  yield "perspective(1, 2, 11, 0, 10, 9, 2, 10, 0)", lambda p: perspective(p, corners, interpolation=NEAREST)
  yield "perspective(1, 2, 11, 0, 10, 9, 2, 10, 0, 90)", lambda p: perspective(p, corners, interpolation=NEAREST, fill=90)
  yield "flip_horizontal", F.horizontal_flip
  yield "flip_vertical", F.vertical_flip
  yield ("erase(3, 2, 5, 4, 10, 20, 30)",
         lambda p: F.erase(p, 2, 3, 4, 5, torch.tensor([10, 20, 30], dtype=torch.uint8)[:, None, None]))
  yield "rotate(-9) equalize brightness(1.3)", lambda p: F.adjust_brightness(F.equalize(F.rotate(p, -9)), 1.3)
  yield ("brightness(0.7) contrast(1.4) hue(0.05) saturation(0.6)",
         lambda p: F.adjust_saturation(F.adjust_hue(F.adjust_contrast(F.adjust_brightness(p, 0.7), 1.4), 0.05), 0.6))
  yield ("chain(0.25) invert chain(0.125) translate_x(4) equalize blend(0.625)",
         lambda p: blended(p, ((0.25, F.invert), (0.125, lambda q: F.equalize(move(q, 4, 0)))), 0.625))


def larger_operations():
  """The same for images of 224 x 224, that of OpenCV among them, and those whose definition is of square images."""
  for corners in ([20, 31, 200, 5, 223, 180, 2, 223], [0, 0, 150, 40, 160, 220, 30, 200], [56, 56, 167, 56, 223, 223, 0, 223]):
    text = ", ".join(str(corner) for corner in corners)
    yield f"perspective({text}, 0)", lambda p, c=corners: perspective(p, c, interpolation=NEAREST)
    yield f"perspective({text})", lambda p, c=corners: perspective(p, c, interpolation=BILINEAR)
  for kernel, sigma in ((3, 0.5), (5, 2.0), (23, 0.1), (23, 1.05), (23, 2.0), (99, 20.0)):
    yield f"gaussian_blur({kernel}, {sigma})", lambda p, k=kernel, s=sigma: F.gaussian_blur(p, [k, k], [s, s])
  for alpha, sigma in ((50, 5), (200, 8), (30, 0), (0, 3)):
    yield f"elastic({alpha}, {sigma}, 77)", lambda p, a=alpha, s=sigma: elastic(p, a, s, 77, interpolation=BILINEAR)
    yield f"elastic({alpha}, {sigma}, 77, 0)", lambda p, a=alpha, s=sigma: elastic(p, a, s, 77, interpolation=NEAREST)


def main():
  pixels = torch.from_numpy(image(13, 11)).permute(2, 0, 1).contiguous()
  for text, function in operations():
    made = function(pixels.clone()).permute(1, 2, 0).contiguous().numpy()
    print(text, made.tobytes().hex(), sep="\t")


if __name__ == "__main__":
  main()
