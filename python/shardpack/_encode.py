"""Values of a Writer's fields as the bytes that are packed."""

from __future__ import annotations

import io
import os
import struct
import sys
import warnings
import zlib
from typing import Any

from ._errors import OptionError
from ._memory import import_numpy
from ._text import encoded as utf8

ENCODINGS = ("jpeg", "png", "npy", "json")
_HOST_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
_PIL_MODES = ("L", "LA", "RGB", "RGBA", "I;16")
_PNG_COLOR = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of channels


def encoded(value: Any, name: str, encoding: str | None, quality: int) -> bytes:
  """Text as UTF-8, an array as `encoding`, and what JSON can say as JSON."""
  if isinstance(value, (bytes, bytearray, memoryview)):
    return bytes(value)
  if isinstance(value, str):
    return utf8(value, name)
  value = pixels_of(value, name)
  if is_array(value):
    return value.tobytes() if value.dtype.kind == "S" else _array(value, name, encoding, quality)
  if isinstance(value, (dict, list, tuple, int, float)):
    return json_of(value, name)
  raise OptionError(f"{name} must be bytes, text, an array or JSON, not {type(value).__name__}{way_on(value)}")


def is_array(value: Any) -> bool:
  numpy = sys.modules.get("numpy")  # without it nobody has one
  return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def pixels_of(value: Any, name: str) -> Any:
  """The pixels of a PIL.Image as it is, neither turned nor converted; any other value."""
  pil = sys.modules.get("PIL.Image")
  if pil is None or not isinstance(value, pil.Image):
    return value
  if value.mode not in _PIL_MODES:
    raise OptionError(f"{name} is a PIL.Image of mode {value.mode}, not of {', '.join(_PIL_MODES)}: its convert(\"RGB\") makes one, and "
                      "numpy.asarray() an array of its numbers")
  array = import_numpy().asarray(value)
  return array.astype("uint16") if value.mode.startswith("I;16") else array


def way_on(value: Any, may_be_path: bool = False) -> str:
  """What a message about it adds: how bytes, or an array, are made of it, if they can be."""
  if isinstance(value, os.PathLike):
    return "; pass the bytes of the file: path.read_bytes()"
  if isinstance(value, str) and may_be_path:
    return "; of a path, pass the bytes of the file: pathlib.Path(path).read_bytes()"
  device = getattr(value, "__dlpack_device__", None)
  if device is not None and device()[0] not in _HOST_DEVICES:
    return "; it lies on a device: copy it to the host first, as .cpu().numpy() does in torch"
  is_array = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
  return "; numpy.asarray() makes an array of it" if is_array else ""


def json_of(value: Any, name: str) -> bytes:
  """Compact, as UTF-8."""
  import json  # pylint: disable=import-outside-toplevel
  try:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    return text.encode("utf-8", "surrogatepass")
  except (TypeError, ValueError, RecursionError) as error:
    raise OptionError(f"{name} cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
  """Of NumPy's values in JSON."""
  if hasattr(value, "tolist"):
    return value.tolist()
  raise TypeError(f"{type(value).__name__} has no JSON form")


def _array(array: Any, name: str, encoding: str | None, quality: int) -> bytes:
  if encoding == "json" or (encoding is None and array.ndim == 0):
    return json_of(array.tolist(), name)
  if encoding == "jpeg":
    return _jpeg(array, name, quality)
  if encoding == "png":
    return png(array, name)
  if array.dtype.hasobject:
    raise OptionError(f"{name} is an array of Python's objects, which would be pickled")
  out = io.BytesIO()
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # that NumPy below 1.9 cannot read a header above 64 KiB
      import_numpy().lib.format.write_array(out, array, allow_pickle=False)
  except (TypeError, ValueError) as error:
    raise OptionError(f"{name} cannot be written as .npy: {error}") from None
  return out.getvalue()


def _what(array: Any) -> str:
  return f"{array.dtype} {list(array.shape)}"


def _jpeg(array: Any, name: str, quality: int) -> bytes:
  if array.dtype != "uint8" or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3))) or 0 in array.shape:
    raise OptionError(f"{name}: a JPEG must be made of uint8 [h, w], [h, w, 1] or [h, w, 3], not of {_what(array)}")
  try:
    from PIL import Image  # pylint: disable=import-outside-toplevel
  except ImportError:
    raise ModuleNotFoundError(f"{name}: making JPEGs of arrays needs Pillow: pip install pillow; encode=\"png\" does without it",
                              name="PIL") from None
  out = io.BytesIO()
  try:
    Image.fromarray(array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array).save(out, "JPEG", quality=quality)
  except (OSError, ValueError) as error:  # more than 65,500 rows or columns
    raise OptionError(f"{name}: no JPEG can be made of {_what(array)}: {error}") from None
  return out.getvalue()


def png(array: Any, name: str) -> bytes:
  """Rows as differences from the one above them (PNG specification, 9.2): that costs little, and most images become smaller."""
  channels = 1 if array.ndim == 2 else array.shape[2] if array.ndim == 3 else 0
  if array.dtype.kind != "u" or array.dtype.itemsize > 2 or channels not in _PNG_COLOR or 0 in array.shape:
    raise OptionError(f"{name}: a PNG must be made of uint8 or uint16 [h, w] or [h, w, 1 to 4], not of {_what(array)}")
  numpy = import_numpy()
  height, width = array.shape[:2]
  big_endian = array.astype(array.dtype.newbyteorder(">"), order="C", copy=False)
  rows = numpy.ascontiguousarray(big_endian).view("uint8").reshape(height, -1)
  filtered = numpy.full((height, rows.shape[1] + 1), 2, "uint8")  # 2: up
  filtered[0, 1:] = rows[0]
  filtered[1:, 1:] = rows[1:] - rows[:-1]
  header = struct.pack(">IIBBBBB", width, height, 8 * array.dtype.itemsize, _PNG_COLOR[channels], 0, 0, 0)
  data = zlib.compress(filtered.tobytes(), 6)
  return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
  return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
