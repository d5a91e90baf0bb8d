"""Shardpack by the package `shardpack`, alone and in other frameworks' loaders (see ../peers/measure.py)."""

import functools

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


def counted(samples):
  """Of images that the worker itself uses, as one that decodes: what `consume` checks, and not the bytes."""
  if not all(sample.image[0] for sample in samples):
    raise SystemExit("not a JPEG")
  return len(samples), sum(len(sample.image) for sample in samples), sum(sample.label for sample in samples)


class DataLoader:
  """torch's DataLoader with worker processes over a Dataset: bytes and labels for the training process."""

  collate = staticmethod(shardpack.collate)

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
    return len(images), sum(map(len, images)), int(labels.sum())


class Counted(DataLoader):
  """The same, with images that stay in the workers."""

  collate = staticmethod(counted)

  def consume(self, batch):
    return batch


class Same:
  """A dataset that gives the same for all batches of a size, which costs nothing: what is left is the framework's own time."""

  def __init__(self, length, make):
    self.length, self.make, self.made = length, make, {}

  def __len__(self):
    return self.length

  def __getitems__(self, ids):
    if len(ids) not in self.made:
      self.made[len(ids)] = self.make(range(len(ids)))
    return self.made[len(ids)]


def as_it_is(batch):
  return batch


class SameDataLoader(DataLoader):

  collate = staticmethod(as_it_is)

  def dataset(self, options):
    dataset = shardpack.Dataset(options.dataset)
    return Same(len(dataset), lambda ids: shardpack.collate(dataset.__getitems__(ids)))


class Grain:
  """Grain with its reading threads over batches in random order."""

  def __init__(self, options):
    import grain  # pylint: disable=import-outside-toplevel
    self.grain, self.options, self.dataset = grain, options, shardpack.Dataset(options.dataset)

  def rows(self, epoch):
    from shardpack.adapters.grain import Batches  # pylint: disable=import-outside-toplevel
    return self.grain.MapDataset.source(Batches(self.dataset, self.options.batch, seed=epoch))

  def batches(self, epoch):
    return self.rows(epoch).to_iter_dataset(self.grain.ReadOptions(num_threads=self.options.threads, prefetch_buffer_size=16))

  def consume(self, batch):
    images = batch["image"]
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), int(batch["label"].sum())


class SameGrain(Grain):
  """The same batch again and again."""

  def __init__(self, options):
    super().__init__(options)
    from shardpack.adapters.grain import Batches  # pylint: disable=import-outside-toplevel
    self.steps, self.batch = len(self.dataset) // options.batch, Batches(self.dataset, options.batch)[0]

  def __len__(self):
    return self.steps

  def __getitem__(self, number):
    return self.batch

  def rows(self, epoch):
    return self.grain.MapDataset.source(self)


class GrainSource(Grain):
  """Grain over our source of samples: numbers are shuffled and batched, as ../peers/read_grain.py does over ArrayRecord."""

  def rows(self, epoch):
    numbers = self.grain.MapDataset.range(len(self.dataset)).shuffle(seed=epoch)
    return numbers.batch(self.options.batch, batch_fn=list).map(self.read)

  @functools.cached_property
  def read(self):
    from shardpack.adapters.grain import Source  # pylint: disable=import-outside-toplevel
    return Source(self.dataset).__getitems__

  def consume(self, batch):
    if not all(sample["image"][0] for sample in batch):
      raise SystemExit("not a JPEG")
    return len(batch), sum(len(sample["image"]) for sample in batch), sum(sample["label"] for sample in batch)


class SameGrainSource(GrainSource):

  @functools.cached_property
  def read(self):
    return Same(len(self.dataset), super().read).__getitems__


measure.main(shardpack.__version__, {
    "pixels": Pixels, "augmented": Augmented, "bytes": Bytes, "dataloader": DataLoader, "counted": Counted, "same-dataloader": SameDataLoader,
    "grain": Grain, "same-grain": SameGrain, "grain-source": GrainSource, "same-grain-source": SameGrainSource})
