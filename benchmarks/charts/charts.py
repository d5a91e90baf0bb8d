"""Draws the charts of docs/benchmarks.md from the newest logs.

  python3 benchmarks/charts/charts.py           writes docs/charts/{packing,loading}.svg
  python3 benchmarks/charts/charts.py --check   fails when they are not those of the logs
"""

import html
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOGS = ROOT / "benchmarks" / "log"
CHARTS = ROOT / "docs" / "charts"
WIDTH, NAMES, ROW = 760, 230, 26

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px }
  .note { font-size: 12px; fill: #57606a }
  .ours { fill: #1a7f37 }
  .theirs { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .note { fill: #9ea7b3 }
    .ours { fill: #3fb950 }
    .theirs { fill: #6e7681 }
  }
"""


def bars(title, note, rows, unit):
  """An SVG of horizontal bars; rows are (name, value, whether it is ours), in the order of the chart."""
  longest = max(value for _, value, _ in rows)
  room = WIDTH - NAMES - 110
  height = 56 + ROW * len(rows) + 12
  text = lambda x, y, words, kind="", anchor="start": (
      f'<text x="{x}" y="{y}" text-anchor="{anchor}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{html.escape(words)}</text>')
  lines = [
      f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
      'aria-labelledby="title note">',
      f"<style>{STYLE}</style>", f'<title id="title">{html.escape(title)}</title>', f'<desc id="note">{html.escape(note)}</desc>',
      text(0, 18, title, "title"), text(0, 38, note, "note")]
  for i, (name, value, ours) in enumerate(rows):
    y = 56 + ROW * i
    length = max(1.0, room * value / longest)
    lines += [text(NAMES - 8, y + 14, name, anchor="end"),
              f'<rect x="{NAMES}" y="{y}" width="{length:.1f}" height="18" rx="2" class="{"ours" if ours else "theirs"}"/>',
              text(round(NAMES + length + 6, 1), y + 14, f"{unit(value)}")]
  return "\n".join(lines) + "\n</svg>\n"


def newest(kind):
  return json.loads(max(LOGS.glob(f"*-{kind}.json")).read_text())


def packing():
  group = next(group for group in newest("end-to-end")["groups"] if group["title"] == "small files, warm")
  seconds = {task["name"]: statistics.median(run["seconds"] for run in task["runs"]) for task in group["tasks"]}
  rows = [(name, value, name.startswith("pack,")) for name, value in seconds.items() if not name.endswith("durable")]
  rows.sort(key=lambda row: row[1])
  return bars("Packing 60,000 JPEGs of 0.9 KB", "Seconds on two cores, warm, without the imports of Python; only pack verifies what it wrote. Shorter is better.",
              rows, lambda value: f"{value:.2f} s")


def loading():
  rows = [(loader["name"].replace("torchvision decoder in DataLoader", "torchvision in DataLoader"),
           statistics.median(run["rate"] for run in loader["runs"]), loader["name"] == "Shardpack")
          for loader in newest("peers")["loaders"] if loader["group"] == "pixels" and loader["runs"]]
  rows.sort(key=lambda row: -row[1])
  return bars("Decoding, RandomResizedCrop(224), flip", "Images of ImageNet per second on two cores. Longer is better.",
              rows, lambda value: f"{value:,.0f} / s")


def main():
  made = {"packing.svg": packing(), "loading.svg": loading()}
  if sys.argv[1:] == ["--check"]:
    old = [name for name, text in made.items() if not (CHARTS / name).is_file() or (CHARTS / name).read_text() != text]
    sys.exit(f"not those of the newest logs: {', '.join(old)}; run python3 benchmarks/charts/charts.py" if old else 0)
  for name, text in made.items():
    (CHARTS / name).write_text(text)


if __name__ == "__main__":
  main()
