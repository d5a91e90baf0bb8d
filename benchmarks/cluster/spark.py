"""What Spark adds to the processes that build: spark.py --pack PROGRAM --site FOLDER --source FOLDER [--work FOLDER] [--rounds N]

Runs the 60 shards of a plan by shardpack.spark.pack on executors that have started (local-cluster), and the same processes of `pack`,
as many at once, from threads; by turns. To be started with the Python of an environment with pyspark (tests/interop/venv spark).
--site: the folder of the package shardpack, //python:shardpack.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time

SHARDS, AT_ONCE = 60, 2


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  path = lambda text: pathlib.Path(text).resolve()
  parser.add_argument("--pack", type=path, required=True)
  parser.add_argument("--site", type=path, required=True)
  parser.add_argument("--source", type=path, required=True)
  parser.add_argument("--work", type=path, default="spark-bench")
  parser.add_argument("--rounds", type=int, default=3)
  options = parser.parse_args()
  options.work.mkdir(parents=True, exist_ok=True)
  os.environ.update(PYTHONPATH=str(options.site), PYSPARK_PYTHON=sys.executable, SHARDPACK_PACK=str(options.pack),
                    PATH=f"{options.pack.parent}:{os.environ['PATH']}")
  sys.path.insert(0, str(options.site))
  plan, out = options.work / "plan", options.work / "out"
  plan.unlink(missing_ok=True)
  subprocess.run([options.pack, "plan", options.source, "--shards", str(SHARDS), "--write", plan, "-q"], check=True)
  import shardpack.spark  # pylint: disable=import-outside-toplevel
  from pyspark.sql import SparkSession  # pylint: disable=import-outside-toplevel,import-error
  from shardpack import cluster  # pylint: disable=import-outside-toplevel
  begin = time.monotonic()
  spark = (SparkSession.builder.master(f"local-cluster[{AT_ONCE},1,1024]").config("spark.ui.enabled", "false")
           .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
  spark.sparkContext.parallelize(range(AT_ONCE * 4), AT_ONCE * 4).map(lambda n: time.sleep(0.5)).collect()
  print(f"Spark's own start: {time.monotonic() - begin:.1f} s", flush=True)

  def alone():
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
      cluster.check(threads.map(lambda shard: cluster.build_shard(shard, str(plan), str(out)), range(SHARDS)))
    cluster.commit(out)

  for _ in range(options.rounds):
    seconds = []
    for build in (alone, lambda: shardpack.spark.pack(spark, plan, out)):
      shutil.rmtree(out, ignore_errors=True)
      begin = time.monotonic()
      build()
      seconds.append(time.monotonic() - begin)
    print(f"processes alone {seconds[0]:.1f} s, with Spark {seconds[1]:.1f} s, overhead {seconds[1] - seconds[0]:.1f} s", flush=True)
  spark.stop()
  shutil.rmtree(options.work)


if __name__ == "__main__":
  main()
