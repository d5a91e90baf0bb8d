"""Puts programs (bin/) and libraries (lib/) into a folder together with the libraries that they need.

  into/bin/pack                      finds ../lib by $ORIGIN
  into/lib/libshardpack.so.0
  into/lib/libtiff-6b1d0f2e.so.6     a copy of the system's, which finds its neighbours by $ORIGIN

What every Linux system has (SYSTEM) is not copied. A copied library bears the hash of its bytes in its name, so that a process
that has loaded another libtiff.so.6 does not take it for this one. The result depends on the given files and on the
libraries of this system alone.
"""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

# The C and C++ runtimes; archive_test.py says how old they may be.
SYSTEM = re.compile(r"(ld-linux-[\w-]+|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+")


def run(*command):
  return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True,
                        env={**os.environ, "LC_ALL": "C"}).stdout


def needed(path):
  """The names of the libraries that an ELF file asks for."""
  return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", run("readelf", "-dW", path))


@functools.cache
def installed_libraries():
  """{name: path} of the 64-bit libraries that the loader finds."""
  rows = re.findall(r"^\s+(\S+) \(libc6,(?:x86-64|AArch64)[^)]*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.MULTILINE)
  return dict(reversed(rows))  # of several, the loader takes the first


def find_library(name, wanted_by):
  path = installed_libraries().get(name)
  if path is None:
    raise SystemExit(f"{wanted_by} needs {name}, which is not installed")
  return pathlib.Path(path).resolve()


def hashed_name(name, path):
  stem, so, rest = name.partition(".so")
  return f"{stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}{so}{rest}"


def collect(files, instead=()):
  """{name: path} of all libraries that the files need, and these in turn, without the system's own.

  `instead`: {name: path} of libraries that are not to be the installed ones.
  """
  found = {}
  waiting = list(files)
  while waiting:
    user = waiting.pop()
    for name in needed(user):
      if name not in found and not SYSTEM.fullmatch(name):
        found[name] = pathlib.Path(instead[name]) if name in instead else find_library(name, user)
        waiting.append(found[name])
  return dict(sorted(found.items()))


def graft(files, into, instead=()):
  """Copies {place in `into`: path} and what they need. Returns {name: path} of the libraries that were copied."""
  libraries = collect(files.values(), instead)
  names = {name: hashed_name(name, path) for name, path in libraries.items()}
  places = {**{pathlib.PurePath(place): pathlib.Path(path) for place, path in files.items()},
            **{pathlib.PurePath("lib", names[name]): path for name, path in libraries.items()}}
  for place, path in places.items():
    program = place.parts[0] == "bin"
    copy = pathlib.Path(into, place)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    copy.chmod(0o755 if program else 0o644)
    # In this order: strip does not understand what patchelf has moved. One change a call: patchelf 0.14 loses the others.
    run("strip", "--strip-all" if program else "--strip-unneeded", copy)
    renamed = [word for name in needed(copy) if name in names for word in ("--replace-needed", name, names[name])]
    if renamed:
      run("patchelf", *renamed, copy)
    if place.name in names.values():
      run("patchelf", "--set-soname", place.name, copy)
    run("patchelf", "--set-rpath", "$ORIGIN/../lib" if program else "$ORIGIN", copy)
  return libraries
