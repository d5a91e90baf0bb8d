"""Shardpack by the package `shardpack`, alone and in other frameworks' loaders (see ../peers/measure.py)."""

import shardpack

import measure


class Pixels:
  """load() as torch's users call it: RandomResizedCrop(224) and a flip, as tensors."""

  augment = None

  def __init__(self, options):
    self.loader = shardpack.load(options.dataset, batch=options.batch, size=224, flip=0.5, epochs=options.epochs, threads=options.threads,
                                 to="torch", augment=self.augment)

  def batches(self, _):
    return self.loader

  def consume(self, batch):
    images, labels = batch
    samples, total, mean = measure.look_at_pixels(images.numpy())
    return samples, total, int(labels.sum()), mean


class Augmented(Pixels):

  augment = "color_jitter(0.4, 0.4, 0.4, 0.1) rand_augment(2, 9)"


class Bytes:
  """Batches of encoded images: a call a batch."""

  def __init__(self, options):
    self.loader = shardpack.load(options.dataset, batch=options.batch, epochs=options.epochs, threads=options.threads)

  def batches(self, _):
    return self.loader

  def consume(self, batch):
    images = batch.bytes("image")
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), int(batch.labels.sum())


def taken(samples):
  """What a collate function gives the training process: bytes and labels."""
  return [sample.image for sample in samples], [sample.label for sample in samples]


def counted(samples):
  """Of images that the worker itself uses, as one that decodes: what `consume` checks, and not the bytes."""
  if not all(sample.image[0] for sample in samples):
    raise SystemExit("not a JPEG")
  return len(samples), sum(len(sample.image) for sample in samples), sum(sample.label for sample in samples)


class DataLoader:
  """torch's DataLoader with worker processes over a Dataset."""

  collate = staticmethod(taken)

  def __init__(self, options):
    import torch.utils.data  # pylint: disable=import-outside-toplevel
    self.loader = torch.utils.data.DataLoader(self.dataset(options), options.batch, shuffle=True, num_workers=options.threads,
                                              persistent_workers=True, prefetch_factor=4, collate_fn=self.collate)

  def dataset(self, options):
    return shardpack.Dataset(options.dataset)

  def batches(self, _):
    return self.loader

  def consume(self, batch):
    images, labels = batch
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), sum(labels)


class Counted(DataLoader):
  """The same, with images that stay in the workers."""

  collate = staticmethod(counted)

  def consume(self, batch):
    return batch


class Held(list):
  """Samples that lie in memory already: what is left is the framework's own time."""

  def __init__(self, dataset):
    super().__init__(dataset.__getitems__(range(len(dataset))))

  def __getitems__(self, ids):
    return [self[i] for i in ids]


class HeldDataLoader(DataLoader):

  def dataset(self, options):
    return Held(super().dataset(options))


class Grain:
  """Grain with its reading threads over our source, as ../peers/read_grain.py over ArrayRecord."""

  def __init__(self, options):
    import grain  # pylint: disable=import-outside-toplevel
    from shardpack.adapters.grain import Source  # pylint: disable=import-outside-toplevel
    self.grain, self.options, self.source = grain, options, self.held(Source(shardpack.Dataset(options.dataset)))

  def held(self, source):
    return source

  def batches(self, epoch):
    dataset = self.grain.MapDataset.range(len(self.source)).shuffle(seed=epoch)
    dataset = dataset.batch(self.options.batch, batch_fn=list).map(self.source.__getitems__)
    return dataset.to_iter_dataset(self.grain.ReadOptions(num_threads=self.options.threads, prefetch_buffer_size=16))

  def consume(self, batch):
    if not all(sample["image"][0] for sample in batch):
      raise SystemExit("not a JPEG")
    return len(batch), sum(len(sample["image"]) for sample in batch), sum(sample["label"] for sample in batch)


class HeldGrain(Grain):

  def held(self, source):
    return Held(source)


measure.main(shardpack.__version__, {"pixels": Pixels, "augmented": Augmented, "bytes": Bytes, "dataloader": DataLoader, "counted": Counted,
                                    "held-dataloader": HeldDataLoader, "grain": Grain, "held-grain": HeldGrain})
