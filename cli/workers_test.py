"""Workers that share an OUT, and what pack commit makes of their parts: nobody's finished shards are ever lost."""

import command


class ShardsRangeTest(command.PackTest):

  def setUp(self):
    super().setUp()
    self.source(count=24)

  def test_a_range_past_the_end_touches_nothing(self):
    # The number of shards once decided what happened to be behind the end of the table of names.
    for shards in (1, 2, 8, 12, 24):
      plan, out = f"plan-{shards}", f"out-{shards}"
      self.pack("plan", "src", "--shards", str(shards), "--write", plan)
      self.pack("build", "--plan", plan, "-o", out, "--shards-range", f"0-{shards - 1}")
      before = self.contents(out)
      for part in (f"{shards}", f"0-{shards}", f"{shards - 1}-{shards + 5}", f"{shards}-{shards + 1}",
                   "0-18446744073709551615", "0-4294967295", "4294967295-99999999999999999999999"):
        refused = self.pack("build", "--plan", plan, "-o", out, "--shards-range", part, expect=2)
        self.assertIn(f"the plan has shards 0-{shards - 1}", refused.stderr)
        self.assertNotIn("run again", refused.stderr)
        self.assertEqual(before, self.contents(out), part)
      self.pack("build", "--plan", plan, "-o", "new", "--shards-range", f"{shards}-{shards}", expect=2)
      self.assertFalse((self.folder / "new").exists())
      self.pack("commit", out)

  def test_spellings_that_are_not_a_range(self):
    self.pack("plan", "src", "--shards", "8", "--write", "plan")
    for part in ("0,2", "4-6,7", "0-3,5-6", "1;2", "1 2"):
      self.assertIn("one range", self.pack("build", "--plan", "plan", "-o", "out", "--shards-range", part, expect=2).stderr)
    for part in ("5-2", "-1", "1-", "-", "1..3", "1:3", "0x1-0x3", "+1-2", "1_0-2_0", "a-b", "1-2-3", ""):
      self.pack("build", "--plan", "plan", "-o", "out", f"--shards-range={part}", expect=2)
    self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
  command.main()
