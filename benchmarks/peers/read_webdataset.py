"""Batches of bytes with webdataset in worker processes, shuffled as it can: shards, and a buffer (see measure.py)."""

import webdataset

import measure

SHUFFLE_BUFFER = 5_000


class Batches:

  def __init__(self, options):
    shards = measure.shards(options.dataset, ".tar")
    shuffle = options.order == "random"
    dataset = webdataset.WebDataset(shards, shardshuffle=len(shards) if shuffle else False)
    if shuffle:
      dataset = dataset.shuffle(SHUFFLE_BUFFER)
    # Batched in the workers, so that the loader sends few and large messages.
    dataset = dataset.to_tuple("jpg", "cls").batched(options.batch, collation_fn=lambda batch: list(zip(*batch)))
    self.loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=options.threads, persistent_workers=True,
                                       prefetch_factor=4)

  def batches(self, _):
    return self.loader

  def consume(self, batch):
    images, labels = batch
    if not all(image[0] for image in images):
      raise SystemExit("not a JPEG")
    return len(images), sum(map(len, images)), sum(map(int, labels))

  def check(self, batch):
    return zip(*batch)


measure.main(webdataset.__version__, {"batches": Batches})
