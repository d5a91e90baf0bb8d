"""The same bytes in every file of OUT, whatever the number of threads, reads in flight and workers."""

import itertools

import pack_runs
from pack_runs import DONE_WITH_SKIPS, PACK

VARIANTS = (
    ["-j", "1"],
    ["-j", "2"],
    ["-j", "16"],
    ["-j", "1", "--io-depth", "1"],
    ["-j", "3", "--io-depth", "64"],
    ["-j", "2", "--memory", "1MiB"],
)
LAYOUTS = {
    # Fewer shards than threads, more shards than threads, several splits.
    "few": ["--shards", "2"],
    "many": ["--samples-per-shard", "40", "--sha256"],
    "splits": ["--samples-per-shard", "100", "--split", "train=0.8,val=0.1,test=0.1", "--seed", "5", "--key", "index"],
}


class DeterminismTest(pack_runs.PackTest):

  def build(self, name, *flags):
    out = self.scratch / name
    pack_runs.run([PACK, self.source, "-o", out, "-q", "--no-fsync", *flags], expect=DONE_WITH_SKIPS)
    return out

  def test_threads(self):
    for fmt, (name, flags) in itertools.product(pack_runs.FORMATS, LAYOUTS.items()):
      want = None
      for number, variant in enumerate(VARIANTS):
        with self.subTest(format=fmt, layout=name, variant=" ".join(variant)):
          out = self.build(f"{fmt}-{name}-{number}", *pack_runs.FORMATS[fmt], *flags, *variant)
          if want is None:
            want = pack_runs.contents(out)
            self.assertIn("manifest.json", want)
            self.assertIn("skipped.jsonl", want)
          self.assert_same(want, out)

  def test_durable(self):
    """Waiting for the disk changes no byte."""
    want = pack_runs.contents(self.build("not-durable", *LAYOUTS["few"]))
    out = self.scratch / "durable"
    pack_runs.run([PACK, self.source, "-o", out, "-q", *LAYOUTS["few"]], expect=DONE_WITH_SKIPS)
    self.assert_same(want, out)

  def test_workers(self):
    """Three processes side by side, each with a part of the plan, then a commit."""
    for fmt in pack_runs.FORMATS:
      with self.subTest(format=fmt):
        flags = [*pack_runs.FORMATS[fmt], "--samples-per-shard", "40"]
        want = pack_runs.contents(self.build(f"{fmt}-alone", *flags))
        shards = sum(1 for name in want if name.endswith(".pidx"))
        plan, out = self.scratch / f"{fmt}.plan", self.scratch / f"{fmt}-workers"
        pack_runs.run([PACK, "plan", self.source, *flags, "--write", plan, "-q"], expect=0)
        ends = [shards * part // 3 for part in range(4)]
        workers = [
            pack_runs.start([PACK, "build", "--plan", plan, "-o", out, "-q", "--no-fsync",
                             "--shards-range", f"{begin}-{end - 1}"]) for begin, end in zip(ends, ends[1:])
        ]
        for worker in workers:
          output, _ = worker.communicate()
          # A worker may or may not have met a bad input in its part.
          self.assertIn(worker.returncode, (0, DONE_WITH_SKIPS), output)
        self.assertNotIn("manifest.json", pack_runs.contents(out))
        pack_runs.run([PACK, "commit", out, "-q", "--no-fsync"], expect=DONE_WITH_SKIPS)
        self.assert_same(want, out)

  def test_a_change_shows(self):
    """The comparison itself: another seed, and one byte of one source, must not pass for the same."""
    want = pack_runs.contents(self.build("seed-0", *LAYOUTS["few"]))
    other = self.build("seed-1", *LAYOUTS["few"], "--seed", "1")
    self.assertNotEqual(want, pack_runs.contents(other))


if __name__ == "__main__":
  pack_runs.main()
