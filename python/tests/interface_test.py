"""The package against the C interface: its structs are the compiler's, a library that does not fit is told, importing costs little."""

import ctypes
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing
import unittest

import shardpack
from shardpack import _c

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
HEADER = pathlib.Path("api/shardpack.h").absolute()
PACKAGE = pathlib.Path(shardpack.__file__).parent
OWN_LIBRARY = PACKAGE / "lib" / "libshardpack.so.0"


def structs():
  return {name: of for name, of in vars(_c).items() if isinstance(of, type) and issubclass(of, ctypes.Structure) and of.__module__ == _c.__name__}


def compiled(name, source, *flags):
  path = WORK / name
  subprocess.run(["cc", "-x", "c", "-", "-o", path, *flags], input=source, text=True, check=True)
  return path


class InterfaceTest(unittest.TestCase):

  def test_the_generated_file_is_the_header_s(self):
    made = subprocess.run([sys.executable, "python/update_c.py", HEADER], check=True, stdout=subprocess.PIPE, text=True).stdout
    # Write it with python/update_c.py.
    self.assertEqual(made, pathlib.Path(_c.__file__).read_text())

  def test_structs_are_the_compiler_s(self):
    lines, expected = [], []
    for name, struct in structs().items():
      lines.append(f'printf("{name} %zu\\n", sizeof(shardpack_{name}));')
      expected.append(f"{name} {ctypes.sizeof(struct)}")
      for member, _ in struct._fields_:
        at = getattr(struct, member)
        lines.append(f'printf("{name}.{member} %zu %zu\\n", offsetof(shardpack_{name}, {member}), sizeof(((shardpack_{name}*)0)->{member}));')
        expected.append(f"{name}.{member} {at.offset} {at.size}")
    self.assertGreater(len(expected), 100)
    source = f'#include <stddef.h>\n#include <stdio.h>\n#include "{HEADER}"\nint main(void) {{\n' + "\n".join(lines) + "\nreturn 0;\n}\n"
    printed = subprocess.run([compiled("sizes", source)], check=True, stdout=subprocess.PIPE, text=True).stdout
    self.assertEqual(printed.splitlines(), expected)

  def test_constants_are_the_compiler_s(self):
    names = [name for name, value in vars(_c).items() if name.isupper() and isinstance(value, int)]
    self.assertGreater(len(names), 40)
    lines = [f'printf("%llu\\n", (unsigned long long)SHARDPACK_{name});' for name in names]
    source = f'#include <stdio.h>\n#include "{HEADER}"\nint main(void) {{\n' + "\n".join(lines) + "\nreturn 0;\n}\n"
    printed = subprocess.run([compiled("constants", source)], check=True, stdout=subprocess.PIPE, text=True).stdout
    self.assertEqual(dict(zip(names, map(int, printed.split()))), {name: getattr(_c, name) for name in names})


class ImportTest(unittest.TestCase):

  def run_python(self, program, folder, **environment):
    return subprocess.run([sys.executable, "-c", program], cwd=WORK, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(folder), **environment})

  def package_without_library(self):
    folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    shutil.copytree(PACKAGE, folder / "shardpack", ignore=shutil.ignore_patterns("lib", "__pycache__"))
    return folder

  def test_what_is_imported(self):
    ran = self.run_python("import sys; before = set(sys.modules); import shardpack; print(*set(sys.modules) - before)", PACKAGE.parent)
    others = {name for name in ran.stdout.split() if name.split(".")[0] != "shardpack"}
    self.assertEqual(ran.returncode, 0, ran.stderr)
    # Of the standard library alone, and nothing large of that.
    self.assertLessEqual({name.split(".")[0] for name in others}, sys.stdlib_module_names)
    self.assertFalse(others & {"asyncio", "email", "http", "inspect", "json", "multiprocessing", "subprocess", "unittest"})
    # What writes, packs or uses a GPU comes with its name's first use.
    own = set(ran.stdout.split()) - others
    self.assertFalse(own & {"shardpack._arrow", "shardpack._device_loader", "shardpack._jobs", "shardpack._report", "shardpack._writer"})

  def test_names_that_come_with_their_first_use(self):
    ran = self.run_python("from shardpack import *; import shardpack; assert set(shardpack.__all__) <= set(globals()) & set(dir(shardpack))",
                          PACKAGE.parent)
    self.assertEqual((ran.returncode, ran.stderr), (0, ""))
    program = "import shardpack; assert set(shardpack.__all__) <= set(dir(shardpack)); assert shardpack.Writer is shardpack.Writer; shardpack.Writter"
    ran = self.run_python(program, PACKAGE.parent)
    self.assertIn("AttributeError: module 'shardpack' has no attribute 'Writter'", ran.stderr)

  def test_hints_can_be_resolved(self):
    """But of what has types that are for type checkers alone."""
    unknown = set()
    for name in shardpack.__all__:
      value = getattr(shardpack, name)
      members = {f"{name}.{each}": member for each, member in vars(value).items() if each == "__init__" or not each.startswith("_")} if isinstance(value, type) else {name: value}
      for member, function in members.items():
        function = inspect.unwrap(getattr(function, "fget", None) or getattr(function, "__func__", function))
        if inspect.isfunction(function) and "<locals>" not in function.__qualname__:
          try:
            typing.get_type_hints(function)
          except NameError:
            unknown.add(member)
    self.assertLessEqual(unknown, set("""
        Batch.partners Batch.weights Dataset.__init__ Dataset.hashes Dataset.heights Dataset.keys Dataset.labels Dataset.paths Dataset.select
        Dataset.shard_ids Dataset.sizes Dataset.widths EncodedBatch.ids Job.__init__ Loader.to Objects.areas Objects.boxes Objects.crowds
        Objects.keep Objects.keypoints Objects.labels Objects.offsets Objects.polygons Order.ids Sample.__init__ Sample.decode Samples.__init__
        Table.__init__ Table.to_pandas Writer.add Writer.add_many Writer.add_sample convert diff dups extract index load pack report stats
        validate""".split()))

  def test_a_library_elsewhere(self):
    folder = self.package_without_library()
    program = "import shardpack; print(shardpack.__version__)"
    named = self.run_python(program, folder, SHARDPACK_LIBRARY=str(OWN_LIBRARY))
    self.assertEqual((named.returncode, named.stdout), (0, shardpack.__version__ + "\n"), named.stderr)
    found = self.run_python(program, folder, LD_LIBRARY_PATH=str(OWN_LIBRARY.parent))
    self.assertEqual((found.returncode, found.stdout), (0, shardpack.__version__ + "\n"), found.stderr)

  def import_error(self, library, use=""):
    program = f"try:\n  import shardpack\n  {use}\nexcept (ImportError, ValueError) as error:\n  print(error)"
    ran = self.run_python(program, self.package_without_library(), SHARDPACK_LIBRARY=str(library))
    self.assertEqual((ran.returncode, ran.stderr), (0, ""))
    return ran.stdout

  def stub(self, name, version, interface, functions):
    script = WORK / f"{name}.map"
    script.write_text(interface + " { global: shardpack_*; local: *; };")
    source = "\n".join(f"void {each}(void) {{}}" for each in functions) + f'\nconst char* shardpack_version(void) {{ return "{version}"; }}\n'
    return compiled(name, source, "-shared", "-fPIC", f"-Wl,--version-script={script}")

  def test_no_library(self):
    said = self.import_error("/nowhere/libshardpack.so.0")
    self.assertIn("/nowhere/libshardpack.so.0", said)
    self.assertIn("SHARDPACK_LIBRARY", said)

  def test_an_older_library(self):
    said = self.import_error(self.stub("old.so", "0.0.9", "SHARDPACK_0", ["shardpack_loader_next"]))
    self.assertIn("old.so has version 0.0.9, which is too old for this package (version " + shardpack.__version__, said)
    # One between two releases, perhaps.
    lacks = self.stub("lacks.so", shardpack.__version__, "SHARDPACK_0", [f"shardpack_{name}" for name in _c.FUNCTIONS if name not in ("order_make", "version")])
    said = self.import_error(lacks, "shardpack.Order(9, 3)")
    self.assertIn("lacks.so has no shardpack_order_make", said)

  def test_a_newer_library(self):
    functions = [f"shardpack_{name}" for name in _c.FUNCTIONS if name != "version"]
    said = self.import_error(self.stub("newer.so", "7.0.0", "SHARDPACK_1", functions))
    self.assertIn("newer.so does not have the interface SHARDPACK_0", said)
    # Within an interface, newer ones have what older ones had.
    self.assertEqual("", self.import_error(self.stub("added.so", "0.99.10-dev", "SHARDPACK_0", functions)))

  def test_the_command(self):
    folder = self.package_without_library()

    def run(**environment):
      return subprocess.run([sys.executable, "-m", "shardpack", "validate", "a b"], cwd=WORK, capture_output=True, text=True, check=False, env={
          **os.environ, "PYTHONPATH": str(folder), "SHARDPACK_LIBRARY": str(OWN_LIBRARY), "PATH": "relative", **environment})

    def program(place, printed):
      path = folder / place / "pack"
      path.parent.mkdir(parents=True)
      path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{printed}"; exit; fi\necho {place}\n'
                      'for each; do echo "[$each]"; done\nexit 5\n')
      path.chmod(0o755)
      return path

    ours = f"pack {shardpack.__version__} (shardpack, commit 1)"
    # The last resort: those in PATH that are of this version. There is an old tool that replaces the files that it is given.
    places = {"tool": "pack 2.0 (files)", "old": "pack 0.0.1 (shardpack, commit 0)", "path": ours}
    paths = {place: program(place, printed) for place, printed in places.items()}
    without = run(PATH=f"{paths['tool'].parent}:{paths['old'].parent}")
    self.assertEqual((without.returncode, without.stdout), (1, ""))
    for said in (f"no program pack of version {shardpack.__version__}", "is another tool", "is version 0.0.1", "SHARDPACK_PACK", "package shardpack"):
      self.assertIn(said, without.stderr)
    path = ":".join(str(path.parent) for path in paths.values())
    done = run(PATH=path)
    self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "path\n[validate]\n[a b]\n", ""))
    # One that would only start this command again.
    again = folder / "again" / "pack"
    again.parent.mkdir()
    again.write_text(f'#!/bin/sh\nexec {sys.executable} -m shardpack "$@"\n')
    again.chmod(0o755)
    self.assertEqual(run(PATH=f"{again.parent}:{path}").stdout, done.stdout)
    # Before that, the one of the library's prefix.
    program("prefix/bin", ours)
    (folder / "prefix" / "lib").mkdir()
    (folder / "prefix" / "lib" / OWN_LIBRARY.name).symlink_to(OWN_LIBRARY)
    self.assertEqual(run(PATH=path, SHARDPACK_LIBRARY=str(folder / "prefix" / "lib" / OWN_LIBRARY.name)).stdout.split()[0], "prefix/bin")
    # Before these, that of the package, and before that, the one that is named.
    program("shardpack/bin", ours)
    self.assertEqual(run(PATH=path).stdout, "shardpack/bin\n[validate]\n[a b]\n")
    self.assertEqual(run(PATH=path, SHARDPACK_PACK=str(program("named", ours))).stdout, "named\n[validate]\n[a b]\n")
    missing = run(PATH=path, SHARDPACK_PACK="/nowhere/pack")
    self.assertEqual((missing.returncode, missing.stdout), (1, ""))
    self.assertIn("/nowhere/pack", missing.stderr)

  def test_without_numpy(self):
    program = """
import sys
sys.modules["numpy"] = None
import shardpack
order = shardpack.Order(9, 3)
for use in (lambda: order.ids(0, 0), lambda: shardpack.Order(9, 3, subset=[1])):
  try:
    use()
  except ModuleNotFoundError as error:
    print(error.name, error)
"""
    ran = self.run_python(program, PACKAGE.parent)
    self.assertEqual((ran.returncode, ran.stderr), (0, ""))
    self.assertEqual(ran.stdout, "numpy shardpack needs NumPy for arrays: pip install numpy, or Debian's package python3-numpy\n" * 2)


if __name__ == "__main__":
  unittest.main()
