"""Times what a Python user of Shardpack waits for beside what they would use else, in interleaved runs, and prints ratios.

usage: bench.py --small ARCHIVE|FOLDER --large ARCHIVE|FOLDER [ROW...]       (the sources only the first time)
  ROW   of the table, such as dataloader; without, all of them. Each is one run: what it compares shares the machine's mood.
See ../peers/bench.py, whose programs, data and checks these are.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
# By another name than that of this file.
_spec = importlib.util.spec_from_file_location("peers", HERE.parent / "peers" / "bench.py")
peers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(peers)

ROOT = peers.ROOT
IMAGENET = 1_281_167
RAW, PIXELS = peers.RAW, peers.PIXELS


class Program(peers.Loader):
  """A program of this folder or of ../peers, under the Python of an environment that has shardpack too."""

  def __init__(self, group, name, family, program, kind, data, batch, epochs):
    super().__init__(group, name, "random", family, str(HERE / program), kind, data, batch, epochs)
    self.source = data.split("-")[0]


def ours(group, family, kind, data, batch, epochs):
  return Program(group, f"shardpack, {kind}", family, "read_shardpack.py", kind, data, batch, epochs)


def cpp():
  return peers.Loader(PIXELS, "C++", "random", None, None, ["decode", "--size", "224"], "large-webdataset", 64, 4)


def limit(family, kind, batch):
  """Delivers what nobody packed."""
  made = ours(RAW, family, kind, "small-webdataset", batch, 4)
  made.made_up = True
  return made


def array_record(kind="batches"):
  return Program(RAW, "ArrayRecord", "grain", "../peers/read_grain.py", kind, "small-array_record", 250, 3)


# The row's name, what it says, the target, and the loaders: ours, and those it stands against.
ROWS = {
    "cpp": ("RandomResizedCrop(224) of 1,000 ImageNet JPEGs, as tensors of torch, against the same in C++", 0.97,
            lambda: [ours(PIXELS, "torch", "pixels", "large-webdataset", 64, 4), cpp()]),
    "dali": ("the same against DALI on the CPU", 2, lambda: [
        ours(PIXELS, "torch", "pixels", "large-webdataset", 64, 4),
        Program(PIXELS, "DALI", "dali-images", "../peers/decode_dali.py", "pixels", "large-webdataset", 64, 4)]),
    "augmented-dali": ("the same with a flip, ColorJitter and RandAugment(2, 9), against DALI on the CPU", 3, lambda: [
        ours(PIXELS, "torch", "augmented", "large-webdataset", 64, 4),
        Program(PIXELS, "DALI", "dali-images", "../peers/decode_dali.py", "augmented", "large-webdataset", 64, 2)]),
    "augmented-torch": ("the same against torchvision v2 in a DataLoader", 4, lambda: [
        ours(PIXELS, "torch", "augmented", "large-webdataset", 64, 4),
        Program(PIXELS, "torchvision v2", "torch", "../peers/decode_torch.py", "augmented", "large", 64, 2)]),
    "pil": ("RandomResizedCrop(224) of 50,000 JPEGs of 0.9 KB against DataLoader with PIL", 20, lambda: [
        ours(PIXELS, "torch", "pixels", "small-webdataset", 256, 2),
        Program(PIXELS, "DataLoader with PIL", "torch", "../peers/decode_torch.py", "pil", "small", 256, 2)]),
    "dataloader": ("torch's DataLoader over a Dataset, encoded images of 0.9 KB, against the same over ImageFolder", 5, lambda: [
        ours(RAW, "torch", "dataloader", "small-webdataset", 256, 4),
        Program(RAW, "ImageFolder", "torch", "read_imagefolder.py", "bytes", "small", 256, 3)]),
    "counted": ("the same with images that stay in the workers, as with decoding there", 5, lambda: [
        ours(RAW, "torch", "counted", "small-webdataset", 256, 4),
        Program(RAW, "ImageFolder", "torch", "read_imagefolder.py", "counted", "small", 256, 3)]),
    "dataloader-limit": ("the same against the same batch again and again, which is DataLoader's own limit", 0.8, lambda: [
        ours(RAW, "torch", "dataloader", "small-webdataset", 256, 4), limit("torch", "same-dataloader", 256)]),
    "grain": ("Grain over our batches, encoded images of 0.9 KB, against Grain over ArrayRecord", 10, lambda: [
        ours(RAW, "grain", "grain", "small-webdataset", 250, 4), array_record()]),
    "grain-batches": ("the same against ArrayRecord as a source of batches too", 2, lambda: [
        ours(RAW, "grain", "grain", "small-webdataset", 250, 4), array_record("batch_source")]),
    "grain-limit": ("the same against the same batch again and again, which is Grain's own limit", 0, lambda: [
        ours(RAW, "grain", "grain", "small-webdataset", 250, 4), limit("grain", "same-grain", 250)]),
    "grain-source": ("Grain over our source of samples against Grain over ArrayRecord", 0, lambda: [
        ours(RAW, "grain", "grain-source", "small-webdataset", 250, 4), array_record()]),
    "grain-source-limit": ("the same against the same samples again and again, which is Grain's own limit", 0.8, lambda: [
        ours(RAW, "grain", "grain-source", "small-webdataset", 250, 4), limit("grain", "same-grain-source", 250)]),
}


def rates(loaders, places, threads, facts, reps):
  """Interleaved; what was delivered is compared with what was packed in each run."""
  for _ in range(reps):
    for loader in loaders:
      run = peers.attempt(loader, places, threads, facts, loader.epochs)
      if run is None:
        sys.exit(f"{loader.name}: {loader.wrong or loader.failed}")
      loader.runs.append(run)


def row_text(name, loaders):
  says, target, _ = ROWS[name]
  first, second = loaders
  ratios = [a["rate"] / b["rate"] for a, b in zip(first.runs, second.runs)]
  middle = statistics.median(ratios)
  figures = " | ".join(f"{loader.rate():,.0f}" for loader in loaders)
  verdict = "reached" if middle >= target else "**missed**"
  return (f"| {says} ({second.version or 'loader_bench'}) | {figures} | {middle:.2f} | {min(ratios):.2f} .. {max(ratios):.2f} | "
          f">= {target} | {verdict} |")


def make_imagenet_index(work, pack):
  """Datasets of as many samples as ImageNet has, of the smallest images that there are: one shard, and 8."""
  made = []
  for shards in (1, 8):
    out = work / f"columns-{shards}"
    if not (out / "manifest.json").exists():
      source = work / "columns-source"
      if not source.exists():
        write_tiny_images(source)
      subprocess.run([pack, source, "-o", out, "-q", "-f", "tfrecord", "--shards", str(shards)], check=True, stdout=subprocess.DEVNULL)
    made.append(out)
  return made


def write_tiny_images(folder):
  """One-pixel images in 1,000 class folders, links to a file for each class."""
  chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
  pixel = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0\0"))
           + chunk(b"IEND", b""))
  for label in range(1000):
    place = folder / f"n{label:08d}"
    place.mkdir(parents=True)
    first = place / "0000.png"
    first.write_bytes(pixel)
    for number in range(1, IMAGENET // 1000 + (label < IMAGENET % 1000)):
      os.link(first, place / f"{number:04d}.png")


def columns(work, pack, module, python):
  lines = []
  for out in make_imagenet_index(work, pack):
    runs = []
    for _ in range(5):
      printed = subprocess.run([python, HERE / "columns.py", out], check=True, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": module}).stdout
      runs.append(json.loads(printed))
    middle = {key: statistics.median(run[key] for run in runs) for key in ("open_ms", "first_ms", "again_ms", "sum_ms")}
    shards = out.name.split("-")[1]
    cells = [f"{runs[0]['samples']:,} samples, shards: {shards}", *(f"{value:.3f}" for value in middle.values()),
             "a copy" if runs[0]["copy"] else "a view"]
    lines.append(f"| {' | '.join(cells)} |")
  return ["| `Dataset.labels` of | opening, ms | first time, ms | again, ms | adding all up, ms | |", "|---|---|---|---|---|---|", *lines]


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join([*ROWS, 'columns'])}")
  parser.add_argument("--small", help="archive or folder of small images")
  parser.add_argument("--large", help="archive or folder of large ones")
  parser.add_argument("--pack", help="the program that packs (default: built with Bazel)")
  parser.add_argument("--module", help="the folder of the package (default: built with Bazel)")
  parser.add_argument("--loader-bench", help="the C++ program (default: built with Bazel)")
  parser.add_argument("--work", default=tempfile.gettempdir() + "/shardpack-peers", help="where the data lies; that of ../peers")
  parser.add_argument("--reps", type=int, default=3)
  parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
  parser.add_argument("--prepare", action="store_true", help="only make what the rows need")
  arguments = parser.parse_args()
  names = arguments.rows or [*ROWS, "columns"]
  pack = peers.end_to_end.find_program(arguments.pack, "//cli:pack")
  module = str(pathlib.Path(arguments.module or bazel_bin() / "python" / "site").resolve())
  work = pathlib.Path(arguments.work).resolve()
  work.mkdir(parents=True, exist_ok=True)
  for given, target, files in ((arguments.small, work / "small", peers.SMALL_FILES), (arguments.large, work / "large", peers.LARGE_FILES)):
    if given:
      peers.end_to_end.make_data(given, target, files, work)
  os.environ["PYTHONPATH"] = f"{module}:{HERE.parent / 'peers'}"
  made = {name: ROWS[name][2]() for name in names if name != "columns"}
  loaders = [loader for each in made.values() for loader in each]
  # torch's has NumPy, for the columns.
  places, failed = peers.environments({"torch", *(loader.family for loader in loaders if loader.family)})
  places["failed"] = failed
  if "cpp" in names:
    places["loader_bench"] = peers.find_loader_bench(arguments.loader_bench)
  peers.prepare(work, pack, loaders, places, failed)
  if "columns" in names:
    make_imagenet_index(work, pack)
  if arguments.prepare:
    return
  if made:
    print("| images a second | ours | theirs | ratio | min .. max | to reach | |\n|---|---|---|---|---|---|---|", flush=True)
  for name, each in made.items():
    facts = {loader.source: peers.source_facts(work / loader.source, {}) for loader in each}
    rates(each, places, arguments.threads, facts, arguments.reps)
    print(row_text(name, each), flush=True)
  if "columns" in names:
    print("\n".join(columns(work, pack, module, places["torch"])))


def bazel_bin():
  subprocess.run([ROOT / "bazelw", "build", "--noshow_progress", "//python:shardpack"], check=True, cwd=ROOT)
  return pathlib.Path(subprocess.run([ROOT / "bazelw", "info", "bazel-bin"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                     check=True, cwd=ROOT).stdout.strip())


if __name__ == "__main__":
  main()
