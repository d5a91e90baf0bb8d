"""Peak memory of pack from 60,000 to 1,000,000 files, as bytes a file: what listing and plan cost.

The files are hard links to a few tiny JPEGs, so that the disk does not matter. The ceiling for samples in flight is the
same for both numbers of files, so that what differs is listing, plan and index alone.
usage: memory.py --pack PACK [--work DIR] [--files 60000,1000000]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import sample_images  # noqa: E402  pylint: disable=wrong-import-position

CEILING = "128MiB"
# ext4 allows 65,000 names for one file.
LINKS = 50_000


def make_links(folder, files, classes=100):
  """`files` JPEGs in class folders; few of them have bytes of their own."""
  originals = folder.with_name(folder.name + "-originals")
  sample_images.write_class_folders(originals, ROOT / "testdata" / "images", files // LINKS + 1, classes=1,
                                    largest_comment=50)
  sources = [str(path) for path in sorted(originals.rglob("*.jpg"))]
  for label in range(classes):
    (folder / f"class-{label:03d}").mkdir(parents=True)
  for i in range(files):
    os.link(sources[i // LINKS], f"{folder}/class-{i % classes:03d}/image-{i:08d}.jpg")
  shutil.rmtree(originals)


def peak(command):
  """(peak resident bytes, seconds) of one run."""
  begin = time.monotonic()
  process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
  _, status, usage = os.wait4(process.pid, 0)
  process.returncode = os.waitstatus_to_exitcode(status)
  if process.returncode:
    sys.exit(f"exit code {process.returncode}: {' '.join(command)}")
  return usage.ru_maxrss * 1024, time.monotonic() - begin


def measure(pack, work, numbers, formats=("webdataset", "tfrecord")):
  """[{format, files, peak_bytes, seconds}] with, from the second number on, bytes_a_file more than the first."""
  rows = []
  for files in numbers:
    source, out = work / f"links-{files}", work / "memory-out"
    make_links(source, files)
    for fmt in formats:
      peak_bytes, seconds = peak([str(pack), str(source), "-o", str(out), "-f", fmt, "-q", "--no-fsync", "--memory",
                                  CEILING])
      shutil.rmtree(out)
      row = {"format": fmt, "files": files, "peak_bytes": peak_bytes, "seconds": seconds}
      first = next((r for r in rows if r["format"] == fmt), None)
      if first:
        row["bytes_a_file"] = (peak_bytes - first["peak_bytes"]) / (files - first["files"])
      rows.append(row)
    shutil.rmtree(source)
  return rows


def table(rows):
  lines = [f"| format | files | peak memory (--memory {CEILING}) | more, a file | time |", "|---|---|---|---|---|"]
  for row in rows:
    more = f"{row['bytes_a_file']:.0f} B" if "bytes_a_file" in row else ""
    lines.append(f"| {row['format']} | {row['files']:,} | {row['peak_bytes'] / 2**20:.0f} MiB | {more} | "
                 f"{row['seconds']:.1f} s |")
  return "\n".join(lines)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", required=True)
  parser.add_argument("--work", help="where the files go (default: a temporary folder)")
  parser.add_argument("--files", default="60000,1000000")
  arguments = parser.parse_args()
  work = pathlib.Path(tempfile.mkdtemp(prefix="shardpack-memory-", dir=arguments.work))
  try:
    print(table(measure(arguments.pack, work, [int(files) for files in arguments.files.split(",")])))
  finally:
    shutil.rmtree(work)


if __name__ == "__main__":
  main()
