"""What the drivers of cluster engines share: `pack` as a task of an engine, how far the tasks are, and the commit.

`shardpack.spark`, `shardpack.ray` and `shardpack.slurm` use it; so may a driver of another engine: it calls `build_shard` for
each of `status(out, plan)["unfinished"]`, as often as it takes, and then `commit(out)`.

  >>> import subprocess
  >>> words = [*command(), "plan", "photos", "--shards", "2", "--write", "photos.plan", "-q"]
  >>> subprocess.run(words, stdout=subprocess.DEVNULL, check=True).returncode
  0
  >>> results = [build_shard(shard, "photos.plan", "by-tasks") for shard in status("by-tasks", "photos.plan")["unfinished"]]
  >>> check(results)
  >>> commit("by-tasks")["counts"]["packed"]
  60
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from typing import Any, Iterable, Tuple

from .__main__ import find
from ._errors import PackError

Result = Tuple[int, int, str]  # shard, exit code, what `pack` said

_PUBLISHED = (0, 3)  # 3: inputs were skipped
_FINAL = (0, 2, 4, 5)  # another try changes nothing


def failed(message: str, exit_code: int) -> PackError:
  """The error to raise for a `pack` that ended so.

  >>> failed("shard 3: the disk is full", 6).exit_code
  6
  """
  error = PackError(message)
  error.exit_code = exit_code
  return error


def gave_up(engine: str, error: Exception) -> PackError:
  """The error to raise for an engine that has given up: the same call goes on where it ended."""
  return failed(f"{engine} gave up: {error}", 6)


def absolute(plan: str | os.PathLike[str], out: str | os.PathLike[str]) -> tuple[str, str]:
  """Both paths made absolute: tasks run in folders of their own. An URL is refused: `pack` needs a file system that all share."""
  for path in (plan, out):
    if "://" in os.fspath(path):
      raise failed(f"{os.fspath(path)} is an URL; name a folder of a file system that all tasks share", 2)
  return os.path.abspath(os.fspath(plan)), os.path.abspath(os.fspath(out))


@functools.lru_cache(maxsize=None)
def _program() -> str:
  try:
    return find()
  except SystemExit as missing:  # it would end the engine's process, too
    raise failed(str(missing.code), 2) from None


def command() -> list[str]:
  """The words that start `pack` on this machine: no Python in between, which a task of one shard would feel."""
  return [_program()]


def build_shard(shard: int, plan: str, out: str, attempt: int = 0, jobs: int = 1) -> Result:
  """Builds one shard of the plan, unless it is done. `attempt` > 0: a retry, or a copy of a task that is slow: does not wait for
  it. Returns the shard, the exit code and the messages; raises RuntimeError where the engine should try again."""
  words = command() + ["build", "--plan", plan, "-o", out, "--shards", str(shard), "-j", str(jobs), "-q", "--stop-with-stdin"]
  if attempt > 0:
    words += ["--takeover", "now"]
  # Its standard input stays open for as long as this process lives: `pack` ends with it.
  with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace")
    process.wait()
  if process.returncode in _FINAL:
    return shard, process.returncode, said
  raise RuntimeError(f"shard {shard}: pack ended with {process.returncode}: {said[-500:]}")


def check(results: Iterable[Result]) -> None:
  """PackError for the first shard that could not be built."""
  for shard, code, said in results:
    if code != 0:
      raise failed(f"shard {shard}: {said.strip()}", code)


def status(out: str | os.PathLike[str], plan: str | os.PathLike[str] | None = None) -> dict[str, Any]:
  """How far the workers in `out` are, as `pack status --json` tells it: `shards`, `done`, `unfinished`, `published` and so on.
  PackError if `out` is of another plan."""
  words = ["status", os.fspath(out), "--json"] + (["--plan", os.fspath(plan)] if plan is not None else [])
  return _json(words, (0, 7))


def commit(out: str | os.PathLike[str], *flags: str) -> dict[str, Any]:
  """Publishes the dataset, whose shards are all done. Returns the report of `pack commit --json`; `flags` are further words.
  PackError if shards are missing, which it names."""
  return _json(["commit", os.fspath(out), "--json", "-q", *flags], _PUBLISHED)


def _json(words: list[str], good: tuple[int, ...]) -> dict[str, Any]:
  done = subprocess.run(command() + words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
  if done.returncode not in good:
    raise failed(done.stderr.decode(errors="replace").strip(), done.returncode)
  report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
  return report
