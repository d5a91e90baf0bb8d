#include "converters/sources/folder_meaning.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/first_few.h"
#include "converters/listing/offered_flags.h"
#include "converters/sources/folder_doubts.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

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
    if (images[i] == 0 || folder.empty()) continue;  // the root itself is not a folder here
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
          splits.size() == 1 ? "the top folder " : "the top folders ",
          FirstFew(splits, kNamedFolders),
          splits.size() == 1 ? " is named like a split and holds class folders, but "
                             : " are named like splits and hold class folders, but ",
          FirstFew(others, kNamedFolders),
          others.size() == 1 ? " beside them is" : " beside them are",
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
  std::string note = absl::StrCat("the top folders (", FirstFew(splits, kNamedFolders),
                                  ") are named like splits and read as such");
  if (!flat.empty()) {
    absl::StrAppend(&note, "; ", FirstFew(flat, kNamedFolders),
                    flat.size() == 1 ? " holds" : " hold", " no class folders, so that ",
                    unlabelled, unlabelled == 1 ? " image has no label" : " images have no label");
  }
  return absl::StrCat(note, "; --split-by none takes the top folders as classes");
}

// Whether the first folder of each path is a split, when the user has not said.
absl::StatusOr<bool> FindSplits(const LabelOptions& labels, Listing& listing) {
  const TopFolders tops = FindTopFolders(labels, listing);
  std::vector<std::string_view> splits, others;
  bool has_classes = false;
  for (const auto& [name, top] : tops) {
    const bool is_split = IsSplitFolder(name);
    (is_split ? splits : others).push_back(name);
    has_classes = has_classes || (is_split && top.has_classes);
  }
  // "train" beside "bus" and "car" is an ordinary class.
  if (splits.empty() || (!others.empty() && !has_classes)) return false;
  if (!others.empty()) return AskWhatFoldersAre(splits, others);
  listing.notes.push_back(Note(tops));
  return true;
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
                           std::span<const std::string> empty_folders, SourceKind kind,
                           Listing& listing) {
  const bool labelled = options.label_from != FolderSourceOptions::LabelFrom::kNone;
  labels.below_splits = options.split_from_dir;
  if (options.find_splits) {
    ASSIGN_OR_RETURN(const bool found, FindSplits(labels, listing));
    listing.split_by_folder = labels.below_splits = found;
    if (found && !options.label_dir_given) labels.component = 1;
  }
  if (labelled) {
    RETURN_IF_ERROR(AssignLabels(labels, empty_folders, listing));
  } else {
    listing.label.assign(listing.rows(), -1);
  }
  WarnAboutFolders(options, labels, kind, listing);
  return absl::OkStatus();
}

}  // namespace shardpack
