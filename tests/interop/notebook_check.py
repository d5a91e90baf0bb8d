"""examples/first_steps.ipynb runs from the first cell to the last as a newcomer runs it: in a fresh environment, into which its first cell
installs the wheel.

check(wheel, pythons, results): `pythons`: name -> Python.
usage: notebook_check.py WHEEL NOTEBOOK_PYTHON TORCH_PYTHON      prints what a reader sees, as Markdown
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import environments

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NOTEBOOK = ROOT / "examples" / "first_steps.ipynb"
# In the fresh environment: runs argv[1] and writes it with its outputs to argv[2].
RUN = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
nbformat.validate(notebook)
try:
  nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
finally:
  nbformat.write(notebook, sys.argv[2])
"""


def executed(wheel, pythons):
  """The notebook with its outputs."""
  with tempfile.TemporaryDirectory(prefix="shardpack-notebook-") as work:
    work = pathlib.Path(work)
    subprocess.run(["/usr/bin/python3", "-m", "venv", work / "venv"], check=True)
    python = work / "venv" / "bin" / "python"
    # Jupyter and torch, as if installed; pip sees them too, and finds the wheel alone.
    behind = [environments.packages(pythons[name]) for name in ("notebook", "torch")]
    pathlib.Path(environments.packages(python), "behind.pth").write_text("\n".join(behind))
    environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(work), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull,
                   "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_FIND_LINKS": str(pathlib.Path(wheel).resolve().parent)}
    # That of a fresh environment is older than torch wants, and would stand before the one behind.
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"], check=True)
    (work / "notebook").mkdir()
    done = subprocess.run([python, "-c", RUN, NOTEBOOK, work / "done.ipynb"], cwd=work / "notebook", env=environment, capture_output=True,
                          text=True, check=False)
    if done.returncode:
      shown = transcript(json.loads((work / "done.ipynb").read_text())) if (work / "done.ipynb").exists() else ""
      raise RuntimeError(f"{shown}\n{done.stderr.strip()}"[-3000:])
    return json.loads((work / "done.ipynb").read_text())


def printed(cell):
  """What a cell shows, as text."""
  texts = []
  for output in cell.get("outputs", ()):
    text = output.get("text") or output.get("data", {}).get("text/plain", "") or output.get("traceback", [])
    texts.append(re.sub(r"\x1b\[[0-9;]*m", "", "".join(text)))
    if "image/png" in output.get("data", {}):
      texts.append("(a picture)\n")
  return "\n".join(text.rstrip("\n") for text in texts)


def transcript(notebook):
  parts = []
  for cell in notebook["cells"]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
      parts.append(source)
    else:
      shown = printed(cell)
      parts.append(f"```python\n{source}\n```" + (f"\n```text\n{shown}\n```" if shown else ""))
  return "\n\n".join(parts)


def trouble_with(notebook):
  shown = "\n".join(printed(cell) for cell in notebook["cells"])
  accuracy = re.search(r"accuracy ([\d.]+) of (\d+) images", shown)
  if not accuracy or float(accuracy[1]) < 0.6:
    return f"trained to {accuracy[0] if accuracy else 'nothing'}"
  if "goes on with epoch 1 step 10" not in shown:
    return "the second epoch did not go on with step 10"
  pictures = [data for cell in notebook["cells"] for output in cell.get("outputs", ()) for data in output.get("data", {})]
  if pictures.count("text/html") < 1 or pictures.count("image/png") < 2:
    return f"it showed {pictures}"
  return None


def check(wheel, pythons, results):
  try:
    if any(cell.get("outputs") for cell in json.loads(NOTEBOOK.read_text())["cells"]):
      trouble = "outputs are kept in the notebook: remove them"
    else:
      trouble = trouble_with(executed(wheel, pythons))
  except RuntimeError as error:
    trouble = str(error)
  results.add(("notebook", "nbclient", "wheel", "examples/first_steps.ipynb", ""), trouble)


if __name__ == "__main__":
  print(transcript(executed(sys.argv[1], {"notebook": sys.argv[2], "torch": sys.argv[3]})))
