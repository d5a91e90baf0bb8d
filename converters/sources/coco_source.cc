#include "converters/sources/coco_source.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/listing/class_names.h"
#include "converters/sources/coco_sizes.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/listed_files.h"
#include "formats/io/file.h"
#include "formats/io/same_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kJsonField = "json";

// Each annotation would occur twice.
absl::Status RefuseTwice(const CocoSourceOptions& options) {
  std::vector<std::string> paths = options.annotations;
  paths.insert(paths.begin(), options.json);
  ASSIGN_OR_RETURN(const std::optional<NamedTwice> twice, FindSameFile(paths));
  if (!twice) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--annotations ", EscapeForTerminal(paths[twice->again]), " is the same file as ",
      EscapeForTerminal(paths[twice->first]), "; give each file once"));
}

}  // namespace

CocoSource::CocoSource(CocoSourceOptions options, FolderSourceOptions folder, IoPool& pool)
    : options_(std::move(options)),
      folder_options_(std::move(folder)),
      root_(RootOf(options_.root, options_.json)),
      folder_(root_, folder_options_, pool),
      pool_(pool) {}

absl::StatusOr<Listing> CocoSource::List() {
  const Descriptor root(OpenAt(AT_FDCWD, root_.c_str(), O_PATH | O_DIRECTORY));
  if (!root.ok() && !IsAboutThePath(errno)) return IoStatus("open", root_, errno);
  if (!root.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the root ", EscapeForTerminal(root_),
                     " of the images is not a folder that can be opened"));
  }
  absl::Status status = RefuseTwice(options_);
  if (!status.ok()) return status;
  CocoFile coco;
  status = ReadCoco(options_.json, options_.keep, &coco);
  for (size_t i = 0; status.ok() && i < options_.annotations.size(); ++i) {
    status = JoinAnnotations(options_.annotations[i], &coco);
  }
  if (!status.ok()) return status;
  Listing listing;
  listing.root = DescriptorPath(root.get()).value_or(root_);
  status = NameClasses(coco, listing);
  if (status.ok()) status = AddRows(coco, listing);
  if (!status.ok()) return status;
  const uint64_t rows = listing.name_ends.size();
  if (rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(options_.json), " names no image that can be packed"));
  }
  status = LookAtFiles(root.get(), folder_options_, pool_, listing, listed_);
  if (status.ok()) status = CheckFound(root.get(), options_.json, listing);
  if (!status.ok()) return status;
  WarnAboutSizes(root.get(), coco, image_of_row_, pool_, listing);
  made_.AppendTo(listing);
  if (folder_options_.missing == MissingPart::kKeep) {
    if (coco.objects.empty()) {
      listing.notes.push_back(
          absl::StrCat("no annotation of ", EscapeForTerminal(options_.json),
                       " has a category or a box, as in a file of captions or of a test set: the "
                       "samples have no label, and an empty list of boxes"));
    } else if (!without_object_.empty()) {
      listing.notes.push_back(absl::StrCat(
          without_object_.size(), " of ", rows,
          " images have no object: they are packed as negatives, without a label and with an empty "
          "list; --missing-part drop leaves them out"));
    }
    return listing;
  }
  std::vector<bool> skipped(rows, false);
  for (const Skip& skip : listing.skips) skipped[skip.row] = true;
  for (const uint64_t row : without_object_) {
    if (!skipped[row]) {
      listing.skips.push_back({row, SkipReason::kUnpaired, "no annotation gives it a label"});
    }
  }
  std::sort(listing.skips.begin(), listing.skips.end(),
            [](const Skip& a, const Skip& b) { return a.row < b.row; });
  return listing;
}

absl::Status CocoSource::NameClasses(const CocoFile& coco, Listing& listing) {
  label_of_category_.clear();
  const bool labels = options_.labels != CocoSourceOptions::Labels::kNone;
  const std::vector<std::string>& given = folder_options_.classes;
  for (size_t i = 0; i < coco.categories.size(); ++i) {
    if (given.empty()) {
      label_of_category_.push_back(static_cast<int32_t>(i));
      continue;
    }
    const auto found = std::find(given.begin(), given.end(), coco.categories[i]);
    if (found == given.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the category \"", EscapeForTerminal(coco.categories[i]),
                       "\" is not among the classes of --classes",
                       AlikeClass(given, coco.categories[i]), "; add it there"));
    }
    label_of_category_.push_back(static_cast<int32_t>(found - given.begin()));
  }
  if (labels) listing.classes = given.empty() ? coco.categories : given;
  return absl::OkStatus();
}

absl::Status CocoSource::AddRows(const CocoFile& coco, Listing& listing) {
  made_ = MadeFields({std::string(kJsonField)});
  without_object_.clear();
  image_of_row_.clear();
  folder_numbers_.clear();
  for (const CocoImage& image : coco.images) {
    absl::Status added = AddRow(coco, image, listing);
    if (added.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(options_.json), ": image ",
                                                   image.id, ": ", std::string(added.message()),
                                                   ": ", EscapeForTerminal(image.file_name)));
  }
  std::set<std::pair<uint32_t, std::string_view>> names;
  for (uint64_t row = 0; row < listing.name_ends.size(); ++row) {
    if (names.emplace(listing.folder[row], listing.Name(row)).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(options_.json),
                                                   ": two images have the file_name ",
                                                   EscapeForTerminal(listing.Path(row))));
  }
  return absl::OkStatus();
}

absl::Status CocoSource::AddRow(const CocoFile& coco, const CocoImage& image, Listing& listing) {
  using Labels = CocoSourceOptions::Labels;
  ASSIGN_OR_RETURN(const std::string path, PathBelowRoot(image.file_name, listing.root));
  if (path.find('\0') != std::string::npos)
    return absl::InvalidArgumentError("a NUL byte in the file_name");
  const std::span<const CocoObject> objects = coco.ObjectsOf(image);
  const auto largest =
      std::max_element(objects.begin(), objects.end(),
                       [](const CocoObject& a, const CocoObject& b) { return a.area < b.area; });
  const bool wants_label = options_.labels != Labels::kNone;
  const bool lacks = wants_label && objects.empty();
  if (lacks && folder_options_.missing == MissingPart::kError) {
    return absl::InvalidArgumentError(
        "no annotation gives it a label; --missing-part keep packs such images without one, drop "
        "leaves them out");
  }
  const bool mixed = options_.labels == Labels::kSingle &&
                     std::any_of(objects.begin(), objects.end(), [&](const CocoObject& object) {
                       return object.category != objects[0].category;
                     });
  if (mixed || (lacks && folder_options_.missing == MissingPart::kDrop)) {
    ++listing.left_out;
    return absl::OkStatus();
  }
  const uint64_t row = listing.name_ends.size();
  if (lacks) without_object_.push_back(row);
  image_of_row_.push_back(static_cast<size_t>(&image - coco.images.data()));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  const auto [known, added] =
      folder_numbers_.try_emplace(folder, static_cast<uint32_t>(listing.folders.size()));
  if (added) listing.folders.push_back(folder);
  listing.folder.push_back(known->second);
  listing.names.append(slash == std::string::npos ? path : path.substr(slash + 1));
  listing.name_ends.push_back(listing.names.size());
  listing.label.push_back(
      wants_label && !lacks ? label_of_category_[static_cast<size_t>(largest->category)] : -1);
  const auto json = options_.keep == CocoKeep::kAll ? &WholeJson : &BoxesJson;
  made_.Add(json(coco, image, label_of_category_));
  return absl::OkStatus();
}

}  // namespace shardpack
