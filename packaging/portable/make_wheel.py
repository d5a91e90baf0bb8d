"""Writes the wheel: the Python package, libshardpack.so.0 and pack, with the libraries that they need.

  make_wheel.py --python FILE... --library libshardpack.so.0 --pack PACK --license LICENSE --static PACKAGE... --out WHEEL

  shardpack/*.py   shardpack/bin/pack   shardpack/lib/...
  shardpack-0.1.0.data/scripts/{pack,shardpack}   shardpack-0.1.0.dist-info/...

Each FILE is taken from the part of its path after the last folder `shardpack`; name, version and tag are those of WHEEL.
Source: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

import argparse
import base64
import hashlib
import pathlib
import shutil
import tempfile

import archives
import graft
import licences

METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: Packs small image files into LMDB, HDF5, TFRecord or WebDataset shards, verifies them, and streams them to the GPU
License: Apache-2.0; those of the libraries inside are in the folder licenses
{licenses}
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

"""

WHEEL = """\
Wheel-Version: 1.0
Generator: shardpack
Root-Is-Purelib: false
Tag: {tag}
"""

# In place of an entry point: a line #!/the/environment/bin/python ends at the first blank, and to start Python takes longer than
# pack does. Where the files of a wheel are from here is one of these two: environments, prefixes and systems have a folder lib (or
# lib64) for each Python, pip's option --target puts all into one. The folder with the facts says that it is this version.
SCRIPT = """\
#!/bin/sh
case $0 in
  */*) script=$0 ;;
  *) script=./$0 ;;
esac
[ ! -L "$script" ] || script=$(readlink -f -- "$script")
for folder in "${{script%/*}}"/../lib*/*/*-packages "${{script%/*}}"/..; do
  program=$folder/shardpack/bin/pack
  if [ -d "$folder/{facts}" ] && [ -x "$program" ]; then
    exec "$program" "$@"
  fi
done
printf 'pack: the Python package shardpack, which brings it, is not installed beside %s\\n' "$script" >&2
exit 127
"""
# Two, as there is another tool called pack.
COMMANDS = ("pack", "shardpack")


def inside(path):
  """python/shardpack/_c.py -> _c.py"""
  folders = path.split("/")
  return "/".join(folders[len(folders) - folders[::-1].index("shardpack"):])


def record(files, name):
  """The file that lists all others, and itself without a hash."""
  rows = []
  for place, path in files:
    data = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    rows.append(f"{place},sha256={digest},{len(data)}\n")
  return "".join(rows) + f"{name},,\n"


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--python", nargs="+", required=True)
  parser.add_argument("--library", required=True)
  parser.add_argument("--pack", required=True)
  parser.add_argument("--license", required=True)
  parser.add_argument("--readme", required=True)
  parser.add_argument("--static", nargs="*", default=[], help="packages that are linked into library and pack")
  parser.add_argument("--notices", nargs="*", default=[], metavar="FILE", help="further ones beside the licenses")
  parser.add_argument("--instead", nargs="*", default=[], metavar="LIBRARY", help="to be taken in place of the installed one")
  parser.add_argument("--out", required=True)
  options = parser.parse_args()
  name, version, tag = pathlib.Path(options.out).name.removesuffix(".whl").split("-", 2)
  instead = {pathlib.Path(path).name: path for path in options.instead}
  with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    package, facts = root / "shardpack", root / f"{name}-{version}.dist-info"
    libraries = graft.graft({"bin/pack": options.pack, "lib/libshardpack.so.0": options.library}, package,
                            instead)
    for path in options.python:
      place = package / inside(path)
      place.parent.mkdir(parents=True, exist_ok=True)
      shutil.copyfile(path, place)
    licences.collect([path for name, path in libraries.items() if name not in instead], options.static, facts / "licenses")
    for notice in (options.license, *options.notices):
      shutil.copyfile(notice, facts / "licenses" / pathlib.Path(notice).name)
    readme = pathlib.Path(options.readme).read_text(encoding="utf-8")
    held = sorted(path.relative_to(facts / "licenses") for path in (facts / "licenses").rglob("*") if path.is_file())
    metadata = METADATA.format(name=name, version=version, licenses="\n".join(f"License-File: {path}" for path in held))
    (facts / "METADATA").write_text(metadata + readme, encoding="utf-8")
    (facts / "WHEEL").write_text(WHEEL.format(tag=tag), encoding="utf-8")
    scripts = root / f"{name}-{version}.data" / "scripts"
    scripts.mkdir(parents=True)
    for command in COMMANDS:
      (scripts / command).write_text(SCRIPT.format(facts=facts.name), encoding="utf-8")
      (scripts / command).chmod(0o755)
    files = archives.files_of(root)
    (facts / "RECORD").write_text(record(files, f"{facts.name}/RECORD"), encoding="utf-8")
    # As the specification recommends, the facts come last.
    files = [file for file in archives.files_of(root) if file[1].parent != facts] + [
        file for file in archives.files_of(root) if file[1].parent == facts]
    archives.write_zip(files, options.out)


if __name__ == "__main__":
  main()
