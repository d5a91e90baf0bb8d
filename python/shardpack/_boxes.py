"""Boxes of objects: as fields hold them, and moved with an image's crop and flip."""

from __future__ import annotations

import io
from typing import Any, Optional, Sequence

from ._errors import OptionError
from ._memory import import_numpy
from ._options import choice

_FORMATS = {"xyxy": 0, "xywh": 1, "cxcywh": 2}


def objects_of(content: Any, what: str) -> list[Any]:
  """The objects in parsed JSON: those of `pack` from COCO json, of COCO's own, or a plain list; `what` says whose."""
  if isinstance(content, dict):
    for name in ("boxes", "annotations"):
      if isinstance(content.get(name), list):
        return list(content[name])
    if "bbox" in content:
      return [content]
    raise OptionError(f"{what} has no boxes: it is an object with {', '.join(map(str, content)) or 'nothing in it'}")
  if isinstance(content, list):
    return content if not content or isinstance(content[0], (list, dict)) else [content]
  raise OptionError(f"{what} has no boxes: it is {content!r:.60}")


def _numbers(each: Any, what: str) -> Any:
  box = each.get("bbox", each.get("box")) if isinstance(each, dict) else each
  if not isinstance(box, list) or len(box) != 4:
    raise OptionError(f"{what} has a box that is not four numbers: {box!r:.60}")
  return box


def stored_boxes(content: Optional[bytes], what: str) -> Any:
  """float64 [k, 4] as they are in the field: in its JSON, or in a .npy array of k rows; 0 boxes where there is no field."""
  numpy = import_numpy()
  if content is None:
    return numpy.zeros((0, 4))
  if _is_npy(content):
    array = numpy.load(io.BytesIO(content), allow_pickle=False)
    if array.ndim != 2 or array.shape[1] != 4:
      raise OptionError(f"{what} must be rows of four numbers, not an array of the shape {array.shape}")
    return array.astype(numpy.float64)
  boxes = [_numbers(each, what) for each in objects_of(parsed(content, what), what) if not isinstance(each, dict) or has_box(each)]
  try:
    return numpy.array(boxes, numpy.float64).reshape(len(boxes), 4)
  except (TypeError, ValueError):
    raise OptionError(f"{what} has a box that is not four numbers") from None


def _is_npy(content: bytes) -> bool:
  return content[:6] == b"\x93NUMPY"


def has_box(each: dict[str, Any]) -> bool:
  """A caption among COCO's annotations has none."""
  return "bbox" in each or "box" in each or "caption" not in each


def parsed(content: bytes, what: str) -> Any:
  import json  # pylint: disable=import-outside-toplevel
  try:
    return json.loads(content)
  except ValueError as error:
    raise OptionError(f"{what} is not JSON: {error}") from None


def labels_of(content: Optional[bytes], what: str) -> Any:
  """int64 [k]: the label of each box, as `pack` writes it; COCO's own category_id where there is no label."""
  numpy = import_numpy()
  if content is not None and _is_npy(content):
    raise OptionError(f"{what} is a .npy array of boxes, which has no labels")
  objects = [] if content is None else [each for each in objects_of(parsed(content, what), what)
                                        if not isinstance(each, dict) or has_box(each)]
  labels = []
  for each in objects:
    label = each.get("label", each.get("category_id")) if isinstance(each, dict) else None
    if not isinstance(label, int):
      raise OptionError(f"{what} has a box without label")
    labels.append(label)
  return numpy.array(labels, numpy.int64)


def corners(boxes: Any, stored: str) -> Any:
  """xyxy of boxes that are stored in another way."""
  numpy = import_numpy()
  kind = choice(stored, "stored", _FORMATS)
  if kind == 0 or not len(boxes):
    return boxes
  at, size = boxes[:, :2], boxes[:, 2:]
  if kind == 2:
    at = at - size / 2
  return numpy.concatenate([at, at + size], axis=1)


def formatted(boxes: Any, wanted: str) -> Any:
  """float32 in the format that is wanted, of xyxy."""
  numpy = import_numpy()
  kind = choice(wanted, "format", _FORMATS)
  if kind:
    size = boxes[:, 2:] - boxes[:, :2]
    boxes = numpy.concatenate([boxes[:, :2] + (size / 2 if kind == 2 else 0), size], axis=1)
  return boxes.astype(numpy.float32)


def moved(boxes: Sequence[Any], crops: Any, flips: Any, width: int, height: int) -> list[Any]:
  """Of each slot xyxy in pixels of the decoded image: moved, scaled, cut at its edges and mirrored. crops: float64 [n, 4], the
  part of the source that was taken: left, top, right, bottom."""
  numpy = import_numpy()
  counts = [len(each) for each in boxes]
  if not sum(counts):
    return [numpy.zeros((0, 4)) for _ in boxes]
  rows = numpy.concatenate(list(boxes))
  crop, flip = numpy.repeat(crops, counts, axis=0), numpy.repeat(flips, counts)
  size = numpy.array([width, height], numpy.float64)
  taken = crop[:, 2:] - crop[:, :2]
  if (taken <= 0).any():
    raise OptionError("the size of an image with boxes is not known, so they cannot be moved with it")
  for at in (0, 2):
    rows[:, at:at + 2] = numpy.clip((rows[:, at:at + 2] - crop[:, :2]) * size / taken, 0, size)
  rows[flip] = numpy.stack([width - rows[flip, 2], rows[flip, 1], width - rows[flip, 0], rows[flip, 3]], axis=1)
  return list(numpy.split(rows, numpy.cumsum(counts)[:-1]))


