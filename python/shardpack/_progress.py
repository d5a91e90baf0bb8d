"""What a job tells while it runs, and how that is shown."""

from __future__ import annotations

import sys
import time
from typing import Callable, NamedTuple, Optional, Union

from ._errors import OptionError


class Progress(NamedTuple):
  """News of a job: its `stage` ("packing"), how much of that is `done` and of how many (`total`, None: not known), in images or
  files; `bytes` read so far, `rate` (done a second, in this stage), `eta` (seconds that are left; None: not known).

  >>> news = []
  >>> report = shardpack.validate("shards", progress=news.append)
  >>> news[-1].stage, news[-1].done == news[-1].total
  ('validating', True)
  """

  stage: str
  done: int
  total: Optional[int]
  bytes: int
  rate: float
  eta: Optional[float]


# True: a bar by tqdm where it is installed, else a line; a function is called with each.
Shown = Union[None, bool, Callable[[Progress], object]]

SECONDS_BETWEEN = 0.1


def checked(shown: Shown) -> Shown:
  """Before the work: what is none of these would show nothing."""
  if shown is None or isinstance(shown, bool) or callable(shown):
    return shown
  raise OptionError(f"progress must be True, False or a function that is called with each Progress, not {shown!r}")


class Showing:
  """Calls the function of a Shown with the newest of the news, not too often."""

  def __init__(self, shown: Shown, title: str):
    self._bar = _bar(title) if checked(shown) is True else None
    self._show: Callable[[Progress], object] | None = self._bar.show if self._bar else shown if callable(shown) else None
    self._last = -SECONDS_BETWEEN
    self._kept: Progress | None = None

  @property
  def wanted(self) -> bool:
    return self._show is not None

  def news(self, progress: Progress) -> None:
    self._kept = progress
    self.due()

  def due(self) -> None:
    if self._kept is not None and time.monotonic() - self._last >= SECONDS_BETWEEN:
      self._tell()

  def end(self) -> None:
    """What has not been told yet: a bar shall not stay where it was."""
    if self._kept is not None:
      time.sleep(max(0.0, self._last + SECONDS_BETWEEN - time.monotonic()))
      self._tell()

  def close(self) -> None:
    if self._bar:
      self._bar.close()

  def _tell(self) -> None:
    progress, self._kept = self._kept, None
    self._last = time.monotonic()
    if self._show is not None and progress is not None:
      self._show(progress)


class _Line:
  """One line of stderr, written over where that is a terminal, and only at the end of a stage where it is a file."""

  def __init__(self, title: str):
    self._title = title
    self._terminal = sys.stderr.isatty()
    self._text = ""

  def show(self, progress: Progress) -> None:
    of = f" of {progress.total:,}" if progress.total else ""
    left = f", {progress.eta:.0f} s left" if progress.eta is not None else ""
    self._text = f"{self._title}: {progress.stage} {progress.done:,}{of}, {progress.rate:,.0f}/s{left}"
    if self._terminal:
      sys.stderr.write(f"\r\033[K{self._text}")
      sys.stderr.flush()

  def close(self) -> None:
    if self._text:
      sys.stderr.write("\n" if self._terminal else self._text + "\n")


class _Tqdm:
  """A bar of tqdm, whose stage is its description."""

  def __init__(self, title: str, tqdm: Callable[..., object]):
    self._title = title
    self._bar: object = tqdm(desc=title, unit="", dynamic_ncols=True)

  def show(self, progress: Progress) -> None:
    bar: object = self._bar
    bar.total, bar.n = progress.total, progress.done  # type: ignore[attr-defined]
    bar.set_description(f"{self._title}: {progress.stage}")  # type: ignore[attr-defined]

  def close(self) -> None:
    self._bar.close()  # type: ignore[attr-defined]


def _bar(title: str) -> _Line | _Tqdm:
  try:
    from tqdm.auto import tqdm  # pylint: disable=import-outside-toplevel
  except ImportError:
    return _Line(title)
  return _Tqdm(title, tqdm)
