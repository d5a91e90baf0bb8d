"""Shrinks images with img2dataset into WebDataset shards: img2dataset_run.py FOLDER OUT PROCESSES

From file: URLs, so that nothing but its own work is timed; the settings are those of the other programs.
"""

import json
import pathlib
import sys
import tempfile
import time

import img2dataset


def main(folder, out, processes):
  paths = sorted(pathlib.Path(folder).rglob("*.jpg"))
  with tempfile.NamedTemporaryFile("w", suffix=".txt") as urls:
    urls.write("".join(f"file://{path.resolve()}\n" for path in paths))
    urls.flush()
    begin = time.monotonic()
    img2dataset.download(
        url_list=urls.name, output_folder=out, input_format="txt", output_format="webdataset", image_size=256,
        resize_mode="keep_ratio", resize_only_if_bigger=False, encode_quality=95, encode_format="jpg",
        processes_count=int(processes), thread_count=16, number_sample_per_shard=max(1, len(paths) // int(processes)),
        compute_hash=None, disable_all_reencoding=False, skip_reencode=False)
  done = sum(1 for _ in pathlib.Path(out).glob("*.tar"))
  print(json.dumps({"images": len(paths), "shards": done, "seconds": time.monotonic() - begin}))


if __name__ == "__main__":
  main(*sys.argv[1:])
