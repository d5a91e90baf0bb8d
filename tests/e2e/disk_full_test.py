"""A build that meets a full disk ends with exit code 6, publishes nothing, and goes on to the same bytes later.

Small tmpfs file systems where the test may mount them; a limit on the size of files (RLIMIT_FSIZE) in any case.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time

import pack_runs
from pack_runs import DONE_WITH_SKIPS, PACK

NO_SPACE = 6


class SmallDisk:
  """A tmpfs; a context manager that answers None where mounting is not permitted."""

  def __init__(self, path, options):
    self.path, self.options = path, options

  def __enter__(self):
    self.path.mkdir()
    self.mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", self.options, "tmpfs", str(self.path)],
                                  stderr=subprocess.DEVNULL, check=False).returncode == 0
    return self if self.mounted else None

  def remount(self, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(self.path)], check=True)

  def __exit__(self, *_):
    if self.mounted:
      subprocess.run(["umount", "-l", str(self.path)], check=True)


class DiskFullTest(pack_runs.PackTest):

  def command(self, fmt, out, samples=40):
    return [PACK, self.source, "-o", out, *pack_runs.FORMATS[fmt], "--samples-per-shard", str(samples), "-q", "-j", "2"]

  def uninterrupted(self, fmt, name, samples=40):
    out = self.scratch / f"{fmt}-{name}"
    pack_runs.run(self.command(fmt, out, samples), expect=DONE_WITH_SKIPS)
    return pack_runs.contents(out)

  def fails_without_space(self, command, out, **options):
    output = pack_runs.run(command, expect=NO_SPACE, **options)
    self.assertNotIn("manifest.json", pack_runs.contents(out))
    return output

  def test_file_size_limit(self):
    for fmt in pack_runs.FORMATS:
      with self.subTest(format=fmt):
        # Shards larger than the plan's file, so that the limit meets them and not the plan.
        want = self.uninterrupted(fmt, "limit-reference", samples=400)
        out = self.scratch / f"{fmt}-limit"
        command = self.command(fmt, out, samples=400)
        manifest = json.loads((self.scratch / f"{fmt}-limit-reference" / "manifest.json").read_text())
        sizes = sorted(shard["bytes"] for shard in manifest["shards"])
        # Most shards fit, the largest do not.
        limit = sizes[-3]
        self.fails_without_space(
            command, out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertGreater(pack_runs.journal_lines(out), 0, "it was to fail in the middle")
        pack_runs.run(command, expect=DONE_WITH_SKIPS)
        self.assert_same(want, out)

  def test_too_small_from_the_start(self):
    want = self.uninterrupted("webdataset", "start-reference")
    with SmallDisk(self.scratch / "small", "size=2m") as disk:
      if disk is None:
        self.skipTest("mounting is not permitted")
      out = disk.path / "out"
      command = self.command("webdataset", out)
      self.assertIn("space", self.fails_without_space(command, out))
      disk.remount("size=200m")
      pack_runs.run(command, expect=DONE_WITH_SKIPS)
      self.assert_same(want, out)

  def test_no_room_for_another_file(self):
    """tmpfs counts its files as well: the space looks ample, and the run fails in the middle each time."""
    for fmt in pack_runs.FORMATS:
      with self.subTest(format=fmt):
        want = self.uninterrupted(fmt, "files-reference")
        with SmallDisk(self.scratch / f"files-{fmt}", "size=200m,nr_inodes=60") as disk:
          if disk is None:
            self.skipTest("mounting is not permitted")
          out = disk.path / "out"
          command = self.command(fmt, out)
          self.fails_without_space(command, out)
          self.assertGreater(pack_runs.journal_lines(out), 0, "it was to fail in the middle")
          disk.remount("nr_inodes=0")
          pack_runs.run(command, expect=DONE_WITH_SKIPS)
          self.assert_same(want, out)

  def test_filled_in_the_middle(self):
    """Somebody else takes all the space while the build runs."""
    for fmt in pack_runs.FORMATS:
      with self.subTest(format=fmt):
        want = self.uninterrupted(fmt, "filled-reference")
        with SmallDisk(self.scratch / f"filled-{fmt}", "size=100m") as disk:
          if disk is None:
            self.skipTest("mounting is not permitted")
          out, filler = disk.path / "out", disk.path / "filler"
          command = [*self.command(fmt, out), "--io-depth", "1"]
          for _ in range(20):
            process = pack_runs.start(command)
            while process.poll() is None and pack_runs.journal_lines(out) < 3:
              time.sleep(0.0005)
            self.fill(filler)
            output, _ = process.communicate()
            filler.unlink()
            if process.returncode != DONE_WITH_SKIPS:
              break
            shutil.rmtree(out)  # it was faster than the filler
          self.assertEqual(NO_SPACE, process.returncode, output)
          self.assertNotIn("manifest.json", pack_runs.contents(out))
          pack_runs.run(command, expect=DONE_WITH_SKIPS)
          self.assert_same(want, out)

  @staticmethod
  def fill(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
      free = os.fstatvfs(fd)
      # fallocate is one call, so the build gets no time to go on beside it; then what is left, page by page.
      os.posix_fallocate(fd, 0, max(free.f_bavail * free.f_frsize - (1 << 20), 1))
      os.lseek(fd, 0, os.SEEK_END)
      while True:
        os.write(fd, bytes(4096))
    except OSError:
      pass
    finally:
      os.close(fd)


def in_own_mount_namespace():
  """Starts over where mounts are this process's own, so that they vanish with it however it ends."""
  flag = "SHARDPACK_OWN_MOUNTS"
  unshare = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
  if flag in os.environ or not shutil.which("unshare"):
    return
  os.environ[flag] = "1"
  if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


if __name__ == "__main__":
  in_own_mount_namespace()
  pack_runs.main()
