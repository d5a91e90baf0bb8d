#include "converters/sources/folder_meaning.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/offered_flags.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kNamedFolders = 3;

struct TopFolder {
  uint64_t images = 0;       // directly in it
  bool has_classes = false;  // images in folders of it
};
using TopFolders = std::map<std::string_view, TopFolder>;

TopFolders FindTopFolders(const LabelOptions& labels, const Listing& listing) {
  TopFolders tops;
  const std::vector<uint64_t> images = ImagesByFolder(labels, listing);
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string_view folder = listing.folders[i];
    if (images[i] == 0 || folder.empty()) continue;  // what lies in the root itself is no folder
    const size_t slash = folder.find('/');
    TopFolder& top = tops[folder.substr(0, slash)];
    if (slash == std::string_view::npos) {
      top.images += images[i];
    } else {
      top.has_classes = true;
    }
  }
  return tops;
}

std::string Named(const std::vector<std::string_view>& folders) {
  std::vector<std::string> names;
  for (const std::string_view folder : folders) {
    if (names.size() < kNamedFolders) names.push_back(EscapeForTerminal(folder));
  }
  const size_t more = folders.size() - names.size();
  return absl::StrCat(absl::StrJoin(names, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

absl::Status AskWhatFoldersAre(const std::vector<std::string_view>& splits,
                               const std::vector<std::string_view>& others) {
  std::vector<FlagWords> offers = {{"--split-by", "dir"}, {"--split-by", "none"}};
  if (others.size() <= kNamedFolders) {
    FlagWords& without = offers.emplace_back();
    for (const std::string_view other : others)
      without.insert(without.end(), {"--exclude", absl::StrCat("/", std::string(other), "/")});
  }
  return OfferFlags(
      absl::InvalidArgumentError(absl::StrCat(
          "the top folders ", Named(splits), " are named like splits and hold class folders, but ",
          Named(others), others.size() == 1 ? " beside them is" : " beside them are",
          " not: say with --split-by whether all are splits (dir) or classes (none), or leave out "
          "what is neither")),
      offers);
}

std::string Note(const TopFolders& tops) {
  std::vector<std::string_view> splits, flat;
  uint64_t unlabelled = 0;
  for (const auto& [name, top] : tops) {
    splits.push_back(name);
    if (top.has_classes) continue;
    flat.push_back(name);
    unlabelled += top.images;
  }
  std::string note =
      absl::StrCat("the top folders (", Named(splits), ") are named like splits and read as such");
  if (!flat.empty()) {
    absl::StrAppend(&note, "; ", Named(flat), flat.size() == 1 ? " holds" : " hold",
                    " no class folders, so that ", unlabelled,
                    unlabelled == 1 ? " image has no label" : " images have no label");
  }
  return absl::StrCat(note, "; --split-by none takes the top folders as classes");
}

// Whether the first folder of each path is a split, where the user has not said so.
absl::StatusOr<bool> FindSplits(const LabelOptions& labels, Listing& listing) {
  const TopFolders tops = FindTopFolders(labels, listing);
  std::vector<std::string_view> splits, others;
  bool has_classes = false;
  for (const auto& [name, top] : tops) {
    const bool is_split = IsSplitFolder(name);
    (is_split ? splits : others).push_back(name);
    has_classes = has_classes || (is_split && top.has_classes);
  }
  // "train" beside "bus" and "car" is a class like them.
  if (splits.empty() || (!others.empty() && !has_classes)) return false;
  if (!others.empty()) return AskWhatFoldersAre(splits, others);
  listing.notes.push_back(Note(tops));
  return true;
}

// One class whose images all lie in sub-folders: those may be the classes.
void NoteWrappedClasses(const FolderSourceOptions& options, const LabelOptions& labels,
                        Listing& listing) {
  if (listing.classes.size() != 1 || !options.classes.empty() || options.label_dir_given ||
      labels.component != 0)
    return;
  std::set<std::string_view> below;
  const std::vector<uint64_t> images = ImagesByFolder(labels, listing);
  for (size_t i = 0; i < images.size(); ++i) {
    if (images[i] == 0) continue;
    const std::string_view folder = listing.folders[i];
    const size_t slash = folder.find('/');
    if (slash == folder.npos) return;  // images of the class itself
    below.insert(folder.substr(slash + 1, folder.find('/', slash + 1) - slash - 1));
  }
  if (below.size() < 2) return;
  listing.warnings.push_back(absl::StrCat(
      "one class ", EscapeForTerminal(listing.classes[0]), " with ", below.size(), " sub-folders (",
      Named({below.begin(), below.end()}),
      "); --label-from dir:1 takes those as classes, as packing ",
      EscapeForTerminal(absl::StrCat(listing.root, "/", listing.classes[0])), " does"));
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), absl::AsciiStrToLower(std::string(name))) !=
         names.end();
}

// Two folders of the same file names, of images and of their masks, are not two classes.
void NoteMasks(const FolderSourceOptions& options, Listing& listing) {
  if (listing.classes.size() != 2 || !options.classes.empty()) return;
  std::string_view images, masks;
  for (const std::string& name : listing.classes) {
    if (IsOneOf(name, {"image", "images", "img", "imgs", "jpegimages", "photos", "rgb"}))
      images = name;
    if (IsOneOf(name,
                {"mask", "masks", "annotation", "annotations", "label", "labels", "segmentation",
                 "segmentations", "segmentationclass", "gt", "groundtruth", "trimaps"}))
      masks = name;
  }
  if (images.empty() || masks.empty()) return;
  std::set<std::string> stems;
  uint64_t of_images = 0, same = 0;
  std::string ending;  // of the masks
  for (const std::string_view wanted : {images, masks}) {
    for (uint64_t row = 0; row < listing.rows(); ++row) {
      if (listing.folders[listing.folder[row]] != wanted) continue;
      const std::string_view name = listing.Name(row), stem = Stem(name);
      if (wanted == images) {
        of_images += stems.emplace(stem).second ? 1 : 0;
      } else if (stems.contains(std::string(stem))) {
        ++same;
        ending = std::string(name.substr(stem.size()));
      }
    }
  }
  if (same * 2 < of_images || same == 0) return;
  const std::string from = absl::StrCat(listing.root, "/", std::string(masks)),
                    to = absl::StrCat(listing.root, "/", std::string(images));
  listing.warnings.push_back(absl::StrCat(
      EscapeForTerminal(images), " and ", EscapeForTerminal(masks),
      " hold files of the same names, as images and their masks do, and "
      "are packed as two classes. To pack each mask as a field of its image, put links beside the "
      "images, and pack these:\n  "
      "for f in ",
      ShellQuoted(from), "/*", ending, "; do ln -s \"$f\" ", ShellQuoted(to),
      "/\"$(basename \"$f\" ", ending, ").mask", ending, "\"; done\n  pack ", ShellQuoted(to),
      " --sidecars mask", ending, ":mask --label-from none --follow -o OUT"));
}

}  // namespace

bool IsSplitFolder(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "train", "training", "trainval", "val",  "valid",     "validation",
      "dev",   "test",     "testing",  "eval", "evaluation"};
  std::string lower = absl::AsciiStrToLower(std::string(name));
  // The year of COCO and VOC: train2017.
  constexpr size_t kYearDigits = 4;
  const size_t digits = lower.size() - (lower.find_last_not_of("0123456789") + 1);
  if (digits == kYearDigits) lower.resize(lower.size() - kYearDigits);
  return std::find(kNames.begin(), kNames.end(), lower) != kNames.end();
}

absl::Status AssignFolders(const FolderSourceOptions& options, LabelOptions labels,
                           std::span<const std::string> empty_folders, Listing& listing) {
  const bool labelled = options.label_from != FolderSourceOptions::LabelFrom::kNone;
  labels.below_splits = options.split_from_dir;
  if (options.find_splits) {
    ASSIGN_OR_RETURN(const bool found, FindSplits(labels, listing));
    listing.split_by_folder = labels.below_splits = found;
    if (found && !options.label_dir_given) labels.component = 1;
  }
  if (labelled) {
    RETURN_IF_ERROR(AssignLabels(labels, empty_folders, listing));
    NoteWrappedClasses(options, labels, listing);
    NoteMasks(options, listing);
    return absl::OkStatus();
  }
  listing.label.assign(listing.rows(), -1);
  return absl::OkStatus();
}

}  // namespace shardpack
