"""Which share of each batch is this process's, as what started it says."""

from __future__ import annotations

import os
import sys
from typing import Any, Mapping, NamedTuple, Optional, Union

from ._errors import OptionError, StateError
from ._options import whole

# Rank and number of processes. mpirun may have been started by srun, whose step then is of its daemons. Slurm's are those of srun's
# step: a job's script has SLURM_PROCID=0 and SLURM_NTASKS too, but it is one process, without a step's number of tasks.
_STARTERS = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))


class Share(NamedTuple):
  rank: int
  world_size: int


def _found(environment: Mapping[str, str]) -> Optional[tuple[str, str]]:
  for rank, size in _STARTERS:
    if rank in environment and size in environment:
      return rank, size
  if ("RANK" in environment) != ("WORLD_SIZE" in environment):
    one, other = ("RANK", "WORLD_SIZE") if "RANK" in environment else ("WORLD_SIZE", "RANK")
    raise OptionError(f"the environment has {one} but not {other}; give rank= and world_size=")
  return None


def _group() -> Optional[tuple[Share, tuple[str, str]]]:
  """What torch or JAX say, where the program has joined its processes, and how to ask them. Nothing is imported, nor begun."""
  torch = sys.modules.get("torch.distributed")
  if getattr(torch, "is_initialized", bool)():  # builds without it have no such function
    return (Share(torch.get_rank(), torch.get_world_size()),  # type: ignore[union-attr]
            ("torch.distributed.get_rank()", "torch.distributed.get_world_size()"))
  jax = sys.modules.get("jax")
  if getattr(getattr(jax, "distributed", None), "is_initialized", bool)():
    # jax.process_index() would begin a backend, before the program has chosen its devices.
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    rank, size = getattr(state, "process_id", None), getattr(state, "num_processes", None)
    if rank is None or size is None:
      raise OptionError("this version of JAX does not say which of its processes this is: give rank=jax.process_index() and "
                        "world_size=jax.process_count()")
    return Share(rank, size), ("process_id of jax.distributed", "num_processes of jax.distributed")
  return None


def _started(environment: Mapping[str, str]) -> Optional[tuple[Share, tuple[str, str]]]:
  """This process's share, and the names of who says so."""
  group = _group()
  if group is None:
    found = _found(environment)
    return (Share(*(_number(environment, name) for name in found)), found) if found else None
  for said, name, variable in zip(*group, _STARTERS[0]):
    if variable in environment and _number(environment, variable) != said:
      raise OptionError(f"{name}={said} contradicts the environment's {variable}={environment[variable]}; give rank= and world_size=")
  return group


def _number(environment: Mapping[str, str], name: str) -> int:
  try:
    return int(environment[name])
  except ValueError:
    raise OptionError(f"the environment variable {name} is {environment[name]!r}, not a number") from None


def check_no_worker(share: Share) -> None:
  """StateError in one of several workers of torch's DataLoader, each of which would deliver all samples of this process's share."""
  worker = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", lambda: None)()
  if worker is not None and worker.num_workers > 1:
    rank, size = share.rank * worker.num_workers + worker.id, share.world_size * worker.num_workers
    raise StateError(f"this is worker {worker.id} of {worker.num_workers} of a torch DataLoader, and each of them would deliver all samples: a "
                     f"loader has threads of its own, so give DataLoader num_workers=0. Or share them out, here with rank={rank} and "
                     f"world_size={size} (rank * num_workers + id, world_size * num_workers); rank=0 and world_size=1 load all in each")


def share_of(rank: Union[int, str], world_size: Union[int, str], environment: Mapping[str, str] = os.environ) -> Share:
  """Numbers as they are; 'auto' from the group that torch or JAX has joined, from torchrun's, Slurm's or Open MPI's environment, or
  else one process."""
  for value, what in ((rank, "rank"), (world_size, "world_size")):
    if isinstance(value, str) and value != "auto":
      raise OptionError(f"{what} must be a number or 'auto', not {value!r}")
  found = _started(environment) if "auto" in (rank, world_size) else None
  started, names = found or (Share(0, 1), ("", ""))
  if (rank == "auto") != (world_size == "auto"):
    given, what = (world_size, "world_size") if rank == "auto" else (rank, "rank")
    if not found:
      if (what, given) not in (("rank", 0), ("world_size", 1)):
        other = "rank" if what == "world_size" else "world_size"
        raise OptionError(f"{what}={given} needs {other} too: nothing in the environment says it, and no process group")
    elif given != getattr(started, what):
      raise OptionError(f"{what}={given} contradicts {names[what == 'world_size']}={getattr(started, what)}")
  share = Share(_size(rank, started.rank, "rank", 0), _size(world_size, started.world_size, "world_size", 1))
  if share.rank >= share.world_size:
    raise OptionError(f"rank must be below world_size, {share.world_size}, not {share.rank}")
  return share


def _size(value: Any, started: int, what: str, least: int) -> int:
  return int(whole(started if value == "auto" else value, what, 32, least=least))
