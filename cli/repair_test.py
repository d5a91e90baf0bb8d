"""`pack repair`: what is missing or damaged comes back byte for byte, as a user meets it.

SHARDPACK_REPAIR_ROUNDS sets how many random damages each format takes from each kind of source; SHARDPACK_REPAIR_SEED
makes other ones.
"""

import json
import os
import random
import shutil

import command
from command import jpeg

ROUNDS = int(os.environ.get("SHARDPACK_REPAIR_ROUNDS", "4"))
SEED = int(os.environ.get("SHARDPACK_REPAIR_SEED", "1"))
RAW = ("--encode", "raw", "--resize", "exact", "--size", "8", "--color", "rgb")
# Name -> flags of the dataset, and the format of its copy.
KINDS = {
    "webdataset": (("-f", "webdataset", "--sidecar-index", "dali", "--sha256"), "tfrecord"),
    "webdataset json": (("-f", "webdataset", "--with-json", "--sidecar-index", "wids"), "hdf5"),
    "tfrecord": (("-f", "tfrecord", "--sidecar-index", "dali"), "webdataset"),
    "tfrecord tfds": (("-f", "tfrecord", "--layout", "tfds"), "hdf5"),
    "lmdb raw": (("-f", "lmdb", "--layout", "raw"), "webdataset"),
    "lmdb caffe": (("-f", "lmdb", "--layout", "caffe"), "tfrecord"),
    "lmdb pickle": (("-f", "lmdb", "--layout", "pickle"), "hdf5"),
    "hdf5 packed": (("-f", "hdf5", "--layout", "packed"), "webdataset"),
    "hdf5 vlen": (("-f", "hdf5", "--layout", "vlen"), "lmdb"),
    "hdf5 decoded": (("-f", "hdf5", "--layout", "decoded", *RAW), "npy"),
    "npy": (("-f", "npy", *RAW), "hdf5"),
}


class RepairTest(command.PackTest):

  def make(self, kind, *more, source="src", out="out"):
    flags, copy_format = KINDS[kind]
    self.pack(source, "-o", out, "--shards", "4", "--no-fsync", *flags, *more)
    return self.contents(out), copy_format

  def copy(self, copy_format, out="out", copy="copy"):
    flags = ()
    if self.manifest(out)["options"].get("encode") == "raw":
      flags = RAW if copy_format == "npy" else ("--layout", "decoded", *RAW)
    self.pack("convert", out, "-o", copy, "-f", copy_format, "--shards", "3", "--no-fsync", *flags)
    return copy

  def damage(self, rng, names, out="out"):
    """Something happens to some files; the names of those that differ."""
    before = {name: (self.folder / out / name).read_bytes() for name in names}
    for name in rng.sample(names, min(len(names), rng.randint(1, 3))):
      path = self.folder / out / name
      data = path.read_bytes() if path.exists() else b""
      what = rng.choice(("flip", "cut", "delete", "swap", "grow", "zero"))
      if what == "delete" or not data:
        path.unlink(missing_ok=True)
        if path.parent != self.folder / out and rng.random() < 0.5:
          shutil.rmtree(path.parent)
      elif what == "flip":
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
      elif what == "cut":
        path.write_bytes(data[:rng.randrange(len(data))])
      elif what == "grow":
        path.write_bytes(data + b"more")
      elif what == "zero":
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes(len(data[at:at + 4096])) + data[at + 4096:])
      else:
        other = self.folder / out / rng.choice(names)
        if other.exists():
          theirs = other.read_bytes()
          other.write_bytes(data)
          path.write_bytes(theirs)
    now = self.contents(out)
    return {name for name in names if now.get(name) != before[name]}

  def heal(self, want, out, words, damaged, lost=()):
    """Repairs; what differed must be as it was, but for `lost`, which must be listed."""
    planned = json.loads(self.pack("repair", out, *words, "--json", "--dry-run", "--no-fsync", expect=None).stdout)
    done = self.pack("repair", out, *words, "--json", "--no-fsync", expect=3 if lost else 0)
    report = json.loads(done.stdout)
    self.assertEqual(damaged, {row["name"] for row in report["files"]})
    self.assertEqual(set(lost), {row["name"] for row in report["files"] if not row["repaired"]}, report)
    self.assertEqual(set(lost), {row["name"] for row in planned["files"] if not row["repairable"]}, planned)
    now = self.contents(out)
    self.assertEqual(want.keys() - set(lost), now.keys() - set(lost))
    for name, data in want.items():
      if name not in lost:
        self.assertTrue(data == now[name], f"{name} differs")
    return report

  def names(self, want):
    return [name for name in want if name != "manifest.json"]

  def test_random_damage_is_healed_from_the_source(self):
    self.source(count=60)
    for kind in KINDS:
      with self.subTest(kind):
        rng = random.Random(f"source {kind} {SEED}")
        out = kind.replace(" ", "-")
        want, _ = self.make(kind, out=out)
        for round_number in range(ROUNDS):
          with self.subTest(round=round_number):
            damaged = self.damage(rng, self.names(want), out)
            self.heal(want, out, (), damaged)

  def test_random_damage_is_healed_from_a_copy_in_another_format(self):
    self.source(count=60)
    for kind in KINDS:
      with self.subTest(kind):
        rng = random.Random(f"copy {kind} {SEED}")
        out = kind.replace(" ", "-")
        want, copy_format = self.make(kind, out=out)
        copy = self.copy(copy_format, out, out + "-copy")
        for round_number in range(ROUNDS):
          with self.subTest(round=round_number):
            damaged = self.damage(rng, self.names(want), out)
            self.heal(want, out, ("--from", copy), damaged)


if __name__ == "__main__":
  command.main()
