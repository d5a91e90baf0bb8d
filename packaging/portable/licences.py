"""The licences of the libraries inside an archive, from the Debian packages that they come from.

  licences.collect(paths_of_libraries, ["libarchive-dev"], into)   ->  into/libtiff6, ..., into/common-licenses/GPL-2
"""

import pathlib
import re
import shutil

import graft

COMMON = pathlib.Path("/usr/share/common-licenses")


def package_of(library):
  # The part before the colon; a library may be listed with and without /usr.
  owners = graft.run("dpkg-query", "--search", f"*/{library.name}")
  for line in owners.splitlines():
    packages, _, path = line.partition(": ")
    if pathlib.Path(path).resolve() == library:
      return packages.split(",")[0].split(":")[0]
  raise SystemExit(f"no package has {library}: its licence is not known")


def collect(libraries, packages, into):
  """Writes the copyright file of each package, and the common licences that they name."""
  into = pathlib.Path(into)
  into.mkdir(parents=True, exist_ok=True)
  common = set()
  for package in sorted({*packages, *map(package_of, libraries)}):
    text = pathlib.Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8", errors="replace")
    (into / package).write_text(text, encoding="utf-8")
    common.update(name.rstrip(".") for name in re.findall(r"/usr/share/common-licenses/([\w.+-]+)", text))
  for name in sorted(common):
    if (COMMON / name).exists():
      (into / "common-licenses").mkdir(exist_ok=True)
      shutil.copyfile(COMMON / name, into / "common-licenses" / name)
