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
  if (name.empty() || name.size() > kMaxHdf5FieldNameBytes)
    return refuse("1 to 64 bytes are allowed");
  if (name == "." || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return refuse("it would be a path");
  }
  // The names of the layout, and those that other files use for labels, source paths or the image.
  static constexpr std::string_view kTaken[] = {kImagesName, kLabelsName, kKeysName, kClassesName,
                                                "label",     "targets",   "y",       "filenames",
                                                "paths",     "image"};
  for (const std::string_view taken : kTaken) {
    if (name == taken) return refuse("a dataset of that name means something else");
  }
  return absl::OkStatus();
}

}  // namespace shardpack
