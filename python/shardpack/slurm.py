"""Submits the jobs that `pack plan --slurm DIR` has written: an array that builds, and a job that publishes after it.

>>> import shardpack.slurm               # doctest: +SKIP
>>> shardpack.slurm.submit("jobs")        # doctest: +SKIP
('4711', '4712')
"""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Sequence

from ._errors import PackError
from .cluster import failed


def submit(folder: str | os.PathLike[str], options: Sequence[str] = ()) -> tuple[str, str]:
  """Submits `build.sbatch` and `commit.sbatch` of the folder; `options` are further words for sbatch, as in
  `["--partition=big"]`. Returns the numbers of both jobs; PackError if sbatch refuses one, which names the array if that is queued."""
  folder = os.fspath(folder)
  build = _sbatch([*options, os.path.join(folder, "build.sbatch")])
  commit = [*options, f"--dependency=afterany:{build}", os.path.join(folder, "commit.sbatch")]
  try:
    return build, _sbatch(commit)
  except PackError as error:
    typed = shlex.join(["sbatch", *commit])
    raise failed(f"{error}\nThe array {build} is queued. `scancel {build}` ends it; its commit is submitted by\n  {typed}",
                 error.exit_code) from None


def _sbatch(words: Sequence[str]) -> str:
  try:
    done = subprocess.run(["sbatch", "--parsable", *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
  except FileNotFoundError:
    raise failed("there is no sbatch here; run this where jobs are submitted", 2) from None
  if done.returncode != 0:
    raise failed(f"sbatch {words[-1]}: {done.stderr.decode(errors='replace').strip()}", done.returncode)
  return done.stdout.decode().strip().partition(";")[0]
