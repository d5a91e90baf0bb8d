"""usage: neighbours.py SHARDS FOLDER MODULE... : imports the modules in this order, decodes the dataset with shardpack, lets each
neighbour do something, decodes again, and prints the hash of the pixels."""

import hashlib
import importlib
import sys

import numpy

SHARDS, FOLDER, ORDER = sys.argv[1], sys.argv[2], sys.argv[3:]
PIXELS = numpy.arange(16 * 16 * 3, dtype=numpy.uint8).reshape(16, 16, 3)


def decode(shardpack):
  dataset = shardpack.Dataset(SHARDS)
  order = shardpack.Order(len(dataset), global_batch=len(dataset), seed=1)
  for batch in shardpack.Loader(dataset, order, decode=shardpack.Decode(32, 32, crop="resize")):
    return hashlib.sha256(batch.pixels.tobytes() + batch.labels.tobytes()).hexdigest()


def use_torch(torch):
  assert torch.from_numpy(PIXELS).float().sum().item() == PIXELS.sum()


def use_tensorflow(tensorflow):
  data = tensorflow.io.encode_png(PIXELS)
  assert (tensorflow.io.decode_png(data).numpy() == PIXELS).all()
  assert tensorflow.io.decode_jpeg(tensorflow.io.encode_jpeg(PIXELS)).shape == PIXELS.shape


def use_h5py(h5py):
  with h5py.File(FOLDER + "/file.h5", "w") as file:
    file.create_dataset("pixels", data=PIXELS, compression="gzip")
  with h5py.File(FOLDER + "/file.h5") as file:
    assert (file["pixels"][:] == PIXELS).all()


def use_cv2(cv2):
  for suffix in (".png", ".tiff", ".webp", ".jpg"):
    assert cv2.imdecode(cv2.imencode(suffix, PIXELS)[1], cv2.IMREAD_COLOR).shape == PIXELS.shape


def use_pyarrow(pyarrow):
  data = pyarrow.compress(PIXELS.tobytes(), codec="zstd", asbytes=True)
  assert pyarrow.decompress(data, PIXELS.size, codec="zstd", asbytes=True) == PIXELS.tobytes()


def main():
  modules = {name: importlib.import_module(name) for name in ORDER}
  first = decode(modules["shardpack"])
  for name in ORDER:
    if name != "shardpack":
      globals()["use_" + name](modules[name])
  again = decode(modules["shardpack"])
  assert first == again, f"{first} and then {again}"
  print(first)


if __name__ == "__main__":
  main()
