"""`pack report`: the page, read by html5lib as browsers read it."""

import base64
import io
import json
import re
import resource
import shutil
import warnings

import html5lib
from PIL import Image

import command
from command import jpeg

ODD = (b"<script>alert(1)</script>", b"\"'&amp;", b"caf\xc3\xa9", b"\xff\xfe", b"line\nend", b"\xe2\x80\xaegnp", b"\xef\xbf\xbe")
ALLOWED = {"html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "p", "ul", "li", "section", "div", "table",
           "tbody", "tr", "th", "td", "figure", "figcaption", "svg", "rect", "img", "span", "footer"}


class ReportTest(command.PackTest):

  def page(self, *words, expect=0):
    self.pack("report", *words, "-o", "report.html", expect=expect)
    return self.parsed((self.folder / "report.html").read_bytes())

  def parsed(self, html):
    """Its elements; strictly, so that an error in the markup is one here."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      tree = parser.parse(html)
    names = {str(element.tag).rpartition("}")[2] for element in tree.iter()}
    self.assertLessEqual(names, ALLOWED)
    for element in tree.iter():
      for name, value in element.attrib.items():
        self.assertFalse(str(name).startswith("on"), name)
        if name in ("src", "href"):
          self.assertTrue(value.startswith("data:image/webp;base64,"), value[:60])
      if element.tag == "img":
        self.assertTrue(element.get("alt"))
        picture = Image.open(io.BytesIO(base64.b64decode(element.get("src").partition(",")[2])))
        picture.load()
        self.assertEqual(picture.size, (int(element.get("width")), int(element.get("height"))))
    policy = [meta.get("content") for meta in tree.iter("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    self.assertEqual(["default-src 'none'; img-src data:; style-src 'unsafe-inline'"], policy)
    self.assert_accessible(tree)
    return tree

  def section(self, tree, name):
    found = [section for section in tree.iter("section") if section.get("id") == name]
    self.assertEqual(1, len(found), name)
    return found[0]

  def text(self, element):
    return " ".join("".join(element.itertext()).split())

  def table(self, element):
    return [[self.text(cell) for cell in row if cell.tag in ("th", "td")] for row in element.iter("tr")]

  def assert_accessible(self, tree):
    """What axe would look for first."""
    self.assertEqual("en", tree.get("lang"))
    self.assertTrue(self.text(tree.find("head/title")))
    self.assertEqual(1, len(list(tree.iter("main"))))
    levels = [int(element.tag[1]) for element in tree.iter() if element.tag in ("h1", "h2", "h3")]
    self.assertEqual(1, levels[0])
    self.assertTrue(all(after <= before + 1 for before, after in zip(levels, levels[1:])), levels)
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    self.assertEqual(len(ids), len(set(ids)))
    for element in tree.iter():
      name = str(element.tag).rpartition("}")[2]
      if element.get("aria-labelledby"):
        self.assertIn(element.get("aria-labelledby"), ids)
      if name == "th":
        self.assertIn(element.get("scope"), ("col", "row"))
      if name == "svg":
        self.assertTrue(element.get("aria-label") or element.get("aria-hidden") == "true")
      if element.get("role") == "region":  # what scrolls is reached by keyboard, and has a name
        self.assertTrue(element.get("aria-label") and element.get("tabindex") == "0")

  def test_shows_what_stats_counts(self):
    self.source(count=30, classes=("cat", "dog", "ship"))
    self.write("src/cat/broken.jpg", b"")
    self.pack("src", "-o", "out", "--split", "train=0.8,val=0.2", "--max-skip", "10%", expect=3)
    stats = json.loads(self.pack("stats", "out", "--json").stdout)
    tree = self.page("out")
    rows = {row[0]: row[1:-1] for row in self.table(self.section(tree, "classes"))}
    for each in stats["classes"]:
      self.assertEqual([str(each["splits"]["train"]), str(each["splits"]["val"]), str(each["samples"])], rows[each["name"]][:3])
    self.assertIn(stats["dataset"], self.text(tree.find("body")))
    self.assertIn("broken.jpg", self.text(self.section(tree, "skipped")))
    self.assertEqual(4, len(list(self.section(tree, "sizes").iter("figure"))))
    self.assertIn("Width in pixelsthe same for all images: 40", self.text(self.section(tree, "sizes")))
    pictures = list(self.section(tree, "pictures").iter("img"))
    self.assertEqual(3 * 8 + 1, len(pictures))  # and their mean
    keys = {row["key"] for row in self.rows("out")}
    self.assertTrue(all(picture.get("alt").partition(",")[0] in keys for picture in pictures[1:]))
    # The same page again, whatever the threads; nothing else is left behind.
    first = (self.folder / "report.html").read_bytes()
    self.page("out", "-j", "1")
    self.assertEqual(first, (self.folder / "report.html").read_bytes())
    self.assertEqual(["out", "report.html", "src"], sorted(path.name for path in self.folder.iterdir()))
    self.assertEqual(0, len(list(self.section(self.page("out", "--thumbs", "0"), "classes").iter("img"))))

  def test_mistakes_that_were_planted(self):
    for split, count in (("train", 40), ("val", 8)):
      for i in range(count):
        self.write(f"src/{split}/{('cat', 'dog')[i % 2]}/{split}{i}.jpg", jpeg(i + (0 if split == "train" else 1000)))
    self.write("src/train/dog/cat/nested.jpg", jpeg(2000))       # a class folder in another one
    shutil.copy(self.folder / "src/val/cat/val0.jpg", self.folder / "src/train/cat/leak.jpg")
    self.write("src/train/bird/only.jpg", jpeg(2001))
    self.pack("src", "-o", "out")
    tree = self.page("out")
    notes = self.text(self.section(tree, "notes"))
    for note in ("1 image is in several splits", "1 sample of class dog lies in a folder called cat", "1 class of a single sample: bird",
                 "1 class without samples in split val: bird"):
      self.assertIn(note, notes)
    copies = self.section(tree, "copies")
    self.assertIn("leakage", self.text(copies))
    self.assertEqual(2, len(list(copies.iter("img"))))

  def test_names_of_any_bytes(self):
    for i, name in enumerate(ODD):
      self.write(b"src/" + name.replace(b"/", b"") + b"/x" + name.replace(b"/", b"") + b".jpg", jpeg(i))
    self.write(b"src/\xff<b>/bad<img src=x onerror=y>.jpg", b"")
    self.pack("src", "-o", "out<x>", "--max-skip", "50%", expect=3)
    tree = self.page("out<x>")
    self.assertIn("out<x>", self.text(tree.find("body/main/header/h1")))
    shown = self.text(self.section(tree, "classes"))
    for part in ("<script>alert(1)<script>", "\"'&amp;", "café", "\\xff\\xfe", "line\\x0aend", "\\xe2\\x80\\xaegnp"):
      self.assertIn(part, shown)
    self.assertIn("bad<img src=x onerror=y>.jpg", self.text(self.section(tree, "skipped")))

  def test_odd_images(self):
    self.write("src/a/long.png", command.png(1, 60000))
    self.write("src/a/wide.png", command.png(60000, 1))
    for i in range(3):
      self.write(f"src/b/bad{i}.jpg", jpeg(i)[:-300] + b"\xff\xd9")
    self.pack("src", "-o", "out", "--verify", "header")
    tree = self.page("out")
    pictures = self.section(tree, "pictures")
    sizes = {(img.get("width"), img.get("height")) for img in pictures.iter("img")}
    self.assertLessEqual({("1", "64"), ("64", "1")}, sizes)
    self.source("only", count=2)
    self.pack("only", "-o", "foreign")
    shard = str(next((self.folder / "foreign").glob("*.tar")))
    shutil.move(shard, self.folder / "x.tar")
    self.section(self.page("x.tar"), "pictures")

  def test_many_classes_fit(self):
    for i in range(10_000):
      self.write(f"src/class-{i:04}-{'x' * 60}/{i}.png", command.png(8, 8, command.png_chunk(b"tEXt", b"n\0%d" % i)))
    self.pack("src", "-o", "out", "-q")
    for most in (300_000, 3_000_000):
      tree = self.page("out", "--max-bytes", str(most))
      size = (self.folder / "report.html").stat().st_size
      self.assertLessEqual(size, most)
      self.assertGreater(size, most // 3 if most < 1_000_000 else 1_000_000)
    self.assertIn("The 50 largest and the 50 smallest of 10,000 classes", self.text(self.section(tree, "classes")))

  def test_what_does_not_fit_is_refused(self):
    for i in range(120):
      self.write(f"src/{i:03}{'&' * 240}/{i}.jpg", jpeg(i))
    self.pack("src", "-o", "out", "-q")
    said = self.pack("report", "out", "-o", "report.html", "--max-bytes", "100kB", expect=2).stderr
    needed = int(re.search("the page takes ([0-9]+) bytes without any picture", said).group(1))
    self.assertFalse((self.folder / "report.html").exists())
    tree = self.page("out", "--max-bytes", str(needed))
    self.assertEqual(needed, (self.folder / "report.html").stat().st_size)
    self.assertIn("No picture fits", self.text(self.section(tree, "pictures")))

  def test_damaged_copies(self):
    self.source(count=3)
    self.write("src/dog/again.jpg", jpeg(0))
    self.pack("src", "-o", "out")
    shard = next((self.folder / "out").glob("*.tar"))
    data = bytearray(shard.read_bytes())
    data[data.index(b"number 0")] ^= 1
    shard.write_bytes(data)
    tree = self.page("out", "--thumbs", "0", expect=4)
    self.assertIn("believed to be what the index says", self.text(self.section(tree, "damage")))

  def test_a_damaged_dataset(self):
    self.source(count=12)
    self.pack("src", "-o", "out", "--samples-per-shard", "4")
    shards = sorted((self.folder / "out").glob("*.tar"))
    data = bytearray(shards[0].read_bytes())
    for at in range(1, len(data)):
      if data[at - 1:at + 1] == b"\xff\xd9":
        data[at - 40] ^= 1
    shards[0].write_bytes(data)
    pictures = self.section(self.page("out", expect=4), "pictures")
    self.assertEqual(4, self.text(pictures).count("its bytes differ from those that were packed"))
    index = sorted((self.folder / "out").glob("*.pidx"))[1]
    index.write_bytes(index.read_bytes()[:-1] + b"x")
    tree = self.page("out", "--near", expect=4)
    self.assertIn(index.name, self.text(self.section(tree, "damage")))
    self.assertIn("1 of 3 shards could not be read", self.text(self.section(tree, "notes")))
    self.assertIn("(--near), were not looked for", self.text(self.section(tree, "copies")))
    shards[2].unlink()
    page = self.text(self.page("out", expect=4))
    self.assertIn(f"{shards[2].name} is missing: the manifest lists it", page)
    self.write("found.json", self.pack("validate", "out", "--json", expect=4).stdout.encode())
    self.assertIn("the validation has found",
                  self.pack("report", "out", "-o", "report.html", "--validation", "found.json", expect=4).stderr)
    tree = self.page("out", "--validation", "found.json", expect=4)
    self.assertIn(shards[2].name, self.text(self.section(tree, "validation")))
    self.assertNotIn("not of this dataset", self.text(self.section(tree, "validation")))
    self.write("src/cat/more.jpg", jpeg(99))
    self.pack("src", "-o", "other")
    self.assertIn("not of this dataset", self.text(self.section(self.page("other", "--validation", "found.json"), "validation")))
    self.assertIn("the validation is not of this dataset",
                  self.pack("report", "other", "-o", "report.html", "--validation", "found.json").stderr)
    self.write("bad.json", b"[[[")
    self.pack("report", "other", "-o", "report.html", "--validation", "bad.json", expect=2)
    self.assertIn(shards[2].name, self.text(self.section(tree, "damage")))
    self.assertIn("8 samples in 2 shards", self.text(tree.find("body")))

  def test_the_all_clear_names_what_was_looked_at(self):
    self.source(count=4)
    self.pack("src", "-o", "out")
    self.pack("report", "out", "-o", "named.html", "--thumbs", "0")
    shard = next((self.folder / "out").glob("*.tar"))
    self.write("x.tar", shard.read_bytes())
    self.pack("report", "x.tar", "-o", "numbers.html", "--thumbs", "0")
    self.assertIn("Nothing suspicious was found: no copies, no class without samples", (self.folder / "named.html").read_text())
    page = (self.folder / "numbers.html").read_text()
    self.assertIn("Nothing suspicious was found: no copies, no class without samples. Classes have no names here", page)
    self.assertNotIn("no folder of another class", page)

  def test_shards_that_are_missing_or_short(self):
    for i in range(60):
      self.write(f"src/{('cat', 'dog', 'owl')[i % 3]}/{i}.jpg", jpeg(i))
    self.pack("src", "-o", "out", "--samples-per-shard", "10")
    stats = json.loads(self.pack("stats", "out", "--json").stdout)
    shards = sorted((self.folder / "out").glob("*.tar"))
    shards[0].unlink()
    shards[1].write_bytes(shards[1].read_bytes()[:700])
    tree = self.page("out", expect=4)
    damage = self.text(self.section(tree, "damage"))
    for shard in shards[:2]:
      self.assertIn(shard.name, damage)
    rows = {row[0]: row[1] for row in self.table(self.section(tree, "classes"))}
    self.assertEqual({each["name"]: str(each["samples"]) for each in stats["classes"]}, {name: rows[name] for name in ("cat", "dog", "owl")})
    self.assertIn("60 samples in 6 shards", self.text(tree.find("body")))
    # There are enough images that can be read.
    self.assertEqual(3 * 8 + 1, len(list(self.section(tree, "pictures").iter("img"))))
    self.assertIn("not known" if not stats["width"] else "Width", self.text(self.section(tree, "sizes")))
    # All gone: what the indexes say is still there.
    for shard in shards[1:]:
      shard.unlink()
    tree = self.page("out", "--near", expect=4)
    self.assertEqual(0, len(list(self.section(tree, "pictures").iter("img"))))
    self.assertIn("24 cannot be shown", self.text(self.section(tree, "pictures")))
    self.assertIn("60 could not be read", self.text(self.section(tree, "damage")))

  def test_pictures_that_show_nothing(self):
    self.source(count=6)
    self.write("src/cat/dot.png", command.png(1, 1))
    self.write("src/dog/black.png", command.png(64, 64))
    self.write("src/dog/broken.jpg", jpeg(9)[:-200] + b"\xff\xd9")
    self.pack("src", "-o", "out")
    for words, before in (([], "Of the pictures below, "), (["--near"], "")):
      notes = [self.text(item) for item in self.section(self.page("out", *words), "notes").iter("li")]
      self.assertEqual("1 image has fewer than 16 pixels in all: cat/dot", notes[0])
      self.assertEqual(f"{before}1 image does not decode: dog/broken", notes[1])
      self.assertRegex(notes[2], f"^{before}2 images are of nearly one color: (cat/dot, dog/black|dog/black, cat/dot)$")

  def test_a_class_without_a_sample(self):
    self.source(count=4)
    self.write("classes.txt", b"cat\ndog\n<b>empty\n")
    self.pack("src", "-o", "out", "--classes", "classes.txt")
    tree = self.page("out")
    self.assertIn("1 class without samples: <b>empty", self.text(self.section(tree, "notes")))
    rows = {row[0]: row[1:3] for row in self.table(self.section(tree, "classes"))}
    self.assertEqual(["0", "0.00 %"], rows["<b>empty"])
    self.assertEqual(2, len(list(self.section(tree, "pictures").iter("h3"))))

  def test_where_the_page_goes(self):
    self.source(count=2)
    self.pack("src", "-o", "out")
    self.pack("report", "out", expect=2)
    self.assertIn("that folder is a dataset", self.pack("report", "out", "-o", "out/report.html", expect=2).stderr)
    self.pack("report", "out", "-o", "src", expect=2)
    shard = next((self.folder / "out").glob("*.tar"))
    shutil.copy(shard, self.folder / "x.tar")
    self.assertIn("one of the inputs", self.pack("report", "x.tar", "-o", "./x.tar", expect=2).stderr)
    self.pack("report", "out", "-o", "nowhere/report.html", expect=2)
    self.pack("report", "nowhere", "-o", "report.html", expect=2)
    for words in (["--thumbs", "65"], ["--max-bytes", "1kB"], ["--distance", "3"]):
      self.pack("report", "out", "-o", "report.html", *words, expect=2)
    self.assertFalse((self.folder / "report.html").exists())
    said = json.loads(self.pack("report", "out", "-o", "report.html", "--near", "--json").stdout)
    self.assertEqual((self.folder / "report.html").stat().st_size, said["bytes"])

  def test_contrast(self):
    """WCAG 2.2: text of at least 4.5 against the background, in light, dark and print."""
    self.source(count=2)
    self.pack("src", "-o", "out")
    style = "".join(self.page("out").find("head/style").itertext())
    def luminance(color):
      parts = [int(color[i:i + 2], 16) / 255 for i in (0, 2, 4)]
      return sum(weight * (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055)**2.4)
                 for weight, c in zip((0.2126, 0.7152, 0.0722), parts))
    schemes = re.findall(r"--back:#(\w{6});--text:#(\w{6});--soft:#(\w{6});--line:#\w{6};--bar:#(\w{6});--alert:#(\w{6})", style)
    self.assertEqual(3, len(schemes))
    for back, text, soft, bar, alert in schemes:
      # The second shade of bars, on the background.
      shade = float(re.search(r"nth-child\(even\)\{fill-opacity:(0?\.\d+)\}", style).group(1))
      mixed = "".join("%02x" % round(shade * int(bar[i:i + 2], 16) + (1 - shade) * int(back[i:i + 2], 16)) for i in (0, 2, 4))
      for color, least in ((text, 4.5), (soft, 4.5), (alert, 4.5), (bar, 3), (mixed, 3)):
        low, high = sorted((luminance(back), luminance(color)))
        self.assertGreaterEqual((high + 0.05) / (low + 0.05), least, (back, color))


class PublishedPage(command.PackTest):
  """--report of build, convert and commit."""

  def page_of(self, out):
    self.pack("report", out, "-o", "by-hand.html")
    return (self.folder / "by-hand.html").read_bytes()

  def test_the_page_and_nothing_else(self):
    self.source(count=12)
    self.pack("src", "-o", "plain")
    said = self.pack("src", "-o", "out/", "--report")
    self.assertIn("report    out-report.html", said.stderr)
    self.assertEqual(self.contents("plain"), self.contents("out"))
    self.assertEqual(self.page_of("out"), (self.folder / "out-report.html").read_bytes())
    self.assertEqual(["by-hand.html", "out", "out-report.html", "plain", "src"], sorted(path.name for path in self.folder.iterdir()))
    # Of a dataset that is complete already, as of one that has just been made.
    (self.folder / "out-report.html").unlink()
    self.assertIn("nothing to do", self.pack("src", "-o", "out", "--report", "named.html").stderr)
    self.assertEqual(self.page_of("out"), (self.folder / "named.html").read_bytes())
    done = json.loads(self.pack("convert", "out", "--report=b.html", "-o", "records", "-f", "tfrecord", "--json").stdout)
    self.assertEqual({"out": "b.html", "bytes": (self.folder / "b.html").stat().st_size}, done["report"])
    self.assertNotIn("report", json.loads(self.pack("convert", "out", "-o", "records", "-f", "tfrecord", "--json").stdout))

  def test_the_commit_writes_it(self):
    self.source(count=12)
    self.pack("plan", "src", "--shards", "2", "--write", "plan")
    for part in ("1/2", "2/2"):
      refused = self.pack("build", "--plan", "plan", "-o", "out", "--worker", part, "--report", expect=2)
      self.assertIn("give it to pack commit", refused.stderr)
      self.pack("build", "--plan", "plan", "-o", "out", "--worker", part)
    for _ in range(2):  # published now, and already
      done = json.loads(self.pack("commit", "out", "--json", "--report").stdout)
      self.assertEqual((self.folder / "out-report.html").stat().st_size, done["report"]["bytes"])
    self.pack("build", "--plan", "plan", "-o", "again", "--report", "--overwrite")
    self.assertTrue((self.folder / "again-report.html").exists())

  def test_what_goes_wrong_leaves_the_dataset(self):
    self.source(count=12)
    self.pack("src", "-o", "plain", "--samples-per-shard", "1")
    # The page needs more bytes than a file may have here; no shard does.
    size = max(path.stat().st_size for path in (self.folder / "plain").iterdir())
    self.assertLess(size, len(self.page_of("plain")))
    limits = [(resource.RLIMIT_FSIZE, size + 1000)]
    failed = self.pack("src", "-o", "out", "--samples-per-shard", "1", "--json", "--report", expect=6, limits=limits)
    summary, error = map(json.loads, failed.stdout.splitlines())
    self.assertEqual((None, 12, 6), (summary["report"], summary["counts"]["packed"], error["code"]))
    self.assertEqual(self.contents("plain"), self.contents("out"))
    self.assertEqual([], [path.name for path in self.folder.iterdir() if "report" in path.name])
    self.assertIn("out is published all the same", error["message"])
    typed = re.search(r"(?m)^  \S*pack (.*)$", failed.stderr).group(1).split()
    self.pack(*typed)
    self.assertTrue((self.folder / "out-report.html").exists())
    # A page that is written leaves the exit code of the build.
    self.write("src/cat/broken.jpg", b"")
    self.pack("src", "-o", "skipped", "--max-skip", "10%", "--report", expect=3)
    self.assertIn("broken.jpg", (self.folder / "skipped-report.html").read_text())

  def test_the_page_of_a_damaged_dataset_is_one(self):
    self.source(count=12)
    self.pack("src", "-o", "out")
    shard = next((self.folder / "out").glob("*.tar"))
    data = bytearray(shard.read_bytes())
    data[data.index(b"\xff\xd9") - 40] ^= 1
    shard.write_bytes(data)
    done = self.pack("src", "-o", "out", "--report", "--json", expect=4)  # complete, as its sizes say
    summary, error = map(json.loads, done.stdout.splitlines())
    page = self.folder / "out-report.html"
    self.assertIn("its bytes differ from those that were packed", page.read_text())
    self.assertEqual({"out": "out-report.html", "bytes": page.stat().st_size}, summary["report"])
    self.assertEqual((4, "out is published, and damaged; out-report.html says what of it could be read"), (error["code"], error["message"]))
    self.assertNotIn("type:", done.stderr)

  def test_where_it_may_go(self):
    self.source(count=4)
    for place, why in (("out/page.html", "lies in the dataset"), ("src/page.html", "lies in the source"), ("nowhere/page.html", "no folder nowhere"),
                       ("src", "ends in .html")):
      self.assertIn(why, self.pack("src", "-o", "out", "--report", place, expect=2).stderr)
      self.assertFalse((self.folder / "out").exists(), place)
    self.pack("src", "-o", "new/folder/out", "--report")  # which the run makes
    self.assertTrue((self.folder / "new/folder/out-report.html").exists())
    # What could be meant for something else is no name.
    self.assertIn("ends in .html", self.pack("--report", "src", "-o", "out", expect=2).stderr)
    self.write("out-report.html", b"<!DOCTYPE html><title>mine</title>")
    self.assertIn("no page of pack report", self.pack("src", "-o", "out", "--report", expect=5).stderr)
    self.assertFalse((self.folder / "out").exists())
    self.assertEqual(b"<!DOCTYPE html><title>mine</title>", (self.folder / "out-report.html").read_bytes())
    self.pack("src", "-o", "out", "--report", "out-report.html", expect=5)  # that is typed, perhaps by a shell's *
    self.write("pack.toml", b"report = true\n")
    (self.folder / "out-report.html").unlink()
    self.pack("src", "-o", "out", "--config", "pack.toml")
    self.assertTrue((self.folder / "out-report.html").exists())


if __name__ == "__main__":
  command.main()
