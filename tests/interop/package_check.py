"""The Python package in frameworks and their own tests, in place of other loaders, and in a notebook: what takes minutes, for
.ci/release. The last line is `N passed, N failed`.

usage: package_check.py PACK MODULE WHEEL       MODULE: the folder in which the package is
"""

import pathlib
import sys

import environments
import frameworks_check
import interop_check
import migrating_check
import notebook_check
import suites_check

ENVIRONMENTS = ("augmenters", "dali-images", "datasets", "frameworks", "litdata", "notebook", "readers", "streaming", "suites", "tables", "tensorflow", "torch",
                "transformers")


def main():
  program, module, wheel = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
  pythons = {name: environments.python_of(name) for name in ENVIRONMENTS}
  results = interop_check.Results()
  suites_check.check(program, module, pythons, results)
  frameworks_check.check(program, module, pythons, results)
  migrating_check.check(program, module, pythons, results)
  notebook_check.check(wheel, pythons, results)
  results.print_table()
  print(f"{results.passed} passed, {results.failed} failed")
  return 1 if results.failed else 0


if __name__ == "__main__":
  sys.exit(main())
