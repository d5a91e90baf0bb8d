"""Orders in which samples come as often as their weights say: exact counts in every epoch, by largest remainders."""

from __future__ import annotations

import math
import warnings
from operator import index
from typing import Any, Mapping, Sequence

from ._errors import OptionError
from ._memory import import_numpy, row_of
from ._options import real
from ._order import Order

_MOST_PARTS = 32768  # of a mixture: with more, a step takes tens of milliseconds


def order_of(weights: Any, labels: Any, classes: Sequence[str], samples: int, epoch_samples: int, **options: Any) -> Order:
  """weights: as of load(). labels: int64, of each sample."""
  numpy = import_numpy()
  if isinstance(weights, str):
    if weights != "balanced":
      raise OptionError(f"weights must be 'balanced', a dict of classes or a row of numbers, not {weights!r}")
    of_sample = _balanced(labels)
  elif isinstance(weights, Mapping):
    of_sample = _of_classes(weights, labels, classes)
  else:
    of_sample = row_of(weights, "weights", "'balanced', a dict of classes or a row of numbers", numpy.float64)
    if of_sample.shape != (samples,):
      raise OptionError(f"weights has the shape {of_sample.shape}, but the dataset has {samples} samples")
  if not numpy.isfinite(of_sample).all() or (of_sample < 0).any() or not (of_sample > 0).any():
    raise OptionError("weights must be finite numbers of at least 0, and one of them above 0")
  return _order(of_sample, weights, labels, samples, epoch_samples or samples, options)


def _balanced(labels: Any) -> Any:
  """Each class that has samples comes equally often."""
  numpy = import_numpy()
  if len(labels) and labels.min() < 0:
    raise OptionError(f"weights='balanced' needs a label of each sample; {int((labels < 0).sum())} have none")
  counts = numpy.bincount(labels)
  return 1.0 / counts[labels]


def _of_classes(weights: Mapping[Any, float], labels: Any, classes: Sequence[str]) -> Any:
  numpy = import_numpy()
  numbers = {name: number for number, name in enumerate(classes)}
  count = len(classes) or int(labels.max(initial=-1)) + 1  # labels of other programs' shards have no names
  of_sample = numpy.ones(len(labels))
  given: dict[int, Any] = {}
  for name, weight in weights.items():
    number = _class_of(name, numbers)
    if not 0 <= number < count:
      raise OptionError(f"weights has the class {name!r}, and the dataset {', '.join(classes) or f'labels below {count}'}")
    if number in given:
      raise OptionError(f"weights has the class {given[number]!r} twice, also as {name!r}")
    given[number] = name
    of_sample[labels == number] = real(weight, f"weights[{name!r}]")
  return of_sample


def _class_of(name: Any, numbers: Mapping[Any, int]) -> int:
  """-1 for what is neither a class's name nor a label."""
  if isinstance(name, str):
    return numbers.get(name, -1)
  try:
    return -1 if isinstance(name, bool) else index(name)
  except TypeError:
    return -1


def _order(of_sample: Any, weights: Any, labels: Any, samples: int, epoch_samples: int, options: dict[str, Any]) -> Order:
  """Samples of the same class and weight take turns: a part of a mixture each, which goes on from epoch to epoch."""
  numpy = import_numpy()
  groups = labels if isinstance(weights, (str, Mapping)) else numpy.zeros(samples, numpy.int64)
  taken = numpy.flatnonzero(of_sample > 0)
  by_group = taken[numpy.lexsort((taken, of_sample[taken], groups[taken]))]
  new = numpy.flatnonzero((numpy.diff(groups[by_group]) != 0) | (numpy.diff(of_sample[by_group]) != 0)) + 1
  firsts = numpy.concatenate([[0], new])
  sizes = numpy.diff(numpy.append(firsts, len(by_group)))
  of_part = of_sample[by_group[firsts]] * sizes
  if not len(of_part) or float(of_part.min()) * epoch_samples >= math.fsum(of_part):
    counts = of_part
  else:
    counts = apportioned(of_part, epoch_samples)  # of which some are 0, which a mixture does not have
    never = int(sizes[counts == 0].sum())
    if never:
      warnings.warn(f"weights: {never} samples, of classes or weights that are due less than one sample in an epoch of "
                    f"{epoch_samples}, never come; a larger epoch_samples changes that", RuntimeWarning, stacklevel=5)
  kept = counts > 0
  by_group, sizes, counts = by_group[numpy.repeat(kept, sizes)], sizes[kept], counts[kept]
  firsts = numpy.cumsum(sizes) - sizes
  if len(sizes) <= _MOST_PARTS:
    parts = list(zip(firsts.tolist(), sizes.tolist(), counts.tolist()))
    return Order(samples, subset=by_group, mixture=parts, epoch_samples=epoch_samples, **options)
  return Order(samples, subset=_fixed(by_group, sizes, apportioned(counts, epoch_samples), options.get("seed", 0)), **options)


def _fixed(by_group: Any, sizes: Any, counts: Any, seed: int) -> Any:
  """uint64: the samples of every epoch, where there are too many groups for each to take turns. Of a group with fewer turns than
  samples, seed decides which come."""
  numpy = import_numpy()
  group = numpy.repeat(numpy.arange(len(sizes)), sizes)
  drawn = numpy.lexsort((numpy.random.default_rng(seed).random(len(group)), group))
  place = numpy.arange(len(group)) - numpy.repeat(numpy.cumsum(sizes) - sizes, sizes)
  turns = counts[group] // sizes[group] + (place < counts[group] % sizes[group])
  never = int((turns == 0).sum())
  if never:
    warnings.warn(f"weights: of {len(sizes)} classes or weights, more than {_MOST_PARTS}, each epoch has the same samples; "
                  f"{never} never come", RuntimeWarning, stacklevel=6)
  return numpy.repeat(by_group[drawn], turns).astype(numpy.uint64)


def apportioned(weights: Any, total: int) -> Any:
  """int64: how often each comes, `total` in all, by largest remainders; the first of equal ones comes first."""
  numpy = import_numpy()
  shares = weights * (total / math.fsum(weights))
  counts = numpy.floor(shares).astype(numpy.int64)
  first = numpy.argsort(counts - shares, kind="stable")[:total - int(counts.sum())]
  counts[first] += 1
  return counts
