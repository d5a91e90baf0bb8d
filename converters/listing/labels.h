// Labels: the class of each row of a listing, from the folder it lies in.
//
//   LabelOptions options;  options.classes = *ParseClasses(text, "classes.txt");
//   absl::Status assigned = AssignLabels(options, empty_folders, listing);
//   listing.classes[listing.label[row]];
//
// A label is the position of the class in sorted order, from 0: byte order, as torchvision's
// ImageFolder, unless natural order or a file with the classes is asked for. Without any folder at
// that place nothing has a label (all -1).
//
// Errors: InvalidArgument, naming the file, folder or line.
#ifndef SHARDPACK_CONVERTERS_LISTING_LABELS_H_
#define SHARDPACK_CONVERTERS_LISTING_LABELS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/listing/sidecars.h"

namespace shardpack {

enum class ClassOrder : uint8_t { kLexical, kNatural };

struct LabelOptions {
  int component = 0;             // which folder of the path names the class, from 0
  bool component_given = false;  // by the user: then no such folder anywhere is an error
  ClassOrder order = ClassOrder::kLexical;
  std::vector<std::string> classes = {};  // if not empty: these, in this order
  // A folder without an image is no class: rows of these parts do not count, nor do those that lead
  // out of an archive.
  std::vector<Sidecar> parts = {};
  bool outside_counts = true;
  bool below_splits =
      false;  // the first folder is a split: one without class folders has no labels
};

// By folder: its rows that may be samples, though they be skipped now.
std::vector<uint64_t> ImagesByFolder(const LabelOptions& options, const Listing& listing);

// Fills listing.label and listing.classes and adds to listing.warnings. `empty_folders` are folders
// without rows, named in a warning where they look like a class. Rows with a skip may lie anywhere.
absl::Status AssignLabels(const LabelOptions& options, std::span<const std::string> empty_folders,
                          Listing& listing);

// The lines of a file with one class name a line; CRLF, a byte order mark and empty lines at the
// end are fine.
absl::StatusOr<std::vector<std::string>> ParseClasses(std::string_view text,
                                                      std::string_view file_name);

// Runs of digits by their value ("9" before "10"), all else bytewise; a strict total order.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_LABELS_H_
