"""What every loader must deliver of class folders, as JSON: samples, bytes and labels, and sums over the images' bytes.

The digest is the XOR of the XXH3-64 of the images, null where xxhash is not installed. usage: source_facts.py SRC
"""

import json
import sys
import zlib

import measure

try:
  import xxhash
except ImportError:
  xxhash = None

facts = {"samples": 0, "bytes": 0, "labels": 0, "checksum": 0, "pairs": 0}
digest = 0
for label, path in measure.class_files(sys.argv[1]):
  with open(path, "rb") as file:
    image = file.read()
  crc = zlib.crc32(image)
  digest ^= xxhash.xxh3_64_intdigest(image) if xxhash else 0
  for name, value in (("samples", 1), ("bytes", len(image)), ("labels", label), ("checksum", crc),
                      ("pairs", crc * (label + 1))):
    facts[name] += value
facts["digest"] = f"{digest:016x}" if xxhash else None
print(json.dumps(facts))
