"""How interop_check.py talks to the program that drives one reader.

stdin: one JSON object, {"jobs": [{"id", "format", "layout", "root", "shards": [path], "indexes": [path]}]}; "root" is the
dataset's folder.
stdout: {"version"} first, then for each job {"id", "samples": [[name, sha256, label]]} or {"id", "error"}. The name is
the key or path that the reader delivers, or null when it delivers none; the label is -1 where the layout holds none.

And index_check.py to the program that drives one writer: jobs are {"id", "layout", "root", "records", "samples": [[key, path
of the image, label]]}; it makes shards of so many records in the folder "root" and answers {"id"} or {"id", "error"}.
"""

import hashlib
import json
import sys


def sample(name, image, label):
  return [name, hashlib.sha256(image).hexdigest(), label]


def serve(version, read):
  """Answers every job with what `read(job)` yields; an exception fails that job alone."""
  # Libraries print as they like: the answers keep stdout for themselves.
  answers, sys.stdout = sys.stdout, sys.stderr
  print(json.dumps({"version": version}), file=answers, flush=True)
  for job in json.load(sys.stdin)["jobs"]:
    try:
      answer = {"id": job["id"], "samples": list(read(job))}
    except Exception as error:  # pylint: disable=broad-except
      answer = {"id": job["id"], "error": f"{type(error).__name__}: {error}"[:500]}
    print(json.dumps(answer), file=answers, flush=True)


def serve_writer(version, write):
  """Has `write(job)` do every job."""
  def read(job):
    write(job)
    return []
  serve(version, read)
