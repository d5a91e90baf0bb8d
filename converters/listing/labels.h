// Labels: assigns each row of a listing the class given by its folder.
//
//   LabelOptions options;  options.classes = *ParseClasses(text, "classes.txt");
//   absl::Status assigned = AssignLabels(options, empty_folders, listing);
//   listing.classes[listing.label[row]];
//
// A label is the index of the class in sorted order, from 0. The order is by bytes, as in
// torchvision's ImageFolder, unless natural order or a file of classes is requested. If there are
// no folders at that level, there are no labels (all -1).
//
// Errors: InvalidArgument, naming the file, folder or line.
#ifndef SHARDPACK_CONVERTERS_LISTING_LABELS_H_
#define SHARDPACK_CONVERTERS_LISTING_LABELS_H_

#include <cstdint>
#include <functional>
#include <map>
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
  bool component_given = false;  // by the user: then it is an error if no such folder exists
  ClassOrder order = ClassOrder::kLexical;
  std::vector<std::string> classes = {};  // if not empty: these, in this order
  // A folder without an image is not a class: rows of these parts do not count, nor, if not
  // `outside_counts`, do rows that lead out of an archive.
  std::vector<Sidecar> parts = {};
  bool outside_counts = true;
  bool below_splits =
      false;  // the first folder is a split: one without class folders has no labels
};

// Per folder, the number of rows that may be samples, even if they are skipped now.
std::vector<uint64_t> ImagesByFolder(const LabelOptions& options, const Listing& listing);

// Fills listing.label and listing.classes and adds to listing.warnings. `empty_folders` have no
// rows; those that look like a class are named in a warning. Rows with a skip may lie anywhere.
absl::Status AssignLabels(const LabelOptions& options, std::span<const std::string> empty_folders,
                          Listing& listing);

// What a labelled listing has of the classes of folders that could not be listed.
class UnreadClasses {
 public:
  enum class Have : uint8_t { kSamples, kNumber, kNothing };
  explicit UnreadClasses(const Listing& listing);
  // kNothing also for a folder above those that name classes.
  Have Of(const UnreadFolder& folder) const;

 private:
  int component_ = -1;  // the level of the folders that name classes; -1: not known
  std::map<std::string, bool, std::less<>> has_samples_;  // by class
};

// Parses a file with one class name per line; CRLF, a byte order mark and trailing empty lines are
// allowed.
absl::StatusOr<std::vector<std::string>> ParseClasses(std::string_view text,
                                                      std::string_view file_name);

// Compares runs of digits by value ("9" before "10"), everything else by bytes; a strict total
// order.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_LABELS_H_
