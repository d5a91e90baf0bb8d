"""Shrinks images with OpenCV into a tar: opencv_loop.py FOLDER OUT.tar THREADS

The loop that people write, at its best: threads (OpenCV gives the interpreter's lock back), none of OpenCV's own beside
them, INTER_AREA, JPEG of quality 95, results in order.
"""

import concurrent.futures
import io
import json
import pathlib
import sys
import tarfile
import time

import cv2
import numpy


def shrink(path):
  image = cv2.imdecode(numpy.frombuffer(path.read_bytes(), numpy.uint8), cv2.IMREAD_COLOR)
  height, width = image.shape[:2]
  scale = 256 / min(width, height)
  size = round(width * scale), round(height * scale)
  resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
  return cv2.imencode(".jpg", resized, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()


def main(folder, out, threads):
  cv2.setNumThreads(1)
  begin = time.monotonic()
  paths = sorted(pathlib.Path(folder).rglob("*.jpg"))
  with tarfile.open(out, "w") as archive, concurrent.futures.ThreadPoolExecutor(int(threads)) as pool:
    for number, data in enumerate(pool.map(shrink, paths)):
      member = tarfile.TarInfo(f"{number:06}.jpg")
      member.size = len(data)
      archive.addfile(member, io.BytesIO(data))
  print(json.dumps({"images": len(paths), "seconds": time.monotonic() - begin, "version": cv2.__version__}))


main(*sys.argv[1:])
