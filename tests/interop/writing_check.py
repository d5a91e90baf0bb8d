"""examples/write_huggingface.py where datasets is: a generated Hugging Face dataset in four formats, with every byte and label, whether
labels are a ClassLabel or plain numbers.

check(program, module, python, results): `module` is the folder in which the package is, `python` that of the environment `datasets`.
"""

import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FORMATS = ("webdataset", "tfrecord", "lmdb", "hdf5")

MAKE = """
import io, sys
import datasets, numpy, PIL.Image
def image(n):
  out = io.BytesIO()
  PIL.Image.fromarray(numpy.random.default_rng(n).integers(0, 256, (8, 9, 3), numpy.uint8)).save(out, "PNG")
  return out.getvalue()
label = datasets.ClassLabel(names=["owl", "cat", "dog"]) if sys.argv[2] == "names" else datasets.Value("int64")
features = datasets.Features({"image": datasets.Image(), "label": label, "caption": datasets.Value("string")})
rows = {"image": [{"bytes": image(n), "path": None} for n in range(200)], "label": [n % 3 for n in range(200)],
        "caption": [f"number {n}" for n in range(200)]}
datasets.Dataset.from_dict(rows, features=features).save_to_disk(sys.argv[1])
"""

COMPARE = """
import sys
import datasets, shardpack
source = datasets.load_from_disk(sys.argv[1]).cast_column("image", datasets.Image(decode=False))
packed = shardpack.Dataset(sys.argv[2])
assert len(packed) == len(source), len(packed)
for n, row in enumerate(source):
  sample = packed[packed.find_key(f"{n:06}")]
  assert sample["fields"]["image"] == row["image"]["bytes"], n
  if sys.argv[4] == "names":
    assert packed.classes[sample["label"]] == source.features["label"].int2str(row["label"]), n
  else:
    assert sample["label"] == row["label"], n
  if sys.argv[3] != "lmdb":
    assert sample["fields"]["caption"].decode() == row["caption"], n
"""


def check(program, module, python, results):
  with tempfile.TemporaryDirectory(prefix="shardpack-writing-") as work:
    environment = {**os.environ, "PYTHONPATH": str(module), "SHARDPACK_PACK": str(program), "HF_HUB_OFFLINE": "1", "HF_HOME": work}

    def run(*arguments):
      done = subprocess.run([python, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False)
      return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]

    for form, labels in (*((form, "names") for form in FORMATS), (FORMATS[0], "numbers")):
      source, out = os.path.join(work, f"source-{labels}"), os.path.join(work, f"{form}-{labels}")
      failed = None if os.path.exists(source) else run("-c", MAKE, source, labels)
      failed = failed or run(ROOT / "examples" / "write_huggingface.py", source, out, form) or run("-c", COMPARE, source, out, form, labels)
      what = "examples/write_huggingface.py" + (", numbered labels" if labels == "numbers" else "")
      results.add(("module", "datasets", form, what, 200), failed)
