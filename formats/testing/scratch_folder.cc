#include "formats/testing/scratch_folder.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace shardpack::testing {

ScratchFolder::ScratchFolder() {
  const char* below = getenv("TEST_TMPDIR");
  if (below == nullptr) below = getenv("TMPDIR");
  path_ = std::string(below == nullptr ? "/tmp" : below) + "/scratch-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) {
    perror(path_.c_str());
    abort();
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> ScratchFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace shardpack::testing
