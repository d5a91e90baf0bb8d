"""cuda/gpu_check on the fake: the programs are those that run on the fake device, and stand-ins for the tools of a GPU machine."""

import ast
import importlib.machinery
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ON_THE_FAKE = {
    "cuda_device_gpu_test": "cuda/loading/device_batch_test",
    "device_loader_gpu_test": "cuda/loading/device_loader_test",
    "jpeg_sizes_gpu_test": "cuda/jpeg/jpeg_sizes_test",
    "resident_loader_gpu_test": "cuda/loading/resident_loader_test",
    "pack-bench-device": "cli/pack-bench-device",
    "pack": "cli/pack",
}
# The source of each program that skips tests on a GPU.
SOURCES = {
    "cuda_device_gpu_test": "cuda/loading/cuda_device_test.cc",
    "device_loader_gpu_test": "cuda/loading/device_loader_test.cc",
    "resident_loader_gpu_test": "cuda/loading/resident_loader_test.cc",
}
# A test program in so far as `run` looks at it. Its one test ends well; that of one program as PREPROCESS says.
STAND_IN = r"""#!/usr/bin/env bash
for word in "$@"; do
  [[ $word == --gtest_list_tests ]] && exit 0
  [[ $word == --gtest_output=json:* ]] && report=${word#*:}
done
[[ ${0##*/} == preprocess_gpu_test ]] || PREPROCESS=ok
case ${PREPROCESS:-ok} in
  ok) test='{"name": "A", "status": "RUN", "result": "COMPLETED"}' code=0 ;;
  skipped) test='{"name": "A", "status": "RUN", "result": "SKIPPED"}' code=0 ;;
  failed) test='{"name": "A", "status": "RUN", "result": "COMPLETED", "failures": [{}]}' code=1 ;;
  sanitizer) test='{"name": "A", "status": "RUN", "result": "COMPLETED"}' code=86 ;;
  none) test='' code=0 ;;
  crash) kill -SEGV $$ ;;
  hang) sleep 600 ;;
esac
echo "{\"testsuites\": [{\"testsuite\": [$test]}]}" >"$report"
exit $code
"""
NVIDIA_SMI = "#!/bin/sh\necho 'NVIDIA Fake, 580.1, 1980 MHz, 2619 MHz, 5, 16, 141 GiB'\n"
SANITIZER = '#!/bin/sh\necho "$2" >>"$TOOLS"\nshift 4\nexec "$@"\n'


class GpuCheckTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.work = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    programs = cls.work / "programs"
    programs.mkdir()
    for name, program in ON_THE_FAKE.items():
      (programs / name).symlink_to(os.path.abspath(program))
    cls.executable(programs / "preprocess_gpu_test", STAND_IN)
    stand_ins = cls.work / "stand_ins"
    stand_ins.mkdir()
    for name in ("preprocess_gpu_test", *ON_THE_FAKE):
      cls.executable(stand_ins / name, STAND_IN)
    photos = cls.work / "photos"
    for n in range(40):
      photo = photos / "ab"[n % 2] / f"{n}.jpg"
      photo.parent.mkdir(parents=True, exist_ok=True)
      shutil.copy(f"testdata/images/orientation-{n % 8 + 1}.jpg", photo)
    (cls.work / "libnvjpeg.so.13").write_text("for its name")
    cls.packed = cls.pack("packed", "--nvjpeg", cls.work / "libnvjpeg.so.13", "--images", photos)
    cls.light = cls.pack("light", "--nvjpeg", cls.work / "libnvjpeg.so.13", programs=stand_ins)
    cls.tools = cls.work / "tools"
    cls.tools.mkdir()
    cls.executable(cls.tools / "nvidia-smi", NVIDIA_SMI)
    cls.executable(cls.tools / "compute-sanitizer", SANITIZER)

  @staticmethod
  def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)

  @classmethod
  def pack(cls, name, *words, code=0, programs=None, unpacked=True):
    programs = programs or cls.work / "programs"
    words = (*words, "--unpacked") if unpacked else words
    done = subprocess.run(["cuda/gpu_check/pack", cls.work / name, "--most-mib", "2000", "--programs", programs, *words],
                          capture_output=True, text=True, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return cls.work / name if code == 0 else done.stderr

  def run_there(self, only, tools=True, folder=None, minutes="10", **environment):
    out = pathlib.Path(tempfile.mkdtemp(dir=self.work))
    path = os.environ["PATH"]
    done = subprocess.run(
        [(folder or self.packed) / "run", "--out", out, "--only", only, "--minutes", minutes, "--bench-words", "--decode 32 --epochs 1 --rate 0 -b 16"],
        env={**os.environ, "PATH": f"{self.tools}:{path}" if tools else path, "TOOLS": str(out / "tools"), "GPU_CHECK_DEVICE": "host", **environment},
        capture_output=True, text=True, check=False)
    summary = json.loads((out / "summary.json").read_text())
    self.assertEqual(done.returncode, 0 if summary["ok"] else 1, done.stderr)
    return summary, {row["name"]: row for row in summary["rows"]}, out, done.stdout

  def test_everything_that_the_fake_can_run(self):
    summary, rows, out, table = self.run_there("machine,tests,sanitize,bench")
    self.assertTrue(summary["ok"], table)
    self.assertEqual(summary["left_out"], ["interop", "rivals", "targets"])
    self.assertIn("not asked for: interop, rivals, targets", table)
    for name in ("machine", "nvjpeg", "preprocess_gpu_test", "jpeg_sizes_gpu_test", "cuda_device_gpu_test", "device_loader_gpu_test",
                 "resident_loader_gpu_test", "racecheck-preprocess_gpu_test", "memcheck-device_loader_gpu_test", "bench-photos-3"):
      self.assertEqual(rows[name]["result"], "ok", rows[name])
      self.assertRegex(table, rf"(?m)^ok +{name} ")
    self.assertRegex(rows["device_loader_gpu_test"]["detail"], r"^1\d tests, exit code 0$")
    self.assertEqual((out / "tools").read_text().split(), ["memcheck", "racecheck", "initcheck", "synccheck", "memcheck"])
    self.assertEqual(summary["figures"]["gpus"][0]["name"], "NVIDIA Fake")
    figure = summary["figures"]["photos"]["copy_bytes_per_second"]
    self.assertTrue(0 < figure["least"] <= figure["median"] <= figure["most"], figure)
    self.assertTrue((out / "device_loader_gpu_test.log").read_text())

  def test_an_archive_is_unpacked_where_it_is_run(self):
    packed = self.pack("archive", "--nvjpeg", self.work / "libnvjpeg.so.13", programs=self.work / "stand_ins", unpacked=False)
    self.assertEqual(sorted(path.name for path in packed.iterdir() if path.is_dir()), ["data"])
    (packed / "lib").mkdir()  # what a run has left that was interrupted
    (packed / "lib" / "half").touch()
    for _ in range(2):
      summary, rows, _, table = self.run_there("machine,tests", folder=packed)
      self.assertTrue(summary["ok"], table)
      self.assertEqual(rows["preprocess_gpu_test"]["result"], "ok")
    self.assertEqual(sorted(path.name for path in packed.iterdir() if path.is_dir()), ["bin", "data", "lib", "system"])
    self.assertFalse((packed / "lib" / "half").exists())

  def test_every_test_is_carried_and_run(self):
    """Of the programs that run on a GPU too: the tests that skip there are the ones that `run` leaves out, and no others."""
    scripts = {name: (self.packed / name).read_text() for name in ("run",)}
    scripts["pack"] = pathlib.Path("cuda/gpu_check/pack").read_text()
    programs = ast.literal_eval(re.search(r"(?m)^TESTS = (.+)$", scripts["run"])[1])
    carried = re.search(r"(?m)^programs=\((.+)\)$", scripts["pack"])[1].split()
    self.assertEqual(sorted([*programs, "pack-bench-device"]), sorted(carried))
    left_out = ast.literal_eval(re.search(r"(?ms)^OF_THE_FAKE = (\{.+?^\})", scripts["run"])[1])
    for program, source in SOURCES.items():
      with self.subTest(program):
        text = pathlib.Path(source).read_text()
        tests = re.findall(r"(?ms)^TEST_F\((\w+), (\w+)\) \{(.+?)^\}", text)
        self.assertGreater(len(tests), 3)
        skipped = [f"{suite}.{name}" for suite, name, body in tests if "GTEST_SKIP" in body]
        self.assertEqual(sorted(skipped), sorted(left_out.get(program, ())))
    for program, only, _ in ast.literal_eval(re.search(r"(?ms)^SANITIZED = (\(.+?\)\)\))$", scripts["run"].replace("TOOLS", "()"))[1]):
      listed = subprocess.run([self.packed / "bin" / program, "--gtest_list_tests", f"--gtest_filter={only}"], capture_output=True, text=True, check=False)
      if program != "preprocess_gpu_test":  # here a stand-in
        for pattern in only.split(":"):
          self.assertRegex(listed.stdout, pattern.strip("*"))

  def test_what_is_not_run_is_no_success(self):
    cases = {"skipped": "NOT RUN", "none": "NOT RUN", "failed": "FAILED", "sanitizer": "FAILED", "crash": "FAILED"}
    for how, result in cases.items():
      with self.subTest(how):
        summary, rows, _, table = self.run_there("tests", folder=self.light, PREPROCESS=how)
        self.assertFalse(summary["ok"], table)
        self.assertEqual(rows["preprocess_gpu_test"]["result"], result, table)
        self.assertEqual([row["name"] for row in summary["rows"] if row["result"] != "ok"], ["preprocess_gpu_test"])

  def test_a_program_that_hangs(self):
    summary, rows, _, _ = self.run_there("tests", folder=self.light, minutes="0.05", PREPROCESS="hang")
    self.assertFalse(summary["ok"])
    self.assertRegex(rows["preprocess_gpu_test"]["detail"], "not done after [23] s")
    self.assertRegex(rows["resident_loader_gpu_test"]["detail"], "no time was left")

  def test_a_machine_without_a_gpu_and_its_tools(self):
    if shutil.which("nvidia-smi") or shutil.which("compute-sanitizer"):
      self.skipTest("this machine has them")
    summary, rows, _, _ = self.run_there("machine,sanitize", tools=False, folder=self.light)
    self.assertFalse(summary["ok"])
    self.assertEqual(rows["machine"]["result"], "FAILED")
    self.assertEqual(rows["initcheck preprocess_gpu_test"], {"name": "initcheck preprocess_gpu_test", "result": "NOT RUN", "seconds": 0.0,
                                                             "detail": "there is no compute-sanitizer"})

  def test_targets(self):
    """Each figure just reaches its target, then just does not."""
    run = importlib.machinery.SourceFileLoader("run", "cuda/gpu_check/run").load_module()
    reached = {"preprocess_images_per_second": 1_024_000, "preprocess_nhwc_images_per_second": 1_024_000, "copy_bytes_per_second": 0.95 * 100 * 2**20,
               "resident_step_microseconds": 10, "runs[decoded for the device].images_per_second": 1200,
               "runs[decoded for the device, whole images].images_per_second": 1200,
               "runs[decoded for the device, at 1786 images/s].cores": 3, "runs[decoded for the device, at 1786 images/s].batches_waited_for": 0}
    rates = {"pinned copy (torch)": 100, "resize, normalise (torchvision)": 512_000, "decode (torchvision)": 1000, "decode, crop, resize (DALI)": 1000}

    def results(seen, rates=rates, gpu="NVIDIA H100 80GB HBM3"):
      with tempfile.TemporaryDirectory() as out:
        checks = run.Checks(pathlib.Path(out), 1, [])
      checks.figures = {"gpus": [{"name": gpu}], "photos": {name: {"median": value} for name, value in seen.items()}}
      checks.rates = rates
      checks.targets()
      return {row["name"].removeprefix("target photos: "): row["result"] for row in checks.rows}

    self.assertEqual(set(results(reached).values()), {"ok"})
    self.assertEqual(len(results(reached)), len(run.TARGETS))
    worse = {name: value * (1.01 if any(part in name for part in ("micro", "cores", "whole")) else 0.99) + (1 if "waited" in name else 0) for name, value in reached.items()}
    self.assertEqual(set(results(worse).values()), {"MISSED"})
    on_another = results(worse, gpu="NVIDIA L4")
    self.assertEqual([name for name, result in on_another.items() if result == "ok"], ["256 images to f16 NCHW, ms", "256 images to f16 NHWC, ms"])
    alone = results(reached, rates={})
    self.assertEqual([name for name, result in alone.items() if result == "absent"],
                     ["preprocessing / torchvision", "decode and crop / torchvision", "decode and crop / DALI", "pinned copy / torch"])
    for missing in reached:
      with self.subTest(missing):
        left = results({name: value for name, value in reached.items() if name != missing})
        self.assertIn("NOT RUN", left.values())
    self.assertEqual(run.RIVALS, tuple(re.findall(r'\("([^"]+)", "\w+/s", lambda', pathlib.Path("cuda/gpu_check/rivals.py").read_text())))

  def test_targets_of_what_was_measured(self):
    summary, rows, _, table = self.run_there("bench,targets")
    self.assertEqual(rows["target photos: preprocessing / torchvision"]["result"], "absent")
    self.assertEqual(rows["target photos: cores at a fixed rate"], {"name": "target photos: cores at a fixed rate", "result": "NOT RUN", "seconds": 0.0,
                                                                    "detail": "a fixed rate was not measured"})
    self.assertIn(rows["target photos: resident step, us of its thread"]["result"], ("ok", "MISSED"))
    self.assertEqual(summary["missed"], [row["name"] for row in summary["rows"] if row["result"] == "MISSED"])
    self.assertIn("targets were missed", table)
    summary, rows, _, _ = self.run_there("targets")
    self.assertEqual(rows["targets"]["detail"], "nothing was measured")

  def test_what_was_not_brought(self):
    bare = self.pack("bare", programs=self.work / "stand_ins")
    (bare / "bin" / "resident_loader_gpu_test").unlink()
    summary, rows, _, _ = self.run_there("tests,bench", folder=bare, SHARDPACK_NVJPEG="")
    self.assertFalse(summary["ok"])
    self.assertEqual(rows["resident_loader_gpu_test"]["result"], "NOT RUN")
    self.assertEqual((rows["bench"]["result"], rows["bench"]["detail"]), ("NOT RUN", "no images were brought"))
    if rows["nvjpeg"]["result"] != "ok":  # where Python has none
      self.assertEqual(rows["nvjpeg"]["detail"], "none was brought, and none is here")

  def test_scripts_whose_library_is_missing(self):
    summary, rows, _, table = self.run_there("interop,rivals")
    if "interop torch" in rows:  # no torch, or no GPU
      self.assertFalse(summary["ok"])
      self.assertEqual(rows["interop torch"]["result"], "NOT RUN", table)
      self.assertEqual(rows["rivals torch"]["result"], "absent", table)

  def test_pack_refuses(self):
    self.assertIn("is there already", self.pack("packed", code=2))
    self.assertIn("there is no ", self.pack("other", "--nvjpeg", "nowhere", code=2))
    self.assertIn("there is no --what", self.pack("other", "--what", code=2))
    self.assertIn("are more than --most-mib 1", self.pack("large", "--most-mib", "1", code=2))
    run = subprocess.run([self.packed / "run", "--only", "nothing"], capture_output=True, text=True, check=False)
    self.assertEqual(run.returncode, 2)
    self.assertIn("there is no step nothing", run.stderr)


if __name__ == "__main__":
  unittest.main()
