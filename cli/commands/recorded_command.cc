#include "cli/commands/recorded_command.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/flags/flags.h"
#include "cli/terminal/units.h"
#include "converters/planning/manifest_option.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

std::filesystem::path FolderOf(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return folder.empty() ? "." : folder;
}

// Globs or paths divided by commas; one that is led by a backslash belongs to the text.
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
  if (name == "annotations") {
    for (const std::string& file : RecordedGlobs(value))
      line.annotations.push_back((FolderOf(line.arguments[0]) / file).string());
    return absl::OkStatus();
  }
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

std::string RecordedAnnotations(const std::string& json, const std::vector<std::string>& files) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(FolderOf(json), error);
  std::string text;
  for (const std::string& file : files) {
    const std::filesystem::path path =
        std::filesystem::canonical(FolderOf(file), error) / std::filesystem::path(file).filename();
    absl::StrAppend(&text, text.empty() ? "" : ",",
                    absl::StrReplaceAll(path.lexically_proximate(folder).string(), {{",", "\\,"}}));
  }
  return text;
}

std::string UnrecordedFlags(const Manifest& manifest) {
  const std::string kind = OptionOf(manifest, "input-format");
  if (kind == "coco" && OptionOf(manifest, "annotations").empty() &&
      OptionOf(manifest, "coco") == "full") {
    return "Its manifest records no --annotations; if an older version of pack was given some, "
           "a copy of the dataset is needed.";
  }
  const bool columns = kind == "csv" || kind == "tsv" || kind == "jsonl";
  if (!columns || OptionOf(manifest, "columns").find("path=") != std::string::npos) return "";
  return "Its manifest records no --columns path=COL; if an older version of pack was given one, "
         "the usual columns are taken in its place.";
}

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
  if (OptionOf(manifest, "input-format") == "coco") {
    line.coco_boxes = OptionOf(manifest, "coco").empty();
    line.given.insert("missing-part");  // where none is recorded it is not the default of `full`
  }
  // What decides about bytes comes from the manifest alone.
  if (manifest.options.contains("classes")) line.source.classes = manifest.classes;
  return line;
}

}  // namespace shardpack::cli
