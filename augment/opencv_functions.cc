#include "augment/opencv_functions.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

std::atomic<const OpenCvFunctions*> g_linked{nullptr};
std::atomic<bool> g_keep_threads{false};

// Beside the library or program that contains this code.
std::string Beside() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&Beside), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string_view self(info.dli_fname);
  const size_t slash = self.rfind('/');
  if (slash == std::string_view::npos) return {};
  return absl::StrCat(std::string(self.substr(0, slash + 1)), kOpenCvLibrary);
}

absl::StatusOr<const OpenCvFunctions*> Find() {
  if (const OpenCvFunctions* const linked = g_linked) return linked;
  const std::string beside = Beside();
  const bool is_there = !beside.empty() && access(beside.c_str(), F_OK) == 0;
  return OpenOpenCv(is_there ? beside : kOpenCvLibrary);
}

}  // namespace

absl::StatusOr<const OpenCvFunctions*> OpenOpenCv(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("gaussian_blur, median and clahe need OpenCV, by ", kOpenCvLibrary,
                     " of the package libshardpack-opencv0: ", dlerror()));
  }
  using Entry = const OpenCvFunctions* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, kOpenCvEntry));
  if (entry == nullptr) {
    dlclose(library);
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has no ", kOpenCvEntry, ": it is of another version"));
  }
  return entry();
}

absl::StatusOr<const OpenCvFunctions*> OpenCv() {
  static const absl::StatusOr<const OpenCvFunctions*> found = [] {
    auto functions = Find();
    if (functions.ok() && !g_keep_threads) (*functions)->no_threads();
    return functions;
  }();
  return found;
}

void KeepOpenCvThreads() { g_keep_threads = true; }

bool UseOpenCv(const OpenCvFunctions* functions) {
  g_linked = functions;
  return true;
}

}  // namespace shardpack
