"""transformers: a Trainer over loaders: what two processes of torchrun train with is each epoch once, an evaluation has all samples,
and a run that is killed and resumed goes on with the samples that it has not had.

  python use_transformers.py SHARDS [FOLDER [STEP]]    # train in FOLDER, with a step: and die by SIGKILL before it
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import numpy
import shardpack
import shardpack.adapters.transformers
import torch
import transformers

EPOCHS, SAMPLES, BATCH, LOOK = 2, 48, 4, {"size": 16, "flip": 0.5, "dtype": "float32", "layout": "nchw"}


class Model(torch.nn.Module):

  def __init__(self, folder, die_before):
    super().__init__()
    torch.manual_seed(2)
    self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 3))
    self.folder, self.die_before = folder, die_before

  def forward(self, pixel_values, labels, ids):
    scores = self.layers(pixel_values)
    loss = torch.nn.functional.cross_entropy(scores, labels)
    if self.training:
      if self.die_before == 0:
        os.kill(os.getpid(), signal.SIGKILL)
      self.die_before -= 1
      with open(self.folder / f"trained{os.environ.get('RANK', 0)}", "a") as file:
        file.write(json.dumps([ids.tolist(), round(loss.item(), 6)]) + "\n")
    return {"loss": loss, "logits": scores}


class Trainer(shardpack.adapters.transformers.Trainer):

  def inputs_of(self, batch):
    return {**super().inputs_of(batch), "ids": torch.from_numpy(batch.ids.astype("int64"))}


def counted(prediction):
  return {"valid": int((prediction.label_ids != -100).sum()), "all": len(prediction.label_ids)}


def train(shards, folder, die_before=-1):
  arguments = transformers.TrainingArguments(
      str(folder), num_train_epochs=EPOCHS, save_steps=1, save_total_limit=2, learning_rate=0.05, report_to="none", use_cpu=True,
      disable_tqdm=True, logging_strategy="no", label_names=["labels"], seed=1)
  data = shardpack.load(shards, split="train", batch=BATCH, **LOOK)
  tests = shardpack.load(shards, split="val", batch=5, shuffle=False, pad_last=True, **{**LOOK, "flip": 0.0, "crop": "resize"})
  trainer = Trainer(Model(folder, die_before), arguments, train_dataset=data, eval_dataset=tests, compute_metrics=counted)
  trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))
  padded = -(-12 // (5 * arguments.world_size)) * 5 * arguments.world_size
  for _ in range(2):
    metrics = trainer.evaluate()
    assert (metrics["eval_valid"], metrics["eval_all"]) == (12, padded), metrics
  refused = [(shardpack.load(shards, split="val", batch=4, rank=1, world_size=3, **LOOK), "rank 1 of 3")]
  if arguments.world_size > 1:
    refused.append((shardpack.load(shards, split="val", batch=5, **LOOK), "pad_last=True"))
  for loader, what in refused:
    try:
      trainer.get_eval_dataloader(loader)
    except shardpack.OptionError as error:
      assert what in str(error), error
    else:
      raise AssertionError(f"a loader that does not fit: {what}")


def trained(folder, rank=0):
  return [json.loads(line) for line in (folder / f"trained{rank}").read_text().splitlines()]


def expected_of(shards, ranks):
  alone = shardpack.load(shards, split="train", batch=BATCH * ranks, epochs=EPOCHS, **LOOK)
  return [batch.ids.tolist() for _ in range(EPOCHS) for batch in alone]


def check_torchrun(shards, work):
  folder = work / "both"
  folder.mkdir()
  done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__, shards, folder],
                        check=False, timeout=600, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr[-3000:]
  steps = [one + other for (one, _), (other, _) in zip(trained(folder, 0), trained(folder, 1), strict=True)]
  assert steps == expected_of(shards, 2), steps
  half = len(steps) // 2
  for epoch in (steps[:half], steps[half:]):
    assert sorted(sum(epoch, [])) == list(range(SAMPLES)), epoch


def check_resume(shards, work):
  whole = work / "whole"
  whole.mkdir()
  train(shards, whole)
  expected = trained(whole)
  assert [ids for ids, _ in expected] == expected_of(shards, 1)
  for stop in (2, 12, 17):
    folder = work / f"killed{stop}"
    folder.mkdir()
    killed = subprocess.run([sys.executable, __file__, shards, folder, str(stop)], check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    train(shards, folder)
    found = trained(folder)
    assert [ids for ids, _ in found] == [ids for ids, _ in expected], (stop, found)
    numpy.testing.assert_allclose([loss for _, loss in found], [loss for _, loss in expected], rtol=1e-4)


if __name__ == "__main__":
  transformers.logging.set_verbosity_error()
  if len(sys.argv) > 2:
    train(sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else -1)
  else:
    with tempfile.TemporaryDirectory() as root:
      check_torchrun(sys.argv[1], pathlib.Path(root))
      check_resume(sys.argv[1], pathlib.Path(root))
