"""What an ELF file asks of the system, for the tests."""

import re

import graft

# manylinux_2_34: RHEL 9, Ubuntu 22.04, Debian 12 and newer.
# https://github.com/pypa/auditwheel/blob/main/src/auditwheel/policy/manylinux-policy.json
NEWEST_ALLOWED = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}


def is_elf(path):
  with open(path, "rb") as file:
    return file.read(4) == b"\x7fELF"


def versions(path):
  """{"GLIBC": (2, 34), ...}: the newest that the file needs of each."""
  newest = {}
  needs = re.search(r"Version needs section.*", graft.run("readelf", "-VW", path), re.DOTALL)
  for kind, number in re.findall(r"Name: ([A-Z]+)_(\d[\d.]*)", needs[0] if needs else ""):
    version = tuple(map(int, number.split(".")))
    newest[kind] = max(version, newest.get(kind, version))
  return newest


def too_new(path):
  """What is newer than NEWEST_ALLOWED, in words."""
  return [f"{kind}_{'.'.join(map(str, version))}" for kind, version in sorted(versions(path).items())
          if version > NEWEST_ALLOWED.get(kind, version)]
