#!/usr/bin/env python3
"""Whether the CUDA sources compile with the oldest toolkit that they are for, 12.8, of which PyPI has no nvcc.

  tests/interop/toolkit_check.py

Host code: the host's compiler with that toolkit's headers, and each function of CUDA that it calls is in that runtime. Kernels: NVRTC, the
same compiler as a library, to machine code for each architecture that the build would compile for. NVRTC has no host's headers: the few names that
kernels' headers take from them are below. The last line is `N passed, N failed`.
"""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOST = ("cuda/device/cuda_device.cc", "cuda/dynload/gpu_probe.cc")
NAMES = {
    "cstdint": """using int8_t = signed char; using uint8_t = unsigned char; using int16_t = short; using uint16_t = unsigned short;
                  using int32_t = int; using uint32_t = unsigned; using int64_t = long; using uint64_t = unsigned long;
                  using uintptr_t = unsigned long; using size_t = unsigned long;""",
    "cstddef": "#include <cstdint>\nnamespace std { enum class byte : unsigned char {}; using ::size_t; using nullptr_t = decltype(nullptr); }",
    "climits": "#define INT_MAX 2147483647",
    "cstring": "#include <cstddef>\nnamespace std { using ::memcpy; }",
    "cmath": "namespace std { using ::sin; using ::ceil; using ::floor; using ::llrint; using ::fma; inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); } }",
    "array": "#include <cstddef>\nnamespace std { template <class T, size_t n> struct array { T at[n]; const T& operator[](size_t i) const { return at[i]; } }; }",
    "vector": "namespace std { template <class T> struct vector { T* p; }; }",
    "functional": "namespace std { template <class> struct function; }",
    "optional": "namespace std { struct nullopt_t {}; __constant__ nullopt_t nullopt; template <class T> struct optional { optional(nullopt_t); explicit operator bool() const; T& operator*(); const T& operator*() const; const T* operator->() const; }; }",
    "utility": "namespace std { template <class T, class U> T exchange(T& a, U b) { T old = a; a = b; return old; } template <class T> constexpr void swap(T& a, T& b) { T old = a; a = b; b = old; } template <class T> T&& move(T& a) { return static_cast<T&&>(a); } }",
    "new": "namespace std { struct nothrow_t {}; __constant__ nothrow_t nothrow; }\ninline void* operator new[](unsigned long, const std::nothrow_t&) { return nullptr; }",
    "memory": """#include <cstddef>
                 namespace std { template <class T> struct unique_ptr; template <class T> struct unique_ptr<T[]> {
                   T* get() const { return nullptr; } void reset(T* = nullptr) {} bool operator==(nullptr_t) const { return true; } }; }""",
    "cuda_runtime_api.h": """inline cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, unsigned long, cudaStream_t) { return cudaSuccess; }
                             inline cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) { return cudaSuccess; }
                             inline cudaError_t cudaFuncSetAttribute(const void*, int, int) { return cudaSuccess; }
                             inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
                             inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) { return cudaSuccess; }
                             inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t) { return cudaSuccess; }""",
    "absl/status/status.h": "namespace absl { struct Status { bool ok() const { return true; } }; }",
}


def wanted_architectures():
  text = (ROOT / "third_party/cuda/toolkit.bzl").read_text()
  found = re.search(r"(?m)^_WANTED = (\[.+\])$", text)
  return [word.partition("-")[0] for word in re.findall(r'"([\w-]+)"', found[1]) if not word.endswith("-ptx")]


class Nvrtc:
  """Of one wheel."""

  def __init__(self, library, names):
    self.library, self.names = ctypes.CDLL(str(library)), names

  def text(self, program, what):
    size = ctypes.c_size_t()
    getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(self.library, f"nvrtcGet{what}")(program, text)
    return text.raw

  def compile(self, source, architecture):
    """The machine code, or why there is none."""
    program = ctypes.c_void_p()
    assert self.library.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), str(source).encode(), 0, None, None) == 0
    words = [f"--gpu-architecture=sm_{architecture}", "-std=c++20", "-fmad=false", "-default-device", f"-I{ROOT}", f"-I{self.names}"]
    options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    if self.library.nvrtcCompileProgram(program, len(words), options) != 0:
      return b"", self.text(program, "ProgramLog").decode(errors="replace")
    return self.text(program, "CUBIN"), ""


def compile_host(source, site, folder):
  """Why it does not compile with these headers, or which functions this runtime lacks; empty if all is well."""
  made = folder / (source.stem + ".o")
  done = subprocess.run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-DSHARDPACK_WITH_CUDA", "-c", ROOT / source, "-o", made, f"-I{ROOT}",
                         "-isystem", site / "cuda_runtime/include", "-isystem", site / "cuda_nvcc/include"], capture_output=True, text=True, check=False)
  if done.returncode != 0:
    return done.stderr

  def names_of(*words):
    lines = subprocess.run(["nm", *words], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines}

  used = {name for name in names_of("-u", made) if re.fullmatch(r"cuda[A-Z]\w+", name)}
  lacking = used - names_of("-D", "--defined-only", site / "cuda_runtime/lib/libcudart.so.12")
  return f"this runtime lacks {sorted(lacking)}" if lacking else ""


def main():
  python = pathlib.Path(subprocess.run([HERE / "venv", "cuda12"], capture_output=True, text=True, check=True).stdout.strip())
  site = next(python.parent.parent.glob("lib/python3*/site-packages/nvidia"))
  results = []

  def row(name, why):
    results.append(not why)
    print(f"{'FAILED' if why else 'ok':8}{name}{': ' if why else ''}{why}", flush=True)

  with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    for name, text in NAMES.items():
      path = folder / "names" / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text(f"#pragma once\n{text}\n")
    for source in HOST:
      row(source, compile_host(pathlib.Path(source), site, folder))
    nvrtc = Nvrtc(site / "cuda_nvrtc/lib/libnvrtc.so.12", folder / "names")
    for source in sorted((ROOT / "cuda").rglob("*.cu")):
      for architecture in wanted_architectures():
        code, why = nvrtc.compile(source, architecture)
        row(f"{source.relative_to(ROOT)} for {architecture}", why if not code else "" if code.startswith(b"\x7fELF") else "no machine code")
  print(f"{results.count(True)} passed, {results.count(False)} failed")
  return 0 if all(results) else 1


if __name__ == "__main__":
  sys.exit(main())
