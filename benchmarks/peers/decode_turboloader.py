"""Training pixels with TurboLoader's fused pass over one tar, its fastest (see measure.py).

Its only output there is float32 from 0 to 1: four times the bytes of the others, and one conversion more.
"""

import turboloader

import measure


class Pixels:

  def __init__(self, options):
    path, = measure.shards(options.dataset, ".tar")
    self.loader = turboloader.DataLoader(path, batch_size=options.batch, num_workers=options.threads, shuffle=True,
                                         image_size=224, output_format="numpy", train_aug=True,
                                         antialias=options.kind == "antialiased")

  def batches(self, epoch):
    self.loader.set_epoch(epoch)
    return self.loader

  def consume(self, batch):
    images, _ = batch
    samples, total, mean = measure.look_at_pixels(images)
    return samples, total, None, mean * 255


measure.main(turboloader.__version__, {"antialiased": Pixels, "plain": Pixels})
