"""The drivers of engines without the engines: the jobs of `pack plan --slurm` and `--k8s` run by a plain loop, and the functions
that tasks of Spark and Ray call. engines_check.py has the engines themselves.
"""

import json
import os
import re
import subprocess
import sys
import types

import cluster
import command
import shardpack
import shardpack.cluster
import shardpack.slurm


class JobsTest(cluster.ClusterTest):

  def jobs(self, *words):
    (self.folder / "plan").unlink()
    return self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan", "-o", "out", *words).stderr

  def run_job(self, path, **env):
    done = subprocess.run(["bash", path], cwd="/", env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()

  def test_slurm_array_as_a_loop(self):
    said = self.jobs("--slurm", "jobs", "--tasks", "4")
    self.assertIn("sbatch --dependency=afterany:$(sbatch --parsable jobs/build.sbatch) jobs/commit.sbatch", said)
    for name in ("build", "commit"):
      subprocess.run(["bash", "-n", self.folder / f"jobs/{name}.sbatch"], check=True)
    text = (self.folder / "jobs/build.sbatch").read_text()
    self.assertIn("#SBATCH --array=0-3\n", text)
    self.assertIn("#SBATCH --requeue\n", text)
    # Its head ends at the first line that is neither a comment nor blank.
    head = text.partition("\nexec ")[0]
    self.assertEqual(text.count("#SBATCH"), head.count("#SBATCH"))
    array = {"SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "3", "SLURM_ARRAY_TASK_COUNT": "4"}
    self.assertEqual(2, self.run_job(self.folder / "jobs/commit.sbatch", **array)[0], "there is nothing to publish yet")
    for task in ("2", "0", "3", "1"):
      code, err = self.run_job(self.folder / "jobs/build.sbatch", SLURM_ARRAY_TASK_ID=task, SLURM_CPUS_PER_TASK="2", **array)
      self.assertEqual(0, code, err)
    code, err = self.run_job(self.folder / "jobs/commit.sbatch")
    self.assertEqual(0, code, err)
    self.assert_whole()

  def test_a_commit_job_with_skipped_inputs_is_a_success(self):
    self.write("src/cat/bad.jpg", b"no image")
    self.jobs("--slurm", "jobs", "--tasks", "1")
    self.run_job(self.folder / "jobs/build.sbatch", SLURM_ARRAY_TASK_ID="0", SLURM_ARRAY_TASK_MIN="0", SLURM_ARRAY_TASK_MAX="0",
                 SLURM_ARRAY_TASK_COUNT="1")
    commit = self.folder / "jobs/commit.sbatch"
    self.assertEqual(4, self.run_job(commit)[0])  # too many are bad
    commit.write_text(commit.read_text().replace(" commit ", " commit --max-skip 10% "))
    self.assertEqual(0, self.run_job(commit)[0])

  def test_kubernetes_jobs_as_a_loop(self):
    self.assertIn("kubectl apply -f jobs", self.jobs("--k8s", "jobs", "--tasks", "3"))
    words = {}
    for name in ("build", "commit"):
      text = (self.folder / f"jobs/{name}.yaml").read_text()
      words[name] = json.loads(re.search(r"^        command: (.*)$", text, re.MULTILINE).group(1))
      self.assertNotIn(command.PACK, text, "the image has a pack of its own")
      self.assertEqual([str(self.folder)], re.findall(r'mountPath: "(.*)"', text), "plan, source and dataset are below it")
      self.assertIn("kind: Job\n", text)
      try:
        import yaml
      except ImportError:
        continue
      job = yaml.safe_load(text)
      self.assertEqual("batch/v1", job["apiVersion"])
      self.assertEqual(words[name], job["spec"]["template"]["spec"]["containers"][0]["command"])
    (self.folder / "bin").mkdir()
    (self.folder / "bin/pack").symlink_to(command.PACK)
    image = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
    self.assertIn("completions: 3\n", (self.folder / "jobs/build.yaml").read_text())
    self.assertIn('{name: SHARDPACK_WORKERS, value: "3"}', (self.folder / "jobs/build.yaml").read_text())
    commit = subprocess.Popen(words["commit"], cwd="/", env=image, stdout=subprocess.DEVNULL)  # it waits for the others
    for index in ("1", "2", "0"):
      done = subprocess.run(words["build"], cwd="/", env={**image, "JOB_COMPLETION_INDEX": index, "SHARDPACK_WORKERS": "3"},
                            stdin=subprocess.DEVNULL, capture_output=True, check=False)
      self.assertEqual(0, done.returncode, done.stderr)
    self.assertEqual(0, commit.wait(timeout=60))
    self.assert_whole()

  def test_what_is_in_the_way(self):
    self.jobs("--slurm", "jobs")
    self.jobs("--slurm", "jobs")  # the same again
    self.write("jobs/build.sbatch", b"mine")
    (self.folder / "plan").unlink()
    refused = self.pack("plan", "src", "--samples-per-shard", "4", "--write", "plan", "-o", "out", "--slurm", "jobs", expect=5).stderr
    self.assertIn("build.sbatch is there", refused)
    self.assertEqual(b"mine", (self.folder / "jobs/build.sbatch").read_bytes())
    self.assertFalse((self.folder / "plan").exists(), "the plan was written before the jobs were refused")
    for words in (["--slurm", "j"], ["--k8s", "j", "--write", "p2"], ["--tasks", "3", "--write", "p2"],
                  ["--write", "p2", "-o", "out", "--k8s", "jobs/build.sbatch"], ["--write", "p2", "-o", "\x01", "--slurm", "j"]):
      self.pack("plan", "src", *words, expect=2)
      self.assertFalse((self.folder / "p2").exists(), words)

  def test_a_folder_for_jobs_that_cannot_be_made(self):
    for flag in ("--slurm", "--k8s"):
      self.pack("plan", "src", "--write", "p2", "-o", "out", flag, "/proc/none", expect=None)
      self.assertFalse((self.folder / "p2").exists(), "the plan was written, and would be in the way of the next try")

  def test_jobs_for_a_plan_that_is_there(self):
    plan = (self.folder / "plan").read_bytes()
    words = ["plan", "src", "--samples-per-shard", "4", "--write", "plan", "-o", "out"]
    self.pack(*words, "--slurm", "jobs")
    self.assertTrue((self.folder / "jobs/build.sbatch").exists())
    self.assertIn("exists", self.pack(*words, expect=5).stderr)
    self.assertIn("exists", self.pack(*words, "--seed", "9", "--slurm", "more", expect=5).stderr)
    self.assertEqual(plan, (self.folder / "plan").read_bytes())
    self.assertEqual(["plan"], [path.name for path in self.folder.glob("*plan*")])

  def test_sbatch_is_given_both(self):
    self.jobs("--slurm", "jobs")
    sbatch = self.write("bin/sbatch", b'#!/bin/sh\necho "$@" >> ' + str(self.folder / "typed").encode() + b"\necho 47\n")
    sbatch.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{self.folder / 'bin'}:{path}"
    try:
      self.assertEqual(("47", "47"), shardpack.slurm.submit(self.folder / "jobs", ["--partition=big"]))
    finally:
      os.environ["PATH"] = path
    first, second = (self.folder / "typed").read_text().splitlines()
    self.assertEqual(f"--parsable --partition=big {self.folder}/jobs/build.sbatch", first)
    self.assertEqual(f"--parsable --partition=big --dependency=afterany:47 {self.folder}/jobs/commit.sbatch", second)

  def test_a_commit_that_sbatch_refuses(self):
    self.jobs("--slurm", "jobs")
    sbatch = self.write("bin/sbatch", b'#!/bin/sh\ncase "$*" in *commit.sbatch) echo no dependencies >&2; exit 1;; esac\necho 4711\n')
    sbatch.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{self.folder / 'bin'}:{path}"
    try:
      with self.assertRaisesRegex(shardpack.PackError, r"(?s)no dependencies.*array 4711 is queued.*scancel 4711.*afterany:4711"):
        shardpack.slurm.submit(self.folder / "jobs")
    finally:
      os.environ["PATH"] = path


class TasksTest(cluster.ClusterTest):

  def paths(self):
    return str(self.folder / "plan"), str(self.folder / "out")

  def test_shards_one_by_one(self):
    plan, out = self.paths()
    self.assertEqual(list(range(6)), shardpack.cluster.status(out, plan)["unfinished"])
    results = [shardpack.cluster.build_shard(n, plan, out, attempt) for n in range(6) for attempt in (0, 1)]
    self.assertEqual([(n, 0) for n in range(6) for _ in (0, 1)], [each[:2] for each in results])
    shardpack.cluster.check(results)
    report = shardpack.cluster.commit(out)
    self.assertEqual(24, report["counts"]["packed"])
    self.assert_whole()
    self.assertEqual([], shardpack.cluster.status(out)["unfinished"])

  def test_what_another_try_would_not_change(self):
    plan, out = self.paths()
    number, code, said = shardpack.cluster.build_shard(99, plan, out)
    self.assertEqual((99, 2), (number, code))
    with self.assertRaises(shardpack.PackError) as raised:
      shardpack.cluster.check([(99, code, said)])
    self.assertEqual(2, raised.exception.exit_code)
    with self.assertRaises(shardpack.PackError) as raised:
      shardpack.cluster.build_shard(0, plan, out)
      shardpack.cluster.commit(out)
    self.assertEqual(7, raised.exception.exit_code)
    with self.assertRaises(shardpack.PackError):
      shardpack.cluster.absolute("s3://bucket/plan", "out")

  def other_plan(self):
    self.pack("plan", "src", "--samples-per-shard", "4", "--seed", "9", "--write", "other", "-q")
    return str(self.folder / "other")

  def test_a_folder_of_another_plan_is_not_published(self):
    import shardpack.ray
    import shardpack.spark
    _, out = self.paths()
    other = self.other_plan()
    self.work("--join")  # all is done, by the first plan
    sys.modules["ray"] = types.SimpleNamespace(remote=lambda **_: lambda function: function)
    try:
      for published in (False, True):
        for run in (lambda: shardpack.spark.pack(None, other, out), lambda: shardpack.ray.pack(other, out)):
          with self.assertRaises(shardpack.PackError) as raised:
            run()
          self.assertEqual(5, raised.exception.exit_code)
          self.assertIn("another plan", str(raised.exception))
        self.assertEqual(published, (self.out / "manifest.json").exists())
        if not published:
          self.commit()
    finally:
      del sys.modules["ray"]

  def test_an_engine_that_gives_up(self):
    import shardpack.ray
    import shardpack.spark
    plan, out = self.paths()

    class EngineError(Exception):
      pass

    def fail(*_):
      raise EngineError("too many attempts")
    spark = types.SimpleNamespace(sparkContext=types.SimpleNamespace(parallelize=lambda *_: types.SimpleNamespace(
        mapPartitions=lambda _: types.SimpleNamespace(collect=fail))))
    with self.assertRaises(shardpack.PackError) as raised:
      shardpack.spark.pack(spark, plan, out)
    self.assertEqual(6, raised.exception.exit_code)
    self.assertIsInstance(raised.exception.__cause__, EngineError)
    cancelled = []
    numbers = iter(range(100))
    sys.modules["ray"] = types.SimpleNamespace(
        remote=lambda **_: lambda function: types.SimpleNamespace(remote=lambda *words: next(numbers)),
        get=fail, wait=lambda tasks: (tasks[:1], tasks[1:]), cancel=cancelled.append)
    try:
      with self.assertRaises(shardpack.PackError) as raised:
        shardpack.ray.pack(plan, out)
      self.assertEqual(6, raised.exception.exit_code)
      self.assertIn("too many attempts", str(raised.exception))
      self.assertEqual([1, 2, 3, 4, 5], cancelled)
      sys.modules["ray"].get = lambda tasks: [(task, 4, "damaged") for task in tasks]
      cancelled.clear()
      with self.assertRaises(shardpack.PackError) as raised:
        shardpack.ray.pack(plan, out)
      self.assertEqual((4, 5), (raised.exception.exit_code, len(cancelled)))
    finally:
      del sys.modules["ray"]

  def test_spark_and_ray_as_far_as_they_are_called(self):
    """Stand-ins that run each task here: the first attempt of every second one fails."""
    import shardpack.ray
    import shardpack.spark
    plan, out = self.paths()

    class Context:
      attempt = 0

      @classmethod
      def get(cls):
        return cls

      @classmethod
      def attemptNumber(cls):  # noqa: the name is Spark's
        return cls.attempt

    def parallelize(items, slices):
      self.assertEqual(len(items), slices)

      def collect(part):
        results = []
        for item in items:
          for Context.attempt in range(1 + item % 2):
            result = list(part([item]))
          results += result
        return results
      return types.SimpleNamespace(mapPartitions=lambda part: types.SimpleNamespace(collect=lambda: collect(part)))
    sys.modules["pyspark"] = types.SimpleNamespace(TaskContext=Context)
    spark = types.SimpleNamespace(sparkContext=types.SimpleNamespace(parallelize=parallelize))
    try:
      self.assertEqual(24, shardpack.spark.pack(spark, plan, out)["counts"]["packed"])
      self.assert_whole()
      shardpack.spark.pack(spark, plan, out)  # nothing is left to do
    finally:
      del sys.modules["pyspark"]
    self.clear()
    fake = types.SimpleNamespace(
        cancel=lambda _: self.fail("all tasks have ended"),
        remote=lambda **_: lambda function: types.SimpleNamespace(remote=lambda *words: lambda: function(*words)),
        get=lambda tasks: [task() for task in tasks], wait=lambda tasks: (tasks[:1], tasks[1:]))
    sys.modules["ray"] = fake
    window, shardpack.ray._WINDOW = shardpack.ray._WINDOW, 2
    try:
      self.assertEqual(24, shardpack.ray.pack(plan, out)["counts"]["packed"])
    finally:
      del sys.modules["ray"]
      shardpack.ray._WINDOW = window
    self.assert_whole()


if __name__ == "__main__":
  command.main()
