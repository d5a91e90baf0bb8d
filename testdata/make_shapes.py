#!/usr/bin/env python3
"""Makes testdata/shapes/: 3 classes of 20 small drawings, the folder that README's first commands pack.

    python3 testdata/make_shapes.py        # needs Pillow; run from any folder, writes beside itself

The outputs are committed, so neither building nor testing needs Python or Pillow. Deterministic for one version of Pillow.
"""

import math
import pathlib
import random

from PIL import Image, ImageDraw

OUT = pathlib.Path(__file__).resolve().parent / "shapes"
CORNERS = {"circle": 48, "square": 4, "triangle": 3}
COUNT, SIZE, SCALE = 20, 64, 4  # drawn larger, so that edges are smooth


def background(numbers):
    """A gradient between two soft colors."""
    first, last = ([numbers.randrange(150, 256) for _ in range(3)] for _ in range(2))
    mask = Image.linear_gradient("L").rotate(numbers.choice((0, 90, 180, 270))).resize((SIZE * SCALE,) * 2)
    return Image.composite(*(Image.new("RGB", mask.size, tuple(color)) for color in (first, last)), mask)


def drawing(corners, numbers):
    image = background(numbers)
    radius = numbers.uniform(0.2, 0.4) * image.width
    x, y = (numbers.uniform(radius, image.width - radius) for _ in range(2))
    turn = numbers.uniform(0, 2 * math.pi)
    angles = [turn + 2 * math.pi * corner / corners for corner in range(corners)]
    color = tuple(numbers.randrange(0, 150) for _ in range(3))
    ImageDraw.Draw(image).polygon([(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles], fill=color)
    return image.resize((SIZE, SIZE), Image.LANCZOS)


def main():
    numbers = random.Random(1)
    for name, corners in CORNERS.items():
        (OUT / name).mkdir(parents=True, exist_ok=True)
        for i in range(COUNT):
            drawing(corners, numbers).save(OUT / name / f"{i:02d}.jpg", quality=85)


if __name__ == "__main__":
    main()
