"""torchvision v2 moves boxes and masks as the batches do.

  python use_torchvision.py SHARDS     # its json holds boxes; with a field mask, masks too
"""

import io
import sys

import numpy
import PIL.Image
import shardpack
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

SIZE = (96, 80)


def check(shards, **options):
  """Crops of whole pixels."""
  dataset = shardpack.Dataset(shards)
  masks = {"decode_fields": {"mask": "nearest"}} if "mask" in dataset.fields else {}
  worst = compared = flipped = 0
  loader = shardpack.load(shards, batch=20, size=SIZE, flip=0.5, fields=["image", "json"], **options, **masks)
  for batch in (batch for _ in range(5) for batch in loader):
    facts = zip(batch.ids.tolist(), batch.json(), batch.boxes(), batch.crops.tolist(), batch.flips)
    for slot, (id, stored, boxes, (x, y, w, h), flip) in enumerate(facts):
      sample = dataset[id]
      size = PIL.Image.open(io.BytesIO(sample.image)).size[::-1]
      rows = [each["bbox"] for each in stored["boxes"]]
      expected = tv_tensors.BoundingBoxes(torch.tensor(rows, dtype=torch.float64), format="XYWH", canvas_size=size)
      expected = v2.functional.convert_bounding_box_format(expected, new_format="XYXY")
      expected = v2.functional.resized_crop(expected, y, x, h, w, SIZE[::-1])
      expected = v2.functional.clamp_bounding_boxes(expected)
      mask = None
      if masks:
        mask = PIL.Image.open(io.BytesIO(sample["mask"]))
        mask = v2.functional.resized_crop(mask, y, x, h, w, SIZE[::-1], interpolation=v2.InterpolationMode.NEAREST)
      if flip:
        expected = v2.functional.horizontal_flip(expected)
        mask = None if mask is None else v2.functional.horizontal_flip(mask)
        flipped += 1
      worst = max(worst, float(numpy.abs(boxes - expected.numpy()).max()))
      compared += len(rows)
      if mask is not None:
        numpy.testing.assert_array_equal(batch.masks[slot], numpy.asarray(mask))
  assert compared > 100 and flipped > 30 and worst < 1e-4, (compared, flipped, worst)


if __name__ == "__main__":
  check(sys.argv[1])
  check(sys.argv[1], crop="resize")
