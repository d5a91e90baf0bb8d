#include "formats/hdf5/hdf5_layout.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {

absl::Status CheckFieldName(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hdf5 cannot hold a field named ", EscapeForTerminal(name), ": ", std::string(why)));
  };
  if (name.empty() || name.size() > kMaxFieldNameBytes) return refuse("1 to 64 bytes are allowed");
  if (name == "." || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return refuse("it would be a path");
  }
  for (const std::string_view taken : {kImagesName, kLabelsName, kKeysName, kClassesName}) {
    if (name == taken) return refuse("the layout has a dataset of that name");
  }
  return absl::OkStatus();
}

}  // namespace shardpack
