"""Makes the Debian packages of what Bazel has built:

    ./bazelw run --config=deb //packaging:debs -- OUT

A program, and no rule of Bazel: dpkg-buildpackage asks the machine's dpkg which packages own the libraries that ours link.
--config=deb installs Debian's tools.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, "packaging/tree")
import tree  # noqa: E402  pylint: disable=wrong-import-position

SUFFIXES = (".deb", ".changes", ".buildinfo")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("out", help="the folder for the packages; files of their names are replaced")
  given = parser.parse_args()
  # `bazel run` changes to a folder of its own.
  out = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), given.out)
  out.mkdir(parents=True, exist_ok=True)
  version = tree.version_of("api/shardpack.h")

  with tempfile.TemporaryDirectory() as work:
    source = pathlib.Path(work) / f"shardpack-{version}"
    # Runfiles are links; Debian's tools want files.
    shutil.copytree("packaging/debs/debian", source / "debian")
    shutil.copytree("python/shardpack", source / "python/shardpack", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy("packaging/tree/install.py", source)
    shutil.copy("packaging/tree/tree_with_symbols.tar", source / "tree.tar")
    changelog = source / "debian/changelog.in"
    (source / "debian/changelog").write_text(changelog.read_text().replace("@VERSION@", version))
    changelog.unlink()
    # The installer, which debian/rules calls, is not to think that `bazel run` has called it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BUILD_")}
    done = subprocess.run(["dpkg-buildpackage", "-b", "-us", "-uc"], cwd=source, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode:
      sys.exit(f"{done.stdout}\ndebs: dpkg-buildpackage failed; run this with --config=deb, which installs Debian's tools")
    for path in sorted(pathlib.Path(work).iterdir()):
      if path.suffix in SUFFIXES:
        shutil.copy(path, out)
        print(out / path.name)


if __name__ == "__main__":
  main()
