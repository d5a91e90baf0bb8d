"""What a cluster costs: bench.py CASE --pack PROGRAM [--bench PROGRAM] [--source FOLDER] [--work FOLDER] [--rounds N]

cases:
  workers   four workers with --join on this machine against one process with four threads, by turns; --source: images
  status    status of 100,000 shards of which all are done, of which a tenth is done, and leases claimed per second
  large     a worker of a plan of --rows rows: its memory, and when it has read its first byte
--bench is //benchmarks/cluster:cluster_bench, which makes plans and folders without packing. Everything is made in --work, and
removed afterwards but for the plan of `large`. Run it on a machine that does nothing else.
"""

import argparse
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import time

SHARDS = 100_000
IMAGE = pathlib.Path(__file__).resolve().parents[2] / "testdata/images/baseline.jpg"


def run(*words, expect=(0,), **options):
  done = subprocess.run([str(word) for word in words], check=False, **options)
  assert done.returncode in expect, (words, done.returncode)
  return done


def timed(call):
  """Seconds on the clock, and of the processors."""
  before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
  call()
  seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
  return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def show(what, values, form="%.2f"):
  print(f"| {what} | {form % statistics.median(values)} | {form % min(values)} to {form % max(values)} |", flush=True)


def workers(options):
  plan, one, four = options.work / "plan", options.work / "one", options.work / "four"
  plan.unlink(missing_ok=True)
  run(options.pack, "plan", options.source, "--shards", "60", "--write", plan, "-q")
  build = lambda out, *words: [str(word) for word in (options.pack, "build", "--plan", plan, "-o", out, "-q", *words)]

  def together():
    running = [subprocess.Popen(build(four, "--worker", f"{n}/4", "--join", "-j", "1")) for n in (1, 2, 3, 4)]
    assert not any(each.wait() for each in running)
  commit = lambda: run(options.pack, "commit", four, "-q", stdout=subprocess.DEVNULL)
  single = lambda: run(*build(one, "-j", "4"), stdout=subprocess.DEVNULL)
  clock, clock_with_commit, cpu = [], [], []
  for turn in range(options.rounds + 1):
    times = {}
    for what in (single, together) if turn % 2 == 0 else (together, single):
      for out in (one,) if what is single else (four,):
        shutil.rmtree(out, ignore_errors=True)
      os.sync()
      times[what] = timed(what)
    publishing = timed(commit)
    if turn == 0:  # reads everything for the first time
      continue
    clock.append(times[together][0] / times[single][0])
    clock_with_commit.append((times[together][0] + publishing[0]) / times[single][0])
    cpu.append(times[together][1] / times[single][1])
  show("four workers / one process, clock", clock)
  show("the same with the commit", clock_with_commit)
  show("processors", cpu)
  for out in (one, four):
    shutil.rmtree(out)


def status(options):
  plan = options.work / "status.plan"
  if not plan.exists():
    run(options.bench, "plan", SHARDS * 10, 10, options.work / "nothing", IMAGE, plan)
  for done in (SHARDS, SHARDS // 10):
    out = options.work / "status"
    shutil.rmtree(out, ignore_errors=True)
    run(options.bench, "state", plan, out, 100)
    if done < SHARDS:
      for path in sorted(out.glob("train*.pidx"))[done:]:
        path.unlink()
    look = lambda: run(options.pack, "status", out, "-q", expect=(0, 7), stdout=subprocess.DEVNULL)  # pylint: disable=cell-var-from-loop
    look()
    times = [timed(look) for _ in range(options.rounds)]
    show(f"status, {done:,} of {SHARDS:,} done, seconds", [clock for clock, _ in times])
    show("processor seconds of it", [cpu for _, cpu in times])
    shutil.rmtree(out)
  rates = []
  for _ in range(options.rounds):
    out = options.work / "claims"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    said = run(options.bench, "claim", out, SHARDS, stdout=subprocess.PIPE, text=True).stdout
    rates.append(float(re.search(r"(\d+) a second", said)[1]))
  show("leases a second", rates, "%.0f")
  shutil.rmtree(out)


def large(options):
  """The first byte that is read of an input, as strace sees it."""
  root, plan = options.work / "images", options.work / f"plan-{options.rows}"
  shard = 7
  if not plan.exists():
    begin = time.monotonic()
    run(options.bench, "plan", options.rows, options.per_shard, root, IMAGE, plan)
    print(f"the plan took {time.monotonic() - begin:.0f} s", flush=True)
  if not root.exists():
    run(options.bench, "files", plan, shard, IMAGE)
  memory, first_byte, clock = [], [], []
  for _ in range(options.rounds):
    out, trace = options.work / "large", options.work / "trace"
    shutil.rmtree(out, ignore_errors=True)
    words = [options.pack, "build", "--plan", plan, "-o", out, "--shards", shard, "-q", "-j", "1", "--memory", "16MiB"]
    seconds = timed(lambda: run("/usr/bin/time", "-f", "%M", "-o", trace, *words))[0]  # pylint: disable=cell-var-from-loop
    memory.append(int(trace.read_text().split()[-1]) / 1024)
    clock.append(seconds)
    shutil.rmtree(out)
    run("strace", "-f", "-ttt", "-e", "trace=execve,openat,read", "-o", trace, *words)
    lines = trace.read_text(errors="replace").splitlines()
    begin = float(lines[0].split()[1])
    first_byte.append(next(float(line.split()[1]) for line in lines if ".jpeg" in line) - begin)
  show("peak memory, MB", memory, "%.0f")
  show("first input opened after, seconds (under strace)", first_byte)
  show("the whole worker, seconds", clock)
  for path in (options.work / "large", root):
    shutil.rmtree(path)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("case", choices=("workers", "status", "large"))
  path = lambda text: pathlib.Path(text).resolve()
  parser.add_argument("--pack", type=path, required=True)
  parser.add_argument("--bench", type=path)
  parser.add_argument("--source", type=path)
  parser.add_argument("--work", type=path, default="cluster-bench")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--rows", type=int, default=100_000_000)
  parser.add_argument("--per-shard", type=int, default=10_000)
  options = parser.parse_args()
  options.work.mkdir(parents=True, exist_ok=True)
  {"workers": workers, "status": status, "large": large}[options.case](options)


if __name__ == "__main__":
  main()
