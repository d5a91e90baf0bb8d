"""Writes what is installed as one tar, whose names are relative to the prefix. Equal files give equal bytes.

usage: tree.py --header SHARDPACK_H OUT.tar FILE=NAME...

FILE is copied to NAME, and is executable if its name begins with bin/. The version is the header's; @VERSION@, @MAJOR@ and
@MINOR@ in texts that end in .in are replaced, and a library lib/libX.so becomes libX.so.VERSION with its two links.
"""

import argparse
import io
import os
import pathlib
import re
import tarfile


def version_of(header):
  with open(header, encoding="utf-8") as file:
    return re.search(r'^#define SHARDPACK_VERSION "(\d+\.\d+\.\d+)"$', file.read(), re.MULTILINE).group(1)


def entries(files, version):
  """Name -> bytes, or the name that it links to."""
  major, minor, _ = version.split(".")
  found = {}
  for given in files:
    source, name = given.rsplit("=", 1)
    with open(source, "rb") as file:
      content = file.read()
    if source.endswith(".in"):
      text = content.decode()
      for word, value in (("@VERSION@", version), ("@MAJOR@", major), ("@MINOR@", minor)):
        text = text.replace(word, value)
      content = text.encode()
    if name.endswith(".so"):
      # The soname says 0 until interfaces are promised to stay, whatever the version.
      found[name] = os.path.basename(name) + ".0"
      found[name + ".0"] = os.path.basename(name) + "." + version
      name += "." + version
    if name in found:
      raise SystemExit(f"{name} is named twice")
    found[name] = content
  return found


def write(out, found):
  folders = {str(folder): None for name in found for folder in pathlib.PurePosixPath(name).parents if folder.name}
  # The oldest form that holds these names, so that every tar reads it; nothing of this machine is in it.
  with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as tar:
    for name, content in sorted({**found, **folders}.items()):
      entry = tarfile.TarInfo(name)
      if content is None:
        # Without an entry, a strict umask of root closes the folder to all other users.
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
      elif isinstance(content, str):
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, content, 0o777
        tar.addfile(entry)
      else:
        entry.size, entry.mode = len(content), 0o755 if name.startswith("bin/") else 0o644
        tar.addfile(entry, io.BytesIO(content))


def main():
  parser = argparse.ArgumentParser(usage=__doc__)
  parser.add_argument("--header", required=True)
  parser.add_argument("out")
  parser.add_argument("files", nargs="+")
  given = parser.parse_args()
  write(given.out, entries(given.files, version_of(given.header)))


if __name__ == "__main__":
  main()
