"""What a checkpoint holds of a loader, and how a loader goes on from it."""

# pylint: disable=protected-access

from __future__ import annotations

import itertools
import re
from typing import Any, Iterable, Mapping, NamedTuple, Optional, Union

from ._errors import CursorError, OptionError
from ._order import Order

VERSION = 1
# What may be another one in the rest of an epoch, whose samples are known all the same.
_OF_BATCH = ("global_batch", "tail")
# What load() has in the place of an Order's options, and its values.
_OF_LOAD: dict[str, tuple[str, dict[str, str]]] = {
    "mode": ("shuffle", {"shuffle": "True", "sequential": "False", "block_shuffle": "'block'"}),
    "tail": ("drop_last", {"drop": "True", "pad": "False"}),
}
_GIVEN = {"epoch_samples": {"0": "not given"}}
# Version 2 has the digest of an augmentation in front of the epoch.
_CURSOR = (r"shardpack-cursor:(?:1(?=(?::[^:]*){5}$)|2(?=(?::[^:]*){6}$)):([0-9a-f]{32}):([0-9a-f]{16}):(?:([0-9a-f]{8}):)?"
           r"(\d{1,20}):(\d{1,20}):[0-9a-f]{16}")


class Saved(NamedTuple):
  """A state that was read."""

  cursor: str
  dataset: str  # identity, in hex
  digest: str  # of the order, in hex
  augment: Optional[str]  # the digest of the augmentation, in hex
  augmentation: Optional[str]  # its text; None for a bare cursor
  epoch: int
  step: int
  order: Optional[str]  # the line that explains the order of the run that saved it; None for a bare cursor
  before: Optional[str]  # in the rest of an epoch that began in another order: that order's line
  seen: int  # and how many of its samples were delivered


class Rest(NamedTuple):
  """What is left of an epoch that began in another order."""

  order: Order  # of what is left, step by step
  before: str
  cursor: str  # of the order before, as it was saved
  epoch: int
  seen: int  # samples of the epoch that are not in `order`


def state(cursor: str, order: Order, rest: Optional[Rest], place: tuple[int, int], augmentation: str) -> dict[str, Any]:
  """For state_dict(). place: epoch and step that come next."""
  content: dict[str, Any] = {"cursor": rest.cursor if rest else cursor, "version": VERSION, "order": order.explain()}
  if augmentation:
    content["augmentation"] = augmentation
  if rest:
    seen = place[1] * rest.order.global_batch if place[0] == rest.epoch else rest.order.samples
    content["rest"] = {"order": rest.before, "seen": rest.seen + seen}
  return content


def read(content: Any) -> Saved:
  """A state_dict(), or the text of a cursor. Raises OptionError for what is neither."""
  if isinstance(content, (str, bytes)):
    content = {"cursor": content, "version": VERSION}
  if not isinstance(content, Mapping) or "cursor" not in content:
    raise OptionError("a state must be what state_dict() returned: a dict with cursor and version")
  if content.get("version") != VERSION:
    raise OptionError(f"the state has version {content.get('version')!r}; this package knows version {VERSION}")
  text = content["cursor"]
  text = (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)).strip()
  match = re.fullmatch(_CURSOR, text)
  if not match:
    raise OptionError(f"the text {text[:100]!r} is not a cursor")
  before: Optional[str] = None
  seen = 0
  if "rest" in content:
    rest = content["rest"]
    if not isinstance(rest, Mapping) or not isinstance(rest.get("order"), str) or not isinstance(rest.get("seen"), int):
      raise OptionError("rest of the state is not a dict with order and seen")
    before, seen = rest["order"], rest["seen"]
  order, augmentation = content.get("order"), content.get("augmentation")
  return Saved(text, match[1], match[2], match[3], None if augmentation is None else str(augmentation), int(match[4]), int(match[5]), None if order is None else str(order), before, seen)


def check_dataset(saved: Saved, identity: str) -> None:
  """identity: the dataset's, in hex."""
  if saved.dataset != identity:
    was, now = "xxh3:" + saved.dataset, "xxh3:" + identity
    raise _error([("dataset", was, now)], [f"it is of another dataset, split or selection: its identity was {was}, and is {now}"],
                 _or_leave_out(saved))


def check_augment(saved: Saved, own: str, augmentation: str) -> None:
  """own: the loader's cursor; augmentation: its text."""
  now = read(own).augment
  if saved.augment != now:
    raise _of_other_augment(saved, now or "none", augmentation)


def _of_other_augment(saved: Saved, now: str, augmentation: str) -> CursorError:
  """now: the digest, or "none"."""
  advice = "with other_augment=True a loader resumes all the same"
  if saved.augmentation and augmentation:
    difference = _first_difference(_plan(saved.augmentation), _plan(augmentation))
    if difference:
      what, was, new = difference
      return _error([difference], [f"{what} was {was}, and is {new}"], advice)
  if saved.augment is None:
    told = "it is of a run without augmentation"
  elif now == "none":
    told = "it is of a run with augmentation, and this one is without"
  else:
    told = "it is of a run with another augmentation"
    told += "" if saved.augmentation else ", of which a cursor alone does not say what differs (a state_dict() does)"
  return _error([("augmentation", saved.augment or "none", now)], [told], advice)


def _plan(augmentation: str) -> tuple[list[str], dict[str, str]]:
  """The steps, and by name what else decides the pixels: operations of the user, OpenCV's version, views, mixing."""
  match = re.fullmatch(r"(.*) views (\d+)(?: (mix/.*))?", augmentation, re.DOTALL)
  text, views, mix = match.groups() if match else (augmentation, "1", None)
  steps, facts = [], {}
  for part in re.findall(r"(?:[^\s({]|\([^)]*\)|\{[^}]*\})+", text):
    name, brace, content = part.partition("{")
    if not brace:
      steps.append(part)
    else:
      facts[name if name == "opencv" else f"own({name})"] = content[:-1]
  return steps, {**facts, "views": views, "mix": mix or "none"}


def _first_difference(was: tuple[list[str], dict[str, str]], now: tuple[list[str], dict[str, str]]) -> Optional[tuple[str, str, str]]:
  for place, (old, new) in enumerate(itertools.zip_longest(was[0], now[0], fillvalue="nothing")):
    if old != new:
      return f"step {place} of the augmentation", old, new
  for name in {**was[1], **now[1]}:
    old, new = (facts.get(name, "none") for facts in (was[1], now[1]))
    if old != new:
      return name, old, new
  return None


def check_order(saved: Saved, order: Order, strict: bool) -> None:
  """Whether a run in this order may go on from there."""
  if saved.order is None or saved.order == order.explain():
    return
  only_batch = _as_of(order, saved.order, _OF_BATCH) == saved.order
  if strict or not only_batch:
    advice = "load_state_dict(state, strict=False) resumes all the same, with the epoch's samples not yet seen"
    raise _error(_differences(saved.order, order.explain()), _told(saved.order, order), advice if only_batch else _or_leave_out(saved))


def where(saved: Saved, order: Order) -> Union[tuple[int, int], Rest]:
  """(epoch, step) at which `order` goes on, or what is left of an epoch that began in another order."""
  began = saved.before or saved.order or order.explain()
  before = order
  if began != order.explain():
    before = order._with(**_options_of(began, _OF_BATCH))
    if before.explain() != began:
      raise _error(_differences(began, before.explain()), _told(began, before), _or_leave_out(saved))
  seen = min(saved.seen if saved.before else saved.step * before.global_batch, before.samples)
  if began == order.explain() and seen % order.global_batch == 0:
    return saved.epoch, seen // order.global_batch
  ids = before._ids_after(saved.epoch, seen)
  tail = order._given["tail"]
  if len(ids) < (order.global_batch if tail == "drop" else 1):
    return saved.epoch + 1, 0
  left = Order(order._given["samples"], order.global_batch, mode="sequential", tail=tail, subset=ids)
  return Rest(left, began, saved.cursor, saved.epoch, seen)


def _error(differences: Iterable[tuple[str, str, str]], told: Iterable[str], advice: str) -> CursorError:
  """told: the same for people."""
  made = CursorError(f"cannot resume from this cursor: {'; '.join(told)}; {advice}")
  made.code, made.differences = "INVALID", tuple(differences)
  return made


def of_refused(refused: OptionError, saved: Saved, own: str, order: Order, augment: Optional[str]) -> CursorError:
  """What the library refuses: another order whose line is not known, another augmentation, a step that there is not. own: the cursor
  of a loader in this order. augment: the digest that the cursor must have."""
  now = read(own)
  if saved.digest != now.digest:
    by = "shuffle, drop_last" if order._of_load else "mode, tail"
    told = f"it is of another order, of which a cursor alone does not say what differs (a state_dict() does): seed, global batch, {by}, or weights"
    return _error([("order", saved.order or "digest " + saved.digest, order.explain())], [told], _or_leave_out(saved))
  if saved.augment != augment:
    return _of_other_augment(saved, augment or "none", "")
  made = CursorError(*refused.args)
  made.__dict__.update(refused.__dict__)
  return made


def _or_leave_out(saved: Saved) -> str:
  return (f"give what it was, or begin an epoch with the new settings: open the loader without this cursor, and call its "
          f"set_epoch({saved.epoch + 1 if saved.step else saved.epoch})")


def _told(was: str, order: Order) -> list[str]:
  """What differs, by the arguments that were given: without digests, and without what only follows from something else."""
  one, other = _facts(was), _facts(order.explain())
  if _facts(_as_of(order, was, (*_OF_BATCH, "epoch_samples"))).get("mixture") == one.get("mixture"):
    other["mixture"] = one.get("mixture", "")  # the counts are others, of the same weights
  told = []
  words = {"weights": ("subset", "mixture")} if order._of_load else {"subset": ("subset",), "mixture": ("mixture",)}
  for word, names in words.items():
    before, after = ([facts[name] for name in names if facts.get(name)] for facts in (one, other))
    they, were, are = ("they", "were", "are") if word == "weights" else ("it", "was", "is")
    if bool(before) != bool(after):
      told.append(f"{word} {were} {'' if before else 'not '}given, and now {are} {'' if after else 'not '}given")
    elif before != after:
      told.append(f"the {word} {are} not what {they} {were}")
  by_weights = order._of_load and len({bool(facts.get("subset") or facts.get("mixture")) for facts in (one, other)}) > 1
  for what, old, new in _differences(was, order.explain()):
    word, values = _OF_LOAD.get(what, (what, _GIVEN.get(what, {}))) if order._of_load else (what, _GIVEN.get(what, {}))
    follows = what in ("subset", "mixture", "steps") or (what == "epoch_samples" and by_weights)
    if not follows and not (what != "mode" and "none" in (old, new)):  # other modes have other options
      told.append(f"{word} was {values.get(old, old)}, and is {values.get(new, new)}")
  return told


def _options_of(line: str, names: Iterable[str]) -> dict[str, Any]:
  """Of an Order that this line explains."""
  facts = _facts(line)
  return {name: facts[name] if name == "tail" else int(facts[name]) for name in names if name in facts}


def _as_of(order: Order, line: str, names: Iterable[str]) -> str:
  """The line of this order with those options of another one, or its own where it cannot have them."""
  try:
    return order._with(**_options_of(line, names)).explain()
  except ValueError:
    return order.explain()


def _facts(line: str) -> dict[str, str]:
  return dict(word.partition("=")[::2] for word in line.split()[1:])


def _differences(was: str, now: str) -> list[tuple[str, str, str]]:
  one, other = _facts(was), _facts(now)
  names = [*one, *(name for name in other if name not in one)]
  return [(name, one.get(name, "none"), other.get(name, "none")) for name in names if one.get(name) != other.get(name)]
