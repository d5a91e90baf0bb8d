"""How long looking at a dataset takes: bench.py --make-indexes PROGRAM --pack PROGRAM --small FOLDER --large FOLDER [--work FOLDER] [--rounds N]

--small: class folders of 10,000 small images (CIFAR-10's test set), --large: JPEGs of ImageNet. Makes the datasets in --work, unless they are there, then
runs each command --rounds times and prints the times on the clock. Near copies and the deep validation alternate; what counts is the ratio of a round.
Everything is read once before. Run it on a machine that does nothing else.
"""

import argparse
import pathlib
import statistics
import subprocess
import time

SAMPLES, CHANGED, COPIES = 1_281_167, 3_000, 15
# Command and target in seconds.
CASES = (("stats index", 1), ("diff index changed", 2), ("report small -o small.html", 2), ("report index -o index.html", 10))


def prepare(options):
  work = options.work
  run = lambda *words: subprocess.run([str(word) for word in words], cwd=work, check=True, stdout=subprocess.DEVNULL)
  missing = lambda name: not (work / name / "manifest.json").exists()
  if missing("index"):
    run(options.make_indexes, "index", SAMPLES, 0, options.large)
  if missing("changed"):
    run(options.make_indexes, "changed", SAMPLES, CHANGED, options.large)
  if missing("small"):
    run(options.pack, options.small, "-o", "small", "-q")
  if not missing("large"):
    return
  (work / "files").mkdir(exist_ok=True)
  for number, path in enumerate(sorted(path for path in options.large.rglob("*") if path.is_file())):
    data = path.read_bytes()
    for copy in range(COPIES if data.startswith(b"\xff\xd8") else 0):  # each with a comment of its own, so that no two are equal
      (work / "files" / f"{number}-{copy}.jpg").write_bytes(data[:2] + b"\xff\xfe\x00\x04%02d" % copy + data[2:])
  run(options.pack, "files", "-o", "large", "-q", "--label-from", "none")


def seconds(options, command):
  begin = time.monotonic()
  subprocess.run([options.pack, *command.split()], cwd=options.work, check=True, stdout=subprocess.DEVNULL)
  return time.monotonic() - begin


def show(what, values, target, form):
  print(f"| {what} | {form % statistics.median(values)} | {form % min(values)} to {form % max(values)} | {target} |", flush=True)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  for name in ("--make-indexes", "--pack", "--small", "--large"):
    parser.add_argument(name, type=lambda path: pathlib.Path(path).resolve(), required=True)
  parser.add_argument("--work", type=lambda path: pathlib.Path(path).resolve(), default="looking-bench")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--prepare", action="store_true", help="make the datasets, and measure nothing")
  options = parser.parse_args()
  options.work.mkdir(parents=True, exist_ok=True)
  prepare(options)
  if options.prepare:
    return
  print(f"| {options.rounds} rounds | median s | from, to | target |\n|---|---|---|---|")
  for command, target in CASES:
    seconds(options, command)
    show(f"pack {command}", [seconds(options, command) for _ in range(options.rounds)], f"< {target}", "%.2f")
  near, deep = "dups large --near", "validate large --level deep"
  seconds(options, near)
  rounds = [(seconds(options, near), seconds(options, deep)) for _ in range(options.rounds)]
  show(f"pack {near}", [a for a, _ in rounds], "", "%.2f")
  show(f"pack {deep}", [b for _, b in rounds], "", "%.2f")
  show("rate of the former / of the latter", [b / a for a, b in rounds], ">= 0.8", "%.2f")


if __name__ == "__main__":
  main()
