"""Fails when a file or a target depends on something against the direction of dependencies (see //:BUILD).

Bazel's visibility already refuses most such edges. This test adds what visibility cannot see: #include lines that reach a
header without a declared dependency, targets made visible by mistake, CUDA outside cuda/. And it refuses the README of a
folder that is more than a few lines.

usage: dependency_test.py FOLDER     checks the project in FOLDER
       dependency_test.py --self-test    plants bad edges in a scratch project and expects each to be found
"""

import os
import re
import sys
import tempfile

# layer -> layers it may use, besides itself, third_party and (for its tests) formats/testing. Written out edge by edge:
# a new edge is a decision, so it must be a new word here. `formats/*` is one format; siblings are checked separately.
ALLOWED = {
    "third_party": set(),
    "formats/io": set(),
    "formats/core": {"formats/io"},
    "formats/tar": {"formats/core", "formats/io"},
    "formats/*": {"formats/core", "formats/io"},
    "formats/webdataset": {"formats/core", "formats/io", "formats/tar"},
    "formats": {"formats/*", "formats/core", "formats/io", "formats/webdataset"},
    "images": {"formats/core:image_info", "formats/io:enum_words", "formats/io:status_macros"},
    "augment": {"formats/core:image_info", "formats/io", "images"},
    "readers": {"augment", "formats/core", "formats/io", "images"},
    "converters": {"formats/core", "formats/io", "formats/tar", "images", "readers"},
    "validators": {"formats/core", "formats/io", "images", "readers"},
    "cuda": {"augment", "formats/core", "formats/io", "images", "readers"},
    "examples": {"augment:shardpack_op", "cuda", "readers"},
    "api": {"augment", "cuda", "formats/*", "formats/core", "formats/io", "formats/webdataset", "images", "readers"},
    # They use the built library and program.
    "python": {"api", "augment", "cli", "examples"},
    "packaging": {"api", "augment", "cli", "examples", "python"},
    "formats/testing": {"formats/core", "formats/io", "formats/tar"},
    # Whole commands as calls of a library: what cli/ calls.
    "jobs": {"converters", "formats", "formats/core", "formats/io", "readers", "validators"},
}
# These join everything.
TOP = {"benchmarks", "cli", "tests"}
# Within a folder: the sub-folders that a sub-folder's product code may use. Written out as above; ":name" is a header of the
# folder itself, name.h.
SUBFOLDERS = {
    "api/abi": set(),
    "api/jobs": set(),
    "api/writing": set(),
    "augment/geometry": set(),
    "augment/opencv": {":opencv_functions", ":opencv_table"},
    "cli/commands": {"flags", "terminal"},
    "cli/flags": {"terminal"},
    "cli/terminal": set(),
    "converters/building": {"listing", "planning", "publishing", "threads"},
    "converters/extracting": {"listing", "sources"},
    "converters/indexing": {"listing", "planning", "publishing", "sources"},
    "converters/listing": {"threads"},
    "converters/planning": {"listing"},
    "converters/publishing": {"listing", "planning", "threads"},
    "converters/repairing": {"building", "listing", "planning", "publishing", "threads"},
    "converters/sources": {"listing", "planning", "threads"},
    "converters/threads": set(),
    "cuda/device": {"dynload", "kernels"},
    "cuda/dynload": set(),
    "cuda/jpeg": {"device", "dynload", "kernels"},
    "cuda/kernels": set(),
    "cuda/loading": {"device", "dynload", "jpeg", "kernels"},
    "formats/hdf5/reading": {":hdf5_layout"},
    "formats/hdf5/writing": {":hdf5_layout"},
    "formats/lmdb/reading": {":lmdb_layout", ":map_size_bound"},
    "formats/lmdb/writing": {":lmdb_layout", ":map_size_bound"},
    "formats/testing/datasets": set(),
    "formats/webdataset/tool_indexes": {":webdataset_layout"},
    "images/augment": {"codecs", "pixels", "resize"},
    "images/codecs": {"pixels", "probe"},
    "images/pixels": set(),
    "images/probe": set(),
    "images/resize": {"pixels"},
    "images/transform": {"codecs", "pixels", "probe", "resize"},
    "readers/dataset": set(),
    "readers/loading": {"dataset", "order"},
    "readers/opencv": {"loading"},
    "readers/order": set(),
    "validators/checks": {"report"},
    "validators/looking": {"report"},
    "validators/report": set(),
}
# Their sub-folders are programs of their own, which do not use each other.
APART = {"benchmarks", "examples", "packaging", "python", "tests", "third_party"}
# Tests and what supports them look in from above.
TEST_FILE = re.compile(r"(_test|_fuzz|_bench|_testing)\.\w+$|/testing/|(^|/)dlpack_interop\.cc$")
# Offered to the tests of every layer; a target that is not a test may use it only when it is testonly, which Bazel enforces.
TEST_SUPPORT = "formats/testing"

SOURCE_SUFFIXES = (".h", ".hpp", ".cc", ".cpp", ".c", ".cu", ".cuh")
BUILD_NAMES = ("BUILD", "BUILD.bazel")
README_LINES = 10

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.MULTILINE)
CUDA_HEADER = re.compile(r"^(cuda|cuda_runtime|cuda_runtime_api|device_launch_parameters|nvjpeg|nvcomp.*|npp.*)\.h$")
LABEL = re.compile(r'"(//[^"]*)"')
# Who may use a target, and what a file set loads, are not dependencies.
VISIBILITY = re.compile(r"\b(?:default_)?visibility\s*=\s*\[[^\]]*\]|\bpackage_group\([^)]*\)", re.DOTALL)
COMMENT = re.compile(r"#[^\n]*")


def layer_of(path):
  """The layer that a project path or package belongs to, or None for the root and for unknown folders."""
  parts = path.split("/")
  if parts[0] != "formats":
    return parts[0] if parts[0] in ALLOWED or parts[0] in TOP else None
  if len(parts) == 1:
    return "formats"
  return "/".join(parts[:2])


def is_allowed(user, used, exact):
  """Whether `user` (a layer) may depend on `used`; `exact` is the header or label without its suffix."""
  if user == used or used == "third_party" or user in TOP or used == TEST_SUPPORT:
    return True
  # A folder of formats/ without a row of its own is one format.
  row = ALLOWED[user if user in ALLOWED else "formats/*"]
  kind = used if used in ALLOWED or used in TOP else "formats/*"
  return kind in row or exact in row


def check_subfolder(path, layer, includes):
  """What a file of a sub-folder of `layer` includes of that layer; `includes` are pairs of line and header."""
  subfolder = os.path.dirname(path)
  if subfolder == layer or TEST_FILE.search(path[len(layer):]):
    return
  row = SUBFOLDERS.get(subfolder, set() if layer in APART else None)
  if row is None:
    yield f"{path}: {subfolder} has no row in SUBFOLDERS"
    return
  for line, header in includes:
    used = os.path.dirname(header)
    if used == subfolder or not (used + "/").startswith(layer + "/"):
      continue
    name = used[len(layer) + 1:] or ":" + os.path.splitext(os.path.basename(header))[0]
    if name not in row:
      yield f'{path}:{line}: {subfolder} must not include "{header}"'


def check_source(path, text):
  user = layer_of(os.path.dirname(path)) if os.path.dirname(path) else None
  if user is None:
    return
  includes = []
  for match in INCLUDE.finditer(text):
    bracket, header = match.groups()
    line = text.count("\n", 0, match.start()) + 1
    if CUDA_HEADER.match(header) and user not in ("cuda", "benchmarks", "python"):
      yield f"{path}:{line}: {user} includes <{header}>; CUDA belongs in cuda/ alone"
    used = layer_of(os.path.dirname(header)) if "/" in header else None
    if used is None or bracket == "<":
      continue
    includes.append((line, header))
    exact = os.path.dirname(header) + ":" + os.path.splitext(os.path.basename(header))[0]
    if not is_allowed(user, used, exact):
      yield f'{path}:{line}: {user} must not include "{header}"'
  yield from check_subfolder(path, user, includes)


def check_readme(path, text):
  lines = text.count("\n")
  if layer_of(os.path.dirname(path)) is not None and lines > README_LINES:
    yield f"{path}: has {lines} lines; the README of a folder has at most {README_LINES}"


def check_build(path, text):
  package = os.path.dirname(path)
  user = layer_of(package) if package else None
  if user is None:
    return
  # Same length, so that line numbers hold.
  blank = lambda match: re.sub(r"[^\n]", " ", match.group())
  text = VISIBILITY.sub(blank, COMMENT.sub(blank, text))
  for match in LABEL.finditer(text):
    label = match.group(1)
    package, _, name = label[2:].partition(":")
    used = layer_of(package) if package else None
    if used is None:
      continue
    line = text.count("\n", 0, match.start()) + 1
    if not is_allowed(user, used, f"{package}:{name or package.split('/')[-1]}"):
      yield f"{path}:{line}: {user} must not depend on {label}"


def check(root):
  """Returns (problems, number of files read)."""
  problems, files = [], 0
  for folder, subfolders, names in os.walk(root):
    subfolders[:] = sorted(s for s in subfolders if not s.startswith((".", "bazel-")))
    for name in sorted(names):
      checker = (check_build if name in BUILD_NAMES else check_readme if name == "README.md" else
                 check_source if name.endswith(SOURCE_SUFFIXES) else None)
      if checker is None:
        continue
      full = os.path.join(folder, name)
      with open(full, encoding="utf-8", errors="replace") as file:
        problems.extend(checker(os.path.relpath(full, root), file.read()))
      files += 1
  return problems, files


# (file, its text, whether it must be refused)
PLANTED = [
    ("formats/io/file.cc", '#include "formats/core/sample.h"', True),
    ("formats/core/sample.cc", '#include "formats/io/file.h"', False),
    ("formats/core/sample.cc", '  # include "formats/formats.h"', True),
    ("formats/core/sample.cc", '#include "formats/tfrecord/tfrecord_writer.h"', True),
    ("formats/core/sample.cc", '#include "images/probe/probe.h"', True),
    ("formats/tfrecord/a.cc", '#include "formats/core/sample.h"', False),
    ("formats/tfrecord/a.cc", '#include "formats/tfrecord/b.h"', False),
    ("formats/tfrecord/a.cc", '#include "formats/webdataset/b.h"', True),
    ("formats/tfrecord/a_test.cc", '#include "formats/testing/contract.h"', False),
    ("formats/tfrecord/a.cc", '#include "converters/planning/plan.h"', True),
    ("formats/formats.cc", '#include "formats/tfrecord/tfrecord.h"', False),
    ("formats/formats.cc", '#include "formats/webdataset/webdataset_format.h"', False),
    ("formats/tar/tar_walker.cc", '#include "formats/core/finding.h"', False),
    ("formats/tar/tar_walker.cc", '#include "formats/webdataset/webdataset_layout.h"', True),
    ("formats/webdataset/a.cc", '#include "formats/tar/tar_header.h"', False),
    ("formats/webdataset/tool_indexes/a.cc", '#include "formats/tar/tar_header.h"', False),
    ("formats/webdataset/tool_indexes/a.cc", '#include "formats/lmdb/lmdb_layout.h"', True),
    ("formats/webdataset/tool_indexes/a.cc", '#include "formats/webdataset/webdataset_layout.h"', False),
    ("formats/webdataset/tool_indexes/a.cc", '#include "formats/webdataset/webdataset_writer.h"', True),
    ("formats/hdf5/a.cc", '#include "formats/tar/tar_header.h"', True),
    ("formats/hdf5/hdf5_format.cc", '#include "formats/hdf5/reading/hdf5_scanner.h"', False),
    ("formats/hdf5/reading/a.cc", '#include "formats/hdf5/hdf5_layout.h"', False),
    ("formats/hdf5/reading/a.cc", '#include "formats/hdf5/hdf5_format.h"', True),
    ("formats/hdf5/reading/a.cc", '#include "formats/hdf5/writing/hdf5_output.h"', True),
    ("formats/hdf5/elsewhere/a.cc", '#include "formats/hdf5/hdf5_layout.h"', True),
    ("formats/lmdb/writing/a.cc", '#include "formats/lmdb/reading/lmdb_pages.h"', True),
    ("formats/lmdb/lmdb_writer_test.cc", '#include "formats/lmdb/reading/lmdb_pages.h"', False),
    ("converters/sources/archive_members.cc", '#include "formats/tar/tar_header.h"', False),
    ("readers/dataset/a.cc", '#include "formats/tar/tar_header.h"', True),
    ("augment/geometry/a.cc", '#include "images/augment/crop.h"', False),
    ("augment/geometry/a.cc", '#include "readers/loading/loader.h"', True),
    ("readers/loading/a.cc", '#include "augment/geometry/affine.h"', False),
    ("images/augment/a.cc", '#include "augment/geometry/affine.h"', True),
    ("formats/testing/contract.cc", '#include "formats/tar/tar_header.h"', False),
    ("formats/testing/contract.cc", '#include "formats/formats.h"', True),
    ("formats/testing/datasets/a.cc", '#include "formats/core/format.h"', False),
    ("formats/testing/datasets/a.cc", '#include "formats/testing/contract.h"', True),
    ("images/probe/probe.h", '#include "formats/core/image_info.h"', False),
    ("images/probe/probe.h", '#include "formats/core/sample.h"', True),
    ("readers/loading/loader.cc", '#include "formats/core/manifest.h"', False),
    ("readers/loading/loader.cc", '#include "formats/formats.h"', True),
    ("readers/loading/loader.cc", '#include "cuda/device/device.h"', True),
    ("readers/loading/loader.cc", "#include <cuda_runtime.h>", True),
    ("cuda/kernels/loader.cu", "#include <cuda_runtime.h>", False),
    ("cuda/loading/loader.cc", '#include "readers/loading/loader.h"', False),
    ("converters/planning/plan.cc", '#include "formats/formats.h"', True),
    ("converters/planning/plan.cc", '#include "validators/validator.h"', True),
    ("converters/planning/plan.cc", '#include "readers/dataset/dataset.h"', False),
    ("validators/checks/a.cc", '#include "converters/planning/plan.h"', True),
    ("validators/checks/a.cc", '#include "cli/main.h"', True),
    ("cli/main.cc", '#include "formats/formats.h"\n#include "converters/planning/plan.h"', False),
    ("tests/x/a.cc", '#include "formats/lmdb/lmdb.h"', False),
    ("converters/planning/plan.cc", '#include "converters/listing/listing.h"', False),
    ("converters/planning/plan.cc", '#include "converters/sources/folder_source.h"', True),
    ("converters/planning/plan_test.cc", '#include "converters/sources/folder_source.h"', False),
    ("images/codecs/decode.cc", '#include "images/transform/transform.h"', True),
    ("validators/checks/shard_check.cc", '#include "validators/validator.h"', True),
    ("validators/validator.cc", '#include "validators/checks/shard_check.h"', False),
    ("readers/elsewhere/a.cc", '#include "readers/order/order.h"', True),
    ("readers/elsewhere/a.cc", "int one = 1;", True),
    ("api/jobs/a.cc", '#include "formats/io/file.h"', False),
    ("api/jobs/a.cc", '#include "api/errors.h"', True),
    ("api/jobs/a_test.cc", '#include "api/errors.h"', False),
    ("api/a.cc", '#include "api/jobs/job_words.h"', False),
    ("api/a.cc", '#include "validators/validator.h"', True),
    ("api/a.cc", '#include "formats/formats.h"', True),
    ("api/a.cc", '#include "formats/lmdb/lmdb_layout.h"', False),
    ("python/BUILD", 'py_library(data = ["//jobs"])', True),
    ("tests/x/a.cc", '#include "tests/x/b.h"', False),
    ("tests/x/a.cc", '#include "tests/y/b.h"', True),
    ("images/codecs/README.md", 8 * "one\n" + "ten", False),
    ("images/codecs/README.md", 9 * "one\n" + "eleven", True),
    ("docs/README.md", 9 * "one\n" + "eleven", False),
    ("converters/BUILD", 'cc_library(deps = ["//formats/core:sample"])', False),
    ("converters/BUILD", 'cc_library(deps = [\n  "//formats",\n])', True),
    ("converters/BUILD", 'cc_library(deps = ["//formats:formats"])', True),
    ("converters/BUILD", 'cc_library(deps = ["//formats/tfrecord"])', True),
    ("converters/BUILD", '# "//formats/tfrecord" is not for us', False),
    ("converters/BUILD", 'cc_test(deps = ["//formats/testing:generators", "//third_party:gtest"])', False),
    ("formats/lmdb/BUILD", 'cc_library(deps = ["//formats/hdf5:writer"])', True),
    ("formats/core/BUILD", 'cc_library(visibility = ["//images:__subpackages__"])', False),
    ("formats/core/BUILD", 'cc_library(visibility = ["//:x"], deps = ["//images/probe"])', True),
    ("images/BUILD", 'cc_library(deps = ["//formats/core:image_info"])', False),
    ("images/BUILD", 'cc_library(deps = ["//formats/core:sample"])', True),
    ("BUILD", 'alias(actual = "//cli:pack")', False),
    # What is public for other workspaces is not public here.
    ("formats/core/BUILD", 'cc_library(deps = ["//images"])', True),
    ("readers/BUILD", 'cc_library(deps = ["//readers/dataset"])', False),
    ("readers/dataset/BUILD", 'cc_library(deps = ["//cuda"])', True),
    ("images/codecs/BUILD", 'cc_library(deps = ["//readers"])', True),
]


def self_test():
  wrong = []
  for path, text, refused in PLANTED:
    with tempfile.TemporaryDirectory() as root:
      full = os.path.join(root, path)
      os.makedirs(os.path.dirname(full), exist_ok=True)
      with open(full, "w", encoding="utf-8") as file:
        file.write("// A first line.\n" + text + "\n")
      problems, files = check(root)
      if files != 1 or bool(problems) != refused:
        wrong.append(f"{path}: {text!r}: expected {'a refusal' if refused else 'silence'}, got {problems}")
      elif refused and not problems[0].startswith(path + ":"):
        wrong.append(f"{path}: the message does not name the place: {problems[0]}")
  return wrong, len(PLANTED)


def main(arguments):
  if len(arguments) != 1:
    sys.exit(__doc__)
  if arguments[0] == "--self-test":
    problems, count = self_test()
    noun = "planted edges"
  else:
    problems, count = check(arguments[0])
    noun = "files"
  for problem in problems:
    print(problem)
  print(f"{count} {noun}, {len(problems)} problems")
  # A wrong folder must not look like a clean project.
  sys.exit(1 if problems or count < 10 else 0)


if __name__ == "__main__":
  main(sys.argv[1:])
