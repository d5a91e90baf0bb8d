"""Archives that are damaged where their own programs see it: no image is changed, renamed or lost silently."""

import gzip
import io
import struct
import subprocess
import tarfile
import zipfile
import zlib

from command import jpeg
import command


class DamagedArchiveTest(command.PackTest):

  def refused(self, name, data, *words):
    self.write(name, bytes(data))
    done = self.pack(name, "-o", "none", expect=4)
    for word in (name, "offset", *words):
      self.assertIn(word, done.stderr)
    self.assertFalse((self.folder / "none" / "manifest.json").exists())

  def taken(self, name, data):
    self.write(name, bytes(data))
    done = self.pack(name, "-o", "out", "--overwrite")
    self.assertEqual({"cat/0.jpg", "cat/1.jpg", "dog/2.jpg"}, {row["path"] for row in self.rows("out")})
    return done.stderr

  def members(self):
    return (("cat/0.jpg", jpeg(0)), ("cat/1.jpg", jpeg(1)), ("dog/2.jpg", jpeg(2)))

  def tar(self):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
      for name, data in self.members():
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return whole.getvalue()

  def zip(self, prefix=b""):
    whole = io.BytesIO(prefix)
    whole.seek(len(prefix))
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
      for name, data in self.members():
        archive.writestr(name, data)
    return bytearray(whole.getvalue())

  def test_gzip_checksums_are_verified(self):
    tar = bytearray(self.tar())
    packer = zlib.compressobj(wbits=31)
    whole = packer.compress(bytes(tar)) + packer.flush()
    self.taken("a.tar.gz", whole)
    tar[tar.index(b"number 1") + 7] = ord("7")  # another image, and the checksum of the first
    other = zlib.compressobj(wbits=31)
    data = other.compress(bytes(tar)) + other.flush()
    self.refused("b.tar.gz", data[:-8] + whole[-8:], "incorrect data check")
    self.refused("b.tgz", data[:-8] + whole[-8:], "incorrect data check")
    self.refused("c.tar.gz", whole[:-4], "ends before its data does")

  def test_gzip_in_several_streams(self):
    tar = self.tar()
    first, second = gzip.compress(tar[:2048]), gzip.compress(tar[2048:])
    self.taken("a.tar.gz", first + second)
    self.taken("b.tar.gz", first + second + bytes(1000))
    self.refused("c.tar.gz", first + b"\0" + second[1:], f"head -c {len(first)}")
    self.refused("d.tar.gz", first + second + b"more", f"head -c {len(first + second)}")

  def test_a_cut_tar_is_noted_however_it_is_compressed(self):
    tar = self.tar().rstrip(b"\0")
    tar += bytes(-len(tar) % 512)
    self.write("a.tar", tar)
    for program in ("gzip", "bzip2", "xz", "zstd"):
      subprocess.run([program, "-k", "-q", "a.tar"], cwd=self.folder, check=True)
    for name in ("a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst"):
      self.assertIn("no end-of-archive block", self.taken(name, (self.folder / name).read_bytes()), name)
    self.assertNotIn("no end-of-archive block", self.taken("b.tar.gz", gzip.compress(self.tar())))

  def test_damage_that_hides_the_tar_is_no_usage_error(self):
    self.write("a.tar", self.tar())
    subprocess.run(["bzip2", "-k", "a.tar"], cwd=self.folder, check=True)
    data = bytearray((self.folder / "a.tar.bz2").read_bytes())
    data[len(data) // 2] ^= 4
    self.write("b.tar.bz2", bytes(data))
    self.assertIn("damaged", self.pack("b.tar.bz2", "-o", "out", expect=4).stderr)

  def test_a_zip_is_read_in_one_way_only(self):
    whole = self.zip()
    self.taken("a.zip", whole)
    self.taken("prefixed.zip", self.zip(prefix=b"#!/bin/sh\n" * 30))
    at = whole.index(b"cat/1.jpg")  # in the header beside its bytes
    for name in (b"cut/1.jpg", b"cat/1.jpx", b"cat/1.jp/"):
      renamed = bytearray(whole)
      renamed[at:at + len(name)] = name
      self.refused("b.zip", renamed, "another name")
    entry = whole.index(b"PK\1\2")
    following = whole.index(b"PK\1\2", entry + 4)
    same = bytearray(whole)
    same[following + 42:following + 46] = same[entry + 42:entry + 46]
    self.refused("c.zip", same, "cat/1.jpg")
    same[following + 46:following + 55] = b"cat/0.jpg"
    self.refused("d.zip", same, "two members")

  def test_a_zip_without_its_table_of_contents_was_cut(self):
    whole = self.zip()
    entry, end = whole.index(b"PK\1\2"), whole.rindex(b"PK\5\6")
    self.refused("a.zip", whole[:entry + 60], "table of contents")
    self.refused("b.zip", whole[:end], "table of contents")
    self.refused("c.zip", whole[:whole.index(b"PK\3\4", 4)])
    for at in (8, 10):
      whole[end + at:end + at + 2] = struct.pack("<H", 2)
    self.refused("d.zip", whole, "says that it names 2 members, and names 3")


class OtherPicturesTest(command.PackTest):

  def test_images_of_other_kinds_are_not_lost_without_a_word(self):
    self.source(count=6)
    for name in ("cat/1.avif", "dog/2.HEIC", "dog/3.heic", "dog/notes.txt"):
      self.write(f"src/{name}", b"anything")
    want = "3 images are left out, since pack does not read their format (1 .avif, 2 .heic): convert them, for example to png"
    self.assertIn(want, self.pack("src", "-o", "out", "-q").stderr)
    with tarfile.open(self.folder / "a.tar", "w") as archive:
      archive.add(self.folder / "src", ".")
    self.assertIn(want, self.pack("a.tar", "-o", "other", "-q").stderr)
    self.assertNotIn("left out", self.pack("src", "-o", "asked", "--ext", "jpg", "-q").stderr)

  def test_a_source_of_other_kinds_alone(self):
    self.write("src/cat/1.avif", b"\0\0\0\x20ftypavif" + bytes(100))
    done = self.pack("src", "-o", "out", expect=2)
    self.assertIn("convert them", done.stderr)
    self.assertNotIn("--ext avif", done.stderr)
    self.assertIn("AVIF is not taken", self.pack("src", "-o", "out", "--ext", "avif", expect=4).stderr)


if __name__ == "__main__":
  command.main()
