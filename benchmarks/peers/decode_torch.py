"""Training pixels with torch's DataLoader over class folders: torchvision's own decoder, or PIL (see measure.py)."""

import torch
import torchvision
from torchvision.transforms import v2

import measure


class Pixels:

  def __init__(self, options):
    torch.set_num_threads(1)
    augment = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    if options.kind == "augmented":
      augment += [v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandAugment(2, 9)]
    if options.kind == "pil":
      dataset = torchvision.datasets.ImageFolder(options.dataset, v2.Compose([*augment, v2.PILToTensor()]))
    else:
      dataset = torchvision.datasets.ImageFolder(options.dataset, v2.Compose(augment), loader=self.load)
    self.loader = torch.utils.data.DataLoader(dataset, options.batch, shuffle=True, num_workers=options.threads,
                                              persistent_workers=True, prefetch_factor=4)

  @staticmethod
  def load(path):
    return torchvision.io.decode_jpeg(torchvision.io.read_file(path), torchvision.io.ImageReadMode.RGB)

  def batches(self, _):
    return self.loader

  def consume(self, batch):
    images, labels = batch
    samples, total, mean = measure.look_at_pixels(images.numpy())
    return samples, total, int(labels.sum()), mean


measure.main(f"{torchvision.__version__} with torch {torch.__version__}", {"torchvision": Pixels, "pil": Pixels, "augmented": Pixels})
