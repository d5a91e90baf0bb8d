#include "converters/sources/folder_doubts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/first_few.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"

namespace shardpack {
namespace {

constexpr std::array<std::string_view, 7> kImageFolders = {"image",      "images", "img", "imgs",
                                                           "jpegimages", "photos", "rgb"};
constexpr std::array<std::string_view, 12> kMaskFolders = {
    "mask",         "masks",         "annotation",        "annotations", "label",       "labels",
    "segmentation", "segmentations", "segmentationclass", "gt",          "groundtruth", "trimaps"};
// Endings of file names, before the last dot: 1_mask.png is a mask of 1.jpg.
constexpr std::array<std::string_view, 8> kMaskEndings = {
    "_mask", "-mask", ".mask", "_masks", "_seg", "_segmentation", "_matte", "_gt"};

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), absl::AsciiStrToLower(std::string(name))) !=
         names.end();
}

std::string_view MaskEnding(std::string_view stem) {
  for (const std::string_view ending : kMaskEndings) {
    if (stem.size() > ending.size() && stem.ends_with(ending)) return ending;
  }
  return "";
}

// Whether a shell needs no quotes for it.
bool IsPlainEnding(std::string_view ending) {
  return ending.size() > 1 && ending[0] == '.' &&
         std::all_of(ending.begin() + 1, ending.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

// Per top folder, the folders directly below it that hold images at any depth; "" stands for images
// in the top folder itself.
std::map<std::string_view, std::set<std::string_view>> FoldersBelowTops(const LabelOptions& labels,
                                                                        const Listing& listing) {
  std::map<std::string_view, std::set<std::string_view>> below;
  const std::vector<uint64_t> images = ImagesByFolder(labels, listing);
  for (size_t i = 0; i < images.size(); ++i) {
    if (images[i] == 0) continue;
    const std::string_view folder = listing.folders[i];
    const size_t slash = std::min(folder.find('/'), folder.size());
    const std::string_view rest = folder.substr(std::min(slash + 1, folder.size()));
    below[folder.substr(0, slash)].insert(rest.substr(0, rest.find('/')));
  }
  return below;
}

bool AreSplits(const std::set<std::string_view>& folders) {
  return std::all_of(folders.begin(), folders.end(), IsSplitFolder);
}

// There is one class, and all its images are in sub-folders: those may be the classes, or the
// splits.
void WarnAboutOneTop(std::string_view top, const std::set<std::string_view>& below, SourceKind kind,
                     Listing& listing) {
  if (below.size() < 2 || below.contains("")) return;
  const std::string inner = absl::StrCat(listing.root, "/", std::string(top));
  std::string text = absl::StrCat("one class ", EscapeForTerminal(top), " with ", below.size(),
                                  " sub-folders (", FirstFew(below, kNamedFolders), ")");
  if (!AreSplits(below)) {
    absl::StrAppend(&text, "; --label-from dir:1 takes those as classes");
    if (kind == SourceKind::kFolder)
      absl::StrAppend(&text, ", as packing ", EscapeForTerminal(inner), " does");
  } else if (kind == SourceKind::kFolder) {
    absl::StrAppend(&text, ", which are named like splits. To take them as such, type:\n  ",
                    TypedProgram(), " ", ShellQuoted(inner), " -o OUT");
  } else {
    absl::StrAppend(&text,
                    ", which are named like splits, but only the first folder of a path can "
                    "be one: leave ",
                    EscapeForTerminal(top), " out of the paths");
  }
  listing.warnings.push_back(std::move(text));
}

// cat/train, cat/val, dog/train: the split has to come first.
bool WarnAboutSplitsBelow(const std::map<std::string_view, std::set<std::string_view>>& tops,
                          SourceKind kind, Listing& listing) {
  std::set<std::string_view> splits;
  for (const auto& [top, below] : tops) {
    if (below.contains("") || !AreSplits(below)) return false;
    splits.insert(below.begin(), below.end());
  }
  if (splits.size() < 2) return false;
  std::string text = absl::StrCat(
      "the class folders hold folders named like splits (", FirstFew(splits, kNamedFolders),
      "), whose images are packed into one split all the same: the split has to come first, as in ",
      EscapeForTerminal(*splits.begin()), "/", EscapeForTerminal(tops.begin()->first), ".");
  if (kind == SourceKind::kFolder) {
    absl::StrAppend(&text, " To pack them so, make a folder of links:\n  for d in ",
                    ShellQuoted(listing.root),
                    "/*/*/; do s=by-split/\"$(basename \"$d\")\"; mkdir -p \"$s\"; ln -s -- \"$d\" "
                    "\"$s/$(basename \"$(dirname \"$d\")\")\"; done\n  ",
                    TypedProgram(), " by-split --follow -o OUT");
  }
  listing.warnings.push_back(std::move(text));
  return true;
}

// fold1/cat, fold1/dog, fold2/cat, fold2/dog: the first folder is probably not the class.
void WarnAboutSameNames(const std::map<std::string_view, std::set<std::string_view>>& tops,
                        Listing& listing) {
  std::set<std::string_view> all, common = tops.begin()->second;
  std::vector<std::string_view> names;
  for (const auto& [top, below] : tops) {
    if (below.contains("")) return;
    names.push_back(top);
    all.insert(below.begin(), below.end());
    std::erase_if(common,
                  [&below = below](std::string_view name) { return !below.contains(name); });
  }
  if (common.size() < 2 || common.size() * 2 < all.size()) return;
  listing.warnings.push_back(absl::StrCat(
      "the top folders (", FirstFew(names, kNamedFolders),
      ") are packed as classes, but hold "
      "folders of the same names (",
      FirstFew(common, kNamedFolders),
      "), as splits do; --split-by dir takes them as splits and the folders in them as classes, "
      "--split-by none leaves them classes without this line"));
}

// The common part of a mask's and its image's path: without the folder and the ending that
// distinguish the two.
std::string PairKey(std::string_view folder, size_t at, size_t bytes, std::string_view stem) {
  return absl::StrCat(std::string(folder.substr(0, at)), "\n",
                      std::string(folder.substr(at + bytes)), "/", std::string(stem));
}

// A component of a folder's path that is one of the names.
struct NamedPart {
  size_t at = std::string_view::npos, bytes = 0;
  bool found() const { return at != std::string_view::npos; }
};
NamedPart FindPart(std::string_view folder, std::span<const std::string_view> names) {
  for (size_t at = 0; at < folder.size();) {
    const size_t end = std::min(folder.find('/', at), folder.size());
    if (IsOneOf(folder.substr(at, end - at), names)) return {at, end - at};
    at = end + 1;
  }
  return {};
}

// The masks found; the texts describe the first one.
struct Masks {
  uint64_t count = 0;
  std::string image, mask;  // paths
  std::string ending;       // of the masks' file names: ".png" or "_mask.png"
  std::string extension;    // of the same, ".png"
  bool one_ending = true;

  void Add(const std::string& image_path, const std::string& mask_path, std::string_view new_ending,
           std::string_view new_extension) {
    if (count++ == 0) {
      image = image_path;
      mask = mask_path;
      ending = std::string(new_ending);
      extension = std::string(new_extension);
    }
    one_ending = one_ending && ending == new_ending;
  }
};

constexpr std::string_view kByHand =
    ". To pack each mask as a field of its image, put it beside the image as NAME.mask.png, and "
    "give --fields mask.png:mask";

// images/1.jpg and masks/1.png, at any depth.
bool WarnAboutMaskFolders(SourceKind kind, Listing& listing) {
  std::vector<NamedPart> image_part, mask_part;
  bool images = false, masks = false;
  for (const std::string& folder : listing.folders) {
    image_part.push_back(FindPart(folder, kImageFolders));
    mask_part.push_back(FindPart(folder, kMaskFolders));
    images = images || image_part.back().found();
    masks = masks || mask_part.back().found();
  }
  if (!images || !masks) return false;
  absl::flat_hash_set<std::string> keys;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const NamedPart& part = image_part[listing.folder[row]];
    if (!part.found()) continue;
    keys.insert(PairKey(listing.folders[listing.folder[row]], part.at, part.bytes,
                        Stem(listing.Name(row))));
  }
  Masks found;
  std::string image_folder, mask_folder;
  bool flat = kind == SourceKind::kFolder;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const std::string& folder = listing.folders[listing.folder[row]];
    const NamedPart& part = mask_part[listing.folder[row]];
    if (!part.found() || image_part[listing.folder[row]].found()) continue;
    const std::string_view name = listing.Name(row), stem = Stem(name);
    const std::string_view shorter = stem.substr(0, stem.size() - MaskEnding(stem).size());
    const bool same = keys.contains(PairKey(folder, part.at, part.bytes, stem));
    if (!same && !keys.contains(PairKey(folder, part.at, part.bytes, shorter))) continue;
    flat = flat && same && part.at == 0 && part.bytes == folder.size();
    const std::string_view extension = name.substr(stem.size());
    found.Add("", listing.Path(row), extension, extension);
    if (found.count == 1) mask_folder = folder.substr(0, part.at + part.bytes);
  }
  if (found.count == 0 || found.count * 2 < keys.size()) return false;
  for (size_t i = 0; i < listing.folders.size(); ++i) {
    const NamedPart& part = image_part[i];
    if (!part.found()) continue;
    if (image_folder.empty()) image_folder = listing.folders[i].substr(0, part.at + part.bytes);
    flat = flat && listing.folders[i] == image_folder;
  }
  std::string text = absl::StrCat(
      EscapeForTerminal(image_folder), " and ", EscapeForTerminal(mask_folder),
      " hold files of the same names, as images and their masks do, and are packed as images, all "
      "of them (",
      found.count, found.count == 1 ? " such file, " : " such files, the first is ",
      EscapeForTerminal(found.mask), ")");
  const std::string& ending = found.ending;
  if (flat && found.one_ending && IsPlainEnding(ending)) {
    const std::string from = absl::StrCat(listing.root, "/", mask_folder),
                      to = absl::StrCat(listing.root, "/", image_folder);
    absl::StrAppend(&text,
                    ". To pack each mask as a field of its image, put links beside the images, and "
                    "pack these:\n  for f in ",
                    ShellQuoted(from), "/*", ending, "; do ln -s -- \"$f\" ", ShellQuoted(to),
                    "/\"$(basename \"$f\" ", ending, ").mask", ending, "\"; done\n  ",
                    TypedProgram(), " ", ShellQuoted(to), " --fields mask", ending,
                    ":mask --label-from none --follow -o OUT");
  } else {
    absl::StrAppend(&text, std::string(kByHand));
  }
  listing.warnings.push_back(std::move(text));
  return true;
}

// 1.jpg and 1_mask.png in one folder.
void WarnAboutMasksBeside(SourceKind kind, Listing& listing) {
  const auto key = [&](uint64_t row, std::string_view stem) {
    return absl::StrCat(listing.folder[row], "/", std::string(stem));
  };
  absl::flat_hash_set<std::string> wanted, images;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const std::string_view stem = Stem(listing.Name(row)), ending = MaskEnding(stem);
    if (!ending.empty()) wanted.insert(key(row, stem.substr(0, stem.size() - ending.size())));
  }
  if (wanted.empty()) return;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    std::string image = key(row, Stem(listing.Name(row)));
    if (wanted.contains(image)) images.insert(std::move(image));
  }
  Masks found;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const std::string_view name = listing.Name(row), stem = Stem(name), ending = MaskEnding(stem);
    if (ending.empty()) continue;
    const std::string_view shorter = stem.substr(0, stem.size() - ending.size());
    if (!images.contains(key(row, shorter))) continue;
    const std::string& folder = listing.folders[listing.folder[row]];
    found.Add(absl::StrCat(folder, folder.empty() ? "" : "/", std::string(shorter)),
              listing.Path(row), name.substr(shorter.size()), name.substr(stem.size()));
  }
  if (found.count == 0) return;
  std::string text =
      absl::StrCat(found.count, found.count == 1 ? " image is named" : " images are named",
                   " like the mask of another beside it, and packed as an image of its own: ",
                   EscapeForTerminal(found.mask), " beside ", EscapeForTerminal(found.image), ".*");
  const bool plain = found.one_ending && IsPlainEnding(found.extension);
  if (plain && found.ending == absl::StrCat(".mask", found.extension)) {
    absl::StrAppend(&text, "; --fields mask", found.extension,
                    ":mask takes each as a field of its image");
  } else if (plain && kind == SourceKind::kFolder) {
    const std::string exclude = absl::StrCat("--exclude '*", found.ending, "'");
    const std::string root = ShellQuoted(listing.root);
    absl::StrAppend(&text, "; ", exclude,
                    " leaves them out. To pack each as a field of its image, make links of the "
                    "name that --fields takes, and pack these:\n  find ",
                    root, " -name '*", found.ending,
                    "' -exec sh -c 'for f; do ln -s -- \"${f##*/}\" \"${f%", found.ending, "}.mask",
                    found.extension, "\"; done' sh {} +\n  ", TypedProgram(), " ", root,
                    " --fields mask", found.extension, ":mask ", exclude, " -o OUT");
  } else {
    absl::StrAppend(&text, std::string(kByHand));
  }
  listing.warnings.push_back(std::move(text));
}

}  // namespace

void WarnAboutFolders(const FolderSourceOptions& options, const LabelOptions& labels,
                      SourceKind kind, Listing& listing) {
  if (!options.classes.empty()) return;
  const bool masks = WarnAboutMaskFolders(kind, listing);
  if (!masks) WarnAboutMasksBeside(kind, listing);
  const bool first_is_class = options.label_from == FolderSourceOptions::LabelFrom::kDir &&
                              !options.label_dir_given && labels.component == 0 &&
                              !labels.below_splits && !listing.classes.empty();
  if (!first_is_class || masks) return;
  const auto tops = FoldersBelowTops(labels, listing);
  if (tops.size() == 1) {
    WarnAboutOneTop(tops.begin()->first, tops.begin()->second, kind, listing);
  } else if (options.find_splits && !tops.empty() && !WarnAboutSplitsBelow(tops, kind, listing)) {
    WarnAboutSameNames(tops, listing);
  }
}

}  // namespace shardpack
