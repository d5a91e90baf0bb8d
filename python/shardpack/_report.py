"""What a job reports."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

# Names that are the same for all jobs, and where the reports have them.
_SAME = {
    "samples": (("counts", "packed"), ("records", "checked"), ("records",), ("files",)),
    "skipped": (("counts", "skipped"), ("withheld",)),
    "identity": (("identity",), ("dataset",)),
    "shards": (("shards", "checked"), ("shards",)),
}


class Finding:
  """Something that `validate` found. Attributes that are not known are None.

  `id` ("file-hash"), `severity` ("error" or "warning"), `message`, `shard`, `record`, `key`, `field`, `offset` (bytes), `expected`,
  `actual`, `hint`.

  >>> shardpack.validate("shards").findings
  []
  """

  def __init__(self, facts: Mapping[str, Any]):
    self.id: str = facts.get("id", "")
    self.severity: str = facts.get("severity", "")
    self.message: str = facts.get("message", "")
    self.shard: str | None = facts.get("shard")
    self.record: int | None = facts.get("record")
    self.key: str | None = facts.get("key")
    self.field: str | None = facts.get("field")
    self.offset: int | None = facts.get("offset")
    self.expected: Any = facts.get("expected")
    self.actual: Any = facts.get("actual")
    self.hint: str | None = facts.get("hint")

  def __repr__(self) -> str:
    where = " ".join(f"{name} {value}" for name, value in vars(self).items()
                     if name in ("shard", "record", "key", "field", "offset") and value is not None)
    return f"<{self.severity} {self.id}: {self.message}{' (' + where + ')' if where else ''}>"


class Report:
  """What a job has done: an attribute for each member of the report that `pack --json` prints (docs/cli.md), and `as_dict`.

  For all jobs: `ok` (nothing was left out, nothing found; the report is then true), `exit_code`, `samples` (packed, checked, or files written), `shards`,
  `skipped` (inputs that were left out), `identity` ("xxh3:..."), `seconds`, `messages` (what `pack` wrote for people).
  Of `validate`: `findings`, `errors`, `warnings`. Of a Writer: `resumed`, the samples that earlier runs had left in it (None: a
  worker has not ended, as with unfinished="take", so that this is not known). What a job does not report is an AttributeError.

  >>> report = shardpack.validate("shards", level="quick")
  >>> report.ok, report.errors, report.level
  (True, 0, 'quick')
  """

  def __init__(self, facts: Mapping[str, Any], exit_code: int = 0, messages: str = ""):
    self._facts = dict(facts)
    self.exit_code = exit_code
    self.messages = messages

  @property
  def ok(self) -> bool:
    """Nothing was left out, and nothing found."""
    return self.exit_code == 0

  def __bool__(self) -> bool:
    return self.ok

  @property
  def findings(self) -> Sequence[Finding]:
    """What `validate` found; AttributeError in the report of another job.

    >>> with open("shards/val-000000.tar", "r+b") as file:
    ...   size = file.write(b"x" * 512)
    >>> [finding.shard for finding in shardpack.validate("shards", "deep").findings][:1]
    ['val-000000.tar']
    """
    if "findings" not in self._facts:
      raise AttributeError("this report has no 'findings': validate finds them")
    return [Finding(facts) for facts in self._facts["findings"]]

  @property
  def as_dict(self) -> dict[str, Any]:
    """The report as `pack --json` prints it; of a Writer with `resumed` beside that."""
    return dict(self._facts)

  def __getattr__(self, name: str) -> Any:
    facts = self.__dict__.get("_facts", {})
    for place in _SAME.get(name, ()):
      found: Any = facts
      for member in place:
        found = found.get(member) if isinstance(found, dict) else None
      if found is not None and not isinstance(found, dict):
        return found
    if name in facts:
      return facts[name]
    raise AttributeError(f"this report has no '{name}', but {', '.join(sorted(facts))}")

  def __dir__(self) -> list[str]:
    return sorted({*super().__dir__(), *self._facts})

  def __repr__(self) -> str:
    facts = [f"{name}={value!r}" for name in ("samples", "resumed", "shards", "skipped", "errors", "identity")
             if (value := getattr(self, name, None)) is not None]
    return f"<Report {'ok' if self.ok else f'exit code {self.exit_code}'}: {', '.join(facts)}>"
