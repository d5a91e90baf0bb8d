#!/usr/bin/env python3
"""Prints shardpack/_flags.py: the flags that jobs take as keywords, of the reference that `pack man --as markdown` prints.

usage: update_flags.py < docs/cli.md > python/shardpack/_flags.py
"""

import re
import sys

VERBS = ("build", "convert", "diff", "dups", "extract", "index", "repair", "report", "stats", "validate")
# What a job says for itself.
NOT_KEYWORDS = {"json", "progress", "quiet", "help", "version"}


def kind_of(name, value, meaning):
  if not value:
    return "negatable" if name.startswith("[no-]") else "switch"
  if value.startswith("["):
    return "optional"
  if "may be repeated" in meaning:
    return "repeated"
  return "size" if "WxH" in value else "value"


def flags_of(reference):
  """{verb: {flag: kind}}"""
  verbs = {}
  for section in re.split(r"^## pack ", reference, flags=re.MULTILINE)[1:]:
    flags = verbs.setdefault(section.partition("\n")[0], {})
    for spelling, meaning in re.findall(r"^\| `(.*?)` \| (.*) \|", section, flags=re.MULTILINE):
      name, _, value = spelling.rpartition("--")[2].partition(" ")
      kind = kind_of(name, value, meaning)
      name = name.replace("[no-]", "")
      if name not in NOT_KEYWORDS:
        flags[name] = kind
  return verbs


def main():
  verbs = flags_of(sys.stdin.read())
  print('"""The flags of `pack` that jobs take as keywords. Made by update_flags.py; do not edit."""\n')
  print("from __future__ import annotations\n")
  print("FLAGS: dict[str, dict[str, str]] = {")
  for verb in VERBS:
    print(f'    "{verb}": {{')
    for name, kind in verbs[verb].items():
      print(f'        "{name}": "{kind}",')
    print("    },")
  print("}")


if __name__ == "__main__":
  main()
