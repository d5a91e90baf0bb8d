"""Writes the tarball of `pack` that runs on Linux systems other than the one that built it.

  make_tarball.py --pack PACK --license LICENSE --static PACKAGE... --out shardpack-0.1.0-linux-x86_64.tar.gz

  bin/pack   lib/...   share/man/man1/pack.1   share/{bash-completion,zsh,fish}/...   share/doc/shardpack/...
"""

import argparse
import pathlib
import shutil
import tempfile

import archives
import graft
import licences

# {place: what prints it}
PRINTED = {
    "share/man/man1/pack.1": ["man"],
    "share/bash-completion/completions/pack": ["completions", "bash"],
    "share/zsh/site-functions/_pack": ["completions", "zsh"],
    "share/fish/vendor_completions.d/pack.fish": ["completions", "fish"],
}


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--pack", required=True)
  parser.add_argument("--license", required=True)
  parser.add_argument("--static", nargs="*", default=[], help="packages that are linked into pack")
  parser.add_argument("--instead", nargs="*", default=[], metavar="LIBRARY", help="to be taken in place of the installed one")
  parser.add_argument("--out", required=True)
  options = parser.parse_args()
  instead = {pathlib.Path(path).name: path for path in options.instead}
  with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    libraries = graft.graft({"bin/pack": options.pack}, root, instead)
    for place, command in PRINTED.items():
      (root / place).parent.mkdir(parents=True, exist_ok=True)
      (root / place).write_text(graft.run(root / "bin/pack", *command), encoding="utf-8")
    licences.collect([path for name, path in libraries.items() if name not in instead], options.static, root / "share/doc/shardpack/licenses")
    shutil.copyfile(options.license, root / "share/doc/shardpack/LICENSE")
    archives.write_tar_gz(root, pathlib.Path(options.out).name.removesuffix(".tar.gz"), options.out)


if __name__ == "__main__":
  main()
