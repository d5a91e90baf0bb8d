"""Fields that are decoded beside the image, and move with its crop: label maps, further images, objects."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping, Optional, Sequence, Union

from . import _c
from ._errors import OptionError
from ._options import c_text, choice, flag, rebuilt, whole, within

_SHARES = {"all": _c.SHARE_ALL, "geometry": _c.SHARE_GEOMETRY, "none": _c.SHARE_NONE}
_BITS = {8: 0, 16: 1}
_MOST_KEYPOINTS = 1024  # as CheckObjectOptions in augment/geometry has it


class Labels:
  """A label map: decode_fields={'mask.png': Labels(classes=21)}; 'labels' is one with defaults.

  Labels are the numbers that are stored, of gray (1 to 16 bits, never scaled) or a palette; with colors={(r, g, b): label} those of
  colours. Never a JPEG. classes: labels from there on are bad samples (0: none are), but for ignore, which is where a sample has no
  map: 0, or no label of a class. bits: 8 or 16 of the result. nearest: 'exact', by pixel centres, or 'legacy', as torchvision moves a Mask.
  share: 'all' or 'geometry' for the image's crop and flip, 'none' for its own. Raises OptionError for what cannot be.

  >>> shardpack.Labels(classes=21)
  Labels(classes=21)
  """

  def __init__(self, *, classes: int = 0, ignore: int = 255, bits: int = 8, nearest: str = "exact",
               colors: Optional[Mapping[Sequence[int], int]] = None, share: str = "all") -> None:
    self._given = {"classes": classes, "ignore": ignore, "bits": bits, "nearest": nearest, "colors": colors, "share": share}
    rows = [_color(color, label) for color, label in (colors or {}).items()]
    self._colors = (_c.label_color * len(rows))(*rows)
    self._options = {
        **_map_options(classes, ignore, bits, nearest),
        "kind": _c.AS_LABELS,
        "share": choice(share, "share", _SHARES),
        "colors": self._colors,
        "color_count": len(rows),
    }
    for color, label in (colors or {}).items():
      if whole(label, "a colour's label", bits) >= classes > 0 and label != ignore:
        raise OptionError(f"colors has the label {label} for {tuple(color)}, but there are {classes} classes")

  def __repr__(self) -> str:
    return _repr(self, Labels)

  def __reduce__(self) -> tuple[Any, ...]:
    return rebuilt, (type(self), self._given)


class CocoLabels:
  """The label map that the polygons and run lengths of COCO's JSON describe, as pycocotools paints them: decode_fields={'json':
  CocoLabels(classes=81)}; 'coco_labels' is one with defaults.

  A pixel of an object has the label of its class + 1, of none 0; where several objects lie it is ignore, or with overlap='last' the
  label of the last one. classes counts the background: labels from there on are bad samples (0: none are). ignore is also what a
  sample without the field has. bits, nearest: as of Labels. Raises OptionError for what cannot be.

  >>> shardpack.CocoLabels(classes=81, overlap='last')
  CocoLabels(classes=81, overlap='last')
  """

  def __init__(self, *, classes: int = 0, ignore: int = 255, overlap: str = "ignore", bits: int = 8, nearest: str = "exact") -> None:
    self._given = {"classes": classes, "ignore": ignore, "overlap": overlap, "bits": bits, "nearest": nearest}
    self._options = {
        **_map_options(classes, ignore, bits, nearest),
        "kind": _c.AS_COCO_LABELS,
        "overlap": choice(overlap, "overlap", {"ignore": _c.OVERLAP_IGNORE, "last": _c.OVERLAP_LAST}),
    }

  def __repr__(self) -> str:
    return _repr(self, CocoLabels)


class Coco:
  """Objects of COCO's JSON, as `pack` packs it: decode_fields={'json': Coco(keypoints=17)}; 'coco' is one with defaults.

  format: 'xyxy' or 'xywh' of the boxes. Boxes below a pixel are left out, and those of which less than min_visible is seen.
  box_from: 'bbox', or 'polygon' for the box around what is seen of the polygons, where there are any. polygons: whether they are
  given, too. keypoints: how many an object has; pairs: which of them change places in a mirrored image, such as [(1, 2)].
  Raises OptionError for what cannot be.

  >>> shardpack.Coco(min_visible=0.25)
  Coco(min_visible=0.25)
  """

  def __init__(self, *, format: str = "xyxy", min_visible: float = 0.0, box_from: str = "bbox", polygons: bool = False,
               keypoints: int = 0, pairs: Sequence[Sequence[int]] = ()) -> None:  # pylint: disable=redefined-builtin
    pairs = tuple(_two(pair) for pair in pairs)
    self._given = {"format": format, "min_visible": min_visible, "box_from": box_from, "polygons": polygons,
                   "keypoints": keypoints, "pairs": pairs}
    flat = [whole(number, "pairs", 32) for pair in pairs for number in pair]
    self._pairs = (ctypes.c_uint32 * len(flat))(*flat)
    keypoints = whole(keypoints, "keypoints", most=_MOST_KEYPOINTS)
    if len(flat) > 2 * keypoints:
      raise OptionError(f"pairs name {len(flat)} keypoints, but there are {keypoints}")
    for place, number in enumerate(flat):
      if number >= keypoints or number in flat[:place]:
        raise OptionError(f"pairs must name each of the {keypoints} keypoints, counted from 0, at most once, not {pairs!r}")
    self._options = {
        "kind": _c.AS_COCO,
        "box_format": choice(format, "format", {"xyxy": _c.XYXY, "xywh": _c.XYWH}),
        "min_visible": within(min_visible, "min_visible", 0, 1, "a share, from 0 to 1"),
        "box_from_polygon": choice(box_from, "box_from", {"bbox": 0, "polygon": 1}),
        "polygons": flag(polygons, "polygons"),
        "keypoints": keypoints,
        "keypoint_pairs": len(flat) // 2,
        "pairs": ctypes.cast(self._pairs, ctypes.c_void_p),
    }

  def __repr__(self) -> str:
    return _repr(self, Coco)

  def __reduce__(self) -> tuple[Any, ...]:
    return rebuilt, (type(self), self._given)


class Paired:
  """A further image of the same scene: decode_fields={'right.jpg': Paired()}, or 'image': decoded as the image is, with its crop and
  flip, and of 8 bits: for a depth map of 16, see Labels. share: 'all', 'geometry' (no changes of colour), or 'none' for a crop and
  flip of its own. Raises OptionError for another share.

  >>> shardpack.Paired(share='none')
  Paired(share='none')
  """

  def __init__(self, *, share: str = "all") -> None:
    self._given = {"share": share}
    self._options = {"kind": _c.AS_IMAGE, "share": choice(share, "share", _SHARES)}

  def __repr__(self) -> str:
    return _repr(self, Paired)


FieldDecode = Union[str, Labels, Coco, CocoLabels, Paired]
FieldDecodes = Union[FieldDecode, Sequence[FieldDecode]]  # JSON can be objects and a label map
_BY_WORD: dict[str, Any] = {"labels": Labels, "coco": Coco, "coco_labels": CocoLabels, "image": Paired}


class DecodeFields:
  """What a loader is told of `decode_fields`; it keeps what the structs of C point to."""

  def __init__(self, fields: Optional[Mapping[str, FieldDecodes]]) -> None:
    if fields and not isinstance(fields, Mapping):
      raise OptionError("decode_fields must be a dict, such as {'mask.png': 'labels', 'json': 'coco'}")
    self.masks: list[str] = []
    self.maps: list[str] = []
    self._structs: list[Any] = []
    self._kept: list[Any] = []
    for name, given in (fields or {}).items():
      for how in given if isinstance(given, (list, tuple)) else (given,):
        self._add(name, how)
    pointers = [ctypes.pointer(each) for each in self._structs]
    self.count = len(pointers)
    self.array = (ctypes.POINTER(_c.field_decode) * len(pointers))(*pointers)

  def _add(self, name: str, how: Any) -> None:
    if how == "nearest":
      self.masks.append(name)
      self.maps.append(name)
      return
    if isinstance(how, str) and how in _BY_WORD:
      how = _BY_WORD[how]()
    if not isinstance(how, (Labels, Coco, CocoLabels, Paired)):
      raise OptionError(f"decode_fields[{name!r}] must be 'nearest', 'labels', 'coco', 'coco_labels', 'image', or a Labels, Coco, CocoLabels or "
                        f"Paired, not {how!r}")
    if isinstance(how, (Labels, CocoLabels)):
      self.maps.append(name)
    self._kept.append(how)
    self._structs.append(_c.field_decode(size=ctypes.sizeof(_c.field_decode), field=c_text(name, "decode_fields"), **how._options))


def _map_options(classes: int, ignore: int, bits: int, nearest: str) -> dict[str, Any]:
  if whole(bits, "bits") not in _BITS:
    raise OptionError(f"bits must be 8 or 16, not {bits!r}")
  ignore, classes = whole(ignore, "ignore", bits), whole(classes, "classes", 32)
  if classes > 1 << bits:
    raise OptionError(f"classes must be at most {1 << bits} with bits={bits}, not {classes}")
  if 0 < ignore < classes:
    free = f"ignore={classes} or more" + (" and bits=16" if bits == 8 and classes > 255 else "") + ", or 0" if classes < 1 << 16 else "ignore=0"
    raise OptionError(f"ignore must be no label of a class: of {classes} classes one has the label {ignore}; give {free} for the background")
  return {
      "wide_labels": _BITS[bits],
      "legacy_nearest": choice(nearest, "nearest", {"exact": 0, "legacy": 1}),
      "ignore": ignore,
      "ignore_zero": ignore == 0,
      "classes": classes,
  }


def _two(pair: Sequence[int]) -> tuple[int, int]:
  try:
    first, second = pair
  except (TypeError, ValueError):
    raise OptionError(f"pairs must have two keypoints each, not {pair!r}") from None
  return first, second


def _color(color: Sequence[int], label: int) -> Any:
  try:
    red, green, blue = color
  except (TypeError, ValueError):
    raise OptionError(f"colors must have three numbers each, (red, green, blue), not {color!r}") from None
  parts = [whole(part, "a colour's part", 8) for part in (red, green, blue)]
  return _c.label_color(*parts, 0, whole(label, "a colour's label", 16))


def _repr(self: Any, of: Any) -> str:
  defaults = of.__init__.__kwdefaults__
  given = ", ".join(f"{name}={value!r}" for name, value in self._given.items() if value != defaults[name])
  return f"{of.__name__}({given})"
