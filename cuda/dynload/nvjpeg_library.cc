#include "cuda/dynload/nvjpeg_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shardpack {
namespace {

constexpr int kOldestMajor = 12, kNewestMajor = 13;

std::vector<std::string> Matches(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

void AddOnce(std::vector<std::string> paths, std::vector<std::string>* all) {
  for (std::string& path : paths) {
    if (std::find(all->begin(), all->end(), path) == all->end()) all->push_back(std::move(path));
  }
}

// The folder that a module of a Python package lies in.
int AddPackageFolder(dl_phdr_info* info, size_t, void* folders) {
  const std::string_view path = info->dlpi_name;
  for (const std::string_view name : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = path.find(name);
    if (at == path.npos) continue;
    AddOnce({std::string(path.substr(0, at + name.size() - 1))},
            static_cast<std::vector<std::string>*>(folders));
  }
  return 0;
}

}  // namespace

std::vector<std::string> PythonPackageFolders() {
  std::vector<std::string> folders;
  dl_iterate_phdr(AddPackageFolder, &folders);
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* prefix = std::getenv(name);
    if (prefix == nullptr || *prefix == '\0') continue;
    AddOnce(Matches(absl::StrCat(prefix, "/lib/python3*/site-packages")), &folders);
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    AddOnce(Matches(absl::StrCat(home, "/.local/lib/python3*/site-packages")), &folders);
  }
  for (const char* pattern :
       {"/usr/local/lib/python3*/dist-packages", "/usr/local/lib/python3*/site-packages",
        "/usr/lib/python3/dist-packages"}) {
    AddOnce(Matches(pattern), &folders);
  }
  return folders;
}

std::vector<std::string> NvjpegPathsIn(const std::string& package_folder) {
  std::vector<std::string> paths;
  for (const char* pattern : {"nvidia/cu13/lib/libnvjpeg.so.13", "nvidia/nvjpeg/lib/libnvjpeg.so.*",
                              "torchvision.libs/libnvjpeg*.so*", "torchvision/libnvjpeg*.so*",
                              "torchcodec.libs/libnvjpeg*.so*", "torchcodec/libnvjpeg*.so*"}) {
    AddOnce(Matches(absl::StrCat(package_folder, "/", pattern)), &paths);
  }
  return paths;
}

absl::StatusOr<NvjpegLibrary> NvjpegLibrary::OpenOne(const std::string& path) {
  // Never closed: see the header.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  NvjpegLibrary opened;
  opened.path_ = path;
#define SHARDPACK_NVJPEG_LOOK_UP(name, users, parameters)                       \
  if (void* const symbol = dlsym(library, "nvjpeg" #name); symbol != nullptr) { \
    std::memcpy(&opened.functions_.name, &symbol, sizeof(symbol));              \
  } else {                                                                      \
    opened.absent_.push_back("nvjpeg" #name);                                   \
  }
  SHARDPACK_NVJPEG_FUNCTIONS(SHARDPACK_NVJPEG_LOOK_UP)
#undef SHARDPACK_NVJPEG_LOOK_UP
  const NvjpegFunctions& functions = opened.functions_;
  if (functions.GetProperty == nullptr ||
      functions.GetProperty(kNvjpegMajorVersion, &opened.major_) != kNvjpegSuccess ||
      functions.GetProperty(kNvjpegMinorVersion, &opened.minor_) != kNvjpegSuccess) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": does not say its version"));
  }
  if (opened.major_ < kOldestMajor || opened.major_ > kNewestMajor) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": version ", opened.major_, ".",
                                                      opened.minor_, ", expected ", kOldestMajor,
                                                      " or ", kNewestMajor));
  }
  if (functions.CreateEx == nullptr || functions.Destroy == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": lacks ", absl::StrJoin(opened.absent_, ", ")));
  }
  return opened;
}

absl::StatusOr<NvjpegLibrary> NvjpegLibrary::Open(const NvjpegLibraryOptions& options) {
  std::vector<std::string> paths;
  const char* const given = std::getenv("SHARDPACK_NVJPEG");
  if (given != nullptr && *given != '\0') {
    paths.push_back(given);
  } else {
    if (options.search_loader_paths) paths = {"libnvjpeg.so.13", "libnvjpeg.so.12"};
    const auto folders =
        options.package_folders.empty() ? PythonPackageFolders() : options.package_folders;
    for (const std::string& folder : folders) AddOnce(NvjpegPathsIn(folder), &paths);
  }
  std::vector<std::string> causes;
  absl::StatusCode code = absl::StatusCode::kNotFound;
  for (const std::string& path : paths) {
    absl::StatusOr<NvjpegLibrary> library = OpenOne(path);
    if (library.ok()) return library;
    causes.emplace_back(library.status().message());
    if (library.status().code() == absl::StatusCode::kFailedPrecondition) {
      code = absl::StatusCode::kFailedPrecondition;
    }
  }
  return absl::Status(
      code,
      absl::StrCat("no nvJPEG: ", causes.empty() ? "nothing to try" : absl::StrJoin(causes, "; ")));
}

}  // namespace shardpack
