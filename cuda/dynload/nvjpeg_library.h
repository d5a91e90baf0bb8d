// NvjpegLibrary: nvJPEG, found and opened at run time; nothing here links it.
//
//   absl::StatusOr<NvjpegLibrary> library = NvjpegLibrary::Open();
//   if (!library.ok()) Log(library.status());   // what was tried, and how each failed
//   JpegDecoder decoder(&library->functions(), ...);
//
// Searched in this order: $SHARDPACK_NVJPEG, a path, and if it is set nothing else; the names
// libnvjpeg.so.13 and .so.12 (the loader's paths: a CUDA toolkit, LD_LIBRARY_PATH); then folders of
// Python packages: NVIDIA's wheels (nvidia/cu13/lib, nvidia/nvjpeg/lib) and the private copies of
// torchvision and torchcodec (torchvision.libs/).
//
// Lifetime: the library stays open to the end of the process, because its threads and CUDA's may
// live as long; copies are cheap.
// Thread-safety: any thread.
// Errors: NotFound if there is none; FailedPrecondition if all that were found have another version
// (12 and 13 are known) or lack functions that every decoder needs.
#ifndef SHARDPACK_CUDA_DYNLOAD_NVJPEG_LIBRARY_H_
#define SHARDPACK_CUDA_DYNLOAD_NVJPEG_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/dynload/nvjpeg_functions.h"

namespace shardpack {

struct NvjpegLibraryOptions {
  // Folders of Python packages; if empty, those of the environment (PythonPackageFolders).
  std::vector<std::string> package_folders;
  bool search_loader_paths = true;
};

class NvjpegLibrary {
 public:
  static absl::StatusOr<NvjpegLibrary> Open(const NvjpegLibraryOptions& options = {});

  const NvjpegFunctions& functions() const { return functions_; }
  const std::string& path() const { return path_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  // Names of functions that this library does not have.
  const std::vector<std::string>& absent() const { return absent_; }

 private:
  static absl::StatusOr<NvjpegLibrary> OpenOne(const std::string& path);

  NvjpegFunctions functions_;
  std::string path_;
  int major_ = 0, minor_ = 0;
  std::vector<std::string> absent_;
};

// site-packages and dist-packages: of modules that are loaded into this process, of $VIRTUAL_ENV,
// $CONDA_PREFIX and $HOME/.local, and of the system; those that exist.
std::vector<std::string> PythonPackageFolders();
// Libraries in one such folder.
std::vector<std::string> NvjpegPathsIn(const std::string& package_folder);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DYNLOAD_NVJPEG_LIBRARY_H_
