#!/usr/bin/env python3
"""How long photographs with label maps take, 512 x 512, with one random crop and flip for both: shardpack beside torchvision v2 in a DataLoader.

  ./bazelw build //python:shardpack //cli:pack && python3 benchmarks/python/segmentation.py --images FOLDER [--reps 3]

FOLDER has JPEGs of some hundred pixels a side, in class folders or not. Each gets a label map of its size, 21 classes in patches, as a PNG.
Epochs of all images in random order; two workers or threads; runs alternate, each in a process of its own; its first epoch does not count.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIDE, BATCH, EPOCHS, CLASSES = 512, 16, 3, 21


def label_map(width, height, seed):
  import numpy  # pylint: disable=import-outside-toplevel
  patches = numpy.random.default_rng(seed).integers(0, CLASSES, (height // 24 + 1, width // 24 + 1), numpy.uint8)
  return patches.repeat(24, 0).repeat(24, 1)[:height, :width]


def make(images, work):
  import PIL.Image  # pylint: disable=import-outside-toplevel
  import shardpack  # pylint: disable=import-outside-toplevel
  (work / "files").mkdir()
  with shardpack.Writer(work / "packed", fields={"mask": "png"}) as writer:
    for number, path in enumerate(sorted(path for path in images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))):
      with PIL.Image.open(path) as image:
        if image.mode != "RGB":
          continue
        labels = label_map(*image.size, number)
      data = path.read_bytes()
      (work / "files" / f"{number:05}.jpg").write_bytes(data)
      PIL.Image.fromarray(labels).save(work / "files" / f"{number:05}.png")
      writer.add(f"{number:05}", data, mask=labels)


def batches_of_shardpack(work, workers):
  import shardpack  # pylint: disable=import-outside-toplevel
  loader = shardpack.load(work / "packed", batch=BATCH, size=SIDE, flip=0.5, fields=("image", "mask"), decode_fields={"mask": "labels"},
                          epochs=EPOCHS, threads=workers, to="torch")
  for _ in range(EPOCHS):
    yield ((batch.images, batch.masks) for batch in loader)


def batches_of_torchvision(work, workers):
  import torch  # pylint: disable=import-outside-toplevel
  import torchvision  # pylint: disable=import-outside-toplevel
  from torchvision.transforms import v2  # pylint: disable=import-outside-toplevel
  torch.set_num_threads(1)
  augment = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()])

  class Files(torch.utils.data.Dataset):
    def __init__(self):
      self.paths = sorted((work / "files").glob("*.jpg"))

    def __len__(self):
      return len(self.paths)

    def __getitem__(self, number):
      path = self.paths[number]
      image = torchvision.io.decode_jpeg(torchvision.io.read_file(str(path)), torchvision.io.ImageReadMode.RGB)
      labels = torchvision.io.decode_png(torchvision.io.read_file(str(path.with_suffix(".png"))))
      return augment(image, torchvision.tv_tensors.Mask(labels[0]))

  loader = torch.utils.data.DataLoader(Files(), BATCH, shuffle=True, num_workers=workers, persistent_workers=True, prefetch_factor=4)
  for _ in range(EPOCHS):
    yield loader


LOADERS = {"shardpack": batches_of_shardpack, "torchvision v2": batches_of_torchvision}


def measure(name, work, workers):
  rates = []
  for epoch in LOADERS[name](work, workers):
    begin, samples, total = time.perf_counter(), 0, 0
    for images, masks in epoch:
      assert images.numel() == 3 * masks.numel() == 3 * len(images) * SIDE * SIDE
      total += int(images.reshape(-1)[::4096].sum()) + int(masks.reshape(-1)[::4096].max())
      samples += len(images)
    rates.append(samples / (time.perf_counter() - begin))
  return statistics.median(rates[1:])


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--images", type=pathlib.Path)
  parser.add_argument("--reps", type=int, default=3)
  parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
  parser.add_argument("--module", default=ROOT / "bazel-bin/python/site")
  parser.add_argument("--pack", default=ROOT / "bazel-bin/cli/pack")
  parser.add_argument("--one", help=argparse.SUPPRESS)
  parser.add_argument("--work", type=pathlib.Path, help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.one:
    print(json.dumps(make(options.images, options.work) if options.one == "make" else measure(options.one, options.work, options.threads)))
    return
  python = subprocess.run([ROOT / "tests/interop/venv", "torch"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
  environment = {**os.environ, "PYTHONPATH": str(options.module), "SHARDPACK_PACK": str(pathlib.Path(options.pack).resolve())}
  with tempfile.TemporaryDirectory() as work:
    def run(name):
      words = [python, __file__, "--one", name, "--work", work, "--images", options.images, "--threads", options.threads]
      printed = subprocess.run(list(map(str, words)), env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
      return json.loads(printed.splitlines()[-1])
    run("make")
    rounds = [{name: run(name) for name in LOADERS} for _ in range(options.reps)]
  ratios = [each["shardpack"] / each["torchvision v2"] for each in rounds]
  for name in LOADERS:
    print(f"{name}: {statistics.median(each[name] for each in rounds):,.0f} images/s")
  print(f"ratio {statistics.median(ratios):.2f}, {min(ratios):.2f} .. {max(ratios):.2f}; to reach: 2")


if __name__ == "__main__":
  sys.exit(main())
