"""How --overwrite puts a new dataset in the place of an old one: only the old one is emptied, whatever else has come to lie
where it was, and a run that was killed at any step is finished by the same command.
"""

import os
import shutil
import subprocess
import unittest

import command

MARK = b"0123456789abcdef0123456789abcdef\n"
ANOTHER = b"fedcba9876543210fedcba9876543210\n"


class ReplacementTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=12)
    self.plain = ["src", "-o", "out", "--samples-per-shard", "3"]
    self.words = [*self.plain, "--overwrite"]
    self.pack("src", "-o", "want", "--samples-per-shard", "3")
    self.pack("src", "-o", "old", "--samples-per-shard", "4")
    self.want, self.old = self.contents("want"), self.contents("old")
    self.beside = self.folder / "out.pack-new"

  def place(self, name, files):
    path = self.folder / name
    if path.is_symlink() or path.is_file():
      path.unlink()
    shutil.rmtree(path, ignore_errors=True)
    for each, data in files.items():
      self.write(f"{name}/{each}", data)

  def exchanged(self):
    """OUT as a run leaves it that was killed right after the exchange."""
    names = "\n".join(sorted(self.old)).encode() + b"\n"
    self.place("out", {**self.want, ".pack/replaced": MARK + names, ".pack/lock": b""})

  def all_below(self, name):
    top = self.folder / name
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))

  def test_killed_while_the_old_one_was_removed(self):
    notes = {".pack/lock": b"", ".pack/replaced-by": MARK}
    order = ["manifest.json", *sorted(set(self.old) - {"manifest.json"}), *notes]
    for words in (self.words, self.plain, ["commit", "out"], ["repair", "out"]):
      for removed in range(len(order) + 1):
        with self.subTest(words, removed=removed):
          self.exchanged()
          self.place("out.pack-new", {name: {**self.old, **notes}[name] for name in order[removed:]})
          (self.beside / ".pack").mkdir(parents=True, exist_ok=True)
          self.assertNotIn("out.pack-new", self.pack(*words).stderr)
          self.assertEqual(self.want, self.contents("out"))
          self.assertFalse(self.beside.exists())
    self.exchanged()
    self.beside.mkdir()
    self.pack(*self.plain)
    self.assertFalse(self.beside.exists())

  def test_killed_before_the_exchange(self):
    for words in (["src", "-o", "out", "--samples-per-shard", "4"], self.words):
      self.place("out", {**self.old, ".pack/lock": b"", ".pack/replaced-by": ANOTHER})
      self.pack(*self.words, "--expect", "xxh3:" + "0" * 32, expect=4)
      self.write("out.pack-new/.pack/replaced", ANOTHER + "\n".join(sorted(self.old)).encode() + b"\n")
      self.pack(*words)
      self.assertEqual(self.want if words == self.words else self.old, self.contents("out"))
      self.assertEqual(words != self.words, self.beside.exists())

  def test_what_lies_where_the_old_one_was_stays(self):
    theirs = {"manifest.json": b"{}", "train-000000.tar": b"precious", "train-000001.pidx": b"precious"}
    others = {
        "a dataset of pack": self.old, "of somebody else": theirs,
        "another one that was replaced": {**self.old, ".pack/replaced-by": ANOTHER},
        "one that was about to be": {**self.old, ".pack/replaced-by": b""}, "one file": {"notes.txt": b"precious"},
    }
    for words in (self.words, self.plain, ["commit", "out"], ["repair", "out"]):
      for kind, files in others.items():
        with self.subTest(words, kind=kind):
          self.exchanged()
          self.place("out.pack-new", files)
          self.assertIn("out.pack-new is not the dataset that was replaced", self.pack(*words).stderr)
          self.assertEqual(files, self.contents("out.pack-new"))
          self.assertEqual(self.want, self.contents("out"))
          self.assertNotIn("out.pack-new", self.pack(*self.plain).stderr)
      with self.subTest(words, kind="links"):
        self.place("elsewhere", {**self.old, ".pack/replaced-by": MARK})
        for target in ("elsewhere", "nowhere", "elsewhere/manifest.json"):
          self.exchanged()
          self.place("out.pack-new", {})
          self.beside.symlink_to(target)
          self.assertIn("out.pack-new is not the dataset that was replaced", self.pack(*words).stderr)
          self.assertTrue(self.beside.is_symlink())
          self.assertEqual({**self.old, ".pack/replaced-by": MARK}, self.contents("elsewhere"))
          self.assertEqual(self.want, self.contents("out"))

  def test_the_old_one_is_rescued_and_the_new_one_put_in_place_by_hand(self):
    self.place("out", {**self.old, ".pack/lock": b"", ".pack/replaced-by": MARK})
    names = "\n".join(sorted(self.old)).encode() + b"\n"
    self.place("out.pack-new", {**self.want, ".pack/replaced": MARK + names, ".pack/lock": b""})
    os.rename(self.folder / "out", self.folder / "kept")
    os.rename(self.beside, self.folder / "out")
    self.place("out.pack-new", self.old)
    self.pack(*self.plain)
    self.assertEqual(self.old, self.contents("out.pack-new"))
    self.pack("src", "-o", "kept", "--samples-per-shard", "4")
    self.assertEqual(sorted(self.old), self.all_below("kept"))

  def test_a_file_that_came_to_the_old_one_is_named_and_stays(self):
    self.exchanged()
    self.place("out.pack-new", {**self.old, "notes.txt": b"precious", ".pack/replaced-by": MARK})
    for _ in range(2):
      self.assertIn("notes.txt", self.pack(*self.words, expect=5).stderr)
      self.assertEqual(b"precious", (self.beside / "notes.txt").read_bytes())
    (self.beside / "notes.txt").unlink()
    self.pack(*self.words)
    self.assertFalse(self.beside.exists())
    self.assertEqual(self.want, self.contents("out"))

  def test_an_out_that_no_other_folder_can_take_the_place_of(self):
    (self.folder / "same").mkdir()
    for kind in (["-t", "tmpfs", "tmpfs"], ["--bind", "same"]):
      self.place("out", {})
      (self.folder / "out").mkdir()
      if subprocess.run(["mount", *kind, "out"], cwd=self.folder, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise unittest.SkipTest("may not mount here")
      try:
        self.pack("src", "-o", "out", "--samples-per-shard", "4")
        refused = self.pack(*self.words, expect=5).stderr
        self.assertIn("out is a mount point", refused)
        self.assertIn("build into another folder", refused)
        self.assertNotIn("run again", refused)
        self.assertEqual(sorted(self.old), self.all_below("out"))
        self.assertFalse(self.beside.exists())
      finally:
        subprocess.run(["umount", str(self.folder / "out")], check=True)


if __name__ == "__main__":
  command.main()
