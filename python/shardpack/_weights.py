"""Orders in which samples come as often as their weights say: exact counts in every epoch, by largest remainders."""

from __future__ import annotations

import math
import warnings
from typing import Any, Mapping, Sequence

from ._errors import OptionError
from ._memory import import_numpy
from ._order import Order

_MOST_PARTS = 4096  # of a mixture: more cost too much in each step


def order_of(weights: Any, labels: Any, classes: Sequence[str], samples: int, epoch_samples: int, **options: Any) -> Order:
  """weights: as of load(). labels: int64, of each sample."""
  numpy = import_numpy()
  if isinstance(weights, str):
    if weights != "balanced":
      raise OptionError(f"weights is 'balanced', a dict of classes or a row of numbers, and not {weights!r}")
    of_sample = _balanced(labels)
  elif isinstance(weights, Mapping):
    of_sample = _of_classes(weights, labels, classes)
  else:
    of_sample = numpy.asarray(weights, numpy.float64)
    if of_sample.shape != (samples,):
      raise OptionError(f"weights has the shape {of_sample.shape}, and the dataset {samples} samples")
  if not numpy.isfinite(of_sample).all() or (of_sample < 0).any() or not (of_sample > 0).any():
    raise OptionError("weights are finite numbers from 0 on, and one of them is above 0")
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
  of_sample = numpy.ones(len(labels))
  for name, weight in weights.items():
    number = numbers.get(name, name)
    if not isinstance(number, int) or not 0 <= number < len(classes):
      raise OptionError(f"weights has the class {name!r}, and the dataset {', '.join(classes) or 'none'}")
    of_sample[labels == number] = weight
  return of_sample


def _order(of_sample: Any, weights: Any, labels: Any, samples: int, epoch_samples: int, options: dict[str, Any]) -> Order:
  """Samples of the same class and weight take turns: a part of a mixture each, which goes on from epoch to epoch."""
  numpy = import_numpy()
  groups = labels if isinstance(weights, (str, Mapping)) else numpy.zeros(samples, numpy.int64)
  taken = numpy.flatnonzero(of_sample > 0)
  by_group = taken[numpy.lexsort((taken, of_sample[taken], groups[taken]))]
  new = numpy.flatnonzero((numpy.diff(groups[by_group]) != 0) | (numpy.diff(of_sample[by_group]) != 0)) + 1
  parts = [(int(part[0]), len(part), float(of_sample[by_group[part[0]]]) * len(part))
           for part in numpy.split(numpy.arange(len(by_group)), new)]
  whole = sum(weight for _, _, weight in parts)
  if len(parts) <= _MOST_PARTS and min(weight for _, _, weight in parts) * epoch_samples >= whole:
    return Order(samples, subset=by_group, mixture=parts, epoch_samples=epoch_samples, **options)
  counts = apportioned(of_sample, epoch_samples)
  never = int(((counts == 0) & (of_sample > 0)).sum())
  if never:
    warnings.warn(f"weights: {never} samples have less than half a turn in an epoch of {epoch_samples} and never come; "
                  "a larger epoch_samples changes that", RuntimeWarning, stacklevel=4)
  return Order(samples, subset=numpy.repeat(numpy.arange(samples, dtype=numpy.uint64), counts), **options)


def apportioned(weights: Any, total: int) -> Any:
  """int64: how often each comes, `total` in all, by largest remainders; the first of equal ones comes first."""
  numpy = import_numpy()
  shares = weights * (total / math.fsum(weights))
  counts = numpy.floor(shares).astype(numpy.int64)
  first = numpy.argsort(counts - shares, kind="stable")[:total - int(counts.sum())]
  counts[first] += 1
  return counts
