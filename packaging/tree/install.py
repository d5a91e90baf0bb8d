"""Installs Shardpack below a folder, which can be moved afterwards: nothing in it names where it is.

    ./bazelw run //:install -- --prefix PREFIX

PREFIX/share/doc/shardpack/SHA256SUMS lists what was installed (`sha256sum -c` checks it). An installation replaces, and
--uninstall removes, only files of that list that are as they were installed; any other file that is in the way is named,
and nothing is changed.
"""

import argparse
import errno
import hashlib
import os
import posixpath
import sys
import tarfile

SUMS = "share/doc/shardpack/SHA256SUMS"
BESIDE = b".shardpack-%d" % os.getpid()  # of a name, until all are written


class Refused(Exception):
  pass


def shown(path):
  """A path as a terminal can show it."""
  return os.fsdecode(path).encode("utf-8", "backslashreplace").decode()


def read_tree(tar_path, libdir):
  """Name -> (mode, content) of what is to be installed; a link's mode is None and its content what it points to."""
  # Below lib, texts name the prefix by going up from where they are.
  up, deeper = "/../..", "/.." * (len(libdir.split("/")) + 1)
  tree = {}
  with tarfile.open(tar_path) as tar:
    for entry in tar:
      if entry.isdir():
        continue
      name = entry.name
      content = os.fsencode(entry.linkname) if entry.issym() else tar.extractfile(entry).read()
      if name.startswith("lib/"):
        if name.endswith(".pc"):
          content = content.replace(b"prefix=${pcfiledir}" + up.encode(), b"prefix=${pcfiledir}" + deeper.encode())
        if name.endswith(".cmake"):
          content = content.replace(b"_DIR}" + up.encode() + b'/.."', b"_DIR}" + deeper.encode() + b'/.."')
        name = libdir + name[len("lib"):]
      tree[name] = (None if entry.issym() else entry.mode, content)
  return tree


def digest(name, tree):
  """Of the file, or of the one that a link leads to."""
  while tree[name][0] is None:
    name = posixpath.join(posixpath.dirname(name), os.fsdecode(tree[name][1]))
  return hashlib.sha256(tree[name][1]).hexdigest()


def with_sums(tree):
  """The tree and its list."""
  lines = "".join(f"{digest(name, tree)}  {name}\n" for name in sorted(tree))
  return {**tree, SUMS: (0o644, lines.encode())}


def read_sums(prefix):
  """Name -> hash of what an earlier run has installed; empty if none has."""
  try:
    with open(os.path.join(prefix, os.fsencode(SUMS)), encoding="utf-8") as file:
      lines = [line.rstrip("\n").partition("  ") for line in file]
  except (FileNotFoundError, NotADirectoryError):
    return {}
  except (UnicodeDecodeError, IsADirectoryError):
    raise Refused(f"{shown(prefix)}/{SUMS} is not a list of installed files") from None
  for _, _, name in lines:
    # Only names below the prefix may ever be removed.
    if not name or name.startswith("/") or ".." in name.split("/"):
      raise Refused(f"{shown(prefix)}/{SUMS} is not a list of installed files: {name!r}")
  return {name: sum for sum, _, name in lines}


def hash_of_file(path):
  """None if there is no file."""
  try:
    with open(path, "rb") as file:
      return hashlib.sha256(file.read()).hexdigest()
  except (FileNotFoundError, NotADirectoryError):
    return None
  except IsADirectoryError:
    return "a folder"


def in_the_way(prefix, tree, before):
  """The names of files that neither an installation has made nor are what would be installed."""
  found = []
  for name in sorted(tree):
    path = os.path.join(prefix, os.fsencode(name))
    if not os.path.lexists(path):
      continue
    have = hash_of_file(path)
    if have != digest(name, tree) and (have is None or have != before.get(name)) and not (name == SUMS and before):
      found.append(name)
  return found


def write_beside(prefix, tree, made):
  """Writes every file under a name of its own, and appends (what was made, its final place) to `made`."""
  for name, (mode, content) in sorted(tree.items()):
    path = os.path.join(prefix, os.fsencode(name))
    folder, missing = os.path.dirname(path), []
    while not os.path.isdir(folder):
      missing.append(folder)
      folder = os.path.dirname(folder)
    for folder in reversed(missing):
      os.mkdir(folder)
      made.append((folder, None))
      # The files are for all users, so the folders are too, whatever root's umask is. Those above the prefix follow the umask.
      if folder.startswith(prefix):
        os.chmod(folder, 0o755)
    new = path + BESIDE
    if mode is None:
      os.symlink(content, new)
      made.append((new, path))
      continue
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    made.append((new, path))
    with open(descriptor, "wb") as file:
      file.write(content)
      os.fchmod(descriptor, mode)


def remove(prefix, names, before):
  """Removes files of an earlier installation, and our folders that are then empty. Returns the names of changed files,
  which stay."""
  stay = []
  for name in sorted(names):
    path = os.path.join(prefix, os.fsencode(name))
    have = hash_of_file(path)
    # The file that a link led to may be gone by now.
    if have == before[name] or (have is None and os.path.islink(path)):
      os.unlink(path)
    elif have is not None:
      stay.append(name)
  ours = {folder for name in names for folder in (posixpath.dirname(name), posixpath.dirname(posixpath.dirname(name)))
          if "shardpack" in folder.split("/")}
  for folder in sorted(ours, key=len, reverse=True):
    try:
      os.rmdir(os.path.join(prefix, os.fsencode(folder)))
    except OSError:  # others' files are there, or it is gone
      pass
  return stay


def install(prefix, tree):
  """Returns the names of changed files of an earlier installation, which stay."""
  tree, before = with_sums(tree), read_sums(prefix)
  blocked = in_the_way(prefix, tree, before)
  if blocked:
    raise Refused("these files are in the way, and no installation of Shardpack has made them; nothing was changed:\n" +
                  "".join(f"  {shown(prefix)}/{name}\n" for name in blocked).rstrip("\n"))
  made = []
  try:
    write_beside(prefix, tree, made)
  except BaseException as error:
    for path, place in reversed(made):
      os.rmdir(path) if place is None else os.unlink(path)
    if isinstance(error, OSError):
      hint = {errno.EROFS: "; give another --prefix", errno.EACCES: "; give another --prefix, or run this as root"}
      place = os.fsencode(error.filename or prefix).removesuffix(BESIDE)
      raise Refused(f"{shown(place)}: {error.strerror}{hint.get(error.errno, '')}; nothing was installed") from error
    raise
  # The list last: a run that ends before is repeated, and finds its own files.
  for path, place in sorted((pair for pair in made if pair[1]), key=lambda pair: pair[1].endswith(os.fsencode(SUMS))):
    os.rename(path, place)
  return remove(prefix, before.keys() - tree.keys(), before)


def uninstall(prefix):
  before = read_sums(prefix)
  if not before:
    raise Refused(f"nothing of Shardpack is installed in {shown(prefix)}: it has no {SUMS}")
  sums = os.path.join(prefix, os.fsencode(SUMS))
  return remove(prefix, [*before, SUMS], {**before, SUMS: hash_of_file(sums)})


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--tree", required=True, help=argparse.SUPPRESS)
  parser.add_argument("--prefix", required=True, help="where to: bin, lib, include and share are made there")
  parser.add_argument("--libdir", default="lib", help="in place of lib, such as lib64")
  parser.add_argument("--uninstall", action="store_true", help="remove what was installed")
  given = parser.parse_args()
  # `bazel run` changes to a folder of its own.
  stood = os.environb.get(b"BUILD_WORKING_DIRECTORY", os.getcwdb())
  prefix = os.path.abspath(os.path.join(stood, os.fsencode(given.prefix)))
  libdir = given.libdir.strip("/")
  if not libdir or ".." in libdir.split("/"):
    parser.error("--libdir is a folder below the prefix, such as lib64")
  try:
    if given.uninstall:
      stay = uninstall(prefix)
      print(f"uninstalled from {shown(prefix)}")
    else:
      tree = read_tree(given.tree, libdir)
      stay = install(prefix, tree)
      size = sum(len(content) for _, content in tree.values())
      print(f"installed {len(tree)} files, {size / 1e6:.1f} MB, in {shown(prefix)}")
    for name in stay:
      print(f"{shown(prefix)}/{name} was changed since it was installed, and stays")
  except Refused as refused:
    sys.exit(f"install: {refused}")
  except OSError as error:
    sys.exit(f"install: {shown(error.filename or prefix)}: {error.strerror}")


if __name__ == "__main__":
  main()
