"""Packs with the real Spark, Ray and Slurm, on loopback, while workers and nodes are killed.

The dataset is the one that a single process makes, byte for byte, and nothing else is left. `./engines` starts this. Then the
session on the engine's page (docs/cluster-ENGINE.md) is run as it stands there; --write puts what it printed into the page.
usage: engines_check.py [--write] [spark|speculation|ray|slurm|kubernetes]...
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import environments

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACK, SITE = os.environ["SHARDPACK_PACK"], os.environ["SHARDPACK_SITE"]
SHARDS, SAMPLES = int(os.environ.get("SHARDPACK_ENGINE_SHARDS", "24")), 6
SECONDS = 240


class Skipped(Exception):
  """An engine that is not here, and why."""


def pack(*words, cwd, expect=0):
  done = subprocess.run([PACK, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)
  assert done.returncode == expect, f"pack {words}: {done.returncode}\n{done.stderr}"
  return done


def contents(folder):
  return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Place:
  """A folder with a source, a plan of it, and the dataset of a single process."""

  def __init__(self, path, source="src"):
    self.path, self.out = path, path / "out"
    base = (ROOT / "testdata/images/baseline.jpg").read_bytes()
    for i in range(SHARDS * SAMPLES):
      image = path / source / f"{'cat' if i % 2 else 'dog'}/{i:04}.jpg"
      image.parent.mkdir(parents=True, exist_ok=True)
      comment = b"number %d" % i
      image.write_bytes(base[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + base[2:])
    pack("plan", source, "--samples-per-shard", SAMPLES, "--write", path / "plan", "-q", cwd=path)
    pack("build", "--plan", path / "plan", "-o", path / "want", "-q", cwd=path)
    self.want = contents(path / "want")

  def check(self):
    got = contents(self.out)
    assert got.keys() == self.want.keys(), set(got) ^ set(self.want)
    assert not (other := [name for name in got if got[name] != self.want[name]]), f"other bytes than those of a single process: {other}"
    pack("validate", self.out, "-q", cwd=self.path)


def below(process):
  """The processes below one, by id."""
  children = {}
  for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
    with contextlib.suppress(OSError):
      parent = int(stat.read_text().rpartition(")")[2].split()[1])
      children.setdefault(parent, []).append(int(stat.parent.name))
  found, look = [], [process.pid]
  while look:
    found += (more := children.get(look.pop(), []))
    look += more
  return found


def words_of(pid):
  with contextlib.suppress(OSError):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
  return []


def stands_still(pid):
  """Whether a stopped process stands, which takes the kernel a moment, rather than has ended."""
  while state := state_of(pid):
    if state in "TZX":
      return state == "T"
    time.sleep(0.001)
  return False


def state_of(pid):
  with contextlib.suppress(OSError):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
  return ""


def run_and_kill(python, script, place, victims, kills):
  """Runs the script; kills `kills` processes below it for which `victims` holds, one after another."""
  env = {**os.environ, "PYTHONPATH": SITE, "PYTHONDONTWRITEBYTECODE": "1", "PYSPARK_PYTHON": python, "RAY_DEDUP_LOGS": "0"}
  killed = 0
  with subprocess.Popen([python, "-c", textwrap.dedent(script)], cwd=place.path, env=env, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, start_new_session=True) as process:
    said = []
    reader = threading.Thread(target=lambda: said.append(process.stdout.read()))
    reader.start()
    begun = time.monotonic()
    try:
      while process.poll() is None and time.monotonic() < begun + SECONDS:
        time.sleep(0.15)
        if killed >= kills or not list(place.out.glob("train*")):
          continue
        found = [pid for pid in below(process) if victims(words_of(pid))]
        if found:
          with contextlib.suppress(ProcessLookupError):
            os.kill(found[0], signal.SIGKILL)
            killed += 1
          time.sleep(0.4)
      assert process.poll() is not None, f"it still runs after {SECONDS} s"
    finally:
      for pid in below(process) + ([process.pid] if process.poll() is None else []):
        with contextlib.suppress(ProcessLookupError):
          os.kill(pid, signal.SIGKILL)
      reader.join()
  text = said[0].decode(errors="replace")
  assert process.returncode == 0, f"{process.returncode}\n{text[-4000:]}"
  return killed, text, time.monotonic() - begun


def environment(name):
  try:
    return environments.python_of(name)
  except subprocess.CalledProcessError:
    raise Skipped(f"the environment {name} could not be made") from None


def is_pack(words):
  return bool(words) and words[0].endswith("pack") and "build" in words


def session(engine, place, write, **env):
  """Runs the commands of the engine's page, one after another, in a folder with `photos`; each must end with 0."""
  page = ROOT / f"docs/cluster-{engine}.md"
  text = page.read_text()
  if program := re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
    (place.path / "pack_photos.py").write_text(program[1])
  shown = re.search(r"^```transcript\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
  programs = place.path / "bin"
  programs.mkdir()
  (programs / "pack").symlink_to(PACK)
  env = {**os.environ, "PYTHONPATH": SITE, "PYTHONDONTWRITEBYTECODE": "1", **env}
  env["PATH"] = f"{programs}:{env['PATH']}"
  lines = []
  for command in re.findall(r"^\$ (.*)$", shown[1], re.MULTILINE):
    done = subprocess.run(["bash", "-c", command], cwd=place.path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{page.name}: {command}: {done.returncode}\n{done.stdout[-3000:]}"
    said = done.stdout.replace(str(programs / "pack"), "pack").replace(str(place.path), "/data")
    lines += [f"$ {command}", *said.rstrip("\n").split("\n")] if said.strip() else [f"$ {command}"]
  (place.path / "shards").rename(place.out)
  place.check()
  if write:
    page.write_text(text[:shown.start(1)] + "\n".join(lines) + "\n" + text[shown.end(1):])


def python_session(engine, place, write):
  python = environment(engine)
  session(engine, place, write, PATH=f"{pathlib.Path(python).parent}:{os.environ['PATH']}", PYSPARK_PYTHON=python)


def slurm_session(place, write):
  with Slurm(place.path) as cluster:
    session("slurm", place, write, SLURM_CONF=str(cluster.conf), PATH=cluster.env["PATH"])


SESSIONS = {
    "spark": lambda place, write: python_session("spark", place, write),
    "ray": lambda place, write: python_session("ray", place, write),
    "slurm": slurm_session,
    "kubernetes": lambda place, write: session("kubernetes", place, write),
}


def spark(place):
  if shutil.which("java") is None:
    raise Skipped("there is no java (Debian: openjdk-17-jre-headless)")
  killed, text, seconds = run_and_kill(environment("spark"), f"""
      import time
      from pyspark.sql import SparkSession
      import shardpack.spark
      spark = (SparkSession.builder.master("local-cluster[3,1,1024]").config("spark.ui.enabled", "false")
               .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
               .config("spark.task.maxFailures", "20").getOrCreate())
      begun = time.monotonic()
      report = shardpack.spark.pack(spark, "plan", "out")
      print("job", round(time.monotonic() - begun, 1), "s, packed", report["counts"]["packed"])
      assert report["counts"]["packed"] == {SHARDS * SAMPLES}
      spark.stop()
      """, place, lambda words: is_pack(words) or any("CoarseGrainedExecutorBackend" in word for word in words), kills=3)
  return f"{killed} executors and tasks killed; {text.rpartition('job ')[2].strip()}; {seconds:.0f} s in all"


@contextlib.contextmanager
def spark_cluster(python, path):
  """A master and two workers on addresses of their own: Spark starts a copy of a task on another host only."""
  home = subprocess.run([python, "-c", "import os, pyspark; print(os.path.dirname(pyspark.__file__))"], capture_output=True,
                        text=True, check=True).stdout.strip()
  ports, running = free_ports(4), []

  def start(name, host, *words):
    env = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": host, "PYTHONPATH": SITE, "PYSPARK_PYTHON": python,
           "PYTHONDONTWRITEBYTECODE": "1"}
    with open(path / f"{name}.log", "wb") as log:
      running.append(subprocess.Popen([f"{home}/bin/spark-class", *map(str, words)], env=env, cwd=path, stdout=log, stderr=log,
                                      start_new_session=True))
  try:
    start("master", "127.0.0.1", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", ports[0],
          "--webui-port", ports[1])
    for number in (0, 1):
      start(f"worker{number}", f"127.0.0.{2 + number}", "org.apache.spark.deploy.worker.Worker", f"spark://127.0.0.1:{ports[0]}",
            "--host", f"127.0.0.{2 + number}", "--cores", 2, "--memory", "1g", "--webui-port", ports[2 + number],
            "--work-dir", path / f"work{number}")
    yield f"spark://127.0.0.1:{ports[0]}", running
  finally:
    for process in running:
      for pid in below(process) + [process.pid]:
        with contextlib.suppress(ProcessLookupError):
          os.kill(pid, signal.SIGKILL)
      process.wait()


def speculation(place):
  """A task whose `pack` stands still: Spark starts a copy on the other host, which takes the shard over."""
  if shutil.which("java") is None:
    raise Skipped("there is no java (Debian: openjdk-17-jre-headless)")
  python = environment("spark")
  shards = lambda running: [(pid, words[words.index("--shards") + 1]) for process in running for pid in below(process)
                            if is_pack(words := words_of(pid)) and "--shards" in words]
  (log := place.path / "events").mkdir()
  with spark_cluster(python, place.path) as (master, running):
    script = textwrap.dedent(f"""
        from pyspark.sql import SparkSession
        import shardpack.spark
        spark = (SparkSession.builder.master("{master}").config("spark.ui.enabled", "false")
                 .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
                 .config("spark.executor.memory", "512m").config("spark.speculation", "true")
                 .config("spark.speculation.quantile", "0.3").config("spark.speculation.multiplier", "1.5")
                 .config("spark.speculation.interval", "100ms").config("spark.speculation.minTaskRuntime", "1s")
                 .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", "file://{log}")
                 .config("spark.eventLog.compress", "false").config("spark.eventLog.rolling.enabled", "false").getOrCreate())
        report = shardpack.spark.pack(spark, "plan", "out")
        assert report["counts"]["packed"] == {SHARDS * SAMPLES}
        spark.stop()
        """)
    env = {**os.environ, "PYTHONPATH": SITE, "PYTHONDONTWRITEBYTECODE": "1", "PYSPARK_PYTHON": python}
    begun = time.monotonic()
    with subprocess.Popen([python, "-c", script], cwd=place.path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as driver:
      said = []
      reader = threading.Thread(target=lambda: said.append(driver.stdout.read()))
      reader.start()
      stopped = None
      while driver.poll() is None and time.monotonic() < begun + SECONDS:
        time.sleep(0.01)
        for pid, shard in shards(running) if stopped is None else ():
          with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            if stands_still(pid):  # and has not ended just before
              stopped = (pid, shard)
              break
      for pid in [*below(driver), *([driver.pid] if driver.poll() is None else [])]:
        with contextlib.suppress(ProcessLookupError):
          os.kill(pid, signal.SIGKILL)
      reader.join()
      assert driver.returncode == 0, f"{driver.returncode}\n{said[0].decode(errors='replace')[-4000:]}"
    assert stopped is not None, "no task was caught"
    events = [json.loads(line) for file in log.iterdir() for line in file.read_text().splitlines()]
    assert any(event["Event"] == "SparkListenerTaskEnd" and event["Task Info"]["Speculative"]
               and event["Task End Reason"]["Reason"] == "Success" for event in events), f"no copy built the shard of {stopped}"
    seconds = time.monotonic() - begun
    with contextlib.suppress(ProcessLookupError):
      os.kill(stopped[0], signal.SIGCONT)
    until = time.monotonic() + 30
    while pathlib.Path(f"/proc/{stopped[0]}").exists() and time.monotonic() < until:
      time.sleep(0.1)
  return f"the task of shard {stopped[1]} stood still, a copy built it; {seconds:.0f} s in all"


def ray(place):
  killed, text, seconds = run_and_kill(environment("ray"), f"""
      import os, time, ray
      ray.init(num_cpus=4, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False,
               object_store_memory=100_000_000)
      import shardpack.ray
      begun = time.monotonic()
      report = shardpack.ray.pack("plan", "out")
      print("job", round(time.monotonic() - begun, 1), "s, packed", report["counts"]["packed"])
      assert report["counts"]["packed"] == {SHARDS * SAMPLES}
      """, place, lambda words: is_pack(words) or words[:1] == ["ray::build"], kills=3)
  return f"{killed} workers and tasks killed; {text.rpartition('job ')[2].strip()}; {seconds:.0f} s in all"


def free_ports(count):
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
    for each in sockets:
      each.bind(("127.0.0.1", 0))
    return [each.getsockname()[1] for each in sockets]


class Slurm:
  """slurmctld and two slurmd, with files and ports of their own; nobody is asked who he is."""

  def __init__(self, path):
    self.path = path / "slurm"
    control, first, second = free_ports(3)
    for name in ("state", "n1", "n2"):
      (self.path / name).mkdir(parents=True)
    host = socket.gethostname().partition(".")[0]
    user = "root" if os.getuid() == 0 else os.environ["USER"]
    self.conf = self.path / "slurm.conf"
    self.conf.write_text(textwrap.dedent(f"""\
        ClusterName=test
        SlurmctldHost={host}(127.0.0.1)
        SlurmUser={user}
        SlurmdUser={user}
        AuthType=auth/none
        AuthInfo=cred_expire=5
        CredType=cred/none
        SlurmctldPort={control}
        StateSaveLocation={self.path}/state
        SlurmctldPidFile={self.path}/slurmctld.pid
        SlurmdPidFile={self.path}/%n/slurmd.pid
        SlurmdSpoolDir={self.path}/%n/spool
        SlurmctldLogFile={self.path}/slurmctld.log
        SlurmdLogFile={self.path}/%n/slurmd.log
        ProctrackType=proctrack/linuxproc
        TaskPlugin=task/none
        SwitchType=switch/none
        SelectType=select/cons_tres
        SelectTypeParameters=CR_Core
        SlurmdParameters=config_overrides
        ReturnToService=2
        SlurmdTimeout=10
        KillWait=2
        NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2 State=UNKNOWN
        NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2 State=UNKNOWN
        PartitionName=all Nodes=n1,n2 Default=YES MaxTime=10 State=UP
        """))
    self.env = {**os.environ, "SLURM_CONF": str(self.conf), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    self.daemons = {}

  def __enter__(self):
    self.daemons["ctl"] = self.start("slurmctld", "-D", "-f", self.conf)
    for node in ("n1", "n2"):
      self.daemons[node] = self.start("slurmd", "-D", "-N", node, "-f", self.conf)
    self.wait(lambda: self.call("sinfo", "-h", "-o", "%T %D").strip() == "idle 2", 60, "the nodes are not idle")
    return self

  def start(self, *words):
    with open(self.path / "daemons.log", "ab") as log:
      return subprocess.Popen([str(word) for word in words], env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                              start_new_session=True)

  def call(self, *words, cwd=None):
    done = subprocess.run([str(word) for word in words], env=self.env, cwd=cwd, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"

  def wait(self, what, seconds, why):
    until = time.monotonic() + seconds
    while not what():
      if time.monotonic() > until:
        logs = "\n".join(path.read_text()[-1500:] for path in sorted(self.path.rglob("*.log")))
        raise AssertionError(f"{why}\n{self.call('sinfo')}{self.call('squeue')}{logs}")
      time.sleep(0.2)

  def __exit__(self, *_):
    for process in reversed(list(self.daemons.values())):
      for pid in below(process) + [process.pid]:
        with contextlib.suppress(ProcessLookupError):
          os.kill(pid, signal.SIGKILL)
      process.wait()


def slurm(place):
  for program in ("slurmctld", "slurmd", "sbatch"):
    if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
      raise Skipped(f"there is no {program} (Debian: slurm-wlm)")
  (place.path / "plan").unlink()
  pack("plan", "src", "--samples-per-shard", SAMPLES, "--write", place.path / "plan", "-o", place.out, "--slurm", "jobs", "--tasks", 4,
       "-q", cwd=place.path)
  for name in ("build", "commit"):
    job = place.path / f"jobs/{name}.sbatch"
    # Two cores a node, and time to be killed in.
    job.write_text(job.read_text().replace("--cpus-per-task=8", "--cpus-per-task=1").replace("exec ", "sleep 1; exec "))
  begun = time.monotonic()
  with Slurm(place.path) as cluster:
    up = time.monotonic() - begun
    refused = cluster.call("sbatch", "--test-only", place.path / "jobs/build.sbatch")
    assert not refused.startswith("1:"), refused
    os.environ["SLURM_CONF"] = str(cluster.conf)
    sys.path.insert(0, SITE)
    import shardpack.slurm
    build, commit = shardpack.slurm.submit(place.path / "jobs")
    # One task is requeued while it works, then a node dies with its tasks.
    cluster.wait(lambda: list(place.out.glob("train*")) or (place.out / ".pack").exists(), 60, "nothing was begun")
    said = cluster.call("scontrol", "requeue", f"{build}_0")
    cluster.daemons["n2"].kill()
    for pid in below(cluster.daemons["n2"]):
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    done_at = []

    def is_published():
      if not done_at and subprocess.run([PACK, "status", place.out, "-q"], capture_output=True, check=False).returncode == 0:
        done_at.append(time.monotonic() - begun)
      return (place.out / "manifest.json").exists() and not (place.out / ".pack").exists()
    # Tasks of the dead node are requeued, and wait until credentials have expired.
    cluster.wait(is_published, 300, "it was not published")
    ended = time.monotonic() - begun
    cluster.call("scancel", build, commit)
  return (f"jobs {build} and {commit}; a task requeued ({said.strip() or 'done'}), a node killed; up after {up:.0f} s, all shards done "
          f"after {done_at[0] if done_at else ended:.0f} s, published after {ended:.0f} s")


def main():
  engines = {"spark": spark, "speculation": speculation, "ray": ray, "slurm": slurm, "kubernetes": None}  # the last has no engine here
  write = "--write" in sys.argv
  passed = failed = 0
  for name in [word for word in sys.argv[1:] if word != "--write"] or engines:
    with tempfile.TemporaryDirectory(prefix=f"shardpack-{name}-") as folder:
      try:
        facts = "its jobs as processes"
        if engines[name] is not None:
          place = Place(pathlib.Path(folder).resolve() / "killed")
          facts = engines[name](place)
          place.check()
        if name in SESSIONS:
          SESSIONS[name](Place(pathlib.Path(folder).resolve() / "page", "photos"), write)
        print(f"{name}: passed: {facts}", flush=True)
        passed += 1
      except Skipped as why:
        print(f"{name}: skipped: {why}", flush=True)
        failed += bool(os.environ.get("CI"))
      except Exception as error:  # pylint: disable=broad-except
        print(f"{name}: failed: {error}", flush=True)
        failed += 1
  print(f"{passed} passed, {failed} failed")
  sys.exit(failed > 0)


if __name__ == "__main__":
  main()
