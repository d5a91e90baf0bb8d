"""`pack extract --list`: the command that it prints packs what was extracted with the same labels."""

import io
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import tarfile

import command
from command import jpeg

ODD = ("50% off", "50%25 off", "a,b", 'say "x"', "-dash", "c/d", "it's", " blank ", "é", "7", "-1", "x\ty", "a\\b", "=1+1")
COMMAND = re.compile(r"(?m)^  (\S*pack .*)$")


class ExtractListTest(command.PackTest):

  def setUp(self):
    super().setUp()
    (self.folder / ".bin").mkdir()
    (self.folder / ".bin/pack").symlink_to(command.PACK)

  def type(self, typed, expect=0):
    environment = {**os.environ, "PATH": f"{self.folder}/.bin:{os.environ['PATH']}"}
    environment.pop("BUILD_WORKING_DIRECTORY", None)
    done = subprocess.run(["bash", "-c", typed], cwd=self.folder, env=environment, capture_output=True, check=False)
    said = done.stderr.decode(errors="surrogateescape")
    self.assertEqual(expect, done.returncode, f"{typed}\n{said}")
    return said

  def commands(self, said):
    found = COMMAND.findall(said)
    self.assertTrue(found, said)
    return found

  def labels(self, *dataset):
    """By the hash of the image, which no name changes."""
    return sorted((row["xxh3_64"], row["label"], row["class"]) for row in self.rows(*dataset))

  def round_trip(self, *inputs, flags=(), expect=0, number=0):
    """Extracts with a list and types what is printed; answers the dataset that it makes."""
    done = self.pack("extract", *inputs, "-o", f"again{number}", "--list", f"l{number}.csv", *flags, expect=expect)
    typed = self.commands(done.stderr)[-1]
    self.type(typed)
    return typed.split(" -o ")[-1]

  def same(self, dataset, again, names=True):
    self.assertEqual(self.labels(dataset), self.labels(again))
    if names:
      self.assertEqual(self.manifest(dataset)["classes"], self.manifest(again)["classes"])

  def cells(self, *cells):
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells).encode() + b"\n"

  def odd_list(self, names, name="odd.csv", root="flat"):
    rows = [b"path,label\n"]
    for i, label in enumerate(names):
      path = f"{i % 3}%/{i}{',' if i % 2 else '%25'}.jpg"
      self.write(f"{root}/{path}", jpeg(i))
      rows.append(self.cells(path, label))
    self.write(name, b"".join(rows))
    return name

  def test_odd_names_with_the_advice_of_a_plain_extract(self):
    self.odd_list(ODD)
    self.pack("odd.csv", "--root", "flat", "-o", "out")
    self.assertEqual(set(ODD), {row["class"].replace("%25", "%").replace("%09", "\t") for row in self.rows("out")})
    advised = self.commands(self.pack("extract", "out", "-o", "again").stderr)
    self.assertEqual(1, len(advised))
    packed = self.commands(self.type(advised[0]))[-1]
    self.type(packed)
    self.same("out", packed.split(" -o ")[-1])
    self.assertEqual(*(sorted(row["path"] for row in self.rows(each)) for each in ("out", packed.split(" -o ")[-1])))

  def test_names_in_another_order_and_without_a_sample(self):
    names = [name for name in reversed(ODD)] + ["unused"]
    self.write("names", "".join(name + "\n" for name in names).encode())
    self.odd_list(ODD)
    self.pack("odd.csv", "--root", "flat", "-o", "out", "--classes", "names")
    self.same("out", self.round_trip("out"))
    self.same_rows(self.round_trip("out", flags=("--label", "a,b"), number=1), 1)
    self.same_rows(self.round_trip("out", flags=("--limit", "5"), number=2), 5)

  def same_rows(self, again, count):
    self.assertEqual(count, len(self.labels(again)))
    self.assertLessEqual(set(self.labels(again)), set(self.labels("out")))
    self.assertEqual(self.manifest("out")["classes"], self.manifest(again)["classes"])

  def test_names_of_folders_in_another_order(self):
    self.source(classes=("cat", "dog", "emu"))
    self.write("names", b"emu\nyak\ndog\ncat\n")
    self.pack("src", "-o", "out", "--classes", "names")
    said = self.pack("extract", "out", "-o", "again").stderr
    self.assertIn("would give their classes other numbers (cat has 3, and would have 0)", said)
    self.same("out", self.round_trip("out"))
    self.pack("src", "-o", "plain")
    self.assertNotIn("--list", self.pack("extract", "plain", "-o", "plain-again").stderr)

  def test_line_ends_in_names(self):
    self.odd_list(["two\nlines", "cr\r", "plain"])
    self.pack("odd.csv", "--root", "flat", "-o", "out")
    self.same("out", self.round_trip("out"))
    # A part of them is numbered otherwise, and no class file can help.
    done = self.pack("extract", "out", "-o", "part", "--limit", "2", "--list", "part.csv", expect=3)
    self.assertIn("part.csv is not written: a name of a class has characters that a file for --classes cannot hold", done.stderr)
    self.assertEqual([], sorted(self.folder.glob("part.csv*")))
    self.assertEqual(2, len(self.contents("part")))

  def tar(self, name, rows):
    with tarfile.open(self.folder / name, "w") as archive:
      for key, parts in rows:
        for ending, data in parts.items():
          info = tarfile.TarInfo(f"{key}.{ending}")
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))
    return name

  def test_numbers_without_names_and_samples_without_a_label(self):
    self.tar("a.tar", [(f"{i}", {"jpg": jpeg(i), "cls": b"%d" % (i * 3 % 7 - 1)}) for i in range(12)])
    said = self.pack("extract", "a.tar", "-o", "plain").stderr
    self.assertIn("are in files .cls, which packing the folder does not take for labels", said)
    again = self.round_trip("a.tar")
    self.assertEqual([row[:2] for row in self.labels("a.tar")], [row[:2] for row in self.labels(again)])
    self.assertIn(None, [row[1] for row in self.labels(again)])
    self.pack("convert", "a.tar", "-o", "out")
    self.same("out", self.round_trip("out", number=1))

  def test_no_label_at_all(self):
    self.source()
    self.pack("src", "-o", "out", "--label-from", "none")
    self.same("out", self.round_trip("out"))

  def test_parts_of_samples(self):
    for i in range(6):
      self.write(f"src/{i}.jpg", jpeg(i))
      self.write(f"src/{i}.txt", b"text %d" % i)
      if i % 2:
        self.write(f"src/{i}.mask.png", b"mask %d" % i)
    self.write("l.csv", b"path,label\n" + b"".join(b"%d.jpg,%s\n" % (i, (b"b", b"a")[i % 2]) for i in range(6)))
    self.pack("l.csv", "--root", "src", "-o", "out", "--fields", "txt:words,mask.png", "--missing-part", "keep")
    again = self.round_trip("out")
    self.same("out", again)
    for key in ("0", "1"):
      self.assertEqual(f"text {key}", self.pack("cat", again, key, "--field", "words").stdout)
    self.assertEqual("mask 1", self.pack("cat", again, "1", "--field", "mask.png").stdout)

  def test_splits(self):
    self.odd_list(ODD)
    self.pack("odd.csv", "--root", "flat", "-o", "out", "--split", "train=0.5,val=0.5", "--split-by", "random")
    refused = self.pack("extract", "out", "-o", "again", "--list", "l.csv", expect=2).stderr
    self.assertFalse((self.folder / "again").exists())
    advised = self.commands(self.pack("extract", "out", "-o", "plain").stderr)
    for commands in (self.commands(refused), advised):
      self.assertEqual(2, len(commands))
      rows = []
      for each in commands:
        packed = self.commands(self.type(each))[-1]
        self.type(packed)
        again = packed.split(" -o ")[-1]
        self.assertEqual(self.manifest("out")["classes"], self.manifest(again)["classes"])
        rows += [(row["split"], row["path"], row["label"]) for row in self.rows(again)]
      self.assertEqual(sorted((row["split"], row["path"], row["label"]) for row in self.rows("out")), sorted(rows))

  def test_files_that_are_renamed(self):
    sample = "import json,sys; print(json.dumps([[\"0015.jpg\", sys.argv[i], i - 1] for i in range(1, len(sys.argv))]))"
    files = [str(self.write(f"in/{i}.jpg", jpeg(i))) for i in range(3)]
    made = subprocess.run(["python3", "-c", sample, *files], capture_output=True, check=True).stdout
    maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign_shards.py")
    subprocess.run(["python3", maker, "tfrecord", str(self.folder / "a.tfrecord")], input=made, check=True)
    again = self.round_trip("a.tfrecord", expect=3)
    self.assertEqual([row[:2] for row in self.labels("a.tfrecord")], [row[:2] for row in self.labels(again)])
    self.assertEqual(3, len(self.labels(again)))

  def test_the_list_is_new_and_outside(self):
    self.source()
    self.pack("src", "-o", "out")
    for name in ("l.csv", "l.csv.classes"):
      self.write(name, b"mine")
      self.assertIn(f"{name} is there already, and is kept", self.pack("extract", "out", "-o", "again", "--list", "l.csv", expect=5).stderr)
      self.assertEqual(b"mine", (self.folder / name).read_bytes())
      (self.folder / name).unlink()
    for name, why in (("out/l.csv", "lies in the dataset"), ("again/l.csv", "lies among the extracted files"), ("no/l.csv", "no such folder")):
      self.assertIn(why, self.pack("extract", "out", "-o", "again", "--list", name, expect=2).stderr)
    self.assertFalse((self.folder / "again").exists())

  def test_a_run_that_goes_on_lists_all(self):
    self.odd_list(ODD)
    self.write("flat/big.jpg", jpeg(99) + bytes(200_000))
    with open(self.folder / "odd.csv", "ab") as rows:
      rows.write(b"big.jpg,big\n")
    self.pack("odd.csv", "--root", "flat", "-o", "out")
    words = ("extract", "out", "-o", "again0", "--list", "l0.csv")
    self.pack(*words, expect=6, limits=[(resource.RLIMIT_FSIZE, 100_000)])
    self.assertEqual([], sorted(self.folder.glob("l0.csv*")))
    self.same("out", self.round_trip("out"))

  def test_names_of_the_list_itself(self):
    self.source()
    self.pack("src", "-o", "out")
    for number, name in enumerate(("two words", "-l", "it's", "l.CSV", "l.txt")):
      done = self.pack("extract", "out", "-o", f"again {number}", f"--list={name}")
      typed = self.commands(done.stderr)[-1]
      self.type(typed + f"-{number}")

  def test_only_what_was_extracted_is_listed(self):
    self.odd_list(ODD)
    self.pack("odd.csv", "--root", "flat", "-o", "out", "--shards", "1")
    shard = self.folder / "out/train-000000.tar"
    with tarfile.open(shard) as archive:
      member = next(each for each in archive if each.name.endswith(".jpg"))
    shard.chmod(0o644)
    with open(shard, "r+b") as file:
      file.seek(member.offset_data + 100)
      file.write(struct.pack("<Q", 0x1234567890abcdef))
    again = self.round_trip("out", expect=3)
    self.assertEqual(len(ODD) - 1, len(self.labels(again)))
    self.assertLess(set(self.labels(again)), set(self.labels("out")))
    self.assertEqual(self.manifest("out")["classes"], self.manifest(again)["classes"])

  def test_empty_labels_of_lists(self):
    for i in range(3):
      self.write(f"{i}.jpg", jpeg(i))
    self.write("a.csv", b"path,label\n0.jpg,dog\n1.jpg,\n2.jpg,cat\n")
    self.write("a.jsonl", b'{"path": "0.jpg", "label": "dog"}\n{"path": "1.jpg", "label": null}\n{"path": "2.jpg", "label": "cat"}\n')
    for name in ("a.csv", "a.jsonl"):
      self.assertIn("--missing-part keep", self.pack(name, "-o", "out", expect=2).stderr)
      self.pack(name, "-o", name + "-out", "--missing-part", "keep")
      self.assertEqual({"0.jpg": "dog", "1.jpg": None, "2.jpg": "cat"}, {row["path"]: row["class"] for row in self.rows(name + "-out")})
      done = self.pack("validate", name + "-out", "--against", name)
      self.assertIn("0 errors", done.stdout + done.stderr)
      for shard in (self.folder / (name + "-out")).glob("*.tar"):
        shard.unlink()
      self.pack("repair", name + "-out")
    self.write("none.csv", b"path,label\n0.jpg,\n1.jpg,\n")
    self.pack("none.csv", "-o", "none", "--missing-part", "keep")
    self.assertEqual([None, None], [row["class"] for row in self.rows("none")])

  def test_as_json(self):
    self.source()
    self.pack("src", "-o", "out")
    done = self.pack("extract", "out", "-o", "again", "--list", "l.csv", "--json")
    self.assertEqual(20, json.loads(done.stdout)["files"])
    self.assertEqual(b"cat\ndog\n", (self.folder / "l.csv.classes").read_bytes())
    self.assertEqual(21, len((self.folder / "l.csv").read_text().splitlines()))
    shutil.rmtree(self.folder / "again")


if __name__ == "__main__":
  command.main()
