"""The libraries that `pack` loads at its start are those of pack_needed.txt: one more costs every start, and every package."""

import pathlib
import re
import sys
import unittest

import graft

FOLDER = pathlib.Path("packaging/portable")


class NeededTest(unittest.TestCase):

  def test_pack(self):
    wanted = (FOLDER / "pack_needed.txt").read_text(encoding="utf-8").split()
    needed = set(graft.needed("cli/pack"))
    libraries = graft.collect(["cli/pack"])
    for path in libraries.values():
      needed.update(graft.needed(path))
    # The number of a library's interface changes with the distribution.
    self.assertEqual(wanted, sorted({re.sub(r"\.so\..*", "", name) for name in needed}))


if __name__ == "__main__":
  if any(re.match(r"lib[at]san|libubsan", name) for name in graft.needed("cli/pack")):
    sys.exit(0)  # a sanitizer's runtime is not a library of pack
  unittest.main()
