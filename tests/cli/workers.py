"""What tests of workers, commits and runs of the same command again share."""

import re
import subprocess

import command


class WorkersTest(command.PackTest):

  def commands(self, text):
    """The lines of `text` that are commands; the program may be named by its path."""
    lines = [re.match(r"  (?:\S*/)?pack (.*)", line) for line in text.splitlines()]
    return [f"  '{command.PACK}' {line.group(1)}" for line in lines if line]

  def rewrite(self, path, data):
    """Writes a file of the source later than out's manifest, as far as clocks of files can tell."""
    published = (self.folder / "out/manifest.json").stat().st_mtime_ns
    while True:
      path.write_bytes(data)
      if path.stat().st_mtime_ns > published:
        return

  def typed(self, text, **replaced):
    """Runs the commands that `text` tells the user to type, word for word but for a COPY or FILE that it leaves open."""
    done = None
    for line in self.commands(text):
      for word, value in replaced.items():
        line = re.sub(rf"\b{word}\b", value, line)
      done = subprocess.run(["sh", "-c", line], cwd=self.folder, capture_output=True, check=False)
      if done.returncode != 0:
        break
    self.assertIsNotNone(done, text)
    return done
