"""First words that are not verbs, URLs in place of paths, and an OUT that lies in its own source."""

import json
import os
import shlex
import shutil
import subprocess
import unittest

import command
from command import jpeg


def printed_command(text):
  """The words after the program of the command that a message tells the user to type."""
  lines = [line.strip() for line in text.splitlines() if line.startswith("  ")]
  words = shlex.split(lines[-1])
  return words[1:] if words[0].endswith("pack") else words


class FirstWordTest(command.PackTest):

  def test_words_that_are_no_verb(self):
    for words, meant in ((["verify", "x"], "pack validate"), (["version"], "pack --version"),
                         (["buidl", "x"], "pack build"), (["help", "valdate"], "pack validate"), (["unpack", "a", "b"], "pack extract")):
      refused = self.pack(*words, expect=2)
      self.assertIn(f"did you mean {meant}?", refused.stderr)
      self.assertNotIn("-shards", refused.stderr)
    self.assertIn("shown by pack ls x", self.pack("list", "x", expect=2).stderr)
    for words in (["inspect", "x"], ["inspect", "a", "b"], ["pakc"], ["help", "foo"], ["frobnicate", "-o", "out"]):
      refused = self.pack(*words, expect=2)
      self.assertIn("the verbs are build, plan, list,", refused.stderr)
      self.assertNotIn("-shards", refused.stderr)
    self.pack("help", expect=0)
    self.pack("help", "build", expect=0)
    for words in (["help", "resize"], ["help", "--resize"]):
      self.assertRegex(self.pack(*words).stdout, r"(?s)--resize shortest\|.*of pack build, pack plan, pack convert\n")
    self.assertEqual(3, self.pack("help", "out").stdout.count("--out DIR"), "of builds, of index and of extract")

  def test_a_folder_of_that_name_is_a_source(self):
    self.source("verify")
    self.pack("verify", "-o", "out", expect=0)

  def test_what_cannot_be_looked_at_is_not_absent(self):
    os.symlink("loop", self.folder / "loop")
    self.source("closed/src")
    (self.folder / "closed").chmod(0)
    for verb in ([], ["build"]):
      self.assertIn("Too many levels of symbolic links", self.pack(*verb, "loop/src", "-o", "out", expect=6).stderr)
      self.assertIn("Permission denied", self.pack(*verb, "closed/src", "-o", "out", expect=6, unprivileged=True).stderr)

  def test_no_folder_is_offered_for_a_source_that_is_not_there(self):
    for words in (["build", "nowhere"], ["no/where"], ["nowhere.csv"]):
      refused = self.pack(*words, expect=2)
      self.assertIn("does not exist", refused.stderr)
      self.assertNotIn("-o", refused.stderr)


class UrlTest(command.PackTest):

  def test_every_flag_that_takes_a_path(self):
    self.source()
    self.pack("src", "-o", "out")
    url = "s3://bucket/some/thing"
    for words in (["-o", url], ["-o", "x", "--root", url], ["-o", "x", "--classes", url], ["-o", "x", "--config", url],
                  ["-o", "x", "--plan", url]):
      self.assertIn("aws s3", self.pack("src", *words, expect=2).stderr)
    self.assertIn("aws s3 cp thing " + url, self.pack("plan", "src", "--write", url, expect=2).stderr)
    self.assertIn("aws s3 sync " + url, self.pack("validate", "out", "--against", url, expect=2).stderr)
    for verb in ("build", "plan", "commit", "convert", "index", "validate", "info", "ls", "cat", "bench"):
      self.assertIn("aws s3 sync " + url, self.pack(verb, url, expect=2).stderr)
    self.assertIn("aws s3 sync " + url, self.pack("extract", url, "x", expect=2).stderr)
    self.assertIn("aws s3 sync thing " + url, self.pack("extract", "out", url, expect=2).stderr)
    self.write("config.toml", b'out = "s3://bucket/out"\n')
    self.assertIn("aws s3 sync out s3://bucket/out", self.pack("src", "--config", "config.toml", expect=2).stderr)
    self.assertEqual(["config.toml", "out", "src"], sorted(os.listdir(self.folder)))

  def test_other_schemes(self):
    for url, way in (("gs://b/d", "gcloud storage rsync --recursive gs://b/d d"), ("https://h/d.zip", "curl --fail --location --output d.zip https://h/d.zip"),
                     ("FILE:///data/x", "as in /data/x"), ("abfss://c@a/d", "abfss://"), ("hf://datasets/x", "hf://")):
      self.assertIn(way, self.pack(url, "-o", "out", expect=2).stderr)

  def test_a_path_of_a_list(self):
    self.source()
    self.write("src/list.csv", b"path,label\ns3://bucket/1.jpg,cat\n")
    refused = self.pack("src/list.csv", "-o", "out", expect=2)
    self.assertIn("list.csv:2", refused.stderr)
    self.assertIn("URL", refused.stderr)

  def test_what_only_looks_like_one(self):
    self.write("s3:/bucket/cat/1.jpg", jpeg(1))
    self.pack("./s3://bucket", "-o", "out", expect=0)


class OutInSourceTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source()

  def in_source(self, *words, **options):
    process = subprocess.Popen([command.PACK, *words], cwd=self.folder / "src", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    _, err = process.communicate(timeout=60)
    return process.returncode, err

  def test_refused_the_first_time(self):
    for source, out in ((".", "shards"), (".", "./new/shards"), ("./cat/..", "x"), ("../src", "x"), (str(self.folder / "src"), "x")):
      code, err = self.in_source(source, "-o", out)
      self.assertEqual(2, code, err)
      self.assertIn("lies inside", err)
      self.assertEqual(["-o", "../src-shards"], printed_command(err))
    self.assertEqual(["cat", "dog"], sorted(os.listdir(self.folder / "src")))

  def test_the_command_that_is_offered_works_every_time(self):
    code, err = self.in_source(".")
    self.assertEqual(2, code)
    words = printed_command(err)
    self.assertEqual([".", "-o", "../src-shards"], words)
    for _ in range(2):
      code, err = self.in_source(*words)
      self.assertEqual(0, code, err)
    self.assertEqual(["src", "src-shards"], sorted(os.listdir(self.folder)))

  def test_the_offer_avoids_what_is_there(self):
    self.write("src-shards/notes.txt", b"mine")
    words = printed_command(self.pack("src", expect=2).stderr)
    self.assertEqual(["src", "-o", "src-shards-2"], words)
    self.pack(*words)

  def test_the_offer_for_a_file(self):
    self.write("list.tar.gz", b"")
    self.write("list.csv", b"path\nsrc/cat/good-0000.jpg\n")
    self.assertEqual(["list.tar.gz", "-o", "list-shards"], printed_command(self.pack("list.tar.gz", expect=2).stderr))
    self.assertEqual(["list.csv", "-o", "list-shards"], printed_command(self.pack("list.csv", expect=2).stderr))

  def test_by_links(self):
    (self.folder / "link").symlink_to("src")
    (self.folder / "deep").symlink_to("src/cat")
    for source, out in (("src", "link/out"), ("link", "src/out"), ("link", "deep/out"), ("deep", "src")):
      self.pack(source, "-o", out, expect=2)
    self.assertEqual(["cat", "dog"], sorted(os.listdir(self.folder / "src")))

  def test_by_another_mount(self):
    (self.folder / "mount").mkdir()
    if subprocess.run(["mount", "--bind", "src", "mount"], cwd=self.folder, stderr=subprocess.DEVNULL, check=False).returncode != 0:
      raise unittest.SkipTest("may not mount here")
    try:
      for source, out in (("src", "mount/out"), ("mount", "src/out"), ("src/cat", "mount")):
        self.pack(source, "-o", out, expect=2)
    finally:
      subprocess.run(["umount", str(self.folder / "mount")], check=True)
    self.assertEqual(["cat", "dog"], sorted(os.listdir(self.folder / "src")))


class PackedFolderInSourceTest(command.PackTest):

  def test_a_dataset_in_the_source(self):
    self.source()
    self.pack("src", "-o", "out", "-f", "npy", "--encode", "raw", "--resize", "exact", "--size", "8", "--color", "rgb")
    want = self.pack("src", "-o", "want", "--ext", "any").stdout
    os.rename(self.folder / "out", self.folder / "src/old")
    self.write("src/old/deeper/stray.jpg", jpeg(500))
    done = self.pack("src", "-o", "again", "--ext", "any")
    self.assertIn("left out old, which pack has written; --exclude /old/", done.stderr)
    self.assertEqual(want, done.stdout)
    self.assertNotIn("left out old", self.pack("src", "-o", "third", "--ext", "any", "--exclude", "/old/").stderr)

  def test_a_build_that_has_not_ended(self):
    self.source()
    self.write("src/half/.pack/lock")
    self.write("src/half/cat/1.jpg", jpeg(900))
    self.assertIn("left out half", self.pack("src", "-o", "out").stderr)
    self.assertEqual(20, self.manifest()["counts"]["packed"])
    self.assertIn("has not ended", self.pack("src/half", "-o", "o2", expect=2).stderr)

  def test_what_is_not_ours(self):
    self.source()
    self.write("src/cat/manifest.json", b"{}")
    self.write("src/dog/.pack/notes.txt", b"x")
    # A hidden folder like any other; no dataset is left out.
    left_out = [line for line in self.pack("src", "-o", "out").stderr.splitlines() if "left out" in line]
    self.assertEqual(["note: left out as hidden: the folder dog/.pack; give them other names to pack them"], left_out)
    self.assertEqual(20, self.manifest()["counts"]["packed"])


class AnswerTest(command.PackTest):
  """What is left out, or cannot be found, comes with the option that answers it."""

  def test_a_folder_of_links(self):
    self.write("far/1.jpg", jpeg(1))
    os.mkdir(self.folder / "src")
    (self.folder / "src/cat").symlink_to("../far")
    refused = self.pack("src", "-o", "out", expect=4)
    self.assertIn("--follow", refused.stderr)
    self.pack("src", "-o", "out", "--follow")

  def test_coco_with_the_wrong_root(self):
    self.write("coco/images/1.jpg", jpeg(1))
    self.write("coco/all.json", json.dumps({"images": [{"id": 1, "file_name": "1.jpg", "width": 1, "height": 1}],
                                            "categories": [{"id": 1, "name": "cat"}],
                                            "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "area": 1}]}).encode())
    self.write("coco/all.csv", b"path,label\n1.jpg,cat\n")
    for source in ("coco/all.json", "coco/all.csv"):
      refused = self.pack(source, "-o", "out", expect=2)
      self.assertIn("Paths are relative to", refused.stderr)
      self.assertIn("--root", refused.stderr)
      words = printed_command(refused.stderr)
      self.assertEqual("images", os.path.basename(words[-1]))
      shutil.rmtree(self.folder / "out", ignore_errors=True)
      self.pack(*words)

  def test_unpaired_parts(self):
    self.source()
    self.write("src/cat/good-0000.txt", b"a cat")
    refused = self.pack("src", "-o", "out", "--fields", "txt", expect=4)
    self.assertIn("--missing-part", refused.stderr)
    self.assertIn("--missing-part", self.pack("src", "-o", "out", "--fields", "txt", "--max-skip", "100%", expect=3).stderr)

  def test_truncated(self):
    self.source(count=300)
    self.write("src/cat/cut.jpg", jpeg(5)[:-2])
    self.assertIn("--allow-truncated", self.pack("src", "-o", "out", expect=3).stderr)

  def test_what_is_no_shard(self):
    self.write("x.tar", b"GIF89a and no tar")
    done = self.pack("validate", "x.tar", expect=4)
    self.assertNotIn("--format", done.stdout)


if __name__ == "__main__":
  command.main()
