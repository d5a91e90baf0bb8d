"""Device: where batches go."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _c
from ._errors import Error, OptionError, as_device_error
from ._library import call, library, made, text_of
from ._options import c_text


class Device:
  """Device(3) or Device('cuda:3') is that GPU, and a DeviceError where it cannot be used. Device('cuda') is the
  one numbered $LOCAL_RANK (0 without). Device('cpu') makes the same batches in host memory. Device('auto') is as 'cuda', or, with a
  RuntimeWarning, the CPU on a machine where no GPU can be used. A torch.device is good as well.

  >>> shardpack.Device('cpu')
  <Device cpu>
  """

  def __init__(self, device: Any = 0) -> None:
    try:
      self._handle = made(library.device_release, library.device_open, c_text(str(device), "device"))
    except OptionError:
      raise
    except Error as error:
      raise as_device_error(error) from None
    self._info = _c.device_info(ctypes.sizeof(_c.device_info))
    call(library.device_info_of, self._handle, self._info)
    if self.why_not:
      import warnings  # pylint: disable=import-outside-toplevel
      warnings.warn(f"the device is the CPU: {self.why_not}", RuntimeWarning, stacklevel=2)

  def __repr__(self) -> str:
    return f"<Device {self.kind}>" if self.number is None else f"<Device {self.kind}:{self.number}>"

  @property
  def kind(self) -> str:
    """'cuda' or 'cpu'."""
    return "cuda" if self._info.kind == _c.CUDA else "cpu"

  @property
  def number(self) -> Optional[int]:
    """Of a GPU; None for the CPU."""
    return self._info.number if self._info.kind == _c.CUDA else None

  @property
  def why_not(self) -> Optional[str]:
    """Why Device('auto') is the CPU; else None."""
    return text_of(self._info.why_not) or None
