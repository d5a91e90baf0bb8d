"""Makes the Debian packages of what Bazel has built, or the source package, from which others build them without a network:

    ./bazelw run --config=deb //packaging:debs -- OUT
    ./bazelw run --config=deb //packaging:debs -- --source OUT

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

SUFFIXES = (".deb", ".dsc", ".xz", ".changes", ".buildinfo")


def copy_built(source):
  """What debian/rules packages. Runfiles are links; Debian's tools want files."""
  shutil.copytree("python/shardpack", source / "python/shardpack", ignore=shutil.ignore_patterns("__pycache__"))
  (source / "packaging/tree").mkdir(parents=True)
  shutil.copy("packaging/tree/install.py", source / "packaging/tree")
  shutil.copy("packaging/tree/tree_with_symbols.tar", source / "tree.tar")


def copy_checkout(source):
  """All files that git knows, as they are."""
  root = pathlib.Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
  listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], stdout=subprocess.PIPE, text=True, check=False)
  if listed.returncode:
    sys.exit(f"debs: {root} is not a git checkout, of which a source package is made")
  for name in listed.stdout.split("\0")[:-1]:
    (source / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(root / name, source / name)
  # There is no .git for cli/terminal/workspace_status.sh.
  status = subprocess.run([root / "cli/terminal/workspace_status.sh"], cwd=root, stdout=subprocess.PIPE, text=True, check=True)
  (source / "debian").mkdir()
  (source / "debian/status").write_text(status.stdout)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--source", action="store_true", help="make the source package")
  parser.add_argument("out", help="the folder for the packages; files of their names are replaced")
  given = parser.parse_args()
  # `bazel run` changes to a folder of its own.
  out = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), given.out)
  out.mkdir(parents=True, exist_ok=True)
  version = tree.version_of("api/shardpack.h")

  with tempfile.TemporaryDirectory() as work:
    source = pathlib.Path(work) / f"shardpack-{version}"
    (copy_checkout if given.source else copy_built)(source)
    shutil.copytree("packaging/debs/debian", source / "debian", dirs_exist_ok=True)
    changelog = source / "debian/changelog.in"
    (source / "debian/changelog").write_text(changelog.read_text().replace("@VERSION@", version))
    changelog.unlink()
    # Whatever the umask is, here and where the checkout was made: the source package keeps modes.
    for path in (source, *source.rglob("*")):
      path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    # The installer, which debian/rules calls, is not to think that `bazel run` has called it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BUILD_")}
    # Cleaning would remove the tree.
    kind = "--build=source" if given.source else "--build=binary"
    done = subprocess.run(["dpkg-buildpackage", kind, "--no-pre-clean", "-us", "-uc"], cwd=source, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
      sys.exit(f"{done.stdout}\ndebs: dpkg-buildpackage failed; run this with --config=deb, which installs Debian's tools")
    for path in sorted(pathlib.Path(work).iterdir()):
      if path.suffix in SUFFIXES:
        shutil.copy(path, out)
        print(out / path.name)


if __name__ == "__main__":
  main()
