#!/usr/bin/env python3
"""Headless Chromium opens the page of `pack report`.

  tests/interop/browser     # installs it, and runs this
  tests/interop/report_check.py [--pack FILE] [--shots FOLDER]

In light, dark, on paper and 360 pixels wide: nothing is requested, nothing is printed on the console, every picture is
decoded, nothing is wider than the screen, and the numbers are those of `pack stats --json`. Screenshots go to --shots.
The picture of a report in README.md looks like a report of today.
The last line is `N passed, N failed`.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import update_readme_pictures  # noqa: E402  pylint: disable=wrong-import-position
# What the page has become, written down by a copy of it with this at its end and without its policy, which allows no script.
PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  document.title = JSON.stringify({
    images: images.length,
    decoded: images.filter(image => image.complete && image.naturalWidth > 0).length,
    width: document.documentElement.scrollWidth, screen: innerWidth,
    text: document.body.innerText,
    rows: [...document.querySelectorAll("#classes tr")].map(row => [...row.cells].map(cell => cell.innerText)),
    unnamed: [...document.querySelectorAll("img:not([alt]), svg:not([aria-label]):not([aria-hidden]), [role=region]:not([aria-label])")].length,
    back: getComputedStyle(document.body).backgroundColor,
    requests: performance.getEntriesByType("resource").filter(entry => !entry.name.startsWith("data:")).length,
  });
});</script>"""


class Browser:
  def __init__(self, program, folder):
    self.program, self.folder = program, folder

  def run(self, page, *flags):
    command = [self.program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--enable-logging=stderr",
               f"--user-data-dir={self.folder}/profile", "--virtual-time-budget=5000", *flags, f"file://{page}"]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)

  def probe(self, page, *flags):
    """What the page says of itself."""
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html).replace("</body>", PROBE + "</body>")
    copy = self.folder / "probed.html"
    copy.write_text(html, encoding="utf-8")
    dumped = self.run(copy, "--dump-dom", *flags).stdout
    title = re.search(r"<title>(.*?)</title>", dumped, re.DOTALL).group(1)
    return json.loads(title.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--pack", type=pathlib.Path, default=ROOT / "bazel-bin/cli/pack")
  parser.add_argument("--shots", type=pathlib.Path)
  options = parser.parse_args()
  program = shutil.which("chromium") or sys.exit("there is no chromium: tests/interop/browser installs it")
  passed, failed = 0, []

  def check(what, good):
    nonlocal passed
    if good:
      passed += 1
    else:
      failed.append(what)
      print("failed:", what)

  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    source, out, page = folder / "src", folder / "out", folder / "report.html"
    shutil.copytree(ROOT / "testdata/shapes", source)
    shutil.copytree(source / "circle", source / "<script>alert(1)</script>")
    shutil.copytree(source / "square", os.fsdecode(os.fsencode(source) + b"/\xff\xe2\x80\xaesquare"))
    (source / "circle" / "broken.jpg").write_bytes(b"")
    pack = lambda *words, codes=(0,): subprocess.run([options.pack, *words], check=False, capture_output=True, text=True)
    made = pack(source, "-o", out, "--split", "train=0.8,val=0.2", "--max-skip", "10%", "-q")
    assert made.returncode == 3, made.stderr
    assert pack("report", out, "-o", page, "--near").returncode == 0
    stats = json.loads(pack("stats", out, "--json").stdout)
    browser = Browser(program, folder)
    # The page itself, with its policy.
    opened = browser.run(page, "--dump-dom")
    check("no console message", "CONSOLE" not in opened.stderr)
    check("the page is shown", "Worth a look" in opened.stdout)
    for what, flags in (("light", ["--window-size=1200,900"]), ("dark", ["--window-size=1200,900", "--blink-settings=preferredColorScheme=0"]),
                        ("narrow", ["--window-size=500,800"])):
      facts = browser.probe(page, *flags)
      check(f"{what}: every picture is decoded", facts["images"] == facts["decoded"] > 40)
      check(f"{what}: nothing is requested", facts["requests"] == 0)
      check(f"{what}: nothing overflows ({facts['width']} of {facts['screen']})", facts["width"] <= facts["screen"])
      check(f"{what}: everything has a name", facts["unnamed"] == 0)
      check(f"{what}: background {facts['back']}", facts["back"] == ("rgb(22, 22, 22)" if what == "dark" else "rgb(255, 255, 255)"))
      rows = {row[0]: row for row in facts["rows"][1:]}
      check(f"{what}: the numbers are those of stats",
            [[str(each["splits"]["train"]), str(each["splits"]["val"]), str(each["samples"])] for each in stats["classes"]] ==
            [row[1:4] for row in rows.values()])
      check(f"{what}: names are text", "<script>alert(1)<" in facts["text"] and "\\xff\\xe2\\x80\\xaesquare" in facts["text"])
    # An iframe is as narrow as it is told to be; a window of Chromium is not.
    frame = folder / "frame.html"
    encoded = base64.b64encode(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8")).replace("</body>", """<script>
      addEventListener("load", () => parent.postMessage([document.documentElement.scrollWidth, innerWidth], "*"));</script></body>""").encode()).decode()
    frame.write_text(f"""<!DOCTYPE html><title>none</title><iframe width=360 height=800 src="data:text/html;base64,{encoded}"></iframe><script>
      addEventListener("message", event => document.title = JSON.stringify(event.data));</script>""")
    found = re.search(r"<title>\[(\d+),(\d+)\]</title>", browser.run(frame, "--dump-dom").stdout)
    check(f"360 pixels: nothing overflows ({found and found.groups()})", found is not None and int(found.group(1)) <= int(found.group(2)) <= 360)
    shots = options.shots or folder / "shots"
    shots.mkdir(parents=True, exist_ok=True)
    for what, flags in (("light", ["--window-size=1200,2400"]), ("dark", ["--window-size=1200,2400", "--blink-settings=preferredColorScheme=0"]),
                        ("narrow", ["--window-size=500,2400"])):
      browser.run(page, f"--screenshot={shots / (what + '.png')}", *flags)
      check(f"a screenshot, {what}", (shots / f"{what}.png").stat().st_size > 10_000)
    browser.run(page, f"--print-to-pdf={shots / 'print.pdf'}", "--no-pdf-header-footer")
    pdf = (shots / "print.pdf").read_bytes()
    import PIL.Image, PIL.ImageChops, PIL.ImageStat  # pylint: disable=import-outside-toplevel,multiple-imports
    (folder / "readme").mkdir()
    shown = update_readme_pictures.screenshot(update_readme_pictures.make_page(options.pack.resolve(), folder / "readme"), folder)
    with PIL.Image.open(ROOT / "docs/pictures/readme/report.png") as picture:
      off = sum(PIL.ImageStat.Stat(PIL.ImageChops.difference(shown, picture.convert("RGB"))).mean) / 3
    check(f"the picture of README.md is {off:.1f} levels off: docs/update_readme_pictures.py makes it again", off < 8)
    check("it prints whole", pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2)
  print(f"{passed} passed, {len(failed)} failed")
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
