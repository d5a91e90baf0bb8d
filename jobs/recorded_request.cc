#include "jobs/recorded_request.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/manifest_option.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

std::filesystem::path FolderOf(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return folder.empty() ? "." : folder;
}

// Splits globs or paths at commas; a comma after a backslash is part of the text.
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

absl::Status NotAValue(const std::string& name, const std::string& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("the dataset was packed with --", EscapeForTerminal(name), " ",
                   EscapeForTerminal(value), ", which this version of pack does not know"));
}

// "none", "dir:N" for folders; "column", "largest" and "single" for other sources.
bool SetLabelFrom(const std::string& value, PackRequest& request) {
  FolderSourceOptions& source = request.source;
  request.label_from = value.starts_with("dir:") ? "dir" : value;
  if (value == "none") source.label_from = FolderSourceOptions::LabelFrom::kNone;
  if (request.label_from != "dir") {
    return value == "none" || value == "column" || value == "largest" || value == "single" ||
           value == "cls";
  }
  constexpr int kMaxLevel = 100;
  source.label_dir_given = value != "dir";
  return !source.label_dir_given || (absl::SimpleAtoi(value.substr(4), &source.label_dir) &&
                                     source.label_dir >= 0 && source.label_dir <= kMaxLevel);
}

bool SetMissingPart(const std::string& value, FolderSourceOptions& source) {
  for (const MissingPart each :
       {MissingPart::kSkip, MissingPart::kError, MissingPart::kDrop, MissingPart::kKeep}) {
    if (MissingPartName(each) != value) continue;
    source.missing = each;
    return true;
  }
  return false;
}

// The options of sources, as their ToMap writes them. Returns false for an unknown name.
absl::StatusOr<bool> SetSourceOption(const std::string& name, const std::string& value,
                                     PackRequest& request) {
  FolderSourceOptions& source = request.source;
  bool valid = true;
  if (name == "input-format") {
    request.input_format = value;
  } else if (name == "label-from") {
    valid = SetLabelFrom(value, request);
  } else if (name == "class-order") {
    source.class_order = ClassOrder::kNatural;
    valid = value == "natural";
  } else if (name == "ext") {
    source.any_extension = value == "any";
    if (!source.any_extension) source.extensions = absl::StrSplit(value, ',');
  } else if (name == "include") {
    source.include = RecordedGlobs(value);
  } else if (name == "exclude") {
    source.exclude = RecordedGlobs(value);
  } else if (name == "follow") {
    source.follow = value == "on";
  } else if (name == "sidecars") {
    ASSIGN_OR_RETURN(source.sidecars, ParseSidecars(value));
  } else if (name == "missing-part") {
    valid = SetMissingPart(value, source);
  } else if (name == "columns") {
    RETURN_IF_ERROR(ParseColumns(value, &request.columns));
  } else if (name == "coco") {
    request.coco_boxes = value == "boxes";
  } else if (name == "annotations") {
    for (const std::string& file : RecordedGlobs(value))
      request.annotations.push_back((FolderOf(request.paths[0]) / file).string());
  } else if (name == "drop-fields") {
    request.drop_fields = true;
  } else {
    return false;
  }
  if (!valid) return NotAValue(name, value);
  return true;
}

absl::Status SetOption(const std::string& name, const std::string& value, PackRequest& request) {
  // These only describe the classes, dataset or libraries.
  if (name == "classes" || name == "dataset" || name == "pixel-libraries") return absl::OkStatus();
  if (name == "exclude-keys") {
    return absl::InvalidArgumentError(
        "the dataset was packed with --exclude-keys, and its manifest does not have the list; a "
        "copy of the dataset is needed");
  }
  request.given.insert(name == "sidecars" ? "fields" : name);  // by its flag
  ASSIGN_OR_RETURN(const bool of_source, SetSourceOption(name, value, request));
  const absl::StatusOr<bool> of_plan = request.plan.Set(name, value);
  if (!of_plan.ok()) return NotAValue(name, value);
  if (!of_source && !*of_plan) {
    return absl::InvalidArgumentError(absl::StrCat("the dataset was packed with ",
                                                   EscapeForTerminal(name),
                                                   ", which this version of pack does not know"));
  }
  return absl::OkStatus();
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

absl::StatusOr<PackRequest> RecordedRequest(const Manifest& manifest, const std::string& source,
                                            const std::string& root) {
  PackRequest request{.paths = {source}, .root = root, .recorded = true, .format = manifest.format};
  // Whatever the folder contains now.
  if (PackedFromFolder(manifest)) request.input_format = "folder";
  for (const auto& [name, value] : manifest.options) {
    RETURN_IF_ERROR(SetOption(name, value, request));
  }
  request.source.max_file_bytes = request.plan.max_file_bytes;
  request.source.split_from_dir = request.plan.split_by == SplitBy::kDir;
  if (OptionOf(manifest, "input-format") == "coco") {
    request.coco_boxes = OptionOf(manifest, "coco").empty();
    request.given.insert(
        "missing-part");  // if none is recorded, the default of `full` does not apply
  }
  // Everything that affects bytes comes from the manifest alone.
  if (manifest.options.contains("classes")) request.source.classes = manifest.classes;
  return request;
}

}  // namespace shardpack
