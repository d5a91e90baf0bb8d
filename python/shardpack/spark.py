"""Builds a plan with the executors of Spark: one task a shard.

>>> import shardpack.spark                                    # doctest: +SKIP
>>> shardpack.spark.pack(spark, "photos.plan", "/data/shards")  # doctest: +SKIP

The plan (`pack plan --write`), its source and the output lie on a file system that the driver and all executors share. Images do
not pass through Spark: each task is a process of `pack`. Tasks that are retried or speculated are harmless.
"""

from __future__ import annotations

import os
from typing import Any, Iterable, Iterator

from . import cluster


def pack(spark: Any, plan: str | os.PathLike[str], out: str | os.PathLike[str], *, jobs: int = 1) -> dict[str, Any]:
  """Builds what is not done of the plan, with `spark` (a SparkSession), and publishes it. `jobs`: threads of a task, as many as
  `spark.task.cpus`. Returns the report of the commit; PackError if a shard cannot be built, or if `out` is of another plan."""
  plan, out = cluster.absolute(plan, out)

  def part(shards: Iterable[int]) -> Iterator[cluster.Result]:
    from pyspark import TaskContext  # pylint: disable=import-outside-toplevel,import-error
    context = TaskContext.get()
    for shard in shards:
      yield cluster.build_shard(shard, plan, out, context.attemptNumber() if context else 0, jobs)

  state = cluster.status(out, plan)
  todo = state["unfinished"]
  if todo:
    try:
      results = spark.sparkContext.parallelize(todo, len(todo)).mapPartitions(part).collect()
    except Exception as error:  # Spark's own, of several packages: a task has failed too often
      raise cluster.gave_up("Spark", error) from error
    cluster.check(results)
  return cluster.commit(out)
