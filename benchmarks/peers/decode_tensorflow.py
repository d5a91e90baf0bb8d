"""Training pixels with tf.data from TFRecord shards, only the crop decoded (see measure.py)."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402

import measure  # noqa: E402

FEATURES = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}


def train_sample(record):
  """As in TensorFlow's own training programs for ImageNet."""
  sample = tf.io.parse_single_example(record, FEATURES)
  shape = tf.image.extract_jpeg_shape(sample["image/encoded"])
  begin, size, _ = tf.image.sample_distorted_bounding_box(
      shape, tf.zeros([1, 0, 4]), min_object_covered=0.0, aspect_ratio_range=[3 / 4, 4 / 3], area_range=[0.08, 1.0],
      max_attempts=10, use_image_if_no_bounding_boxes=True)
  window = tf.stack([begin[0], begin[1], size[0], size[1]])
  image = tf.image.decode_and_crop_jpeg(sample["image/encoded"], window, channels=3)
  image = tf.image.resize(image, [224, 224], antialias=True)
  image = tf.image.random_flip_left_right(image)
  return tf.cast(image + 0.5, tf.uint8), sample["image/class/label"]


class Pixels:

  def __init__(self, options):
    shards = tf.data.Dataset.from_tensor_slices(measure.shards(options.dataset, ".tfrecord"))
    records = shards.shuffle(len(shards)).interleave(tf.data.TFRecordDataset, cycle_length=len(shards),
                                                     num_parallel_calls=options.threads, deterministic=False)
    images = records.shuffle(1000).map(train_sample, num_parallel_calls=options.threads, deterministic=False)
    limits = tf.data.Options()
    limits.threading.private_threadpool_size = options.threads
    self.batched = images.batch(options.batch).prefetch(tf.data.AUTOTUNE).with_options(limits)

  def batches(self, _):
    return self.batched

  def consume(self, batch):
    images, labels = batch
    samples, total, mean = measure.look_at_pixels(images.numpy())
    return samples, total, int(tf.reduce_sum(labels)), mean


measure.main(tf.__version__, {"pixels": Pixels})
