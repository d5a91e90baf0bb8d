"""Every kind of source beside folders, and `pack convert`, as a user meets them."""

import gzip
import io
import json
import os
import shutil
import struct
import subprocess
import tarfile
import zipfile

import command
from command import jpeg, png, with_exif

ANY_SKIPS = ["--max-skip", "100%"]
BOM = b"\xef\xbb\xbf"


class ListTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=6)  # cat/good-0000.jpg, dog/good-0001.jpg, ...

  def labels(self, out="out"):
    return {row["path"]: row["label"] for row in self.rows(out)}

  def pack_list(self, name, text, *flags, expect=0, **options):
    self.write(f"src/{name}", text if isinstance(text, bytes) else text.encode())
    return self.pack(f"src/{name}", "-o", "out", *flags, expect=expect, **options)

  def test_lines_that_end_with_carriage_returns(self):
    self.source()
    for name, text in (("a.csv", "path,label\rcat/good-0000.jpg,1\rdog/good-0001.jpg,0\r"),
                       ("a.txt", "cat/good-0000.jpg 1\rdog/good-0001.jpg 0\r"),
                       ("a.jsonl", '{"path": "cat/good-0000.jpg"}\r{"path": "dog/good-0001.jpg"}')):
      self.assertIn("carriage returns alone", self.pack_list(name, text, expect=2).stderr, name)

  def test_every_kind_of_list(self):
    want = {"cat/good-0000.jpg": 1, "dog/good-0001.jpg": 0}
    kinds = {
        "a.lst": "7\t1.000000\tcat/good-0000.jpg\n8\t0\tdog/good-0001.jpg\n",
        "a.txt": "cat/good-0000.jpg 1\r\n./dog//good-0001.jpg 0\r\n",
        "a.csv": 'id,label,path\n1,1,cat/good-0000.jpg\n2,0,"dog/good-0001.jpg"\n\n',
        "a.tsv": "file\tclass\ncat/good-0000.jpg\t1\ndog/good-0001.jpg\t0",
        "a.jsonl": '{"path": "cat/good-0000.jpg", "label": 1, "more": [{}]}\n{"label": "0", "path": "dog/good-0001.jpg"}\n',
    }
    for name, text in kinds.items():
      with self.subTest(name):
        for prefix in (b"", BOM):
          self.pack_list(name, prefix + text.encode(), "--overwrite")
          self.assertEqual(want, self.labels())
          self.assertEqual(["0", "1"], self.manifest()["classes"])
          self.pack("validate", "out", "--against", "src")

  def test_names_are_sorted_or_looked_up(self):
    text = "path,label\ncat/good-0000.jpg,tabby\ndog/good-0001.jpg,beagle\n"
    self.pack_list("a.csv", text)
    self.assertEqual({"cat/good-0000.jpg": 1, "dog/good-0001.jpg": 0}, self.labels())
    self.write("classes.txt", b"tabby\nsiamese\nbeagle\n")
    self.pack_list("a.csv", text, "--classes", "classes.txt", "--overwrite")
    self.assertEqual({"cat/good-0000.jpg": 0, "dog/good-0001.jpg": 2}, self.labels())
    self.write("classes.txt", b"30\n10\n20\n")  # names that are numbers decide, whichever occur
    for label, want in (("10", 1), ("2", None)):
      done = self.pack_list("n.csv", f"path,label\ncat/good-0000.jpg,{label}\n", "--classes", "classes.txt",
                            "--overwrite", expect=0 if want else 2)
      if want:
        self.assertEqual({"cat/good-0000.jpg": want}, self.labels())
      else:
        self.assertIn("n.csv:2: the label 2 is not among", done.stderr)
    self.write("classes.txt", b"tabby\n")
    done = self.pack_list("a.csv", text, "--classes", "classes.txt", "--overwrite", expect=2)
    self.assertIn("a.csv:3: the label beagle", done.stderr)

  def test_columns(self):
    self.pack_list("a.csv", "cat/good-0000.jpg,x,5\n", "--columns", "path=0,label=2")
    self.assertEqual({"cat/good-0000.jpg": 5}, self.labels())
    self.pack_list("a.csv", "a,b\ncat/good-0000.jpg,4\n", "--columns", "path=a,label=b", "--overwrite")
    self.assertEqual({"cat/good-0000.jpg": 4}, self.labels())
    self.pack_list("a.jsonl", '{"img": "cat/good-0000.jpg", "y": 3}', "--columns", "path=img,label=y", "--overwrite")
    self.assertEqual({"cat/good-0000.jpg": 3}, self.labels())
    self.pack_list("a.csv", "a,b\ncat/good-0000.jpg,4\n", "--columns", "path=a,label=c", expect=2)

  def test_labels_from_folders_or_none(self):
    self.pack_list("a.txt", "cat/good-0000.jpg\ndog/good-0001.jpg\n")
    self.assertEqual(["cat", "dog"], self.manifest()["classes"])
    self.pack_list("a.txt", "cat/good-0000.jpg 7\ndog/good-0001.jpg 3\n", "--label-from", "dir", "--overwrite")
    self.assertEqual(["cat", "dog"], self.manifest()["classes"])
    self.pack_list("a.txt", "cat/good-0000.jpg 7\n", "--label-from", "none", "--overwrite")
    self.assertEqual([], self.manifest()["classes"])
    self.pack_list("a.txt", "cat/good-0000.jpg\n", "--label-from", "column", expect=2)

  def test_the_order_of_the_list_is_kept(self):
    paths = ["dog/good-0005.jpg", "cat/good-0000.jpg", "dog/good-0001.jpg"]
    self.pack_list("a.txt", "".join(path + " 1\n" for path in paths), "--no-shuffle")
    self.assertEqual(paths, [row["path"] for row in self.rows("out")])

  def test_standard_input(self):
    for mark in ("\n", "\0"):
      self.write("list", mark.join(["cat/good-0000.jpg", "dog/good-0001.jpg", ""]).encode())
      with open(self.folder / "list", "rb") as paths:
        self.pack("-", "--root", "src", "-o", "out", "--overwrite", stdin=paths)
      self.assertEqual(2, len(self.rows("out")))
      self.assertEqual(["cat", "dog"], self.manifest()["classes"])

  def test_absolute_paths_below_the_root(self):
    root = os.path.realpath(self.folder / "src")
    self.pack_list("a.txt", f"{root}/cat/good-0000.jpg 1\n")
    self.assertEqual(["cat/good-0000.jpg"], [row["path"] for row in self.rows("out")])
    self.write("lists/a.txt", b"cat/good-0000.jpg 1\n")
    self.pack("lists/a.txt", "--root", "src", "-o", "other")

  def test_bad_lines(self):
    good = "cat/good-0000.jpg 1\n"
    cases = [
        ("a.txt", good + "../secret.jpg 1\n", 2, "../secret.jpg 1"),
        ("a.txt", good + "/etc/passwd 1\n", 2, "/etc/passwd 1"),
        ("a.txt", good + "dog/good-0001.jpg 2\n" + good, 3, "line 1 already"),
        ("a.txt", good + "./cat//good-0000.jpg 2\n", 2, "line 1 already"),
        ("a.txt", good + "\n" + good, 2, "empty line"),
        ("a.txt", good + "dog/good-0001.jpg\n", 2, "no label"),
        ("a.txt", good + "dog/\0.jpg 1\n", 2, "NUL"),
        ("a.txt", good + "dog/good-0001.jpg -1\n", 2, "negative"),
        ("a.txt", good + "dog/good-0001.jpg 99999999\n", 2, "larger"),
        ("a.txt", good + "dog/ 1\n", 2, "ends with a folder"),
        ("a.lst", "1\t1\tcat/good-0000.jpg\nx\t1\tdog/good-0001.jpg\n", 2, "index"),
        ("a.lst", "1\t1\tcat/good-0000.jpg\n2\t1\t2\tdog/good-0001.jpg\n", 2, "more than one label"),
        ("a.lst", "1 1 cat/good-0000.jpg\n", 1, "TAB"),
        ("a.csv", 'path,label\ncat/good-0000.jpg,1\n"dog/good-0001.jpg,1\n', 3, "does not end"),
        ("a.csv", "path,label\ncat/good-0000.jpg,1,2\n", 2, "3 columns"),
        ("a.csv", "name,label\ncat/good-0000.jpg,1\n", 1, "--columns"),
        ("a.jsonl", '{"path": "cat/good-0000.jpg"}\n{"path": 5}\n', 2, "the path is a number"),
        ("a.jsonl", '{"path": "cat/good-0000.jpg"}\n{"path": \n', 2, "not JSON"),
        ("a.jsonl", '["cat/good-0000.jpg"]\n', 1, "expected an object"),
        ("a.jsonl", '{"path": ' + "[" * 5000 + "\n", 1, "the path is an array"),
        ("a.jsonl", '{"other": ' + "[" * 5000 + "\n", 1, "too deeply"),
    ]
    for name, text, line, why in cases:
      with self.subTest(text[:80]):
        done = self.pack_list(name, text, expect=2)
        self.assertIn(f"src/{name}:{line}: ", done.stderr)
        self.assertIn(why, done.stderr)
        self.assertNotIn("x00", done.stderr)
        self.assertFalse((self.folder / "out").exists())
    self.assertNotIn("\x1b", self.pack_list("a.txt", "\x1b[31m/../x 1\n", expect=2).stderr)
    self.pack_list("a.txt", b"\xff\xfea\0", expect=2)
    self.pack_list("a.txt", "", expect=2)
    self.pack_list("a.txt", good, "--include", "*.jpg", expect=2)
    self.pack("src/missing.csv", "-o", "out", expect=2)

  def test_files_that_cannot_be_packed_are_skips(self):
    os.symlink("/etc/passwd", self.folder / "src/out.jpg")
    os.symlink("nowhere", self.folder / "src/nowhere.jpg")
    os.symlink("/etc", self.folder / "src/etc")
    os.mkdir(self.folder / "src/folder.jpg")
    self.write("src/empty.jpg")
    names = ["missing.jpg", "out.jpg", "nowhere.jpg", "etc/passwd", "folder.jpg", "empty.jpg"]
    self.pack_list("a.txt", "cat/good-0000.jpg 1\n" + "".join(f"{name} 0\n" for name in names), *ANY_SKIPS, expect=3)
    self.assertEqual({"missing.jpg": "vanished", "out.jpg": "outside-root", "nowhere.jpg": "dangling",
                      "etc/passwd": "outside-root", "folder.jpg": "not-regular", "empty.jpg": "empty"}, self.skips())

  def test_sidecars(self):
    self.write("src/cat/good-0000.json", b"{}")
    self.pack_list("a.txt", "cat/good-0000.jpg 1\ndog/good-0001.jpg 0\n", "--fields", "json", *ANY_SKIPS, expect=3)
    self.assertEqual({"dog/good-0001.jpg": "unpaired"}, self.skips())
    self.assertEqual(b"{}", self.pack("cat", "out", "cat/good-0000", "--field", "json", text=False).stdout)


class SidecarTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=8)
    for path in (self.folder / "src").rglob("*.jpg"):
      path.with_suffix(".json").write_text(json.dumps({"of": path.stem}))
      path.with_suffix(".png").write_bytes(png(3, 3))

  def test_fields_in_every_format(self):
    for name in ("webdataset", "tfrecord"):
      self.pack("src", "-o", "out", "-f", name, "--fields", "json,png:mask.png", "--overwrite")
      self.pack("validate", "out", "--against", "src")
      for field, want in (("json", b'{"of": "good-0003"}'), ("mask.png", png(3, 3))):
        self.assertEqual(want, self.pack("cat", "out", "dog/good-0003", "--field", field, text=False).stdout)
    self.assertEqual(8, self.manifest()["counts"]["seen"])

  def test_missing_and_unpaired(self):
    (self.folder / "src/cat/good-0000.json").unlink()
    self.write("src/cat/alone.json", b"{}")
    self.pack("src", "-o", "out", "--fields", "json,png:mask.png", *ANY_SKIPS, expect=3)
    self.assertEqual({"cat/good-0000.jpg": "unpaired", "cat/alone.json": "unpaired"}, self.skips())
    self.assertEqual(9, self.manifest()["counts"]["seen"])
    done = self.pack("src", "-o", "other", "--fields", "json,png:mask.png", "--missing-part", "error", expect=2)
    self.assertIn("cat/", done.stderr)
    self.pack("src", "-o", "other", "--fields", "json,png:mask.png", "--missing-part", "drop")
    self.assertEqual(8, self.manifest("other")["counts"]["packed"])
    self.assertEqual({"png", "jpg", "cls"}, {name.rsplit(".", 1)[1] for name in self.member_names("other")})

  def test_folders_of_parts_alone_are_no_classes(self):
    self.write("src/annotations/1.json", b"{}")
    with tarfile.open(self.folder / "a.tar", "w") as archive:
      archive.add(self.folder / "src", ".")
      info = tarfile.TarInfo("../above/1.jpg")
      info.size = len(jpeg(1))
      archive.addfile(info, io.BytesIO(jpeg(1)))
    for source in ("src", "a.tar"):
      self.pack(source, "-o", "out", "--fields", "json,png:mask.png", "--overwrite", *ANY_SKIPS, expect=3)
      self.assertEqual(["cat", "dog"], self.manifest()["classes"])
      self.assertEqual({0, 1}, {row["label"] for row in self.rows("out")})
      self.assertEqual("unpaired", self.skips()["annotations/1.json"])

  def test_a_part_that_changes_resumes_as_a_conflict_and_counts_in_the_digest(self):
    self.pack("src", "-o", "out", "--fields", "json,png:mask.png")
    self.write("src/cat/good-0000.json", b"{longer}")
    self.pack("src", "-o", "out", "--fields", "json,png:mask.png", expect=5)

  def test_fields_that_a_format_cannot_hold(self):
    for path in (self.folder / "src").rglob("*.jpg"):
      path.with_suffix(".txt").write_text("a caption")
    done = self.pack("src", "-o", "other", "--fields", "json,txt:json.txt", "--with-json", "--exclude", "*.png", expect=2)
    self.assertIn("--drop-fields", done.stderr)
    self.assertFalse((self.folder / "other").exists())
    done = self.pack("src", "-o", "other", "--fields", "json,txt", "--with-json", "--drop-fields", "--exclude", "*.png")
    self.assertIn("left out", done.stderr)
    done = self.pack("src", "-o", "third", "-f", "tfrecord", "--fields", "json", "--with-json", "--exclude", "*.png",
                     "--exclude", "*.txt", expect=2)
    self.assertIn("--with-json makes a field of this name", done.stderr)


class ArchiveTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=20)
    self.pack("src", "-o", "want")

  def add(self, archive, name, data=b"", **facts):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for fact, value in facts.items():
      setattr(info, fact, value)
    archive.addfile(info, io.BytesIO(data))

  def tar(self, name, mode, **options):
    with tarfile.open(self.folder / name, mode, **options) as archive:
      archive.add(self.folder / "src", ".")
    return name

  def assert_same_as_folder(self, source):
    self.pack(source, "-o", "out", "--overwrite")
    for name, data in self.contents("want").items():
      if name.endswith((".tar", ".pidx")):
        self.assertEqual(data, self.contents("out")[name], (source, name))

  def test_every_kind_of_archive_is_as_its_folder(self):
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.xz", "w:xz"), ("a.tar.bz2", "w:bz2")):
      for layout in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        self.assert_same_as_folder(self.tar(name, mode, format=layout))
    self.tar("a.tar", "w")
    subprocess.run(["zstd", "-q", "a.tar"], cwd=self.folder, check=True)
    self.assert_same_as_folder("a.tar.zst")
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
      with zipfile.ZipFile(self.folder / "a.zip", "w", method) as archive:
        for path in sorted((self.folder / "src").rglob("*.jpg")):
          archive.write(path, path.relative_to(self.folder / "src"))
      self.assert_same_as_folder("a.zip")

  def test_no_archive_starts_a_program(self):
    for program, magic in (("lrzip", b"LRZI\0\5"), ("grzip", b"GRZipII\0\2\4:)"), ("lzop", b"\x89LZO\0\r\n\x1a\n")):
      self.write(f"bin/{program}", b"#!/bin/sh\ntouch ran\n")
      (self.folder / "bin" / program).chmod(0o755)
      self.write("a.tar", magic + bytes(1000))
      self.pack("a.tar", "-o", "out", env={"PATH": f"{self.folder}/bin:/usr/bin:/bin"}, expect=2)
      self.assertFalse((self.folder / "ran").exists(), program)

  def test_long_names(self):
    name = "cat/" + "n" * 150 + ".jpg"
    for layout in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
      with tarfile.open(self.folder / "a.tar", "w", format=layout) as archive:
        self.add(archive, name, jpeg(1))
        self.add(archive, "dog/\u00e9.jpg", jpeg(2))
      self.pack("a.tar", "-o", "out", "--overwrite")
      self.assertEqual({name, "dog/\u00e9.jpg"}, {row["path"] for row in self.rows("out")})

  def test_members_that_are_not_followed(self):
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz")):
      with tarfile.open(self.folder / name, mode) as archive:
        for i in range(20):
          self.add(archive, f"cat/{i}.jpg", jpeg(i))
        self.add(archive, "../escape.jpg", jpeg(1))
        self.add(archive, "/absolute.jpg", jpeg(1))
        self.add(archive, "cat/link.jpg", type=tarfile.SYMTYPE, linkname="/etc/passwd")
        self.add(archive, "cat/hard.jpg", type=tarfile.LNKTYPE, linkname="cat/0.jpg")
        self.add(archive, "cat/fifo.jpg", type=tarfile.FIFOTYPE)
        self.add(archive, "cat/device.jpg", type=tarfile.CHRTYPE)
        self.add(archive, "cat/0.jpg", jpeg(99))
        self.add(archive, "cat/empty.jpg")
        self.add(archive, "cat/notes.txt", b"not an image")
      self.pack(name, "-o", "out", "--overwrite", *ANY_SKIPS, expect=3)
      self.assertEqual({"escape.jpg": "outside-root", "absolute.jpg": "outside-root", "cat/link.jpg": "not-regular",
                        "cat/hard.jpg": "not-regular", "cat/fifo.jpg": "not-regular", "cat/device.jpg": "not-regular",
                        "cat/0.jpg": "duplicate-key", "cat/empty.jpg": "empty"}, self.skips())
      self.assertEqual({"txt": 1}, self.manifest()["counts"]["ignored"])
      self.assertFalse((self.folder / "escape.jpg").exists())

  def test_large_members_are_not_unpacked(self):
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz")):
      with tarfile.open(self.folder / name, mode) as archive:
        self.add(archive, "cat/0.jpg", jpeg(0))
        self.add(archive, "cat/large.jpg", bytes(3_000_000))
      self.pack(name, "-o", "out", "--overwrite", "--max-file-size", "1MB", *ANY_SKIPS, expect=3)
      self.assertEqual({"cat/large.jpg": "too-large"}, self.skips())

  def test_sidecars(self):
    for path in (self.folder / "src").rglob("*.jpg"):
      path.with_suffix(".json").write_text(json.dumps({"of": path.stem}))
    self.pack("src", "-o", "want", "--fields", "json", "--overwrite")
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz")):
      self.tar(name, mode)
      self.pack(name, "-o", "out", "--fields", "json", "--overwrite")
      for shard, data in self.contents("want").items():
        if shard.endswith((".tar", ".pidx")):
          self.assertEqual(data, self.contents("out")[shard])

  def test_names_that_are_not_ascii(self):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
      with zipfile.ZipFile(self.folder / "a.zip", "w", method) as archive:
        archive.writestr("cat/\u00e9.jpg", jpeg(1))
        archive.writestr("\u72ac/2.jpg", jpeg(2))
      self.pack("a.zip", "-o", "out", "--overwrite", env={"LC_ALL": "C"})
      self.assertEqual({"cat/\u00e9.jpg", "\u72ac/2.jpg"}, {row["path"] for row in self.rows("out")})

  def test_a_damaged_header_loses_no_member_silently(self):
    whole = bytearray((self.folder / self.tar("a.tar", "w", format=tarfile.USTAR_FORMAT)).read_bytes())
    at = whole.index(b"./cat/good-0004.jpg")
    for damage in (b"X", bytes(512)):
      broken = bytearray(whole)
      broken[at:at + len(damage)] = damage
      self.write("b.tar", bytes(broken))
      done = self.pack("b.tar", "-o", "out", expect=4)
      self.assertIn("b.tar", done.stderr)
      self.assertIn("offset", done.stderr)
      self.write("b.tar.gz", gzip.compress(bytes(broken)))
      self.pack("b.tar.gz", "-o", "out", expect=4)

  def test_members_without_a_name_are_skips(self):
    with tarfile.open(self.folder / "a.tar", "w") as archive:
      self.add(archive, "cat/1.jpg", jpeg(1))
      self.add(archive, "..", jpeg(2))
    self.pack("a.tar", "-o", "out", *ANY_SKIPS, expect=3)
    self.assertEqual({"(no name)": "outside-root"}, self.skips())

  def test_many_extensions_are_not_all_listed(self):
    """What stands behind the first dot of a name may be of that name alone."""
    with tarfile.open(self.folder / "third.tar", "w") as archive:
      for i in range(100):
        self.add(archive, f"{i:04}.jpg", jpeg(i))
        self.add(archive, f"{i:04}.2024-01-{i:02}.json", b"{}")
    done = self.pack("third.tar", "-o", "out", expect=2)
    self.assertIn(".2024-01-07.json, and 92 more)", done.stderr)
    self.assertLess(len(done.stderr), 1500)
    self.assertNotIn("--fields", done.stderr)

  def test_a_tar_of_samples_is_no_silent_loss(self):
    """Labels and captions of a shard of a third-party tool, which lie beside the images."""
    def members(archive, endings, every=1):
      for i in range(6):
        self.add(archive, f"data/{i}.jpg", jpeg(i))
        for ending, data in endings if i % every == 0 else ():
          self.add(archive, f"data/{i}.{ending}", data % i)
    with tarfile.open(self.folder / "third.tar", "w") as archive:
      members(archive, (("cls", b"%d"), ("txt", b"caption %d"), ("seg.npy", b"%d")))
    done = self.pack("third.tar", "-o", "out", "-f", "tfrecord", expect=2)
    self.assertIn("third.tar is a tar of samples", done.stderr)
    self.assertIn("(.cls, .seg.npy, .txt)", done.stderr)
    self.assertFalse((self.folder / "out").exists())
    commands = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("  ")]
    self.assertEqual([["convert", "third.tar", "-o", "out", "-f", "tfrecord"],
                      ["third.tar", "-o", "out", "-f", "tfrecord", "--input-format", "archive"]], commands)
    for words in commands:
      self.pack(*words)
      shutil.rmtree(self.folder / "out")
    commands = [line.split()[1:] for line in self.pack("plan", "third.tar", expect=2).stderr.splitlines() if line.startswith("  ")]
    self.assertEqual(["plan", "third.tar", "--input-format", "dataset"], commands[0])
    for words in commands:
      self.pack(*words)
    # One label is enough; a note here and there is none.
    with tarfile.open(self.folder / "few.tar", "w") as archive:
      members(archive, (("cls", b"%d"),), every=6)
    self.pack("few.tar", "-o", "out", expect=2)
    with tarfile.open(self.folder / "notes.tar", "w") as archive:
      members(archive, (("txt", b"%d"),), every=3)
    self.assertIn("ignored   2 files", self.pack("notes.tar", "-o", "notes").stderr)
    # A compressed one cannot be converted, but its parts can be packed.
    with tarfile.open(self.folder / "captions.tgz", "w:gz") as archive:
      members(archive, (("txt", b"caption %d"),))
    commands = [line.split()[1:] for line in self.pack("captions.tgz", "-o", "out", expect=2).stderr.splitlines()
                if line.startswith("  ")]
    self.assertEqual([["captions.tgz", "-o", "out", "--fields", "txt"],
                      ["captions.tgz", "-o", "out", "--input-format", "archive"]], commands)
    for words in commands:
      self.pack(*words)
      shutil.rmtree(self.folder / "out")

  def test_archives_end_to_end(self):
    for name, numbers in (("a.tar", range(0, 5)), ("b.tar", range(5, 9))):
      with tarfile.open(self.folder / name, "w") as archive:
        for i in numbers:
          self.add(archive, f"cat/{i}.jpg", jpeg(i))
    both = (self.folder / "a.tar").read_bytes() + (self.folder / "b.tar").read_bytes()
    for name, data in (("both.tar", both), ("both.tar.gz", gzip.compress(both))):
      self.write(name, data)
      self.pack(name, "-o", "out", "--overwrite")
      self.assertEqual({f"cat/{i}.jpg" for i in range(9)}, {row["path"] for row in self.rows("out")})
      self.assertEqual(jpeg(7), self.pack("cat", "out", "cat/7", text=False).stdout)

  def test_a_tar_that_was_cut_between_members(self):
    whole = (self.folder / self.tar("a.tar", "w", format=tarfile.USTAR_FORMAT)).read_bytes()
    self.assertNotIn("end-of-archive", self.pack("a.tar", "-o", "out").stderr)
    self.write("cut.tar", whole[:whole.index(b"./dog/good-0019.jpg")])
    self.assertIn("end-of-archive", self.pack("cut.tar", "-o", "out", "--overwrite").stderr)

  def test_every_kind_of_extension_header(self):
    with tarfile.open(self.folder / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
      self.add(archive, "a volume", type=b"V")
      self.add(archive, "cat/0.jpg", jpeg(0))
      self.add(archive, "acl", b"1000000\0", type=b"A")
      self.add(archive, "cat/1.jpg", jpeg(1))
    self.pack("a.tar", "-o", "out")
    for i in range(2):
      self.assertEqual(jpeg(i), self.pack("cat", "out", f"cat/{i}", text=False).stdout)
    with tarfile.open(self.folder / "pax.tar", "w", format=tarfile.PAX_FORMAT) as archive:
      info = tarfile.TarInfo("cat/1.jpg")
      info.size, info.pax_headers = len(jpeg(1)), {"size": str(len(jpeg(1))), "comment": "size=7"}
      archive.addfile(info, io.BytesIO(jpeg(1)))
    self.pack("pax.tar", "-o", "out", "--overwrite")
    self.assertEqual(jpeg(1), self.pack("cat", "out", "cat/1", text=False).stdout)

  def test_damage(self):
    whole = (self.folder / self.tar("a.tar", "w")).read_bytes()
    self.write("cut.tar", whole[:len(whole) // 2])
    self.pack("cut.tar", "-o", "out", expect=4)
    packed = (self.folder / self.tar("a.tar.gz", "w:gz")).read_bytes()
    self.write("cut.tar.gz", packed[:len(packed) // 2])
    self.pack("cut.tar.gz", "-o", "out", expect=4)
    self.write("random.tar", bytes(range(256)) * 50)
    self.pack("random.tar", "-o", "out", expect=2)
    self.write("empty.zip", b"")
    self.pack("empty.zip", "-o", "out", expect=2)
    self.pack("missing.tar", "-o", "out", expect=2)
    self.assertFalse((self.folder / "out").exists())


class CocoTest(command.PackTest):

  def setUp(self):
    super().setUp()
    for i in range(6):
      self.write(f"src/images/{i}.jpg", jpeg(i))
    def box(image, category, width):
      return {"id": 100 * image + category, "image_id": image, "category_id": category, "bbox": [1, 2.5, width, 10],
              "segmentation": [[1, 2, 3]], "iscrowd": 0}
    self.coco = {
        "info": {"year": 2017},
        "images": [{"id": i, "file_name": f"images/{i}.jpg", "height": 24, "width": 40} for i in range(6)],
        "annotations": [box(0, 18, 5), box(0, 17, 9), box(1, 18, 3), box(2, 17, 4), box(2, 17, 5), box(3, 18, 1), box(4, 17, 1)],
        "categories": [{"id": 18, "name": "dog"}, {"id": 17, "name": "cat"}],
    }

  def pack_coco(self, *flags, expect=0):
    self.write("src/a.json", json.dumps(self.coco).encode())
    return self.pack("src/a.json", "-o", "out", "--overwrite", "--no-shuffle", *flags, expect=expect)

  def labels(self):
    return {row["path"]: row["label"] for row in self.rows("out")}

  def test_the_largest_object_gives_the_label(self):
    self.pack_coco("--coco", "boxes", *ANY_SKIPS, expect=3)
    self.assertEqual({f"images/{i}.jpg": label for i, label in enumerate((0, 1, 0, 1, 0))}, self.labels())
    self.assertEqual(["cat", "dog"], self.manifest()["classes"])
    self.assertEqual({"images/5.jpg": "unpaired"}, self.skips())
    boxes = json.loads(self.pack("cat", "out", "images/0", "--field", "json").stdout)
    self.assertEqual({"image_id": 0, "boxes": [
        {"area": 50, "bbox": [1, 2.5, 5, 10], "category": "dog", "iscrowd": 0, "label": 1},
        {"area": 90, "bbox": [1, 2.5, 9, 10], "category": "cat", "iscrowd": 0, "label": 0}]}, boxes)
    self.pack("validate", "out", "--against", "src")

  def test_boxes_that_change_are_no_resumed_run(self):
    self.pack_coco("--label-from", "none")
    changed = json.dumps(self.coco).replace('"bbox": [1, 2.5, 9, 10]', '"bbox": [1, 2.5, 8, 10]')
    self.write("src/a.json", changed.encode())
    done = self.pack("src/a.json", "-o", "out", "--no-shuffle", "--label-from", "none", expect=5)
    self.assertIn("the source's files differ", done.stderr)
    self.pack("src/a.json", "-o", "out", "--overwrite", "--no-shuffle", "--label-from", "none")

  def test_single(self):
    self.pack_coco("--coco", "boxes", "--label-from", "single", *ANY_SKIPS, expect=3)
    self.assertEqual({f"images/{i}.jpg": label for i, label in ((1, 1), (2, 0), (3, 1), (4, 0))}, self.labels())
    counts = self.manifest()["counts"]
    self.assertEqual((6, 4, 1, 1), tuple(counts[name] for name in ("seen", "packed", "filtered", "skipped")))

  def test_sizes_that_are_not_those_of_the_pictures(self):
    done = self.pack_coco()
    self.assertNotIn("warning", done.stderr)
    self.coco["images"][1].update(width=640, height=480)
    self.coco["images"][2].update(width=24, height=40)
    self.coco["annotations"][0]["bbox"] = [30, 2, 20, 10]
    self.coco["annotations"][3]["bbox"] = [3, 2, 5, -10]
    done = self.pack_coco()
    self.assertIn("warning: 2 images have another size than the annotations say: images/1.jpg is 40x24, and 640x480 there", done.stderr)
    self.assertIn("warning: 2 boxes lie outside of the image, or with a negative side: the first is [30, 2, 20, 10] of images/0.jpg, 40x24",
                  done.stderr)

  def test_boxes_do_not_follow_a_resize(self):
    said = "--resize changes the images and not the coordinates of their boxes"
    for words, warned in ((("longest",), False), (("longest", "--coco", "boxes"), True), (("pad",), True)):
      with self.subTest(words):
        done = self.pack_coco("--size", "20", "--missing-part", "keep", "--resize", *words)
        self.assertEqual(warned, said in done.stderr.replace("\n", " "), done.stderr)
    done = self.pack("convert", "out", "-o", "again", "--size", "10", "--resize", "exact")
    self.assertIn(said, done.stderr.replace("\n", " "))

  def test_sizes_of_images_that_are_turned(self):
    turn = b"II*\0" + struct.pack("<IHHHIII", 8, 1, 0x112, 3, 1, 6, 0)  # displayed as 24x40
    for i in (2, 3):
      self.write(f"src/images/{i}.jpg", with_exif(turn, i))
      self.coco["images"][i].update(width=24, height=40)
    self.assertNotIn("warning", self.pack_coco().stderr)
    self.coco["images"][3].update(width=40, height=24)
    done = self.pack_coco()
    self.assertIn("warning: 1 image has the size that the annotations say only before an EXIF orientation is applied: images/3.jpg is 24x40, "
                  "and 40x24 there", done.stderr)
    self.assertNotIn("another size", done.stderr)
    self.coco["images"][3].update(width=41)
    done = self.pack_coco()
    self.assertIn("1 image has another size than the annotations say: images/3.jpg is 24x40, and 41x24 there", done.stderr)

  def test_captions_are_no_negatives(self):
    self.coco["annotations"] = [{"id": i, "image_id": i, "caption": "a cat"} for i in range(6)]
    done = self.pack_coco()
    self.assertIn("no annotation of src/a.json has a category or a box", done.stderr)
    self.assertNotIn("--missing-part", done.stderr)

  def test_missing_annotations(self):
    self.pack_coco("--missing-part", "error", expect=2)
    self.pack_coco("--missing-part", "drop")
    self.assertEqual(1, self.manifest()["counts"]["filtered"])
    self.pack_coco("--coco", "boxes", "--label-from", "none")
    self.assertEqual(6, self.manifest()["counts"]["packed"])
    self.assertEqual('{"boxes":[],"image_id":5}', self.pack("cat", "out", "images/5", "--field", "json").stdout)

  def test_bad_files(self):
    cases = [
        (lambda c: c["annotations"][0].update(image_id=99), "image_id 99"),
        (lambda c: c["annotations"][0].update(category_id=99), "category_id 99"),
        (lambda c: c["annotations"][0].update(bbox=[1, 2, 3]), "bbox of 3"),
        (lambda c: c["annotations"][0].pop("image_id"), "image_id"),
        (lambda c: c["images"][1].update(id=0), "twice"),
        (lambda c: c["images"][1].update(file_name="images/0.jpg"), "two images"),
        (lambda c: c["images"][1].update(file_name="../0.jpg"), ".."),
        (lambda c: c["images"][1].update(file_name="/etc/passwd"), "absolute"),
        (lambda c: c["images"][1].pop("file_name"), "file_name"),
        (lambda c: c["categories"][1].update(name="dog"), "name of another"),
        (lambda c: c.pop("images"), "not a COCO json"),
    ]
    original = json.dumps(self.coco)
    for change, why in cases:
      with self.subTest(why):
        self.coco = json.loads(original)
        change(self.coco)
        self.assertIn(why, self.pack_coco(expect=2).stderr)
    for text in (b"", b"[]", b"5", b"null", b'{"images": [', b"[" * 100_000, b'{"images":' + b"[" * 100_000):
      self.write("src/a.json", text)
      done = self.pack("src/a.json", "-o", "bad", expect=2)
      self.assertIn("src/a.json", done.stderr)
    self.assertFalse((self.folder / "bad").exists())


class ConvertTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=60, classes=("cat", "dog", "\u00e9"))
    for path in (self.folder / "src").rglob("*.jpg"):
      path.with_suffix(".json").write_text(json.dumps({"of": path.stem}))

  def shards(self, out):
    return {name: data for name, data in self.contents(out).items()
            if name not in ("manifest.json", "skipped.jsonl", "order.u32")}

  def assert_cycle(self, packing, converting):
    self.pack("src", "-o", "a", *packing)
    self.pack("convert", "a", "-o", "b", "-f", "tfrecord", "--shards", "3")
    self.pack("convert", "b", "-o", "c", "-f", "webdataset", "--samples-per-shard", "7")
    self.pack("convert", "c", "-o", "d", *converting)
    self.assertEqual(self.shards("a"), self.shards("d"))
    self.assertEqual(self.pack("info", "a").stdout.splitlines()[-1], self.pack("info", "d").stdout.splitlines()[-1])

  def test_a_cycle_is_byte_identical(self):
    sizing = ["--shards", "4"]
    self.assert_cycle(["--fields", "json", "--split", "train=0.8,val=0.2", *sizing], sizing)

  def test_a_cycle_with_made_json_and_number_keys(self):
    sizing = ["--shard-size", "40kB"]
    self.assert_cycle(["--with-json", "--key", "index", "--seed", "5", *sizing], sizing)

  def test_made_json_goes_where_the_target_has_no_place_for_it(self):
    self.pack("src", "-o", "a", "--with-json")
    for target in ("tfrecord", "lmdb", "hdf5"):
      self.pack("convert", "a", "-o", target, "-f", target)
      self.assertEqual(60, self.manifest(target)["counts"]["packed"])

  def test_values_that_no_field_holds_are_said(self):
    # An Example with jpg = bytes, label = 1, age = [7]; in a record of TFRecord.
    def example(image):
      def entry(name, feature):
        body = b"\x0a" + bytes([len(name)]) + name + b"\x12" + varint(len(feature)) + feature
        return b"\x0a" + varint(len(body)) + body
      def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)
      values = b"\x0a" + varint(len(image)) + image
      features = (entry(b"jpg", b"\x0a" + varint(len(values)) + values) + entry(b"label", b"\x1a\x03\x0a\x01\x01")
                  + entry(b"age", b"\x1a\x03\x0a\x01\x07"))
      return b"\x0a" + varint(len(features)) + features
    def masked(data):
      crc = 0xffffffff
      for byte in data:
        crc ^= byte
        for _ in range(8):
          crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
      crc ^= 0xffffffff
      return (((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff).to_bytes(4, "little")
    payload = example(jpeg(1))
    length = len(payload).to_bytes(8, "little")
    self.write("f.tfrecord", length + masked(length) + payload + masked(payload))
    done = self.pack("convert", "f.tfrecord", "-o", "out")
    self.assertIn("left out, because a sample cannot hold it: age", done.stderr)
    self.assertEqual([1], [row["label"] for row in self.rows("out")])

  def test_a_cycle_of_tfrecords(self):
    self.pack("src", "-o", "a", "-f", "tfrecord", "--fields", "json", "--no-shuffle")
    self.pack("convert", "a", "-o", "b")
    self.pack("convert", "b", "-o", "c", "-f", "tfrecord")
    self.assertEqual(self.shards("a"), self.shards("c"))

  def test_foreign_shards(self):
    with tarfile.open(self.folder / "foreign.tar", "w") as archive:
      for i in range(5):
        for name, data in ((f"{i:04}.jpg", jpeg(i)), (f"{i:04}.cls", b"%d" % (i % 3)), (f"{i:04}.txt", b"caption %d" % i)):
          info = tarfile.TarInfo(name)
          info.size = len(data)
          archive.addfile(info, io.BytesIO(data))
    self.pack("convert", "foreign.tar", "-o", "out", "-f", "tfrecord")
    self.assertEqual([f"{i:04}" for i in range(5)], [row["key"] for row in self.rows("out")])
    self.assertEqual([0, 1, 2, 0, 1], [row["label"] for row in self.rows("out")])
    self.assertEqual("caption 3", self.pack("cat", "out", "0003", "--field", "txt").stdout)
    self.assertEqual(["0", "1", "2"], self.manifest()["classes"])
    self.pack("validate", "out")

  def test_what_the_target_cannot_hold_is_said_first(self):
    self.pack("src", "-o", "a", "--fields", "json", "--key", "path")
    self.pack("convert", "a", "-o", "b", "--with-json", expect=2)
    self.assertFalse((self.folder / "b").exists())
    self.pack("convert", "a", "-o", "b", "--with-json", "--drop-fields")
    self.assertEqual(60, self.manifest("b")["counts"]["packed"])
    # A key that is too long for the names of a tar.
    self.write("deep/" + "k" * 120 + "/" + "k" * 120 + ".jpg", jpeg(1))
    self.pack("deep", "-o", "c", "-f", "tfrecord", "--key", "path")
    done = self.pack("convert", "c", "-o", "d", expect=2)
    self.assertIn("cannot hold", done.stderr)
    self.assertFalse((self.folder / "d").exists())
    self.pack("convert", "c", "-o", "d", "--layout", "pax")

  def test_damage_is_listed(self):
    self.pack("src", "-o", "a", "-f", "tfrecord", "--shards", "1", "--shuffle")
    shard = next((self.folder / "a").glob("*.tfrecord"))
    data = bytearray(shard.read_bytes())
    at = data.index(b"\xff\xd8\xff", 5000) + 40
    data[at] ^= 1
    shard.write_bytes(bytes(data))
    self.pack("convert", "a", "-o", "b", expect=4)
    self.pack("convert", "a", "-o", "b", *ANY_SKIPS, expect=3)
    self.assertEqual(["bad-crc"], list(self.skips("b").values()))

  def test_what_is_no_dataset(self):
    self.pack("convert", "src", "-o", "b", expect=2)
    self.pack("convert", "missing", "-o", "b", expect=2)
    self.pack("src", "-o", "a")
    self.pack("convert", "a", "-o", "a", expect=2)
    self.pack("convert", "a", "-o", "a/in", expect=2)
    self.pack("convert", "a", "-o", "b", "--fields", "json", expect=2)
    manifest = self.folder / "a/manifest.json"
    manifest.write_text(manifest.read_text().replace("train", "trajn"))
    self.pack("convert", "a", "-o", "b", expect=4)

  def test_resumes_and_says_what_differs(self):
    self.pack("src", "-o", "a")
    self.pack("convert", "a", "-o", "b", "-f", "tfrecord")
    self.pack("convert", "a", "-o", "b", "-f", "tfrecord")
    self.pack("src", "-o", "a2", "--seed", "9")
    self.assertIn("dataset", self.pack("convert", "a2", "-o", "b", "-f", "tfrecord", expect=5).stderr)

  def test_a_dataset_as_the_source_of_a_shared_plan(self):
    self.pack("src", "-o", "a")
    self.pack("plan", "a", "--shards", "4", "-f", "tfrecord", "--write", "plan")
    self.pack("build", "--plan", "plan", "-o", "b", "--shards-range", "0-1")
    self.pack("build", "--plan", "plan", "-o", "b", "--shards-range", "2-3")
    self.pack("commit", "b")
    self.pack("validate", "b")
    self.pack("src", "-o", "other", "--seed", "9")
    self.pack("build", "other", "--plan", "plan", "-o", "c", expect=5)


if __name__ == "__main__":
  command.main()
