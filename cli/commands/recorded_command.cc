#include "cli/commands/recorded_command.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/flags/flags.h"
#include "cli/terminal/units.h"
#include "converters/planning/manifest_option.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

// Globs divided by commas; one that is led by a backslash belongs to the glob.
std::vector<std::string> RecordedGlobs(std::string_view text) {
  std::vector<std::string> globs(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\\,")) {
      globs.back().push_back(text[++i]);
    } else if (text[i] == ',') {
      globs.emplace_back();
    } else {
      globs.back().push_back(text[i]);
    }
  }
  return globs;
}

// One option of a manifest, stored as if it had been typed. What says which libraries or which
// dataset it was, or that the default was taken, has no flag.
absl::Status StoreOption(const std::string& name, const std::string& value, CommandLine& line) {
  if (name == "classes" || name == "dataset" || name == "pixel-libraries") return absl::OkStatus();
  if (name == "drop-fields") return StoreFlag(*FindFlag(Verb::kBuild, name), "true", line);
  const Flag* flag = FindFlag(Verb::kBuild, name);
  if (flag == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the dataset was packed with ",
                                                   EscapeForTerminal(name),
                                                   ", which this version of pack does not know"));
  }
  const bool by_default = value == "auto" || value == "off";
  switch (flag->kind) {
    case FlagKind::kSwitch:
    case FlagKind::kNegatable:
      return StoreFlag(*flag, value == "on" ? "true" : "false", line);
    case FlagKind::kRepeated:
      if (name == "include" || name == "exclude") {
        for (const std::string& part : RecordedGlobs(value)) {
          RETURN_IF_ERROR(StoreFlag(*flag, part, line));
        }
        return absl::OkStatus();
      }
      return StoreFlag(*flag, value, line);
    case FlagKind::kValue:
      break;
  }
  const std::vector<std::string> allowed = AllowedValues(*flag);
  const bool has_word = std::find(allowed.begin(), allowed.end(), value) != allowed.end();
  if (by_default && !has_word && name != "shard-size") return absl::OkStatus();
  return StoreFlag(*flag, value, line);
}

}  // namespace

bool PackedFromFolder(const Manifest& manifest) {
  const std::string kind = OptionOf(manifest, "input-format");
  return kind.empty() || kind == "folder" || kind == "auto";
}

absl::StatusOr<CommandLine> RecordedCommand(const Manifest& manifest, const std::string& source,
                                            const std::string& root, int io_depth) {
  CommandLine line;
  line.arguments = {source};
  line.format = manifest.format;
  line.root = root;
  line.io_depth = io_depth;
  // Whatever lies in it now.
  if (PackedFromFolder(manifest)) line.input_format = "folder";
  for (const auto& [name, value] : manifest.options) {
    RETURN_IF_ERROR(StoreOption(name, value, line));
  }
  // What decides about bytes comes from the manifest alone.
  if (manifest.options.contains("classes")) line.source.classes = manifest.classes;
  return line;
}

}  // namespace shardpack::cli
