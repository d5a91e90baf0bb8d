"""Calls of the library that may take long and have no `wait_ms`: in a thread of their own."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable

from ._errors import StateError
from ._library import WAIT_MS


class Aside:
  """A call under way. The caller waits for it in short turns, so that Ctrl-C is answered; it then goes on, and can be waited for
  again. What it uses lives as long as it runs."""

  def __init__(self, function: Callable[..., Any], *arguments: Any):
    self._value: Any = None
    self._error: BaseException | None = None
    # Not the end of the thread: a join that a signal interrupts makes it look ended.
    self._ended = threading.Event()
    self._process = os.getpid()
    # A daemon: the end of the interpreter does not wait for a file system that hangs.
    threading.Thread(target=self._run, args=(function, arguments), name="shardpack", daemon=True).start()

  def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
      self._value = function(*arguments)
    except BaseException as error:  # pylint: disable=broad-exception-caught
      self._error = error
    self._ended.set()

  def wait(self, seconds: float) -> bool:
    """Whether it has ended within this time."""
    if self._process != os.getpid():
      raise StateError("this belongs to the process before a fork")
    return self._ended.wait(seconds)

  def result(self) -> Any:
    """Waits for its end; what it returned, or raised."""
    while not self.wait(WAIT_MS / 1000):
      pass
    if self._error is not None:
      raise self._error
    return self._value
