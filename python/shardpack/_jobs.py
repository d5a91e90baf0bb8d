"""Jobs: commands of `pack`, which change or verify whole datasets, in a process of their own."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterable, Sequence, Union

from . import _arguments, _c, _source
from ._arguments import Path
from ._aside import Aside
from ._errors import (CancelledError, Error, OptionError, PackError, PackExistsError, PackNotFoundError, PackUsageError, StateError,
                      made_error, nearest)
from ._flags import FLAGS
from ._library import WAIT_MS, Handle, call, library, made, text_made, text_of
from ._progress import Progress, Showing, Shown, checked
from ._report import Report

if TYPE_CHECKING:
  from ._dataset import Dataset

Paths = Union[Path, "Dataset", Iterable[Union[Path, "Dataset"]]]

_DONE, _DONE_WITH_SKIPS, _DAMAGE, _FOUND = 0, 3, 4, 8
_USAGE, _CONFLICT = 2, 5
# Members of reports of damage that was looked for, which is not a failure.
_OF_DAMAGE = ("findings", "damaged", "unread")
_SECONDS_TO_STOP = 10.0  # for a job that was cancelled


class Job:
  """A command of `pack` that runs beside this program: `build`, `validate`, `index`, `convert`, `extract`, `repair`, `stats`, `diff`,
  `dups` or `report`, its paths, and its flags as keywords (docs/cli.md): `--shard-size 512MB` is `shard_size="512MB"`, `--no-shuffle` is `shuffle=False`,
  `--from` is `from_=[...]`.

  It starts at once. `wait`, `await` and `result` return its Report, or raise: PackError if it failed (PackUsageError,
  PackNotFoundError or PackExistsError where that fits), CancelledError if it was cancelled, NotFoundError if the program is not to be
  found. Each warning of `pack`, and what it has left out, is a RuntimeWarning. As a context manager, it is cancelled where the block ends before it.
  An unknown keyword is an OptionError (a TypeError). One thread at a time; `cancel` from any.

  >>> job = shardpack.Job("validate", "shards", level="full")
  >>> job.wait().ok
  True
  """

  _of_left_out = ""
  _selects = False  # whether a selection is what leaves samples out: nobody is warned of that, and no message names its list

  def __init__(self, verb: str, *paths: Path | Dataset, **flags: Any):
    if verb not in FLAGS:
      raise OptionError(f"{verb!r} is not a job; jobs are {', '.join(FLAGS)}{nearest(str(verb), FLAGS)}")
    typed = [verb.encode(), *_arguments.words(verb, flags)]
    if paths:
      typed += [b"--", *_paths(paths, "a path")]
    self._begin(typed, lambda: _start(typed))

  @classmethod
  def _of(cls, typed: Sequence[bytes], start: Callable[[], Handle], of_left_out: str) -> Job:
    """A job that another function of the library makes, and what it reports about samples that it leaves out."""
    job = cls.__new__(cls)
    job._of_left_out = of_left_out
    job._begin(typed, start)
    return job

  def _begin(self, typed: Sequence[bytes], start: Callable[[], Handle]) -> None:
    self.command: tuple[str, ...] = ("pack", *map(os.fsdecode, typed))
    self._handle: Handle | None = None
    self._cancelled = 0  # how often
    self._ended = self._warned = False
    self._stage, self._stage_began = "", 0.0
    self._seen: tuple[Any, ...] | None = None
    # It asks each program that it finds for its version, which may take a while.
    self._starting = Aside(start)

  @property
  def done(self) -> bool:
    """Whether it has ended. Does not wait.

    >>> job = shardpack.Job("validate", "shards")
    >>> job.wait().ok, job.done
    (True, True)
    """
    return self._ended or self._has_ended(0.0)[0]

  def poll(self, seconds: float = 0.0) -> Progress | None:
    """The newest Progress, waiting so long for it; None: there is nothing new. After the end `done` is True.

    >>> job = shardpack.Job("build", "photos", out="polled")
    >>> while not job.done:
    ...   news = job.poll(0.1)
    >>> job.result().samples
    60
    """
    end = time.monotonic() + seconds
    while not self._ended:  # in turns, so that signals are answered
      left = max(0.0, end - time.monotonic())
      ended, news = self._has_ended(min(left, WAIT_MS / 1000))
      if ended or news is not None or not left:
        return news
    return None

  def cancel(self) -> None:
    """Asks it to stop, as Ctrl-C does: what is finished is kept, and the same job goes on with it. A second call stops it at
    once.

    >>> job = shardpack.Job("convert", "shards", out="cancelled", resize="exact", size=(512, 512), encode="png")
    >>> job.cancel()
    >>> try:
    ...   done = job.wait().ok           # it may have been faster
    ... except shardpack.CancelledError:
    ...   done = True
    >>> done
    True
    """
    self._cancelled += 1
    if self._handle is not None:
      library.job_cancel(self._handle)

  def wait(self, progress: Shown = None) -> Report:
    """Waits for its end. What interrupts that, Ctrl-C or an exception of `progress`, also stops the job, resumably.

    >>> shardpack.Job("validate", "shards").wait().ok
    True
    """
    showing = Showing(progress, self.command[1])
    try:
      while not self._ended:
        ended, news = self._has_ended(WAIT_MS / 1000, showing.wanted)
        if news is not None:
          showing.news(news)
        elif not ended:
          showing.due()
      showing.end()
    except BaseException:
      self._stop()
      raise
    finally:
      showing.close()
    return self.result()

  def result(self) -> Report:
    """The Report of a job that has ended. StateError while it runs.

    >>> job = shardpack.Job("stats", "shards")
    >>> job.wait() is not None, job.result().samples
    (True, 60)
    """
    if not self.done:
      raise StateError("the job is still running; wait() waits for its end")
    facts = self._facts()
    exit_code, report, messages = facts["exit_code"], facts["report"], self._messages(facts)
    looked = exit_code == _DAMAGE and isinstance(report, dict) and any(member in report for member in _OF_DAMAGE)
    if exit_code in (_DONE, _DONE_WITH_SKIPS, _FOUND) or looked:
      made_report = Report(report if isinstance(report, dict) else {}, exit_code, messages)
      self._warn(made_report)
      return made_report
    if facts["cancelled"]:
      what = "the packing of a selection" if self._selects else " ".join(self.command)
      raise CancelledError(f"{what} was cancelled; the same job resumes with what it has finished")
    raise self._failure(facts)

  def _facts(self) -> Any:
    handle: Handle = self._handle or self._starting.result()  # raises why it could not be started
    import json  # pylint: disable=import-outside-toplevel
    return json.loads(text_made(library.job_result_json, handle))

  def _messages(self, facts: dict[str, Any]) -> str:
    """What it wrote for people."""
    written: str = facts["stderr"]
    return _of_selection(written) if self._selects else written

  def _warn(self, report: Report) -> None:
    """Once, as `pack` does: people seldom look at the messages of a report that they have."""
    if self._warned:
      return
    self._warned = True
    said = [text.partition(" ")[2] for text in _said(report.messages, "warning:")]
    if report.exit_code == _DONE_WITH_SKIPS:
      left_out = "\n".join(_said(report.messages, "skipped ")) or report.messages.strip()
      said.append(f"{getattr(report, 'skipped', None) or 'some'} samples were left out{self._of_left_out}:\n{left_out}")
    level = 2
    while sys._getframe(level - 1).f_globals.get("__package__") == __package__:
      level += 1
    for text in said:
      warnings.warn(text, RuntimeWarning, stacklevel=level)

  def _let_go(self) -> None:
    """Frees what it holds once it has ended, even if somebody still refers to it. Its result is not asked for again."""
    if self._ended and self._handle is not None:
      self._handle.release()

  def __await__(self) -> Generator[Any, None, Report]:
    return self._awaited().__await__()

  async def _awaited(self) -> Report:
    import asyncio  # pylint: disable=import-outside-toplevel
    try:
      while not self.done:
        await asyncio.sleep(WAIT_MS / 4000)
    except BaseException:
      self.cancel()
      raise
    return self.result()

  def __enter__(self) -> Job:
    return self

  def __exit__(self, *_: object) -> None:
    if not self.done:
      self._stop()

  def __repr__(self) -> str:
    return f"<Job {' '.join(self.command)}: {'ended' if self.done else 'running'}>"

  def _has_ended(self, seconds: float, with_news: bool = True) -> tuple[bool, Progress | None]:
    if self._handle is None:
      if not self._starting.wait(seconds):
        return False, None
      try:
        self._handle = self._starting.result()
      except Exception:
        self._ended = True
        raise
      for _ in range(self._cancelled):
        library.job_cancel(self._handle)
    news = _c.job_progress(ctypes.sizeof(_c.job_progress))
    code = call(library.job_poll, self._handle, int(seconds * 1000), ctypes.byref(news) if with_news else None)
    self._ended = code != _c.WAIT
    return self._ended, self._progress_of(news) if with_news and news.stage.size else None

  def _progress_of(self, news: Any) -> Progress | None:
    seen = (text_of(news.stage), news.done, news.total, news.bytes, news.seconds)
    if seen == self._seen:
      return None
    self._seen = seen
    stage, done, total, read, seconds = seen
    if stage != self._stage:
      self._stage, self._stage_began = stage, seconds
    taken = seconds - self._stage_began or seconds  # the first news of a stage that began with the job
    return Progress(stage, done, total or None, read, done / taken if taken > 0 else 0.0,
                    news.seconds_left if news.seconds_left >= 0 else None)

  def _stop(self) -> None:
    """Cancels it, and waits for that; a second Ctrl-C meanwhile stops it at once."""
    self.cancel()
    end = time.monotonic() + _SECONDS_TO_STOP
    try:
      while not self._ended and time.monotonic() < end:
        self._has_ended(WAIT_MS / 1000, False)
    except KeyboardInterrupt:
      self.cancel()
      raise
    except Exception:  # pylint: disable=broad-exception-caught
      pass  # it has not been started; what interrupted it is raised

  def _failure(self, facts: dict[str, Any]) -> PackError:
    said = facts["error"] if isinstance(facts["error"], dict) else {}
    message = said.get("message") or facts["stderr"].strip() or "it said nothing"
    code = facts["exit_code"]
    ending = f"exit code {code}" if 0 <= code <= 128 else f"signal {code - 128}" if code > 128 else "unknown exit code"
    message = message.replace(" --json --progress=json", "")  # of this class, not of its caller
    if self._selects:
      message = _of_selection(message)
    keywords = keywords_in(message, self.command[1])
    hint = f"\nIn Python flags are keywords: {', '.join(keywords)}" if keywords else ""
    kind, path = self._kind_of_failure(code, message)
    if kind is PackNotFoundError and path is not None:
      from . import _parts  # pylint: disable=import-outside-toplevel
      hint += _parts.way_on(os.fsencode(path))
    attributes = {
        "code": {PackUsageError: "INVALID", PackNotFoundError: "NOT_FOUND", PackExistsError: "EXISTS"}.get(kind),
        "path": path,
        "exit_code": code,
        "command": tuple(word for word in self.command if not (self._selects and word.startswith("--exclude-keys="))),
        "stderr": self._messages(facts),
        "report": facts["report"] if isinstance(facts["report"], dict) else None,
    }
    return made_error(kind, f"pack {self.command[1]}: {message} ({ending}){hint}", attributes)

  def _kind_of_failure(self, code: int, message: str) -> tuple[type[PackError], str | None]:
    """And the path that it is about, as far as that is known."""
    words = list(self.command)
    paths = words[words.index("--") + 1:] if "--" in words else []
    out = next((word[len("--out="):] for word in words if word.startswith("--out=")), None)
    if code == _CONFLICT and not _says(_busy, message, [*paths, out or ""]):
      return PackExistsError, out
    if code != _USAGE:
      return PackError, None
    if _says(_absent, message, [*paths, out or ""]):
      for path in paths:
        if path in message and not os.path.lexists(path):
          return PackNotFoundError, path
    return PackUsageError, None


# Another program, so that the same job may do later.
_busy = re.compile("is locked by|is being (built|written)|by another run|was replaced")
_absent = re.compile("does not exist")
_flag = re.compile(r"(?<![^\s(])--[a-z][a-z0-9-]*[a-z0-9]")  # in a message
_unreadable = re.compile("[\0-\x1f\x7f%\udc80-\udcff]")  # in a key
_checked_flags: set[tuple[bytes, ...]] = set()


def _says(what: re.Pattern[str], message: str, paths: Iterable[str]) -> bool:
  """Whether the message has these words elsewhere than in the name of a path."""
  for path in sorted(filter(what.search, paths), key=len, reverse=True):
    message = message.replace(path, "")
  return what.search(message) is not None


def _of_selection(message: str) -> str:
  """Without the list of keys, a temporary file, and the command to type, which has it."""
  lines = [line for line in message.splitlines() if not line.startswith(("  --exclude-keys ", "warning: --exclude-keys "))]
  for place, line in enumerate(lines):
    if place and line.startswith("  ") and " --exclude-keys=" in line:
      lines[place - 1:place + 1] = [lines[place - 1].removesuffix(" Type:") + (" In Python: overwrite=True" if " --overwrite" in line else "")]
      break
  return "\n".join(lines)


def _keyword(verb: str, flag: str) -> str | None:
  """"max_skip=..." of "--max-skip"; None if the command has no such flag."""
  name, known = flag[2:], FLAGS.get(verb, {})
  negated = name[3:] if name.startswith("no-") else None
  if negated is not None and (known.get(negated) == "negatable" or name in known):
    return f"{negated}=False".replace("-", "_")
  if name not in known:
    return None
  word = name.replace("-", "_")
  return f"{word}=True" if known[name] in ("switch", "negatable") else f"{word}=..."


def keywords_in(message: str, verb: str) -> list[str]:
  """Those of the flags that it names."""
  found = (_keyword(verb, flag) for flag in _flag.findall(message) if flag != "--out")
  return [*dict.fromkeys(filter(None, found))]


def in_python(message: str) -> str:
  """With keywords in the place of flags."""
  def keyword(found: re.Match[str]) -> str:
    said = _keyword("convert", found[0])
    return found[0] if said is None else said if said.endswith(("True", "False")) else said.removesuffix("=...")
  return _flag.sub(keyword, message)


def check_flags(words: Sequence[bytes]) -> None:
  """OptionError for what `pack convert` would say of these words, without a source: it looks at them first, and then finds that
  /dev/null is none. Where there is no `pack`, as where only parts are written, the finish says it."""
  if tuple(words) in _checked_flags:
    return
  typed = [b"convert", *words, b"--dry-run", b"--", b"/dev/null"]
  job = Job._of(typed, lambda: _start(typed), "")
  try:
    job.wait()
  except PackError as error:
    message = error.stderr.strip().removeprefix("pack: error: ")
    if error.exit_code == _USAGE and not message.startswith("/dev/null"):
      raise OptionError(in_python(message)) from None
  except Error:
    return
  finally:
    job._let_go()
  _checked_flags.add(tuple(words))


def _said(messages: str, word: str) -> list[str]:
  """The lines that begin with the word, each with those under it that belong to it."""
  return [found[0].rstrip() for found in re.finditer(rf"^{word}.*\n?(?:  .*\n?)*", messages, re.MULTILINE)]


def _start(typed: Sequence[bytes]) -> Handle:
  return made(library.job_release, library.job_start, (ctypes.c_char_p * len(typed))(*typed), len(typed), None)


def _run(verb: str, paths: list[bytes], out: Any, progress: Shown, flags: dict[str, Any], selects: bool = False) -> Report:
  checked(progress)
  if out is not None:
    flags["out"] = _arguments.path(out, "out")
  job = Job(verb, *paths, **flags)
  job._selects = selects
  return job.wait(progress)


def _paths(values: Any, what: str) -> list[bytes]:
  """Also of Datasets that are whole."""
  from ._dataset import Dataset  # pylint: disable=import-outside-toplevel
  if isinstance(values, Dataset):
    values = [values]
  if isinstance(values, (list, tuple)):
    values = [_path_of(value, what) if isinstance(value, Dataset) else value for value in values]
  return _arguments.paths(values, what)


def _is_whole(dataset: Dataset) -> bool:
  return dataset._base._source[0] == "open" and (dataset._ids is None or (len(dataset) == len(dataset._base) and _is_in_order(dataset)))


def _is_in_order(dataset: Dataset) -> bool:
  ids = dataset._ids
  return ids is None or bool((ids[1:] > ids[:-1]).all())


def _path_of(dataset: Dataset, what: str) -> bytes:
  path = _origin(dataset, what)
  if not _is_whole(dataset):
    raise OptionError(f"{what} is a selection of samples, and this takes whole datasets: shardpack.convert(selection, out) packs its "
                      "samples as a dataset, whose path can be given")
  return os.fsencode(path)


def _origin(dataset: Dataset, what: str) -> str:
  """The path of the dataset, or of the one that it is selected from."""
  source = dataset._base._source
  while source[0] == "split":
    source = source[1]
  if source[0] != "open":
    raise OptionError(f"{what} is {_source.describe(source)}, which has no path of its own: give the paths of its parts, or write "
                      "it with shardpack.Writer and its add_sample()")
  return source[1]  # type: ignore[no-any-return]


def _convert_selection(selection: Dataset, out: Path, progress: Shown, flags: dict[str, Any]) -> Report:
  """By a list, as of `pack dups --write-list`, of the keys that are not in it."""
  import tempfile  # pylint: disable=import-outside-toplevel
  from ._dataset import Dataset  # pylint: disable=import-outside-toplevel
  path = _origin(selection, "src")
  if flags.get("exclude_keys") is not None:
    raise OptionError("exclude_keys does not go with a selection, which leaves out samples itself")
  if not len(selection):
    raise OptionError("src is a selection without samples")
  if not _is_in_order(selection):
    raise OptionError("src is a selection in another order than its dataset, or with samples twice, which convert cannot keep: sort its "
                      "numbers, or write it with shardpack.Writer and its add_sample()")
  whole = Dataset(path)
  if _same_part(whole, selection._base._source).identity != selection._base.identity:
    raise OptionError(f"src is a selection of what was at {path} before, and now another dataset is there: open it again, and "
                      "select from that")
  inside = {*selection.keys}
  outside = [key for key in whole.keys if key not in inside]
  if len(outside) + len(selection) != len(whole) or "" in outside:
    raise OptionError(f"src is a selection of {path}, where samples that are not in it have the keys of some that are, or none, and "
                      "convert tells samples apart by their keys: write it with shardpack.Writer and its add_sample(), with keys of its own")
  with tempfile.NamedTemporaryFile("wb", suffix=".keys") as file:
    file.write(_key_list(whole.identity, outside))
    file.flush()
    try:
      return _run("convert", [os.fsencode(path)], out, progress, {**flags, "exclude_keys": file.name if outside else None}, selects=True)
    except PackUsageError as error:
      if f"{file.name} is of the dataset" not in error.stderr:
        raise
      raise OptionError(f"src is a selection of {path}, which convert opens as another dataset: it was replaced just now, or is a single "
                        "shard, whose classes are in the manifest beside it. Select from the dataset's folder, or write the selection with "
                        "shardpack.Writer and its add_sample()") from None


def _same_part(whole: Dataset, source: _source.Source) -> Dataset:
  """Of the dataset as it is now, the part that the source names."""
  return whole if source[0] == "open" else _same_part(whole, source[1]).split(source[2])


def _key_list(identity: str, keys: Sequence[str]) -> bytes:
  """As converters/listing/key_list.h has it: it is refused for another dataset."""
  lines = [b"# shardpack.convert: keys that are not in a selection, one a line", b"# of the dataset " + identity.encode(),
           b"# keys: %d" % len(keys), *map(_escaped, keys)]
  return b"\n".join(lines) + b"\n"


def _escaped(key: str) -> bytes:
  """As pack dups writes it."""
  text = _unreadable.sub(lambda found: f"%{ord(found[0]) & 255:02X}", key)
  return ("%23" + text[1:] if text.startswith("#") else text).encode()


def pack(src: Paths, out: Path, *, progress: Shown = None, **flags: Any) -> Report:
  """Packs a folder, list, archive or dataset into shards, verifies and publishes them, as `pack SRC -o OUT`.

  `src` is a path; `flags` are those of `pack build` (docs/cli.md) as keywords: `split={"train": 0.9, "val": 0.1}`, `shuffle=False`,
  `size=(64, 64)`, `exclude=["*.tmp"]`. `progress=True` shows a bar, a function is called with each Progress, in this thread and at
  most 10 times a second. Ctrl-C, and an exception of that function, stop the job: the same call goes on with what is finished.
  Samples that were left out are counted in `Report.skipped`, and `ok` is then False.

  Raises PackError, as PackUsageError (an OptionError, ValueError and TypeError) for what `pack` refuses, PackNotFoundError (a
  FileNotFoundError) for a path where nothing is, PackExistsError (a FileExistsError) for an output of something else; OptionError
  for an unknown keyword.

  >>> report = shardpack.pack("shards", "packed", format="tfrecord")
  >>> report.samples, report.format, report.ok
  (60, 'tfrecord', True)
  """
  return _run("build", _paths(src, "src"), out, progress, flags)


def validate(out: Paths, level: str = "full", *, progress: Shown = None, **flags: Any) -> Report:
  """Checks a dataset, or shards of any program, as `pack validate`: its `level` is "quick" (sizes, indexes), "full" (every byte) or
  "deep" (every image is decoded). Damage is not raised: `Report.ok` is then False, and `Report.findings` has what was found.

  Raises PackError for what cannot be looked at.

  >>> report = shardpack.validate("shards")
  >>> report.ok, report.samples, report.findings
  (True, 60, [])
  """
  return _run("validate", _paths(out, "out"), None, progress, {"level": level, **flags})


def index(paths: Paths, out: Path | None = None, *, progress: Shown = None, **flags: Any) -> Report:
  """Makes shards of other programs a dataset, in place, as `pack index`: indexes beside them, or in the folder `out`.

  >>> import glob
  >>> shardpack.index(sorted(glob.glob("shards/*.tar")), "indexed").samples
  60
  """
  return _run("index", _paths(paths, "paths"), out, progress, flags)


def convert(src: Paths, out: Path, *, progress: Shown = None, **flags: Any) -> Report:
  """Packs a dataset, or shards of any program, into another format, as `pack convert`; see `pack`. `src` may be a Dataset, also a
  selection: its samples are then packed, with all classes, so that labels stay what they are. OptionError for a selection that keys
  do not tell from the rest, and where another dataset is there by now.

  >>> shardpack.convert("shards", "records", format="tfrecord").format
  'tfrecord'
  >>> shardpack.convert(shardpack.Dataset("shards").where(label="cat"), "cats").samples
  20
  """
  from ._dataset import Dataset  # pylint: disable=import-outside-toplevel
  if isinstance(src, Dataset) and not _is_whole(src):
    return _convert_selection(src, out, progress, flags)
  return _run("convert", _paths(src, "src"), out, progress, flags)


def extract(src: Paths, out: Path, *, progress: Shown = None, **flags: Any) -> Report:
  """Writes samples back as files at their source paths, as `pack extract`; `Report.samples` counts the files.

  >>> shardpack.extract("shards", "files", split="val").as_dict["fields"]["image"]
  12
  """
  return _run("extract", _paths(src, "src"), out, progress, flags)


def stats(out: Paths, **flags: Any) -> Report:
  """What a dataset, or shards of any program, hold, as `pack stats`, from the indexes alone: `samples`, `classes` and `splits` with
  counts, quantiles and histograms of `width`, `height`, `aspect` and `bytes`, `fields`, `copies`, and `notes`: what is suspicious,
  with `decode=True` also in the pixels. With `check=True`, `Report.ok` is False if there are notes. Of a damaged dataset it has what can
  be read; `damaged` is then true, and `Report.ok` False.

  Errors, as of diff, dups and report: PackError with the program's message, PackNotFoundError if nothing is at a path, with the
  exit_code 4 for a damaged manifest (of diff and dups: or index); OptionError for an unknown keyword.

  >>> stats = shardpack.stats("shards")
  >>> stats.samples, [(each["name"], each["samples"]) for each in stats.classes]
  (60, [('cat', 20), ('dog', 20), ('owl', 20)])
  >>> stats.bytes["quantiles"]["50"] > 0, stats.copies["groups"]
  (True, 0)
  """
  return _run("stats", _paths(out, "a dataset"), None, None, flags)


def diff(a: Path | Dataset, b: Path | Dataset, by: str = "key", **flags: Any) -> Report:
  """What differs between two datasets of any formats, as `pack diff`, without reading an image: `counts`, and `changes` with `what`
  happened to each sample, and what it `was` and is `now`; `fields`, `classes`, `options`. `by` is "key", "path" or "hash". With
  `check=True`, `Report.ok` is False if samples or classes differ; `differs` says it always. Errors: as of stats.

  >>> shardpack.convert("shards", "as-records", format="tfrecord").ok
  True
  >>> diff = shardpack.diff("shards", "as-records")
  >>> diff.differs, diff.same, diff.changes
  (False, 60, [])
  """
  return _run("diff", [*_paths([a], "a"), *_paths([b], "b")], None, None, {"by": by, **flags})


def dups(*paths: Path | Dataset, near: bool = False, progress: Shown = None, **flags: Any) -> Report:
  """Images that are there more than once, within and across datasets, as `pack dups`: `exact` groups, and with `near=True` those that
  look alike; each has `samples`, `label_conflict` and `leak`. `write_list="keys.txt"` writes the keys to leave out. With `check=True`,
  `Report.ok` is False if there are any. Errors: as of stats.

  >>> dups = shardpack.dups("shards", near=True)
  >>> dups.exact, dups.hashed + dups.flat
  ([], 60)
  """
  return _run("dups", _paths(paths, "paths"), None, progress, {"near": near, **flags})


def report(path: Paths, out: Path, *, progress: Shown = None, **flags: Any) -> Report:
  """Writes one HTML page that shows what a dataset holds, as `pack report`: counts, sizes, pictures of every class, copies. Of a
  damaged dataset it shows what it can; `damaged` is then true, and `Report.ok` False. Errors: as of stats.

  >>> shardpack.report("shards", "shards.html", thumbs=4).damaged
  False
  """
  return _run("report", _paths(path, "path"), out, progress, flags)
