"""The members of what stats, diff, dups and report print with --json are those that docs/looking.md names."""

import json
import os
import pathlib
import re

import command
from command import jpeg

PAGE = pathlib.Path(os.environ.get("SHARDPACK_LOOKING_PAGE", "docs/looking.md")).resolve()
# Members whose own members are names of the dataset; in `classes` and `unlabelled`, `splits` is another one.
BY_NAME = {"formats", "pixels", "quantiles", "by_reason", "pixel_stats"}


def members(value, parent=""):
  if isinstance(value, list):
    return set().union(*(members(each, parent) for each in value))
  if not isinstance(value, dict) or parent in BY_NAME or parent.startswith("splits of"):
    return set()
  return set(value) | set().union(*(members(each, f"{name} of {parent}" if name == "splits" and parent else name) for name, each in value.items()))


class LookingJsonTest(command.PackTest):

  def documented(self, schema):
    row, = re.findall(rf"^\| `{schema}` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return {word for word in re.findall("`([^`]+)`", row) if not word.startswith("--")}

  def test_every_member_is_documented(self):
    for i in range(12):
      self.write(f"src/{('cat', 'dog')[i % 2]}/{i}.jpg", jpeg(i))
      self.write(f"src/{('cat', 'dog')[i % 2]}/{i}.txt", b"%d" % i)
    self.write("src/cat/again.jpg", jpeg(0))
    self.write("src/cat/again.txt", b"x")
    self.write("src/dog/broken.jpg", b"")
    self.write("src/dog/broken.txt", b"x")
    self.write("src/dog/bad.jpg", jpeg(9)[:-200] + b"\xff\xd9")
    self.write("src/dog/bad.txt", b"x")
    base = ["--fields", "txt", "--split", "train=0.5,val=0.5", "--split-by", "random", "--max-skip", "50%"]
    self.pack("src", "-o", "one", *base, "--compute-stats", expect=3)
    self.write("src/cat/0.txt", b"other")
    self.write("src/owl/new.jpg", jpeg(100))
    self.write("src/owl/new.txt", b"x")
    self.pack("src", "-o", "two", *base, "--seed", "1", expect=3)
    outputs = {
        "stats": self.pack("stats", "one", "--json"),
        "diff": self.pack("diff", "one", "two", "--json"),
        "dups": self.pack("dups", "one", "two", "--near", "--distance", "12", "--json"),
        "report": self.pack("report", "one", "-o", "page.html", "--json"),
    }
    for name, done in outputs.items():
      got = json.loads(done.stdout)
      schema = f"shardpack.{name}/1"
      self.assertEqual(schema, got.pop("schema"))
      with self.subTest(name):
        self.assertEqual(self.documented(schema), members(got))


if __name__ == "__main__":
  command.main()
