"""Writes the golden files of this folder with py-lmdb (Debian 12: python3-lmdb 1.4.0 on liblmdb 0.9.24).

    /usr/bin/python3 make_testdata.py [FOLDER]

Each is one environment, made with `subdir=False`. The tests know what is in them: see image() and
the functions below. A second run gives other bytes (liblmdb does not clear its pages) with the same
meaning.
"""

import os
import pickle
import sys

import lmdb


def image(number):
  """The bytes of sample `number`; every seventh needs pages of its own."""
  size = 5000 + number if number % 7 == 3 else 20 + 37 * number % 900
  return b"\xff\xd8\xff" + bytes((number + i) % 251 for i in range(size))


def varint(value):
  value &= (1 << 64) - 1
  out = bytearray()
  while value >= 0x80:
    out.append(value & 0x7F | 0x80)
    value >>= 7
  return bytes(out + bytes([value]))


def open_new(folder, name, **options):
  path = os.path.join(folder, name)
  if os.path.exists(path):
    os.remove(path)
  return lmdb.open(path, subdir=False, lock=False, map_size=1 << 20, **options)


def put(env, entries, **options):
  with env.begin(write=True) as txn:
    for key, value in entries:
      assert txn.put(key, value, **options)


def caffe(folder):
  """32 Datums in four transactions, so that there is a free list; label = number % 5, of 31: none."""
  env = open_new(folder, "caffe.mdb")
  for begin in range(0, 32, 8):
    put(env, ((b"%08d_class/%d.jpg" % (i, i),
               b"\x22" + varint(len(image(i))) + image(i) + b"\x28" +
               varint(i % 5 if i < 31 else -1) + b"\x38\x01") for i in range(begin, begin + 8)),
        append=True)
  env.close()


def raw(folder):
  """30 files, put in no order; every third is deleted again."""
  env = open_new(folder, "raw.mdb")
  put(env, ((b"img/%03d" % (i * 7 % 30), image(i * 7 % 30)) for i in range(30)))
  with env.begin(write=True) as txn:
    for i in range(0, 30, 3):
      assert txn.delete(b"img/%03d" % i)
  env.close()


def folder2lmdb(folder):
  """25 pairs (bytes, int) with protocols 3 to 5 alternating, as folder2lmdb.py writes them."""
  env = open_new(folder, "pickle.mdb")
  put(env, ((b"%d" % i, pickle.dumps((image(i), i * 100), protocol=3 + i % 3)) for i in range(25)))
  put(env, [(b"__keys__", pickle.dumps([b"%d" % i for i in range(25)])),
            (b"__len__", pickle.dumps(25))])
  env.close()


class Command:
  def __reduce__(self):
    return os.system, ("true",)


def hostile_pickle(folder):
  """A pair, a pickle that calls a function, and an old pickle whose bytes need one."""
  env = open_new(folder, "hostile_pickle.mdb")
  put(env, [(b"0", pickle.dumps((image(0), 1), protocol=3)),
            (b"1", pickle.dumps((image(1), Command()), protocol=3)),
            (b"2", pickle.dumps((image(2), 1), protocol=2)),
            (b"__keys__", pickle.dumps([b"0", b"1", b"2"], protocol=3)),
            (b"__len__", pickle.dumps(3, protocol=3))])
  env.close()


def others(folder):
  """Layouts that are only told apart, each with two samples."""
  env = open_new(folder, "ocr.mdb")
  put(env, [(b"image-%09d" % i, image(i)) for i in (1, 2)] +
      [(b"label-%09d" % i, b"text") for i in (1, 2)] + [(b"num-samples", b"2")])
  env.close()
  env = open_new(folder, "stylegan2.mdb")
  put(env, [(b"256-%05d" % i, image(i)) for i in (0, 1)] + [(b"length", b"2")])
  env.close()
  env = open_new(folder, "caffe2.mdb")
  tensors = lambda data: (b"\x0a" + varint(6 + len(varint(len(data))) - 1 + len(data)) +
                          b"\x08\x01\x10\x04\x32" + varint(len(data)) + data +
                          b"\x0a\x07\x08\x01\x10\x02\x22\x01\x05")
  put(env, [(b"%08d_x.jpg" % i, tensors(image(i))) for i in (0, 1)])
  env.close()
  env = open_new(folder, "named.mdb", max_dbs=1)
  env.open_db(b"samples", create=True)
  with env.begin(write=True, db=env.open_db(b"samples")) as txn:
    txn.put(b"0", image(0))
  env.close()


def values(folder):
  """Single values, for the fuzz target of their parsers."""
  tensors = b"\x0a\x08\x08\x01\x10\x04\x32\x02\xff\xd8\x0a\x07\x08\x01\x10\x02\x22\x01\x05"
  for name, value in (("datum", b"\x22\x02\xff\xd8\x28\x05\x38\x01"), ("tensors", tensors),
                      ("pair3", pickle.dumps((b"\xff\xd8", 5), protocol=3)),
                      ("pair5", pickle.dumps((b"\xff\xd8", 5), protocol=5)),
                      ("keys", pickle.dumps([b"%d" % i for i in range(30)])),
                      ("command", pickle.dumps(Command(), protocol=3))):
    with open(os.path.join(folder, name + ".value"), "wb") as out:
      out.write(value)


if __name__ == "__main__":
  target = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
  for make in (caffe, raw, folder2lmdb, hostile_pickle, others, values):
    make(target)
