"""Every public name says in its docstring what it is, and the examples in the docstrings are true.

Each example runs in a folder of its own with the dataset `shards` and the class folders `photos` that it is made of: those where this
runs, else those of example_shards.py, which needs Pillow.
usage: doctest_test.py                   the package, without the adapters
       doctest_test.py ADAPTER...        these adapters (torch, grain, ...), under a Python that has their frameworks
"""

import doctest
import importlib
import inspect
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import example_shards
import shardpack

WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
ADAPTERS = [name for name in sys.argv[1:] if not name.startswith("-")]
# Examples run in other folders, and start `python -m shardpack` there.
os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# An array's or a view's shape: [n], [n, 4], [k, 4], [height, width, channels].
SHAPE = re.compile(r"\[[a-z0-9_]+(, ?[a-z0-9_]+)*\]", re.IGNORECASE)
DTYPE = re.compile(r"\b(u?int(8|16|32|64)|float(16|32|64)|bool)\b")
ARRAYS = re.compile(r"\b(NDArray|ndarray)\b")


def public_objects():
  """[(name, object, module)] that a user may name."""
  if ADAPTERS:
    modules = [importlib.import_module("shardpack.adapters." + name) for name in ADAPTERS]
    return [(f"{module.__name__}.{name}", item, module) for module in modules for name, item in vars(module).items()
            if not name.startswith("_") and getattr(item, "__module__", None) == module.__name__]
  return [("shardpack." + name, getattr(shardpack, name), shardpack) for name in shardpack.__all__]


def engine_modules():
  """Those that are imported by name."""
  return [importlib.import_module("shardpack." + name) for name in ("cluster", "ray", "slurm", "spark")]


def members(owner):
  """[(name, docstring, signature)] of a class's public methods and properties, but for those that the built-in exceptions have."""
  for name in sorted(set(dir(owner))):
    value = inspect.getattr_static(owner, name)
    home = next(each for each in owner.__mro__ if name in vars(each))
    if name.startswith("_") or not home.__module__.startswith("shardpack"):
      continue
    if isinstance(value, property):
      yield name, value.__doc__, value.fget
    elif isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value):
      function = getattr(value, "__func__", value)
      yield name, function.__doc__, function


def described(item):
  return inspect.isclass(item) or inspect.isfunction(item)


class Docstrings(unittest.TestCase):

  def test_every_public_name_is_described(self):
    for name, item, _ in public_objects():
      if not described(item):
        continue  # a constant
      with self.subTest(name):
        text = item.__doc__ or ""
        error = inspect.isclass(item) and issubclass(item, BaseException)
        self.assertGreater(len(text), 10 if error else 40, f"{name} has no docstring to speak of")
        if not error:
          self.assertIn(">>>", text, f"{name} has no example")

  def test_every_member_is_described(self):
    for name, item, _ in public_objects():
      for member, text, function in members(item) if inspect.isclass(item) else ():
        with self.subTest(f"{name}.{member}"):
          self.assertGreater(len(text or ""), 5, f"{name}.{member} has no docstring")
          if not isinstance(inspect.getattr_static(item, member), property) and not issubclass(item, BaseException) and not ADAPTERS:
            self.assertIn(">>>", text, f"{name}.{member} has no example")
          returned = str(getattr(function, "__annotations__", {}).get("return", ""))
          if ARRAYS.search(returned):
            self.assertRegex(text, SHAPE, f"{name}.{member} does not say the shape of its array")
            self.assertRegex(text, DTYPE, f"{name}.{member} does not say the dtype of its array")

  def test_the_modules_for_engines_are_described(self):
    for module in engine_modules() if not ADAPTERS else ():
      self.assertIn(">>>", module.__doc__)
      for name, item in vars(module).items():
        if inspect.isfunction(item) and item.__module__ == module.__name__ and not name.startswith("_"):
          self.assertGreater(len(item.__doc__ or ""), 40, f"{module.__name__}.{name}")

  def test_everything_is_annotated(self):
    """What help() shows of a parameter is its type too."""
    for name, item, _ in public_objects():
      functions = [(member, function) for member, _, function in members(item)] if inspect.isclass(item) else []
      if inspect.isclass(item) and "__init__" in vars(item):
        functions.append(("__init__", item.__init__))
      if inspect.isfunction(item):
        functions.append(("", item))
      for member, function in functions:
        with self.subTest(f"{name}.{member}"):
          function = inspect.unwrap(function)
          parameters = list(inspect.signature(function).parameters.values())
          bare = [p.name for p in parameters if p.annotation is p.empty and p.name not in ("self", "cls")]
          self.assertEqual(bare, [], "parameters without a type")
          if member != "__init__":
            self.assertIn("return", function.__annotations__)


class Examples(unittest.TestCase):

  def setUp(self):
    self.addCleanup(os.chdir, os.getcwd())
    if not (WORK / "original").exists():
      if os.path.exists("shards"):
        for name in ("photos", "shards"):
          shutil.copytree(name, WORK / "original" / name)
      else:
        example_shards.make(WORK / "original")

  def test_every_example(self):
    finder = doctest.DocTestFinder(exclude_empty=True)
    count = 0
    found = finder.find(shardpack, "shardpack", module=False) if not ADAPTERS else []
    # A name can be had in two places (an inherited method): once is enough.
    found = [test for test in found if test.name == "shardpack"]
    for module in engine_modules() if not ADAPTERS else ():
      found += finder.find(module, module.__name__, module=module)
    classes = set()
    for name, item, _ in public_objects():
      if inspect.isfunction(item):
        found += finder.find(item, name, module=sys.modules[item.__module__], extraglobs={"shardpack": shardpack})
      # With what they inherit, which the finder leaves out.
      for home in inspect.getmro(item) if inspect.isclass(item) else ():
        if home.__module__.startswith("shardpack") and home not in classes:
          classes.add(home)
          found += finder.find(home, name if home is item else f"shardpack.{home.__name__}", module=sys.modules[home.__module__],
                               extraglobs={"shardpack": shardpack})
    for test in found:
      if not test.examples:
        continue
      count += 1
      with self.subTest(test.name):
        folder = WORK / f"example-{count}"
        shutil.copytree(WORK / "original", folder)
        os.chdir(folder)
        test.globs = {**(test.globs if test.name.startswith("shardpack.cluster") else {}), "shardpack": shardpack, "__name__": "__main__"}
        said = []
        result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append)
        os.chdir(WORK)
        shutil.rmtree(folder)
        self.assertEqual(result.failed, 0, "".join(said))
    self.assertGreater(count, 0 if ADAPTERS else 30)


if __name__ == "__main__":
  unittest.main(argv=[sys.argv[0], *(word for word in sys.argv[1:] if word.startswith("-"))])
