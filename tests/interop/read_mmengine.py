"""Reads LMDB shards of the raw layout with MMEngine's LmdbBackend, by key (jobs on stdin, see protocol.py)."""

import lmdb
import mmengine
from mmengine.fileio import LmdbBackend

import protocol


def read(job):
  for shard in job["shards"]:
    with lmdb.open(shard, readonly=True, lock=False) as environment, environment.begin() as transaction:
      keys = [key.decode("ascii") for key in transaction.cursor().iternext(values=False)]
    backend = LmdbBackend(shard)
    for key in keys:
      yield protocol.sample(key, backend.get(key), -1)


protocol.serve(mmengine.__version__, read)
