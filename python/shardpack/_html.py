"""What Jupyter shows of a dataset: counts, splits, classes as bars, thumbnails. HTML without scripts and without links."""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from ._columns import Array
from ._encode import png
from ._errors import Error
from ._memory import import_numpy
from ._text import encoded

if TYPE_CHECKING:
  from ._dataset import Dataset

_BARS = 24  # classes that are shown, the largest
_ROWS = 12  # of them with thumbnails
_IN_A_ROW = 8
_SIDE = 56  # pixels of a thumbnail

_CELL = "padding:1px 8px 1px 0;text-align:left;vertical-align:middle"


def of_dataset(dataset: Dataset) -> str:
  """A table; a dataset whose images cannot be shown says why."""
  try:
    counts = _counts(dataset)
  except ModuleNotFoundError:  # NumPy
    return f"<div>{_head(dataset)}</div>"
  shown = sorted(range(len(counts)), key=lambda n: -counts[n][1])[:_BARS]
  try:
    pictures = _pictures(dataset, [counts[n] for n in sorted(shown[:_ROWS])] if counts else [("", len(dataset), None)])
    note = ""
  except (Error, MemoryError) as error:
    pictures, note = {}, f"<p>no thumbnails: {_text(str(error))}</p>"
  most = max((count for _, count, _ in counts), default=1) or 1
  rows = "".join(_bar(*counts[n], most, pictures) for n in sorted(shown))
  left = len(counts) - len(shown)
  more = f"<p>and {left:,} smaller classes</p>" if left > 0 else ""
  if not counts:
    rows = "".join(f"<tr><td style='{_CELL}'>{cells}</td></tr>" for cells in pictures.values())
  return f"<div>{_head(dataset)}<table style='border-collapse:collapse'>{rows}</table>{more}{note}</div>"


def _head(dataset: Dataset) -> str:
  of = "" if dataset._ids is None else f" of {len(dataset._base):,}"
  splits = ", ".join(f"{_text(name)} {count:,}" for name, count in dataset.splits.items())
  facts = [f"{len(dataset):,}{of} samples", f"{len(dataset.shards):,} shards of {_text(dataset.format)}"]
  if dataset.classes:
    facts.append(f"{len(dataset.classes):,} classes")
  if splits:
    facts.append(splits)
  return f"<p><b>{' &middot; '.join(facts)}</b><br><small>{_text(dataset.identity)}</small></p>"


def _counts(dataset: Dataset) -> List[Tuple[str, int, Any]]:
  """(class, samples, label) of all classes that have samples."""
  numpy = import_numpy()
  names, labels = dataset.classes, dataset.labels
  counts = numpy.bincount(labels[labels >= 0]).tolist()
  return [(names[n] if n < len(names) else str(n), count, n) for n, count in enumerate(counts) if count]


def _bar(name: str, count: int, label: int, most: int, pictures: Dict[Any, str]) -> str:
  width = max(1, round(160 * count / most))
  bar = f"<div style='background:#4a7dbd;height:10px;width:{width}px'></div>"
  cells = (f"<b>{_text(name)}</b>", f"{count:,}", bar, pictures.get(label, ""))
  return "<tr>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in cells) + "</tr>"


def _text(text: str) -> str:
  """For HTML, whatever bytes a name has: what cannot be printed is escaped as in Python."""
  readable = encoded(text).decode("utf-8", "backslashreplace")
  return html.escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in readable))


def _pictures(dataset: Dataset, classes: List[Tuple[str, int, Any]]) -> Dict[Any, str]:
  """{label: images} of the first samples of each class."""
  numpy = import_numpy()
  ids = {label: (numpy.arange(len(dataset)) if label is None else numpy.flatnonzero(dataset.labels == label))[:_IN_A_ROW].tolist()
         for _, _, label in classes}
  wanted = [number for row in ids.values() for number in row]
  pixels = _decoded(dataset, wanted)
  return {label: "".join(_image(pixels.get(number), dataset, number) for number in row) for label, row in ids.items()}


def _decoded(dataset: Dataset, ids: List[int]) -> Dict[int, Array]:
  """{id: uint8 [side, side, 3]} of those that can be decoded."""
  from ._decode import Decode  # pylint: disable=import-outside-toplevel
  from ._loader import Loader  # pylint: disable=import-outside-toplevel
  from ._order import Order  # pylint: disable=import-outside-toplevel
  if not ids:
    return {}
  order = Order(len(dataset), 1, mode="sequential", subset=ids)
  decode = Decode(_SIDE, _SIDE, crop="center", shortest_side=_SIDE)
  loader = Loader(dataset, order, decode=decode, epochs=1, bad_samples="substitute", max_bad_samples=len(ids), map_shards=False)
  found = {}
  try:
    for number, batch in zip(ids, loader):
      if batch.status[0] == "ok":
        found[number] = batch.pixels[0]
  except Error:  # not one that can stand in for a bad one
    pass
  return found


def _image(pixels: Any, dataset: Dataset, number: int) -> str:
  key = _text(str(dataset._key_of(number)))
  style = f"width:{_SIDE}px;height:{_SIDE}px;margin:0 2px 0 0;display:inline-block;vertical-align:middle"
  if pixels is None:
    return f"<span style='{style};background:#ddd' title='{key}: cannot be decoded'></span>"
  data = base64.b64encode(png(pixels, "a thumbnail")).decode()
  return f"<img style='{style}' title='{key}' alt='{key}' src='data:image/png;base64,{data}'>"
