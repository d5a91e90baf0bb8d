"""What network file systems do to workers that share a folder: handles grow stale, listings show files late, and a file that cannot
be created, since it is there, cannot be opened yet. A worker or a commit may ask to be run again (6), or to build again what
it does not see (7); it loses nothing, and mixes nothing up.
"""

import errno
import os
import shutil

import cluster
from cluster import ELSEWHERE, SHIM


# Of so many calls one fails in a run, so that all have their turn in a few runs.
STEP = int(os.environ.get("SHARDPACK_STEP", "5"))


class NetworkTest(cluster.ClusterTest):
  shards, samples = 3, 2

  def shim(self, root=None, **settings):
    return {"LD_PRELOAD": SHIM, "SHARDPACK_FAULT_ROOT": str(root or self.out),
            **{f"SHARDPACK_FAULT_{name}": str(value) for name, value in settings.items()}}

  def keep(self):
    """The folder as it is, for calls that change it."""
    shutil.copytree(self.out, self.folder / "kept", dirs_exist_ok=True)

  def put_back(self):
    self.clear()
    shutil.copytree(self.folder / "kept", self.out)

  def calls(self, *words):
    """How many calls an undisturbed run makes."""
    log = self.folder / "calls"
    log.unlink(missing_ok=True)
    self.pack(*words, env=self.shim(LOG=log))
    return [line.split(" ", 2)[1:] for line in log.read_text().splitlines()]

  def each_stale(self, words, prepare, heal):
    """Calls in turn answer ESTALE, once."""
    prepare()
    calls = self.calls(*words)
    ends = {}
    for number in range(1 + os.getpid() % STEP, len(calls) + 1, STEP):
      prepare()
      done = self.pack(*words, env=self.shim(AT=number, DO=errno.ESTALE), expect=None)
      ends[done.returncode] = ends.get(done.returncode, 0) + 1
      with self.subTest(call=number, what=calls[number - 1]):
        self.assertIn(done.returncode, (0, 6), done.stderr)
        heal()
        self.assert_whole()
    print(f"{words[0]}: every {STEP}th of {len(calls)} calls, ended with {ends}", flush=True)
    self.assertGreater(ends[6], 10)

  def test_a_worker_with_a_handle_that_grows_stale(self):
    def heal():
      self.work("--join", "-j", "1")
      self.commit()
    self.each_stale(self.words("--join", "-j", "1", "--io-depth", "1"), self.clear, heal)

  def test_a_commit_with_a_handle_that_grows_stale(self):
    self.work("--join")
    self.keep()
    self.each_stale(["commit", "out", "-q"], self.put_back, self.commit)

  def test_a_test_of_the_file_system_that_tells_nothing(self):
    """An error that says nothing of links must not end a worker for good."""
    for error in (errno.ESTALE, errno.ETIMEDOUT, errno.ENOSPC):
      for number in (1, 2):
        with self.subTest(error=errno.errorcode[error], link=number):
          self.work("--join", expect=6, env=self.shim(ONLY="link", AT=number, DO=error))
    self.work("--join")
    self.commit()
    self.assert_whole()

  def test_listings_that_show_the_others_late(self):
    self.work("--shards", "0-1")
    self.keep()
    for hidden in ("journal-", ".1", "train-", "plan", "made", "0000"):
      self.put_back()
      with self.subTest(hidden=hidden):
        self.work("--join", env=self.shim(HIDES=hidden))
        self.pack("status", "out", "-q")
        self.commit()
        self.assert_whole()

  def test_a_commit_that_does_not_see_all_journals_in_a_listing(self):
    for words in (("--shards", "0"), ("--shards", "1-2")):
      self.work(*words)
    self.pack("status", "out", "-q", env=self.shim(HIDES="journal-"))
    self.pack("commit", "out", "-q", env=self.shim(HIDES="journal-"))
    self.commit()  # removes what that one has not seen
    self.assert_whole()

  def test_a_lease_that_is_stale_for_a_worker_of_named_shards(self):
    self.work("--shards", "0")
    self.keep()
    lease = self.out / ".pack/lease/000/000000.1"
    for number in (1, 2, 3):
      self.put_back()
      with self.subTest(look=number):
        self.work("--shards", "0-1", env=self.shim(lease, ONLY="open", AT=number, DO=errno.ESTALE))
        self.work("--join")
        self.commit()
        self.assert_whole()

  def test_leases_that_cannot_be_listed_are_not_free(self):
    self.work("--shards", "0")
    folder = self.out / ".pack/lease/000"
    (folder / "000001.1").write_text(ELSEWHERE)
    self.pack("status", "out", "--json", expect=7)
    for call in ("open", "readdir"):
      for error in (errno.EMFILE, errno.ESTALE, errno.EIO):
        with self.subTest(call=call, error=errno.errorcode[error]):
          self.pack("status", "out", "--json", env=self.shim(folder, ONLY=call, AT=1, DO=error), expect=6)

  def test_a_lease_that_is_there_and_cannot_be_opened_yet(self):
    self.work("--shards", "0")
    self.keep()
    for error in (errno.ENOENT, errno.ESTALE):
      self.put_back()
      lease = self.out / ".pack/lease/000/000001.1"
      lease.write_text(ELSEWHERE)
      with self.subTest(error=errno.errorcode[error]):
        self.work("--join", "--stale-after", "0.5s", env=self.shim(lease, ONLY="open", AT=1, DO=error))
        self.assertEqual(2, len(self.leases()[1]), "its worker was watched before it was replaced")
        self.commit()
        self.assert_whole()


if __name__ == "__main__":
  cluster.main()
