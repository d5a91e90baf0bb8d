"""Packs the same folders with pack and with its peers, in interleaved runs, and prints the ratios.

usage: bench.py --small ARCHIVE|FOLDER --large ARCHIVE|FOLDER [--pack PACK] [--work DIR] [--reps 7] ...
  --small   images of about 1 KB in class folders, repeated to 60,000 files
  --large   images of about 100 KB, in class folders or as CLASS_name.jpg, repeated to 5,000 files
See docs/benchmarks.md for what is measured and how. Results go to benchmarks/log/.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import memory

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = HERE.parent / "peers"
LOG = HERE.parent / "log"
DOCS = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- latest table: begin -->", "<!-- latest table: end -->"
SMALL_FILES, LARGE_FILES = 60_000, 5_000
FORMATS = ("webdataset", "tfrecord", "lmdb", "hdf5")
IMAGE_SUFFIXES = {".jpg", ".jpeg"}


# ---- the two data sets

def unpack(given, folder):
  """The folder that was given, or the archive unpacked into `folder`."""
  given = pathlib.Path(given)
  if given.is_dir():
    return given
  folder.mkdir()
  flags = ["--zstd"] if given.suffix == ".zst" else []
  subprocess.run(["tar", *flags, "-x", "-f", str(given), "-C", str(folder)], check=True)
  return folder


def make_data(given, target, files, work):
  """`files` real copies (no links: each has its own pages and its own place on the disk) in class folders."""
  if (target / ".complete").exists():
    return
  shutil.rmtree(target, ignore_errors=True)
  originals = unpack(given, work / (target.name + "-originals"))
  images = sorted(path for path in originals.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
  if not images:
    sys.exit(f"no JPEG below {given}")
  for i in range(files):
    image = images[i % len(images)]
    label = image.parent.name if image.parent != originals else image.name.split("_")[0]
    folder = target / label
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{image.stem}-{i // len(images):03d}.jpg").write_bytes(image.read_bytes())
  (target / ".complete").touch()
  shutil.rmtree(work / (target.name + "-originals"), ignore_errors=True)


# ---- what is timed

class Task:
  """One way to do the work. `command` is a list of words, or a line for the shell, with {src}, {out}, {data}."""

  def __init__(self, name, command, in_process=False):
    self.name, self.command = name, command
    self.in_process = in_process  # the program prints its own seconds, which leave out imports
    self.runs = []

  def words(self, **places):
    if isinstance(self.command, str):
      return ["sh", "-c", self.command.format(**places)]
    return [str(word).format(**places) for word in self.command]

  def seconds(self):
    return [run["seconds"] for run in self.runs]

  def median(self):
    return statistics.median(self.seconds())


def disk_bytes_read():
  with open("/proc/vmstat", encoding="ascii") as lines:
    return next(int(line.split()[1]) for line in lines if line.startswith("pgpgin ")) * 1024


def drop_caches():
  os.sync()
  with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
    file.write("3")


def run_once(task, out, **places):
  """One fresh process; the output lies on the disk afterwards."""
  shutil.rmtree(out, ignore_errors=True)
  out.mkdir()
  # Nobody pays for what another has left to write.
  os.sync()
  return time_command(task, out=out, **places)


def time_command(task, **places):
  words = task.words(**places)
  read_before = disk_bytes_read()
  with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdout=printed, stderr=errors, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    printed.seek(0)
    errors.seek(0)
    if process.returncode:
      sys.exit(f"exit code {process.returncode}: {' '.join(words)}\n{errors.read().decode(errors='replace')[-2000:]}")
    result = {
        "seconds": float(printed.read().split()[-1]) if task.in_process else seconds,
        "process_seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "disk_bytes_read": disk_bytes_read() - read_before,
    }
  return result


def folder_bytes(folder):
  return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Group:
  """Tasks over the same data in the same regime; every round runs each once, in another order."""

  def __init__(self, title, source, tasks, cold=False, makes_output=True):
    self.title, self.source, self.tasks, self.cold, self.makes_output = title, source, tasks, cold, makes_output
    self.records = SMALL_FILES if "small" in title else LARGE_FILES
    self.source_bytes = 0

  def task(self, name):
    return next((task for task in self.tasks if task.name == name), None)

  def run(self, reps, out, warm_up, places):
    order = random.Random(0)
    self.source_bytes = folder_bytes(self.source)
    for repetition in range(reps):
      tasks = list(self.tasks)
      order.shuffle(tasks)
      for task in tasks:
        if self.cold:
          shutil.rmtree(out, ignore_errors=True)
          drop_caches()
          for words in warm_up:  # the programs themselves, which would be in memory on any machine at work
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if self.makes_output:
          result = run_once(task, out, src=self.source, **places)
          result["bytes_written"] = folder_bytes(out)
        else:
          result = time_command(task, out=out, src=self.source, **places)
        task.runs.append(result)
      shutil.rmtree(out, ignore_errors=True)
      print(f"  {self.title}: round {repetition + 1} of {reps}", file=sys.stderr, flush=True)

  def table(self):
    lines = [f"### {self.title}", "", "| program | median | min .. max | CPU | read from disk | written | peak memory |",
             "|---|---|---|---|---|---|---|"]
    for task in self.tasks:
      times = task.seconds()
      middle = {key: statistics.median(run.get(key, 0) for run in task.runs)
                for key in ("cpu_seconds", "disk_bytes_read", "bytes_written", "peak_bytes")}
      lines.append(f"| {task.name} | {task.median():.3f} s | {min(times):.3f} .. {max(times):.3f} | "
                   f"{middle['cpu_seconds']:.2f} s | {middle['disk_bytes_read'] / 1e6:.0f} MB | "
                   f"{middle['bytes_written'] / 1e6:.0f} MB | {middle['peak_bytes'] / 2**20:.0f} MiB |")
    return "\n".join(lines)


def make_groups(pack, copy_and_verify, pythons, small, large, packed):
  """The comparisons; `packed` are datasets to validate, by name."""
  def pack_tasks():
    return [Task(f"pack, {fmt}", [pack, "{src}", "-o", "{out}/d", "-f", fmt, "-q", "--no-fsync"]) for fmt in FORMATS]
  def durable_tasks():
    return [Task(f"pack, {fmt}, durable", [pack, "{src}", "-o", "{out}/d", "-f", fmt, "-q"]) for fmt in FORMATS]
  def plain_tasks():
    return [
        Task("find, xargs cat", "cd {src} && find . -type f -name '*.jpg' -print0 | xargs -0 cat > {out}/all"),
        # Blocks of 512 KiB: with the default of 10 KiB it spends its time in writes.
        Task("GNU tar", ["tar", "-c", "-b", "1024", "-f", "{out}/all.tar", "--exclude=.complete", "-C", "{src}", "."]),
    ]
  writers = []
  if pythons:
    writers = [
        Task("webdataset ShardWriter", [pythons["readers"], PEERS / "webdataset_shard_writer.py", "{src}", "{out}"],
             in_process=True),
        Task("TensorFlow, same features", [pythons["tensorflow"], PEERS / "tensorflow_record_writer.py", "all", "{src}",
                                           "{out}"], in_process=True),
        Task("TensorFlow, image and label", [pythons["tensorflow"], PEERS / "tensorflow_record_writer.py", "two",
                                             "{src}", "{out}"], in_process=True),
        Task("py-lmdb, append", [pythons["readers"], PEERS / "py_lmdb_writer.py", "{src}", "{out}"], in_process=True),
        Task("h5py, vlen", [pythons["readers"], PEERS / "h5py_vlen_writer.py", "{src}", "{out}"], in_process=True),
    ]
  groups = [
      Group("small files, warm", small, [*plain_tasks(), *pack_tasks(), *durable_tasks(), *writers]),
      Group("small files, cold", small, [*plain_tasks(), *pack_tasks()], cold=True),
      Group("large files, warm", large, [*plain_tasks(), *pack_tasks(), *durable_tasks()]),
  ]
  for name, folder in packed.items():
    size, source = name.split()
    others = [fmt for fmt in FORMATS if fmt != source]
    groups.append(
        Group(f"convert, {name}, warm", folder, [
            Task("cp", "cp -r {src} {out}/d"),
            *(Task(f"pack convert, to {fmt}", [pack, "convert", "{src}", "-o", "{out}/d", "-f", fmt, "-q", "--no-fsync"])
              for fmt in others),
            *(Task(f"copy_and_verify, to {fmt}", [copy_and_verify, "{src}", packed[f"{size} {fmt}"], "{out}/d"])
              for fmt in others if size == "small"),
        ]))
    for cold in (False, True):
      groups.append(
          Group(f"validate, {name}, {'cold' if cold else 'warm'}", folder, [
              Task("one sequential read", "find {src} -type f -print0 | xargs -0 cat > /dev/null"),
              Task("pack validate", [pack, "validate", "{src}", "--level", "full", "-q"]),
          ], cold=cold, makes_output=False))
  return groups


# ---- ratios

# group, ours, theirs, kind, target. Kinds: "time" (ours / theirs, at most), "speed" (theirs / ours, at least), and of
# ours alone, at least: "records/s" and "GB/s" of the source.
MEASURES = (
    ("small files, warm", "pack, tfrecord", "find, xargs cat", "time", 1.4),
    ("small files, warm", "pack, tfrecord", "TensorFlow, same features", "time", 0.35),
    ("small files, warm", "pack, tfrecord", "TensorFlow, image and label", "time", 0.35),
    ("small files, warm", "pack, webdataset", "find, xargs cat", "time", 0.75),
    ("small files, warm", "pack, webdataset", "GNU tar", "time", 0.75),
    ("small files, warm", "pack, webdataset", "webdataset ShardWriter", "time", 0.09),
    ("small files, warm", "pack, lmdb", "py-lmdb, append", "time", 0.7),
    ("small files, warm", "pack, lmdb", "find, xargs cat", "time", 2.0),
    ("small files, warm", "pack, hdf5", "find, xargs cat", "time", 1.6),
    ("small files, warm", "pack, hdf5", "h5py, vlen", "time", 0.12),
    *(("small files, warm", f"pack, {fmt}, durable", "find, xargs cat", "time", None) for fmt in FORMATS),
    *(("small files, cold", f"pack, {fmt}", "GNU tar", "time", 0.25) for fmt in FORMATS),
    *(("large files, warm", f"pack, {fmt}", "find, xargs cat", "speed", 0.7) for fmt in FORMATS),
    ("large files, warm", "pack, webdataset, durable", "find, xargs cat", "speed", None),
    *((f"convert, large {source}, warm", f"pack convert, to {fmt}", "cp", "speed", 0.6)
      for source in FORMATS for fmt in FORMATS if fmt != source),
    # cp of small records stays within the caches of a processor and writes one file; no user waits for that.
    *((f"convert, small {source}, warm", f"pack convert, to {fmt}", None, "records/s", 400_000)
      for source in FORMATS for fmt in FORMATS if fmt != source),
    # The same bytes read, written, read back and hashed, and nothing else: what no converter can undercut.
    *((f"convert, small {source}, warm", f"pack convert, to {fmt}", f"copy_and_verify, to {fmt}", "speed", None)
      for source in FORMATS for fmt in FORMATS if fmt != source),
    *((f"validate, small {fmt}, warm", "pack validate", None, "GB/s", 1.0) for fmt in FORMATS),
    *((f"validate, large {fmt}, warm", "pack validate", "one sequential read", "speed", 0.8) for fmt in FORMATS),
    *((f"validate, {size} {fmt}, cold", "pack validate", "one sequential read", "speed", 0.8)
      for size in ("small", "large") for fmt in FORMATS),
)


def ratios(groups):
  """One row per measure: the median over the rounds, and for ratios both runs are of the same round."""
  by_title = {group.title: group for group in groups}
  rows = []
  for title, ours, theirs, kind, reach in MEASURES:
    group = by_title.get(title)
    a = group.task(ours) if group else None
    if not a or not a.runs:
      continue
    if theirs is None:
      work = {"records/s": group.records, "GB/s": group.source_bytes / 1e9}[kind]
      values, cpu = [work / seconds for seconds in a.seconds()], []
    else:
      b = group.task(theirs)
      if not b:
        continue
      values = [x / y if kind == "time" else y / x for x, y in zip(a.seconds(), b.seconds())]
      cpu = [x["cpu_seconds"] / y["cpu_seconds"] for x, y in zip(a.runs, b.runs) if y["cpu_seconds"] > 0]
    middle = statistics.median(values)
    rows.append({
        "cpu_ratio": statistics.median(cpu) if cpu else None,
        "group": title, "ours": ours, "theirs": theirs, "kind": kind, "reach": reach, "ratio": middle,
        "min": min(values), "max": max(values),
        "reached": None if reach is None else (middle <= reach if kind == "time" else middle >= reach),
    })
  return rows


def ratio_table(rows):
  lines = ["| measure | ratio or rate | min .. max | target | | CPU time |", "|---|---|---|---|---|---|"]
  for row in rows:
    sign = "<=" if row["kind"] == "time" else ">="
    digits = ",.0f" if row["kind"] == "records/s" else ".2f"
    reach = f"{sign} {row['reach']:,}" if row["reach"] is not None else ""
    against = f" against {row['theirs']}" if row["theirs"] else ""
    cpu = f"{row['cpu_ratio']:.2f} x" if row["cpu_ratio"] is not None else ""
    verdict = {True: "met", False: "**missed**", None: ""}[row["reached"]]
    lines.append(f"| {row['group']}: {row['ours']}{against} ({row['kind']}) | {row['ratio']:{digits}} | "
                 f"{row['min']:{digits}} .. {row['max']:{digits}} | {reach} | {verdict} | {cpu} |")
  return "\n".join(lines)


# ---- the machine

def first_line(*words):
  try:
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout.splitlines()[0]
  except (OSError, subprocess.CalledProcessError, IndexError):
    return "unknown"


def disk(folder):
  """File system and kind of disk below the folder."""
  with open("/proc/self/mounts", encoding="utf-8") as lines:
    mounts = [line.split()[:3] for line in lines]
  inside = [mount for mount in mounts if os.path.commonpath([folder, mount[1]]) == mount[1]]
  device, _, kind = max(enumerate(inside), key=lambda mount: (len(mount[1][1]), mount[0]))[1]
  name = os.path.basename(device)
  rotational = pathlib.Path(f"/sys/class/block/{name}/queue/rotational")
  if name.startswith("vd"):
    return f"{kind} on a virtual disk"
  if rotational.exists():
    return f"{kind} on a {'hard' if rotational.read_text().strip() == '1' else 'solid-state'} disk"
  return kind


def machine(work, pack, pythons):
  """Facts that a reader needs to judge the figures; nothing that names the machine."""
  with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
  with open("/proc/meminfo", encoding="ascii") as lines:
    memory_kib = int(next(lines).split()[1])
  peers = {"GNU tar": first_line("tar", "--version"), "cat": first_line("cat", "--version")}
  for name, python in pythons.items():
    for line in subprocess.run([python, "-m", "pip", "freeze"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.splitlines():
      if line.lower().replace("_", "-").startswith(("webdataset==", "tensorflow-cpu==", "protobuf==", "lmdb==", "h5py==")):
        peers[f"{name}: {line.split('==')[0]}"] = line.split("==")[1]
  return {
      "kernel": f"{platform.system()} {platform.release()}",
      "cpu": cpu,
      "cores": len(os.sched_getaffinity(0)),
      "memory_gib": round(memory_kib / 2**20, 1),
      "disk": disk(work),
      "load before": os.getloadavg()[0],
      "pack": first_line(str(pack), "--version"),
      "commit": first_line("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
      "python": platform.python_version(),
      "peers": peers,
  }


def machine_text(facts):
  peers = ", ".join(f"{name} {version}" for name, version in facts["peers"].items())
  return (f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB; {facts['kernel']}; "
          f"{facts['disk']}; load before the run {facts['load before']:.2f}. {facts['pack']} "
          f"(commit {facts['commit']}); peers: {peers}.")


# ---- the whole

def find_program(given, label):
  """The program that was given, or that of a Bazel label."""
  if given:
    return pathlib.Path(given).resolve()
  subprocess.run([ROOT / "bazelw", "build", "--noshow_progress", label], check=True, cwd=ROOT)
  folder = subprocess.run([ROOT / "bazelw", "info", "bazel-bin"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True, cwd=ROOT).stdout.strip()
  return pathlib.Path(folder) / label[2:].replace(":", "/")


def peer_pythons():
  venv = ROOT / "tests" / "interop" / "venv"
  return {name: subprocess.run([venv, name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
          for name in ("readers", "tensorflow")}


def report(groups, memory_rows, facts, date):
  parts = [f"# End to end, {date}", machine_text(facts), "## Ratios", ratio_table(ratios(groups))]
  if memory_rows:
    parts += ["## Memory", memory.table(memory_rows)]
  parts += ["## Times", *(group.table() for group in groups if group.tasks[0].runs)]
  return "\n\n".join(parts) + "\n"


def update_docs(groups, memory_rows, facts, date):
  """Replaces what stands between the two marks."""
  text = DOCS.read_text()
  before, rest = text.split(BEGIN)
  after = rest.split(END)[1]
  parts = [f"{date}. {machine_text(facts)}", ratio_table(ratios(groups))]
  if memory_rows:
    parts.append(memory.table(memory_rows))
  DOCS.write_text(before + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after)


def write_log(name, groups, memory_rows, facts, date):
  raw = {
      "date": date, "machine": facts, "ratios": ratios(groups), "memory": memory_rows,
      "groups": [{"title": group.title, "cold": group.cold,
                  "tasks": [{"name": task.name, "command": [str(word) for word in task.command]
                             if isinstance(task.command, list) else task.command, "runs": task.runs}
                            for task in group.tasks]} for group in groups if group.tasks[0].runs],
  }
  # Paths of this machine say nothing to a reader.
  text = json.dumps(raw, indent=1, sort_keys=True).replace(str(ROOT) + "/", "").replace(str(pathlib.Path.home()), "~")
  return name.with_suffix(".json"), text + "\n", name.with_suffix(".md")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--small", help="archive or folder")
  parser.add_argument("--large", help="archive or folder")
  parser.add_argument("--pack", help="the program (default: built with Bazel)")
  parser.add_argument("--copy-and-verify", metavar="PROGRAM", help="the program of this name (default: built with Bazel)")
  parser.add_argument("--work", default=tempfile.gettempdir() + "/shardpack-benchmark",
                      help="where data and outputs go, all on one disk; the data stays for the next run")
  parser.add_argument("--reps", type=int, default=7)
  parser.add_argument("--only", default="", help="comma-separated parts of the groups' titles")
  parser.add_argument("--without", default="", help="comma-separated parts of programs' names to leave out")
  parser.add_argument("--no-cold", action="store_true", help="leave out what needs to drop the page cache (root)")
  parser.add_argument("--no-memory", action="store_true", help="leave out the packing of 1,000,000 files")
  parser.add_argument("--json", help="write the raw figures here too")
  parser.add_argument("--log", default="end-to-end", metavar="NAME", help="file name in benchmarks/log/ after the date")
  parser.add_argument("--no-log", action="store_true", help="write nothing to benchmarks/log/")
  parser.add_argument("--update-docs", action="store_true", help="also replace the table in docs/benchmarks.md")
  arguments = parser.parse_args()

  pack = find_program(arguments.pack, "//cli:pack")
  copy_and_verify = find_program(arguments.copy_and_verify, "//benchmarks/end_to_end:copy_and_verify")
  pythons = peer_pythons()
  work = pathlib.Path(arguments.work).resolve()
  work.mkdir(parents=True, exist_ok=True)
  out, small, large = work / "out", work / "small", work / "large"
  for given, target, files in ((arguments.small, small, SMALL_FILES), (arguments.large, large, LARGE_FILES)):
    if given:
      print(f"making {target.name}: {files} files", file=sys.stderr, flush=True)
      make_data(given, target, files, work)
    elif not target.exists():
      sys.exit(f"--{target.name} is needed the first time")
  facts = machine(work, pack, pythons)

  packed = {f"{size} {fmt}": work / f"packed-{size}-{fmt}" for size in ("small", "large")
            for fmt in FORMATS}
  groups = make_groups(pack, copy_and_verify, pythons, small, large, packed)
  wanted, unwanted = arguments.only.split(","), [part for part in arguments.without.split(",") if part]
  groups = [group for group in groups if any(part in group.title for part in wanted)
            and not (group.cold and arguments.no_cold)]
  for group in groups:
    group.tasks = [task for task in group.tasks if not any(part in task.name for part in unwanted)]
  warm_up = [[str(pack), "--version"], ["tar", "--version"], ["sh", "-c", "find / -maxdepth 0; xargs --version; cat --version"]]
  for folder in packed.values():  # not those of another program
    shutil.rmtree(folder, ignore_errors=True)
  for group in groups:
    if group.title.startswith(("validate", "convert")):
      size = group.source.name.split("-")[1]
      # copy_and_verify looks at what a conversion makes.
      needed = [packed[f"{size} {fmt}"] for fmt in FORMATS] if group.title.startswith("convert, small") else [group.source]
      for folder in needed:
        if not folder.exists():
          subprocess.run([pack, work / size, "-o", folder, "-f", folder.name.split("-")[2], "-q"], check=True,
                         stdout=subprocess.DEVNULL)
    # Everything that a warm run reads is in memory before the first one.
    subprocess.run(f"find {group.source} -type f -print0 | xargs -0 cat > /dev/null", shell=True, check=True)
    group.run(arguments.reps, out, warm_up, {})
    print(group.table() + "\n", flush=True)
  for folder in packed.values():
    shutil.rmtree(folder, ignore_errors=True)
  memory_rows = []
  if not arguments.no_memory:
    scratch = pathlib.Path(tempfile.mkdtemp(dir=work))
    memory_rows = memory.measure(pack, scratch, [60_000, 1_000_000])
    shutil.rmtree(scratch)
    print(memory.table(memory_rows) + "\n", flush=True)
  print(ratio_table(ratios(groups)))

  date = datetime.date.today().isoformat()
  json_name, raw, md_name = write_log(LOG / f"{date}-{arguments.log}", groups, memory_rows, facts, date)
  if arguments.json:
    pathlib.Path(arguments.json).write_text(raw)
  if not arguments.no_log:
    LOG.mkdir(exist_ok=True)
    json_name.write_text(raw)
    md_name.write_text(report(groups, memory_rows, facts, date))
  if arguments.update_docs:
    update_docs(groups, memory_rows, facts, date)


if __name__ == "__main__":
  main()
