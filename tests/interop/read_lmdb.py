"""Reads LMDB shards with py-lmdb and what a user of each layout has: protobuf, pickle (jobs on stdin, see protocol.py)."""

import pickle

import lmdb
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import protocol


def datum_class():
  """Caffe's message, from its published definition (src/caffe/proto/caffe.proto)."""
  kind = descriptor_pb2.FieldDescriptorProto
  file = descriptor_pb2.FileDescriptorProto(name="caffe.proto", package="caffe", syntax="proto2")
  message = file.message_type.add(name="Datum")
  for name, number, type_, label in (
      ("channels", 1, kind.TYPE_INT32, kind.LABEL_OPTIONAL), ("height", 2, kind.TYPE_INT32, kind.LABEL_OPTIONAL),
      ("width", 3, kind.TYPE_INT32, kind.LABEL_OPTIONAL), ("data", 4, kind.TYPE_BYTES, kind.LABEL_OPTIONAL),
      ("label", 5, kind.TYPE_INT32, kind.LABEL_OPTIONAL), ("float_data", 6, kind.TYPE_FLOAT, kind.LABEL_REPEATED),
      ("encoded", 7, kind.TYPE_BOOL, kind.LABEL_OPTIONAL)):
    message.field.add(name=name, number=number, type=type_, label=label)
  pool = descriptor_pool.DescriptorPool()
  pool.Add(file)
  return message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.Datum"))


DATUM = datum_class()


def read_caffe(transaction):
  for key, value in transaction.cursor():
    datum = DATUM.FromString(value)
    if not datum.encoded or datum.channels or datum.height or datum.width:
      raise ValueError(f"{key}: not an encoded Datum")
    yield protocol.sample(key.decode().partition("_")[2], datum.data, datum.label)


def read_raw(transaction):
  for key, value in transaction.cursor():
    yield protocol.sample(key.decode(), value, -1)


def read_pickle(transaction):
  keys = pickle.loads(transaction.get(b"__keys__"))
  if len(keys) != pickle.loads(transaction.get(b"__len__")):
    raise ValueError("__len__ is not the number of __keys__")
  for key in keys:
    image, label = pickle.loads(transaction.get(key))
    yield protocol.sample(None, image, label)


READ = {"caffe": read_caffe, "raw": read_raw, "pickle": read_pickle}


def read(job):
  for shard in job["shards"]:
    with lmdb.open(shard, readonly=True, lock=False) as environment, environment.begin() as transaction:
      yield from READ[job["layout"]](transaction)


protocol.serve(lmdb.__version__, read)
