"""What tests of `pack repair` share: datasets of every kind, damage, and the check that all is as it was.

SHARDPACK_REPAIR_ROUNDS sets how many random damages each format takes from each kind of source; SHARDPACK_REPAIR_SEED
makes other ones.
"""

import json
import os
import random
import shutil

import command
from command import jpeg, png

ROUNDS = int(os.environ.get("SHARDPACK_REPAIR_ROUNDS", "4"))
SEED = int(os.environ.get("SHARDPACK_REPAIR_SEED", "1"))
RAW = ("--encode", "raw", "--resize", "exact", "--size", "8", "--color", "rgb")
# Name -> flags of the dataset, and the formats of its copies.
KINDS = {
    "webdataset": (("-f", "webdataset", "--sidecar-index", "dali", "--sha256"), ("tfrecord", "lmdb")),
    "webdataset json": (("-f", "webdataset", "--with-json", "--sidecar-index", "wids"), ("hdf5", "tfrecord")),
    "webdataset pax": (("-f", "webdataset", "--layout", "pax", "--sidecar-index", "energon", "--sidecar-index", "openclip",
                        "--sidecar-index", "timm"), ("lmdb", "hdf5")),
    "tfrecord": (("-f", "tfrecord", "--sidecar-index", "dali"), ("webdataset", "hdf5")),
    "tfrecord imagenet": (("-f", "tfrecord", "--layout", "imagenet"), ("lmdb", "webdataset")),
    "tfrecord tfds": (("-f", "tfrecord", "--layout", "tfds"), ("hdf5", "webdataset")),
    "lmdb raw": (("-f", "lmdb", "--layout", "raw"), ("webdataset", "tfrecord")),
    "lmdb caffe": (("-f", "lmdb", "--layout", "caffe"), ("tfrecord", "webdataset")),
    "lmdb pickle": (("-f", "lmdb", "--layout", "pickle"), ("hdf5", "tfrecord")),
    "hdf5 packed": (("-f", "hdf5", "--layout", "packed"), ("webdataset", "lmdb")),
    "hdf5 vlen": (("-f", "hdf5", "--layout", "vlen"), ("lmdb", "tfrecord")),
    "hdf5 decoded": (("-f", "hdf5", "--layout", "decoded", *RAW), ("npy",)),
    "npy": (("-f", "npy", *RAW), ("hdf5",)),
}
COUNTS = os.environ.get("SHARDPACK_REPAIR_COUNTS")  # a file that gains a row a kind: what was healed


class RepairTest(command.PackTest):

  def source(self, name="src", count=60, classes=("cat", "dog")):
    """Images whose pixels differ, too."""
    for i in range(count):
      rows = b"".join(b"\0" + bytes((i * 7 + x * y) % 256 for x in range(9)) for y in range(8))
      data = jpeg(i) if i % 3 == 0 else png(9, 8, rows=rows)
      self.write(f"{name}/{classes[i % len(classes)]}/good-{i:04}.{'jpg' if i % 3 == 0 else 'png'}", data)
    return name

  def make(self, kind, *more, source="src", out="out"):
    flags, copy_format = KINDS[kind]
    self.pack(source, "-o", out, "--shards", "4", "--no-fsync", *flags, *more)
    return self.contents(out), copy_format[0]

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
          shutil.rmtree(path.parent, ignore_errors=True)
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

  def heal(self, want, out, words, damaged, lost=(), foreseen=True):
    """Repairs; what differed must be as it was, but for `lost`, which must be listed."""
    planned = json.loads(self.pack("repair", out, *words, "--json", "--dry-run", "--no-fsync", expect=None).stdout)
    done = self.pack("repair", out, *words, "--json", "--no-fsync", expect=3 if lost else 0)
    report = json.loads(done.stdout)
    self.assertEqual(damaged, {row["name"] for row in report["files"]})
    self.assertEqual(set(lost), {row["name"] for row in report["files"] if not row["repaired"]}, report)
    if foreseen:
      self.assertEqual(set(lost), {row["name"] for row in planned["files"] if not row["repairable"]}, planned)
    now = self.contents(out)
    self.assertEqual(want.keys() - set(lost), now.keys() - set(lost))
    for name, data in want.items():
      if name not in lost:
        self.assertTrue(data == now[name], f"{name} differs")
    return report

  def names(self, want):
    return [name for name in want if name != "manifest.json"]

  def heal_at_random(self, name, words_of):
    """Each kind takes ROUNDS damages to its shards, indexes and other files, the manifest among them: of that one a copy
    of the file alone is kept. `words_of(out, round)` says where the rest comes from."""
    for kind in KINDS:
      rng = random.Random(f"{name} {kind} {SEED}")
      out = kind.replace(" ", "-")
      want, _ = self.make(kind, out=out)
      self.write(f"{out}-kept/manifest.json", want["manifest.json"])
      identity = self.pack("repair", out, "--level", "quick").stdout.split()[1]
      healed, files = 0, 0
      for number in range(ROUNDS):
        with self.subTest(kind, round=number):
          damaged = self.damage(rng, list(want), out)
          words = words_of(kind, out, number)
          if "manifest.json" in damaged:
            words += ("--from", out + "-kept", "--expect", identity)
            # What nobody can tell from a file of the user's is to be moved away first, as the message says.
            tried = self.pack("repair", out, *words, "--dry-run", expect=None)
            if "move it away and run again" in tried.stderr and tried.returncode == 4:
              os.rename(self.folder / out / "manifest.json", self.folder / "moved-away")
          self.heal(want, out, words, damaged)
          healed, files = healed + 1, files + len(damaged)
        if healed <= number:  # the next round begins with a whole dataset
          shutil.rmtree(self.folder / out)
          for each, data in want.items():
            self.write(f"{out}/{each}", data)
      if COUNTS:
        with open(COUNTS, "a", encoding="utf-8") as counts:
          counts.write(f"| {kind} | {name} | {ROUNDS} | {files} | {healed} |\n")

  def check(self, out, words=(), lost=(), names=None, rounds=3, wanted=None):
    """Loses every kind of file of the dataset in turn, then all of them."""
    want = wanted or self.contents(out)
    names = names or self.names(want)
    shard = self.manifest(out)["shards"][0]
    alone = {name for name in names if name.startswith(shard["name"])}
    index = shard["index"]["name"]
    rng = random.Random(SEED)
    for gone in [{*alone, index}, {index}, alone, set(names), *({name} for name in rng.sample(names, min(rounds, len(names))))]:
      with self.subTest(gone=sorted(gone)):
        for name in gone:
          (self.folder / out / name).unlink(missing_ok=True)
        self.heal(want, out, words, gone, set(lost) & gone)
        for name, data in want.items():
          self.write(f"{out}/{name}", data)
    self.pack("validate", out)

  def lose(self, out="out", number=0):
    """Deletes a shard and its index; their names."""
    shard = self.manifest(out)["shards"][number]
    for name in (shard["name"], shard["index"]["name"]):
      (self.folder / out / name).unlink()
    return shard["name"], shard["index"]["name"]

  def delete(self, *names, out="out"):
    for name in names:
      (self.folder / out / name).unlink(missing_ok=True)
