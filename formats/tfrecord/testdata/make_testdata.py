"""Writes the golden files of this folder with foreign writers: TensorFlow, TensorFlow Datasets, and vahidk's
`tfrecord` package.

    python3 -m venv VENV && VENV/bin/pip install tensorflow-cpu==2.21.0 tfrecord==1.14.6 tensorflow-datasets==4.9.10
    VENV/bin/python make_testdata.py [FOLDER]

The tests know what is in them. TensorFlow writes map entries in an order of its own, so a second
run may give other bytes with the same meaning. shardpack.tfrecord is not made here: it is what our
own writer makes of the samples in tfrecord_format_test.cc.
"""

import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

# (image bytes, format, label, class, file name); nothing decodes these images.
SAMPLES = [
    (b"\xff\xd8first\xff\xd9", "jpeg", 0, "cat", "cat/1.jpg"),
    (b"\xff\xd8second, longer\xff\xd9" * 20, "jpeg", 1, "dog", "dog/2.jpg"),
    (b"\x89PNG third", "png", 300, "n\u00e9on", "n\u00e9on/3.png"),
]


def write_tensorflow(folder):
  import tensorflow as tf

  def of_bytes(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

  def of_ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

  def of_floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))

  def example(image, image_format, label, text, name):
    return tf.train.Example(features=tf.train.Features(feature={
        "image/width": of_ints(4),
        "image/height": of_ints(3),
        "image/channels": of_ints(3),
        "image/encoded": of_bytes(image),
        "image/format": of_bytes(image_format.encode()),
        "image/colorspace": of_bytes(b"RGB"),
        "image/filename": of_bytes(name.encode()),
        "image/class/label": of_ints(label),
        "image/class/text": of_bytes(text.encode()),
        "image/object/bbox/xmin": of_floats(0.25, 0.5),
        "image/object/bbox/xmax": of_floats(),
        "caption": of_bytes(b"a caption of " + name.encode()),
        "numbers": of_ints(-1, 0, 1 << 62),
    })).SerializeToString()

  def tfds_example(image, label):
    return tf.train.Example(features=tf.train.Features(feature={
        "image": of_bytes(image),
        "label": of_ints(label),
        "file_name": of_bytes(b"x.png"),
    })).SerializeToString()

  payloads = [example(*sample) for sample in SAMPLES]
  for name, compression in (("tensorflow.tfrecord", ""), ("tensorflow_gzip.tfrecord", "GZIP"),
                            ("tensorflow_zlib.tfrecord", "ZLIB")):
    with tf.io.TFRecordWriter(os.path.join(folder, name), compression) as writer:
      for payload in payloads:
        writer.write(payload)
  with tf.io.TFRecordWriter(os.path.join(folder, "tfds.tfrecord")) as writer:
    for image, _, label, _, _ in SAMPLES:
      writer.write(tfds_example(image, label))
  sequence = tf.train.SequenceExample(
      context=tf.train.Features(feature={"id": of_ints(7)}),
      feature_lists=tf.train.FeatureLists(feature_list={
          "frames": tf.train.FeatureList(feature=[of_bytes(b"\xff\xd8"), of_bytes(b"\xff\xd8")])}))
  with tf.io.TFRecordWriter(os.path.join(folder, "sequence.tfrecord")) as writer:
    writer.write(sequence.SerializeToString())


def write_imagenet(folder):
  """The features of tensorflow/models research/slim/datasets/build_imagenet_data.py, without boxes."""
  import tensorflow as tf

  def feature(value):
    if isinstance(value, bytes):
      return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if value == []:
      return tf.train.Feature(float_list=tf.train.FloatList(value=[]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value if isinstance(value, tuple) else [value]))

  layouts = os.path.join(folder, "layouts")
  os.makedirs(os.path.join(layouts, "imagenet"), exist_ok=True)
  with tf.io.TFRecordWriter(os.path.join(layouts, "imagenet", "train-00000-of-00001")) as writer:
    for label, (name, synset, width, height, colorspace, channels) in enumerate(
        (("baseline.jpg", b"cat", 40, 24, b"RGB", 3), ("gray.jpg", b"dog", 33, 17, b"GRAY", 1)), start=1):
      with open(os.path.join(layouts, name), "rb") as image:
        features = {
            "image/height": height, "image/width": width, "image/colorspace": colorspace, "image/channels": channels,
            "image/class/label": label, "image/class/synset": synset, "image/class/text": synset,
            "image/object/bbox/xmin": [], "image/object/bbox/xmax": [],
            "image/object/bbox/ymin": [], "image/object/bbox/ymax": [], "image/object/bbox/label": (),
            "image/format": b"JPEG", "image/filename": name.encode(), "image/encoded": image.read(),
        }
      example = tf.train.Example(features=tf.train.Features(
          feature={key: feature(value) for key, value in features.items()}))
      writer.write(example.SerializeToString())


def write_tfds(folder):
  import shutil
  import tempfile
  import tensorflow_datasets as tfds

  layouts = os.path.join(folder, "layouts")

  class Dataset(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
      return tfds.core.DatasetInfo(
          builder=self, disable_shuffling=True, features=tfds.features.FeaturesDict({
              "image": tfds.features.Image(encoding_format="jpeg", shape=(None, None, 3)),
              "image/filename": tfds.features.Text(),
              "label": tfds.features.ClassLabel(names=["cat", "dog"]),
          }))

    def _split_generators(self, dl_manager):
      return {"train": self._generate_examples()}

    def _generate_examples(self):
      for label, name in enumerate(("baseline.jpg", "gray.jpg")):
        yield label, {"image": os.path.join(layouts, name), "image/filename": "cat/" + name, "label": label}

  with tempfile.TemporaryDirectory() as scratch:
    builder = Dataset(data_dir=scratch)
    builder.download_and_prepare()
    into = os.path.join(layouts, "tfds")
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(builder.data_dir, into, copy_function=shutil.copyfile)


def write_vahidk(folder):
  import tfrecord

  writer = tfrecord.TFRecordWriter(os.path.join(folder, "vahidk.tfrecord"))
  for image, _, label, _, name in SAMPLES:
    writer.write({
        "image": (image, "byte"),
        "label": (label, "int"),
        "weights": ([0.5, 1.5], "float"),
        "name": (name.encode(), "byte"),
    })
  writer.close()
  from tfrecord.tools import tfrecord2idx
  tfrecord2idx.create_index(os.path.join(folder, "vahidk.tfrecord"),
                            os.path.join(folder, "vahidk.tfindex"))


def main():
  # One writer a process: both packages define tensorflow.Example.
  if len(sys.argv) == 3:
    {"tensorflow": write_tensorflow, "imagenet": write_imagenet, "tfds": write_tfds,
     "vahidk": write_vahidk}[sys.argv[2]](sys.argv[1])
    return
  folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
  for writer in ("tensorflow", "imagenet", "tfds", "vahidk"):
    subprocess.run([sys.executable, __file__, folder, writer], check=True)


if __name__ == "__main__":
  main()
