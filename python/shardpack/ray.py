"""Builds a plan with the workers of Ray: one task a shard.

>>> import shardpack.ray                                # doctest: +SKIP
>>> shardpack.ray.pack("photos.plan", "/data/shards")     # doctest: +SKIP

The plan (`pack plan --write`), its source and the output lie on a file system that all nodes share. Images do not pass through
Ray: each task is a process of `pack`. Tasks that are retried are harmless.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from . import cluster
from ._errors import PackError

_WINDOW = 1000  # tasks that are submitted and have not ended


def pack(plan: str | os.PathLike[str], out: str | os.PathLike[str], *, jobs: int = 1, max_retries: int = 3) -> dict[str, Any]:
  """Builds what is not done of the plan and publishes it. `jobs`: threads of a task, which takes as many CPUs. Returns the report
  of the commit; PackError if a shard cannot be built, or if `out` is of another plan; tasks that still run are then cancelled.
  Starts Ray here if `ray.init` was not called."""
  import ray  # pylint: disable=import-outside-toplevel,import-error
  plan, out = cluster.absolute(plan, out)

  @ray.remote(num_cpus=jobs, max_retries=max_retries, retry_exceptions=True)
  def build(shard: int) -> cluster.Result:
    return cluster.build_shard(shard, plan, out, 0, jobs)

  unfinished = cluster.status(out, plan)["unfinished"]
  running: list[Any] = []

  def take() -> None:
    nonlocal running
    done, running = ray.wait(running)
    cluster.check(ray.get(done))

  try:
    for shard in unfinished:
      if len(running) >= _WINDOW:
        take()
      running.append(build.remote(shard))
    while running:
      take()
  except PackError:
    raise
  except Exception as error:  # Ray's own: a task has failed too often, or Ray itself
    raise cluster.gave_up("Ray", error) from error
  finally:
    for task in running:
      with contextlib.suppress(Exception):  # Ray may be gone
        ray.cancel(task)
  return cluster.commit(out)
