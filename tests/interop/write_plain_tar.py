"""Writes tar shards with GNU tar or bsdtar (its argument; jobs on stdin, see protocol.py)."""

import os
import pathlib
import subprocess
import sys

import protocol

PROGRAM = sys.argv[1]


def write(job):
  root, members = pathlib.Path(job["root"]), pathlib.Path(job["root"] + ".members")
  samples, records = job["samples"], job["records"]
  for begin in range(0, len(samples), records):
    names = []
    for name, image, label in samples[begin:begin + records]:
      for member, data in ((name + pathlib.Path(image).suffix, pathlib.Path(image).read_bytes()),
                           (name + ".cls", b"%d" % label)):
        (members / member).parent.mkdir(parents=True, exist_ok=True)
        (members / member).write_bytes(data)
        names.append(member)
    subprocess.run([PROGRAM, f"--format={job['layout']}", "-cf", str(root / f"part-{begin // records:05d}.tar"),
                    "-C", str(members), "--no-recursion", "-T", "-"],
                   input="".join(name + "\n" for name in names).encode(), check=True)


version = subprocess.run([PROGRAM, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()[0]
os.umask(0o022)
protocol.serve_writer(version.split()[-1] if PROGRAM == "tar" else version.split()[1], write)
