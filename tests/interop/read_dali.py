"""Reads shards with NVIDIA DALI on the CPU, through our indexes where it takes any (jobs on stdin, see protocol.py)."""

import nvidia.dali as dali
import nvidia.dali.tfrecord as dali_tfrecord
from nvidia.dali import fn

import protocol

FEATURES = {
    "image/encoded": dali_tfrecord.FixedLenFeature((), dali_tfrecord.string, ""),
    "image/class/label": dali_tfrecord.FixedLenFeature([1], dali_tfrecord.int64, -1),
    "image/filename": dali_tfrecord.FixedLenFeature((), dali_tfrecord.string, ""),
}


@dali.pipeline_def(batch_size=16, num_threads=1, device_id=None, prefetch_queue_depth=1)
def webdataset_pipeline(shards, indexes):
  # One extension list a component: the image has the extension of its content.
  return tuple(
      fn.readers.webdataset(name="reader", paths=shards, index_paths=indexes,
                            ext=["jpg;png;webp;gif;bmp;tif", "cls"], missing_component_behavior="error",
                            dont_use_mmap=True))


@dali.pipeline_def(batch_size=16, num_threads=1, device_id=None, prefetch_queue_depth=1)
def tfrecord_pipeline(shards, indexes):
  features = fn.readers.tfrecord(name="reader", path=shards, index_path=indexes, features=FEATURES,
                                 dont_use_mmap=True)
  return features["image/encoded"], features["image/class/label"], features["image/filename"]


@dali.pipeline_def(batch_size=16, num_threads=1, device_id=None, prefetch_queue_depth=1)
def caffe_pipeline(shards, _):
  return tuple(fn.readers.caffe(name="reader", path=shards, dont_use_mmap=True))


MAKE = {"webdataset": webdataset_pipeline, "tfrecord": tfrecord_pipeline, "lmdb": caffe_pipeline}


def read(job):
  pipeline = MAKE[job["format"]](job["shards"], job["indexes"])
  pipeline.build()
  # The reader goes round for ever; one epoch is what it says its size is.
  left = pipeline.reader_meta("reader")["epoch_size"]
  while left > 0:
    outputs = pipeline.run()
    for i in range(min(left, len(outputs[0]))):
      image = outputs[0].at(i).tobytes()
      if job["format"] == "webdataset":
        yield protocol.sample(None, image, int(outputs[1].at(i).tobytes()))
      elif job["format"] == "lmdb":
        yield protocol.sample(None, image, int(outputs[1].at(i)[0]))
      else:
        yield protocol.sample(outputs[2].at(i).tobytes().decode(), image, int(outputs[1].at(i)[0]))
    left -= len(outputs[0])


protocol.serve(dali.__version__, read)
