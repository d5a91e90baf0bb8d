"""What others do with the same images on the same GPU: prints a row (JSON) for each. Arguments: datasets.

Each is measured three times, after a run that is not counted; the rates are the least, the median and the most.
"""

import json
import statistics
import sys
import time


def row(name, result, detail="", rate=None):
  print(json.dumps({"name": name, "result": result, "detail": detail, "rate": rate}), flush=True)


def rates(work, amount, torch):
  """Of three runs, a second: least, median, most."""
  seen = []
  for n in range(4):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    work()
    torch.cuda.synchronize()
    if n:
      seen.append(amount / (time.perf_counter() - begin))
  return min(seen), statistics.median(seen), max(seen)


def pinned_copy(torch):
  host, device = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True), torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
  return rates(lambda: [device.copy_(host, non_blocking=True) for _ in range(8)], 8 * 64, torch)


def torchvision_decode(torch, files):
  from torchvision.io import decode_jpeg  # pylint: disable=import-outside-toplevel
  batch = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in files] * 3
  return rates(lambda: decode_jpeg(batch, device="cuda"), len(batch), torch)


def torchvision_preprocess(torch):
  from torchvision.transforms.v2 import functional  # pylint: disable=import-outside-toplevel
  images = torch.randint(0, 256, (256, 3, 375, 500), dtype=torch.uint8, device="cuda")
  mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

  def work():
    small = functional.resize(images, [224, 224], antialias=True)
    return functional.normalize(small.to(torch.float16) / 255, mean, std)

  return rates(work, len(images), torch)


def dali_decode(torch, files):
  from nvidia.dali import fn, pipeline_def  # pylint: disable=import-outside-toplevel
  import numpy  # pylint: disable=import-outside-toplevel
  batch = [numpy.frombuffer(file, numpy.uint8) for file in files]

  @pipeline_def(batch_size=len(batch), num_threads=8, device_id=0)
  def pipeline():
    images = fn.decoders.image_random_crop(fn.external_source(lambda: batch), device="mixed")
    return fn.resize(images, size=(224, 224))

  built = pipeline()
  built.build()
  return rates(lambda: [built.run() for _ in range(3)], 3 * len(batch), torch)


def main():
  try:
    import torch  # pylint: disable=import-outside-toplevel
  except ImportError as error:
    return row("torch", "absent", str(error))
  if not torch.cuda.is_available():
    return row("torch", "absent", f"torch {torch.__version__} finds no GPU")
  files = []
  for path in sys.argv[1:]:
    import shardpack  # pylint: disable=import-outside-toplevel
    files += [bytes(sample["fields"]["image"]) for sample in map(shardpack.Dataset(path).__getitem__, range(100))]
  jpegs = [file for file in files if file[:2] == b"\xff\xd8"]
  for name, unit, measure in (("pinned copy (torch)", "MiB/s", lambda: pinned_copy(torch)),
                              ("resize, normalise (torchvision)", "images/s", lambda: torchvision_preprocess(torch)),
                              ("decode (torchvision)", "images/s", lambda: torchvision_decode(torch, jpegs)),
                              ("decode, crop, resize (DALI)", "images/s", lambda: dali_decode(torch, jpegs))):
    try:
      seen = measure()
      row(name, "ok", " / ".join(f"{rate:,.0f}" for rate in seen) + " " + unit, seen[1])
    except ImportError as error:
      row(name, "absent", str(error))
    except Exception as error:  # pylint: disable=broad-except
      row(name, "FAILED", f"{type(error).__name__}: {error}")
  return None


if __name__ == "__main__":
  main()
