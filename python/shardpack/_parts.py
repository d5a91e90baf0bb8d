"""PATH.parts, where Writers leave their samples: what Python keeps there beside the files of api/writing/parts_folder.h.

  options.json    the arguments of the finish, the number of workers, and the classes
  labels.json     whether labels are numbers or names, with the first one
  w00003.ended    worker 3 has given all its samples, of which earlier runs had left as many as it says; it is gone from when a Writer
                  of this worker is open again until that ends

The library removes them with the parts, once these are published.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, suppress
from typing import Any, Callable, NamedTuple

from ._errors import DataLossError, OptionError, StateError

_OPTIONS, _LABELS, _ENDED, _PUBLISHED = b"options.json", b"labels.json", b".ended", b"published"
_PART_OF_ALL = (b"manifest.json", b"order.u32")
_is_part = re.compile(rb"w\d{5,}-\d{6,}\.json").fullmatch
_is_of_a_worker = re.compile(rb"w\d{5,}[-.].+").fullmatch
_of_worker = re.compile(rb"w(\d{5,})(\.lock|\.ended|-\d{6,}\.json)").fullmatch


class Options(NamedTuple):
  """`words`: the arguments of the finish. `workers`: their number, 0 for a Writer alone. `classes`: their names, if they were given."""

  words: list[bytes]
  workers: int
  classes: list[bytes]


def folder(path: bytes) -> bytes:
  return path.rstrip(b"/") + b".parts"


def there_are_some(path: bytes) -> bool:
  """Whether an earlier writer has left samples."""
  return any(_is_part(name) for name in _names(path))


def way_on(path: bytes) -> str:
  """What a message adds where there is no dataset yet, but a Writer's samples for it; "" where there are none."""
  path = path.rstrip(b"/")
  for dataset in (path, path.removesuffix(b".parts")):
    if _OPTIONS in _names(dataset) and there_are_some(dataset):
      name = os.fsdecode(dataset)
      return (f"\n{name}.parts has the samples of a Writer that has not finished: shardpack.Writer({name!r}) with the same arguments goes on with "
              f"them{_finish_of(dataset)}")
  return ""


def _finish_of(path: bytes) -> str:
  """The call that makes a dataset of the samples, as they are now; "" where it would be refused."""
  name = os.fsdecode(path)
  with suppress(DataLossError):
    known = options(path)
    for word, take, what in (("", False, "them the dataset"), (", unfinished=\"take\"", True, "what is there the dataset")):
      with suppress(StateError):
        check_ended(path, max(known.workers, 1) if known else 1, take)
        return f", and shardpack.finish({name!r}{word}) makes {what}"
  return ""


def samples_of(path: bytes, worker: int) -> int:
  """Those that earlier Writers of this worker have left."""
  parts = [name for name in _names(path) if _is_part(name) and name.startswith(b"w%05d-" % worker)]
  return sum(int(_read(path, name)["records"]) for name in parts)


def remove(path: bytes) -> None:
  """What an earlier Writer, and those of several workers, have left. StateError, and nothing is removed, if one of them is at work."""
  if not there_are_some(path) and _OPTIONS not in _names(path):
    return
  import fcntl  # pylint: disable=import-outside-toplevel
  own = b"w%05d.lock" % 0  # also if it is not there: no other Writer comes meanwhile
  with ExitStack() as locks:
    for name in {own, *(name for name in _names(path) if _is_of_a_worker(name) and name.endswith(b".lock"))}:
      lock = locks.enter_context(open(os.path.join(folder(path), name), "ab"))
      try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except OSError:
        raise StateError(f"another writer is at work in {os.fsdecode(folder(path))}, which fresh=True would remove") from None
    names = [name for name in _names(path) if name != own]
    parts = [*filter(_is_part, names)]  # go first: without its .json a part does not exist
    others = [name for name in names if name not in parts and
              (_is_of_a_worker(name) or name in _PART_OF_ALL or name.startswith((_OPTIONS, _LABELS)))]
    for name in parts + others:
      with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder(path), name))


def options(path: bytes) -> Options | None:
  """What Writers have agreed on; None: no Writer has been there."""
  try:
    found = _read(path, _OPTIONS)
    return Options(_encoded(found["arguments"]), int(found["workers"]), _encoded(found.get("classes", [])))
  except FileNotFoundError:
    return None
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise DataLossError(f"{os.fsdecode(folder(path))}/options.json is damaged ({error}); a Writer writes it again") from None


def _encoded(texts: list[str]) -> list[bytes]:
  return [text.encode("utf-8", "surrogateescape") for text in texts]


def _decoded(texts: list[bytes]) -> list[str]:
  return [text.decode("utf-8", "surrogateescape") for text in texts]


def agree(path: bytes, words: list[bytes], workers: int, classes: list[bytes]) -> None:
  """Writes them down for the finish, as `options` returns them. Writers of several processes have the same."""
  def agrees() -> bool:
    check_agreed(path, words, workers, classes)
    return True
  content = {"arguments": _decoded(words), "workers": workers, "classes": _decoded(classes)}
  _agree(path, _OPTIONS, content, agrees)


def agreed_labels(path: bytes, is_number: bool, label: bytes) -> tuple[bool, bytes]:
  """Writes down whether labels are numbers, with the first one, unless another Writer has, and returns what is written there."""
  content = {"number": is_number, "first": label.decode("utf-8", "surrogateescape")}
  _agree(path, _LABELS, content, lambda: (_labels(path) or (is_number,))[0] == is_number)
  return _labels(path) or (is_number, label)


def have_labels(path: bytes) -> bool:
  """Whether a sample with a label is known to have been added; of classes that were given nothing is written down."""
  return _labels(path) is not None


def forget_labels(path: bytes) -> None:
  """Of a Writer alone that has left no sample."""
  with suppress(FileNotFoundError):
    os.unlink(os.path.join(folder(path), _LABELS))


def _labels(path: bytes) -> tuple[bool, bytes] | None:
  try:
    found = _read(path, _LABELS)
    return bool(found["number"]), found["first"].encode("utf-8", "surrogateescape")
  except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):  # what is damaged is written again
    return None


def _agree(path: bytes, file: bytes, content: dict[str, Any], may_replace: Callable[[], bool]) -> None:
  """Writes a file that all Writers have in common, of which the first one stays unless it may be replaced."""
  import json  # pylint: disable=import-outside-toplevel
  name = os.path.join(folder(path), file)
  own = name + b"." + os.urandom(8).hex().encode()  # of this Writer alone, wherever others run
  with open(own, "x", encoding="ascii") as opened:
    json.dump(content, opened)
  try:
    os.link(own, name)  # unless another one was first
  except OSError:
    if may_replace():
      os.replace(own, name)
  finally:
    try:
      os.unlink(own)
    except FileNotFoundError:
      pass


def _read(path: bytes, name: bytes) -> Any:
  import json  # pylint: disable=import-outside-toplevel
  with open(os.path.join(folder(path), name), "rb") as file:
    return json.load(file)


def check_agreed(path: bytes, words: list[bytes], workers: int, classes: list[bytes]) -> None:
  """OptionError if Writers before have said otherwise."""
  try:
    before = options(path)
  except DataLossError:
    return
  if before is None:
    return
  parts = os.fsdecode(folder(path))
  if before.workers != workers:
    raise OptionError(f"{parts} is of {_writers(before.workers)}, and this is {_writers(workers)}: give the same workers=, or remove "
                      f"{parts} to start again without its samples")
  # Samples that were left without classes are compared with those that are given now.
  if workers <= 1 and before.classes not in ([], classes) and there_are_some(path):
    raise OptionError(f"{parts} has samples of a Writer with other classes: {_named(before.classes)}, not {_named(classes)}; give the same "
                      f"classes=, or remove {parts} to start again without its samples")
  if workers > 1 and before.classes != classes:
    raise OptionError(f"the workers before this one have other classes: {_named(before.classes)}, not {_named(classes)}; give all the "
                      f"same, or remove {parts} to start all of them again without their samples")
  if workers > 1 and before.words != words:
    raise OptionError(f"the workers before this one have other arguments: {_text(before.words)}, not {_text(words)}; give all the "
                      f"same, or remove {parts} to start all of them again without their samples")


def begin(path: bytes, worker: int) -> None:
  """The worker may be given samples again."""
  try:
    os.unlink(_mark(path, worker))
  except FileNotFoundError:
    pass


def end(path: bytes, worker: int, resumed: int) -> None:
  """The worker has given all its samples, and they are safe. resumed: of them, those that earlier runs had left."""
  with open(_mark(path, worker), "wb") as mark:
    mark.write(b"%d" % resumed)


def resumed_of(path: bytes, workers: int) -> int | None:
  """Of all workers together, as they said in the end; None: one has not ended, so that nobody knows."""
  found = 0
  for worker in range(workers):
    try:
      with open(_mark(path, worker), "rb") as mark:
        found += int(mark.read())
    except (FileNotFoundError, ValueError):  # older ones are empty
      return None
  return found


def labels_of_parts(path: bytes) -> dict[str, list[str]]:
  """{part: its labels, each once}, without parts that are damaged: of these the library says so."""
  found = {}
  for name in sorted(filter(_is_part, _names(path))):
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
      found[name.decode().removesuffix(".json")] = _read(path, name)["classes"]
  return found


def check_labels(path: bytes, of_parts: dict[str, list[str]], alone: bool) -> None:
  """OptionError names the parts if the samples of some have labels, and those of others have none."""
  parts: dict[bool, list[str]] = {True: [], False: []}
  for part, labels in of_parts.items():
    parts[bool(labels)].append(part)
  if parts[True] and parts[False]:
    shown, out = os.fsdecode(folder(path)), os.fsdecode(path)
    workers = _listed({int(name[1:].partition("-")[0]) for name in parts[False]})
    raise OptionError(f"the samples of {_some(parts[True])} in {shown} have labels, and those of {_some(parts[False])} have none. Nothing was published: "
                      f"shardpack.finish({out!r}, missing_part=\"keep\") packs them without one; or remove {_some([name + '.*' for name in parts[False]])} "
                      f"there, and run {'the Writer' if alone else 'worker ' + workers} again, with labels")


def check_kinds(path: bytes, of_parts: dict[str, list[str]]) -> None:
  """OptionError names the parts if the labels of some are numbers, and those of others names, as of a worker that had classes alone:
  all would be names, and numbered anew."""
  agreed = _labels(path)
  if agreed is None or not agreed[0]:
    return
  named = {part: names[0] for part, labels in of_parts.items() if (names := [text for text in labels if text and not text.isdigit()])}
  if named:
    shown = os.fsdecode(folder(path))
    raise OptionError(f"labels of {_some([*named])} in {shown} are names, such as {next(iter(named.values()))!r}, and others in there are numbers, such "
                      f"as {os.fsdecode(agreed[1])}. Nothing was published: remove {shown}, and run all workers again, with the same classes=")


def _some(names: list[str]) -> str:
  return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def check_ended(path: bytes, workers: int, take_unfinished: bool = False) -> None:
  """StateError names the workers that have never begun, else those that have not ended, unless what these have is taken."""
  names = _names(path)
  if _PUBLISHED in names:  # the library says so when it is opened
    return
  begun: set[int] = set()
  ended: set[int] = set()
  for found in filter(None, map(_of_worker, names)):
    (ended if found[2] == _ENDED else begun).add(int(found[1]))
  if absent := _listed({*range(workers)} - begun - ended):
    raise StateError(f"worker {absent} of {workers} has not begun")
  if (unfinished := _listed(begun - ended)) and not take_unfinished:
    raise StateError(f"worker {unfinished} has not ended: it is still open, or was killed or left by an exception. Run it again (`key "
                     "in writer` says what it has), or take what is there: shardpack.finish(path, unfinished=\"take\")")


def _listed(workers: set[int]) -> str:
  return ", ".join(map(str, sorted(workers)))


def _names(path: bytes) -> list[bytes]:
  try:
    return os.listdir(folder(path))
  except OSError:
    return []


def _mark(path: bytes, worker: int) -> bytes:
  return os.path.join(folder(path), b"w%05d" % worker + _ENDED)


def _writers(workers: int) -> str:
  return f"{workers} worker{'s' if workers > 1 else ''}" if workers else "a Writer without workers="


def _named(classes: list[bytes]) -> str:
  return ", ".join(map(repr, _decoded(classes[:10]))) + (", ..." if len(classes) > 10 else "") if classes else "none"


def _text(words: list[bytes]) -> str:
  return " ".join(os.fsdecode(word) for word in words)
