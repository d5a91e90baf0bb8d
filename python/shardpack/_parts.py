"""PATH.parts, where Writers leave their samples: what Python keeps there beside the files of api/writing/parts_folder.h."""

from __future__ import annotations

import os
import re

from ._errors import DataLossError, OptionError

_OPTIONS = b"options.json"
_is_part = re.compile(rb"w\d{5,}-\d{6,}\.json").fullmatch


def folder(path: bytes) -> bytes:
  return path.rstrip(b"/") + b".parts"


def there_are_some(path: bytes) -> bool:
  """Whether an earlier writer has left samples."""
  try:
    return any(_is_part(name) for name in os.listdir(folder(path)))
  except OSError:
    return False


def options(path: bytes) -> tuple[list[bytes], int] | None:
  """The arguments of the finish, and the number of workers; None: no Writer has been there."""
  import json  # pylint: disable=import-outside-toplevel
  try:
    with open(os.path.join(folder(path), _OPTIONS), "rb") as file:
      found = json.load(file)
    return [word.encode("utf-8", "surrogateescape") for word in found["arguments"]], int(found["workers"])
  except FileNotFoundError:
    return None
  except (ValueError, KeyError, TypeError) as error:
    raise DataLossError(f"{os.fsdecode(folder(path))}/options.json is damaged ({error}); a Writer writes it again") from None


def agree(path: bytes, words: list[bytes], workers: int) -> None:
  """Writes them down for the finish. Writers of several processes have the same."""
  try:
    before = options(path)
  except DataLossError:
    before = None
  if before == (words, workers):
    return
  if before is not None and workers > 1 and before[0] != words:
    raise OptionError(f"the workers before this one have other arguments: {_text(before[0])}, and not {_text(words)}; give all the "
                      f"same, or remove {os.fsdecode(os.path.join(folder(path), _OPTIONS))}")
  name = os.path.join(folder(path), _OPTIONS)
  import json  # pylint: disable=import-outside-toplevel
  own = name + b".%d" % os.getpid()
  with open(own, "w", encoding="ascii") as file:
    json.dump({"arguments": [word.decode("utf-8", "surrogateescape") for word in words], "workers": workers}, file)
  os.replace(own, name)


def forget(path: bytes) -> None:
  """After the finish, which has removed all else."""
  parts = folder(path)
  try:
    for name in os.listdir(parts):
      if name.startswith(_OPTIONS):
        os.unlink(os.path.join(parts, name))
    os.rmdir(parts)
  except OSError:
    pass  # another Writer has come, or somebody else's files are there


def _text(words: list[bytes]) -> str:
  return " ".join(os.fsdecode(word) for word in words)
