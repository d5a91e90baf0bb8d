"""torch takes batches of the C interface, by DLPack: prints a row (JSON) for each check. Arguments: datasets.

On the GPU everything is compared with the same loader on the CPU, which is tested everywhere.
"""

import gc
import json
import sys
import threading


def row(name, result, detail=""):
  print(json.dumps({"name": name, "result": result, "detail": detail}), flush=True)


def checks(shardpack, torch, path):
  """Pairs of a name and a function, which raises AssertionError."""
  options = {"batch": 16, "size": 224, "seed": 7, "flip": 0.5, "dtype": "float32", "layout": "nchw", "mean": (0.485, 0.456, 0.406),
             "std": (0.229, 0.224, 0.225), "epochs": 1, "drop_last": True}
  expected = [(images.clone(), labels.clone()) for images, labels in shardpack.load(path, device="cpu", to="torch", **options)]
  assert expected, "no batch"

  def load():
    return shardpack.load(path, device=torch.device("cuda", 0), to="torch", **options)

  def same(got):
    assert len(got) == len(expected), f"{len(got)} batches, not {len(expected)}"
    for step, ((images, labels), (right, right_labels)) in enumerate(zip(got, expected)):
      assert images.is_cuda and images.dtype == torch.float32, f"{images.device}, {images.dtype}"
      assert torch.equal(labels.cpu(), right_labels), f"labels of step {step}"
      assert torch.equal(images.cpu(), right), f"step {step} differs by {(images.cpu() - right).abs().max().item()}"

  def values():
    same([(images.clone(), labels.clone()) for images, labels in load()])

  def late_consumer():
    """Work on a stream that lags: nothing is written before it has run."""
    stream, got = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
      for images, labels in load():
        torch.cuda._sleep(20_000_000)  # pylint: disable=protected-access
        got.append((images.clone(), labels.clone()))
        del images, labels
    torch.cuda.synchronize()
    same(got)

  def other_thread():
    """The last tensor of a batch ends in a thread that never used CUDA."""
    got, box = [], []
    for images, labels in load():
      torch.cuda._sleep(5_000_000)  # pylint: disable=protected-access
      got.append((images.clone(), labels.clone()))
      box.append((images, labels))
      del images, labels
      thread = threading.Thread(target=box.clear)
      thread.start()
      thread.join()
    torch.cuda.synchronize()
    same(got)

  def capture():
    """A batch that ends while a graph is captured leaves the capture and the loader alone."""
    batches, got = iter(load()), []
    held = list(next(batches))
    got.append((held[0].clone(), held[1].clone()))
    static = torch.zeros(16, device="cuda")
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
      graph.capture_begin()
      static += 1
      held.clear()
      gc.collect()
      graph.capture_end()
    torch.cuda.current_stream().wait_stream(side)
    got += [(images.clone(), labels.clone()) for images, labels in batches]
    graph.replay()
    torch.cuda.synchronize()
    assert float(static[0]) == 1
    same(got)

  def synchronized():
    """Batches that the host waited for, used on a stream that was never told of them."""
    stream, got = torch.cuda.Stream(), []
    for batch in shardpack.load(path, device=torch.device("cuda", 0), **options):
      batch.synchronize()
      images, labels = torch.from_dlpack(batch.images), torch.from_dlpack(batch.labels)
      with torch.cuda.stream(stream):
        got.append((images.clone(), labels.clone()))
        del images, labels
      batch.release(stream.cuda_stream)
    torch.cuda.synchronize()
    same(got)

  def next_into():
    images = torch.empty((16, 3, 224, 224), device="cuda")
    labels = torch.empty(16, device="cuda", dtype=torch.int64)
    loader, got = load(), []
    while loader.next_into(images, labels, torch.cuda.current_stream().cuda_stream) is not None:
      got.append((images.clone(), labels.clone()))
    same(got)

  def resident_graph():
    """A step of a resident set within a graph, captured once: two epochs, and what follows it in the graph."""
    dataset = shardpack.Dataset(path)
    order = shardpack.Order(len(dataset), 16, seed=7)

    def resident(device):
      return shardpack.ResidentLoader(dataset, order, shardpack.Device(device), 64, 64, dtype="float32", epochs=2, to="torch")

    on_cpu, loader = resident("cpu"), resident(0)
    images = torch.zeros((16, 3, 64, 64), device="cuda")
    labels = torch.zeros(16, device="cuda", dtype=torch.int64)
    doubled = torch.zeros_like(images)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.graph(graph, stream=stream):
      loader.enqueue_step(images, labels, torch.cuda.current_stream().cuda_stream)
      torch.mul(images, 2, out=doubled)
    steps = 0
    with torch.cuda.stream(stream):
      for epoch in range(2):
        for right in on_cpu:
          batch = loader.next_step(stream.cuda_stream)
          assert batch is not None, f"epoch {epoch} ends after {steps} steps"
          graph.replay()
          assert batch.ids.tolist() == right.ids.tolist(), f"ids of step {steps}"
          assert torch.equal(labels.cpu(), right.labels), f"labels of step {steps}"
          assert torch.equal(images.cpu(), right.images), f"step {steps} differs by {(images.cpu() - right.images).abs().max().item()}"
          assert torch.equal(doubled, images * 2), f"the graph of step {steps} went on before its images"
          steps += 1
        assert loader.next_step(stream.cuda_stream) is None, f"epoch {epoch} goes on after {steps} steps"
    return f"{steps} steps"

  def decoded_by_the_gpu():
    decode = shardpack.Decode(224, 224, crop="resize")
    dataset = shardpack.Dataset(path)
    order = shardpack.Order(len(dataset), 16, seed=7)
    device = shardpack.Device(0)
    loader = shardpack.DeviceLoader(shardpack.Loader(dataset, order, device=device, epochs=1), decode=decode)
    seen = sum(len(batch) for batch in loader)
    by = loader.decoded_by
    assert seen and by["hardware"] + by["hybrid"] > 0, f"{by}, {loader.stats()['decode_backends']}"
    return f"{by}, {loader.stats()['decode_backends']}"

  def one_context():
    used = [torch.cuda.mem_get_info(n) for n in range(1, torch.cuda.device_count())]
    values()
    for n, (free, _) in enumerate(used, 1):
      assert torch.cuda.mem_get_info(n)[0] >= free - (64 << 20), f"memory of GPU {n} was taken"
    return f"{torch.cuda.device_count()} GPUs"

  return [(function.__name__, function) for function in (values, late_consumer, other_thread, capture, synchronized, next_into, resident_graph, decoded_by_the_gpu, one_context)]


def main():
  try:
    import shardpack  # pylint: disable=import-outside-toplevel
    import torch  # pylint: disable=import-outside-toplevel
  except ImportError as error:
    return row("torch", "NOT RUN", str(error))
  if not torch.cuda.is_available():
    return row("torch", "NOT RUN", f"torch {torch.__version__} finds no GPU")
  if len(sys.argv) < 2:
    return row("torch", "NOT RUN", "no images were brought")
  for path in sys.argv[1:]:
    for name, check in checks(shardpack, torch, path):
      try:
        row(name, "ok", str(check() or ""))
      except Exception as error:  # pylint: disable=broad-except
        row(name, "FAILED", f"{type(error).__name__}: {error}")
  return None


if __name__ == "__main__":
  main()
