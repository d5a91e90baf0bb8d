#include "jobs/open_source.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/sources/coco_source.h"
#include "converters/sources/dataset_source.h"
#include "converters/sources/indexed_shards.h"
#include "converters/sources/list_source.h"
#include "formats/core/manifest.h"
#include "formats/formats.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "jobs/open_input.h"
#include "jobs/recorded_request.h"
#include "jobs/unlisted_shards.h"

namespace shardpack {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

constexpr std::string_view kLabelFromCls = "cls";

struct Ending {
  std::string_view ending, format;
};
constexpr std::array<Ending, 17> kEndings = {{{".lst", "list"},
                                              {".txt", "list"},
                                              {".csv", "csv"},
                                              {".tsv", "tsv"},
                                              {".jsonl", "jsonl"},
                                              {".ndjson", "jsonl"},
                                              {".json", "coco"},
                                              {".tar", "archive"},
                                              {".tar.gz", "archive"},
                                              {".tgz", "archive"},
                                              {".tar.bz2", "archive"},
                                              {".tbz2", "archive"},
                                              {".tar.xz", "archive"},
                                              {".txz", "archive"},
                                              {".tar.zst", "archive"},
                                              {".tzst", "archive"},
                                              {".zip", "archive"}}};

}  // namespace

absl::StatusOr<std::string> KindOfSource(const std::string& path) {
  if (path == "-") return std::string("list");
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    if (!IsAboutThePath(errno)) return IoStatus("look at", path, errno);
    return std::string("folder");  // the folder source reports what is wrong
  }
  if (S_ISDIR(facts.st_mode)) {
    ASSIGN_OR_RETURN(const bool packed, Exists(StrCat(path, "/", std::string(kManifestName))));
    return std::string(packed ? "dataset" : "folder");
  }
  const std::string lower = absl::AsciiStrToLower(path);
  for (const Ending& each : kEndings) {
    if (lower.ends_with(each.ending)) return std::string(each.format);
  }
  if (S_ISREG(facts.st_mode)) {
    const absl::StatusOr<const Format*> format = SniffFormat(path);
    if (!format.ok() && !IsAboutThePath(format.status())) return format.status();
    if (format.ok() && *format != nullptr) return std::string("dataset");
  }
  return InvalidArgumentError(StrCat(
      "source ", EscapeForTerminal(path),
      " is not a folder, and no list, archive or shard by its name; give the folder that holds "
      "the images, or say what it is with --input-format"));
}

namespace {

ListKind KindOf(const std::string& format, const std::string& path) {
  if (format == "csv") return ListKind::kCsv;
  if (format == "tsv") return ListKind::kTsv;
  if (format == "jsonl") return ListKind::kJsonl;
  if (path == "-") return ListKind::kPaths;
  return absl::AsciiStrToLower(path).ends_with(".lst") ? ListKind::kLst : ListKind::kText;
}

// Refuses flags that do not apply to this kind of source, instead of ignoring them.
absl::Status RefuseFlags(const PackRequest& request, const std::string& format,
                         std::initializer_list<const char*> flags) {
  for (const char* flag : flags) {
    if (!request.Given(flag)) continue;
    return InvalidArgumentError(
        StrCat("--", flag, " does not apply to ",
               format == "dataset" ? "a packed dataset" : StrCat("a source of the kind ", format)));
  }
  return absl::OkStatus();
}

// The value of --columns: "path=file,label=class,txt=caption,json=a,b".
std::string GivenColumns(const ListOptions& options) {
  std::string text;
  if (!options.path.empty()) absl::StrAppend(&text, "path=", options.path);
  if (!options.label.empty())
    absl::StrAppend(&text, text.empty() ? "" : ",", "label=", options.label);
  for (const ColumnField& field : options.fields) {
    absl::StrAppend(&text, text.empty() ? "" : ",", field.field, "=",
                    field.all ? "*" : absl::StrJoin(field.columns, ","));
  }
  return text;
}

absl::StatusOr<OpenedSource> OpenList(const PackRequest& request, const std::string& format,
                                      IoPool& pool) {
  const FolderSourceOptions& folder = request.source;
  RETURN_IF_ERROR(
      RefuseFlags(request, format, {"ext", "include", "exclude", "coco", "annotations"}));
  ListSourceOptions options;
  options.list = request.paths[0];
  options.root = request.root;
  options.format = request.columns;
  options.format.kind = KindOf(format, options.list);
  const bool has_columns = format != "list";
  options.format.empty_labels = folder.missing == MissingPart::kKeep;
  if (request.Given("columns") && !has_columns) {
    return InvalidArgumentError(
        "--columns is for csv, tsv and jsonl; other lists have their columns in one order");
  }
  for (const ColumnField& column : request.columns.fields) {
    for (const Sidecar& sidecar : folder.sidecars) {
      if (sidecar.field != column.field) continue;
      return InvalidArgumentError(StrCat("--columns and --fields both make the field ",
                                         column.field, "; name the sidecar's another way, as in ",
                                         sidecar.suffix, ":", sidecar.suffix, "2"));
    }
  }
  using Labels = ListSourceOptions::Labels;
  if (request.label_from == "largest" || request.label_from == "single") {
    return InvalidArgumentError(
        StrCat("--label-from ", request.label_from, " is for COCO json; a list has a column"));
  }
  options.labels = request.label_from == "dir"      ? Labels::kDir
                   : request.label_from == "none"   ? Labels::kNone
                   : request.label_from == "column" ? Labels::kColumn
                                                    : Labels::kAuto;
  options.recorded = request.recorded;
  OpenedSource opened;
  opened.options = folder.ToMap();
  opened.options["input-format"] = format;
  if (request.label_from == "column") opened.options["label-from"] = "column";
  if (std::string columns = GivenColumns(request.columns); !columns.empty())
    opened.options["columns"] = std::move(columns);
  const bool may_lack =
      !request.columns.fields.empty() || (has_columns && options.format.empty_labels);
  if (may_lack && folder.missing != MissingPart::kSkip)
    opened.options["missing-part"] = std::string(MissingPartName(folder.missing));
  opened.source = std::make_unique<ListSource>(std::move(options), folder, pool);
  return opened;
}

absl::StatusOr<OpenedSource> OpenCoco(const PackRequest& request, IoPool& pool) {
  const FolderSourceOptions& folder = request.source;
  RETURN_IF_ERROR(RefuseFlags(request, "coco",
                              {"ext", "include", "exclude", "columns", "fields", "class-order"}));
  if (request.label_from == "dir" || request.label_from == "column") {
    return InvalidArgumentError(
        StrCat("--label-from ", request.label_from,
               " is not for COCO json, where objects give the label: largest, single or none"));
  }
  if (request.coco_boxes && !request.annotations.empty()) {
    return InvalidArgumentError("--annotations adds to the json of --coco full, not of boxes");
  }
  using Labels = CocoSourceOptions::Labels;
  CocoSourceOptions options{.json = request.paths[0], .root = request.root};
  options.keep = request.coco_boxes ? CocoKeep::kBoxes : CocoKeep::kAll;
  options.annotations = request.annotations;
  FolderSourceOptions images = folder;
  // Detectors learn the background from images without objects.
  if (!request.coco_boxes && !request.Given("missing-part")) images.missing = MissingPart::kKeep;
  if (request.label_from == "single") options.labels = Labels::kSingle;
  if (request.label_from == "none") options.labels = Labels::kNone;
  OpenedSource opened;
  opened.options = folder.ToMap();
  opened.options["input-format"] = "coco";
  if (!request.label_from.empty() && request.label_from != "largest")
    opened.options["label-from"] = request.label_from;
  if (!request.coco_boxes) opened.options["coco"] = "full";
  if (!request.annotations.empty())
    opened.options["annotations"] = RecordedAnnotations(request.paths[0], request.annotations);
  if (images.missing != MissingPart::kSkip) {
    opened.options["missing-part"] = std::string(MissingPartName(images.missing));
  }
  opened.source = std::make_unique<CocoSource>(std::move(options), std::move(images), pool);
  return opened;
}

absl::StatusOr<OpenedSource> OpenArchive(const PackRequest& request) {
  const FolderSourceOptions& folder = request.source;
  RETURN_IF_ERROR(
      RefuseFlags(request, "archive", {"root", "columns", "follow", "coco", "annotations"}));
  OpenedSource opened;
  opened.options = folder.ToMap();
  opened.options["input-format"] = "archive";
  // Users who name the kind of the source, or its parts, know what is in it.
  const bool asks = request.input_format == "auto" && folder.sidecars.empty() &&
                    absl::AsciiStrToLower(request.paths[0]).find(".zip") == std::string::npos;
  auto source = std::make_unique<ArchiveSource>(
      request.paths[0], folder,
      asks ? ArchiveSource::Shards::kRefuse : ArchiveSource::Shards::kPackImages);
  opened.archive = source.get();
  opened.source = std::move(source);
  return opened;
}

// --label-from column and similar only apply to some kinds of sources.
absl::Status CheckLabelsFromFolders(const PackRequest& request, const std::string& format) {
  if (request.label_from != "column" && request.label_from != "largest" &&
      request.label_from != "single")
    return absl::OkStatus();
  return InvalidArgumentError(StrCat("--label-from ", request.label_from,
                                     " is not for a source of the kind ", format,
                                     ", whose folders give the labels: dir, dir:N or none"));
}

absl::StatusOr<OpenedSource> OpenDataset(const PackRequest& request, IoPool& pool) {
  absl::Status fits = RefuseFlags(request, "dataset",
                                  {"ext", "include", "exclude", "class-order", "fields", "columns",
                                   "root", "follow", "coco", "annotations"});
  const bool texts = request.label_from == kLabelFromCls;
  if (fits.ok() && !texts) fits = RefuseFlags(request, "dataset", {"label-from", "classes"});
  if (fits.ok() && (request.plan.split_by == SplitBy::kDir || request.one_split)) {
    fits = InvalidArgumentError(
        StrCat("--split-by ", request.one_split ? "none" : "dir",
               " is for folders; a dataset has its splits, and --split train=1 makes one of them"));
  }
  if (!fits.ok()) return fits;
  ASSIGN_OR_RETURN(Dataset dataset, OpenInput(request.paths, /*same_labels=*/true));
  RETURN_IF_ERROR(CheckIndexedShards(dataset, request.paths[0], pool));
  OpenedSource opened;
  DatasetSourceOptions options;
  std::error_code error;
  options.root = std::filesystem::absolute(request.paths[0], error).string();
  options.missing =
      request.Given("missing-part") ? request.source.missing : InheritedMissingPart(dataset);
  options.texts_as_classes = texts;
  options.exclude = request.exclude_keys;
  if (texts) options.classes = request.source.classes;
  if (dataset.manifest() == nullptr && SplitsOfShards(request.paths).differ) {
    options.warnings.push_back(StrCat(std::string(kSplitsDiffer),
                                      "; convert those of each split into its own folder, or "
                                      "name their splits with pack index --split NAME"));
  }
  if (dataset.manifest() != nullptr) {
    std::string unlisted = UnlistedShards(request.paths[0], *dataset.manifest());
    if (!unlisted.empty()) options.warnings.push_back(std::move(unlisted));
  }
  opened.options = options.ToMap(dataset);
  opened.dataset = dataset;
  opened.source = std::make_unique<DatasetSource>(std::move(dataset), std::move(options));
  return opened;
}

}  // namespace

absl::StatusOr<OpenedSource> OpenSource(const PackRequest& request, IoPool& pool) {
  const FolderSourceOptions& folder = request.source;
  const std::string& path = request.paths[0];
  ASSIGN_OR_RETURN(const std::string format,
                   request.input_format == "auto"
                       ? KindOfSource(path)
                       : absl::StatusOr<std::string>(request.input_format));
  if (format == "dataset") return OpenDataset(request, pool);
  if (request.Given("exclude-keys")) {
    return InvalidArgumentError(StrCat(
        "--exclude-keys names samples of a packed dataset, and this is a source of the kind ",
        format, "; give it to pack convert of what was packed from it"));
  }
  if (request.label_from == kLabelFromCls) {
    return InvalidArgumentError(
        StrCat("--label-from cls is for shards, whose samples have a .cls, not for a source of the "
               "kind ",
               format));
  }
  if (format == "coco") return OpenCoco(request, pool);
  if (format != "folder" && format != "archive") return OpenList(request, format, pool);
  absl::Status fits = CheckLabelsFromFolders(request, format);
  if (fits.ok() && format == "archive") return OpenArchive(request);
  if (fits.ok()) fits = RefuseFlags(request, "folder", {"root", "columns", "coco", "annotations"});
  if (!fits.ok()) return fits;
  return OpenedSource{std::make_unique<FolderSource>(path, folder, pool), folder.ToMap()};
}

absl::Status CheckShared(const Plan& plan) {
  const std::map<std::string, std::string>& words = plan.options().source;
  const auto format = words.find("input-format");
  if (format != words.end() && (format->second == "archive" || format->second == "coco")) {
    return InvalidArgumentError(
        StrCat("a plan of a source of the kind ", format->second,
               " cannot be shared by workers; pack it with one command, or unpack it first"));
  }
  for (const ListedField& field : plan.listing().fields) {
    if (!field.suffix.empty() || (format != words.end() && format->second == "dataset")) continue;
    return InvalidArgumentError(
        StrCat("the field ", EscapeForTerminal(field.name),
               " of the plan comes from columns of a list, which workers do "
               "not have; pack it with one command"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenPlannedSource(const Plan& plan,
                                                                const std::string& root,
                                                                IoPool& pool) {
  const std::map<std::string, std::string>& words = plan.options().source;
  const auto format = words.find("input-format");
  if (format != words.end() && format->second == "dataset") {
    ASSIGN_OR_RETURN(Dataset dataset, OpenInput({&root, 1}));
    const auto expected = words.find("dataset");
    if (expected == words.end() || expected->second != IdentityText(dataset.identity())) {
      return absl::FailedPreconditionError(StrCat(
          EscapeForTerminal(root), " is dataset ", IdentityText(dataset.identity()),
          ", the plan was made for ", expected == words.end() ? "another" : expected->second));
    }
    return std::make_unique<DatasetSource>(std::move(dataset), DatasetSourceOptions{.root = root});
  }
  RETURN_IF_ERROR(CheckShared(plan));
  struct stat facts;
  // Without this check, every file of an unmounted source would be reported as vanished.
  const int error = ::stat(root.c_str(), &facts) == 0 ? 0 : errno;
  if (error != 0 && !IsAboutThePath(error)) return IoStatus("look at", root, error);
  if (error != 0 || !S_ISDIR(facts.st_mode)) {
    return InvalidArgumentError(StrCat(
        "the source ", EscapeForTerminal(root),
        " of the plan is not a folder here; say where it is: pack build SRC --plan FILE -o OUT"));
  }
  FolderSourceOptions options;
  options.max_file_bytes = plan.options().max_file_bytes;
  options.follow = words.contains("follow");
  return std::make_unique<FolderSource>(root, options, pool);
}

}  // namespace shardpack
