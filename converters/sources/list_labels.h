// ListLabels: the labels that a list gives its rows, as positions in a list of classes.
//
//   ListLabels labels;
//   labels.Add(row.line, "cat");                                                   // for each row
//   absl::Status done = labels.Finish({.classes = classes}, "train.csv", listing);
//
// Whole numbers, also written as 3.000000, are labels as they are when all are; the classes are
// then named "0", "1" and so on, unless `classes` names them. Anything else are names: sorted, or
// looked up in `classes`; and so are numbers where `classes` has a number among its names. Numbers
// with a fraction, and dates, are measurements: they are names of classes only where that is asked
// for.
//
// Thread-safety: one caller.
// Errors: InvalidArgument, with file and line.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LIST_LABELS_H_
#define SHARDPACK_CONVERTERS_SOURCES_LIST_LABELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "converters/listing/labels.h"
#include "converters/listing/listing.h"

namespace shardpack {

// The largest number that is taken for a label: each below it becomes a class of the manifest.
inline constexpr int64_t kMaxNumberLabel = 999'999;

struct ListLabelOptions {
  std::vector<std::string> classes = {};  // if not empty: these, in this order
  ClassOrder order = ClassOrder::kLexical;
  std::string column = {};  // where the labels stand, for messages; "" = the list has no columns
  bool asked = false;       // the user has said that this column is the class
};

class ListLabels {
 public:
  void Add(uint64_t line, std::string_view label);
  void AddNone();  // of a sample without a label
  uint64_t rows() const { return ids_.size(); }
  // The listing has the rows and their skips: a label that only files have which are not there
  // makes no class. Also adds to listing.warnings.
  absl::Status Finish(const ListLabelOptions& options, std::string_view file_name,
                      Listing& listing) const;

 private:
  absl::Status RefuseMeasurements(const ListLabelOptions& options,
                                  std::string_view file_name) const;
  absl::Status NumberLabels(const std::vector<std::string>& classes, std::string_view file_name,
                            Listing& listing, std::vector<int32_t>& label_of) const;
  absl::Status NameLabels(const ListLabelOptions& options, std::string_view file_name,
                          Listing& listing, std::vector<int32_t>& label_of) const;
  std::vector<bool> NamesOfFiles(const Listing& listing) const;
  void WarnAboutSlips(std::string_view file_name, Listing& listing) const;
  struct Name {
    std::string text;
    uint64_t line;  // where it stands first
  };
  std::map<std::string, uint32_t, std::less<>> known_;
  std::vector<Name> names_;
  static constexpr uint32_t kNoName = UINT32_MAX;
  std::vector<uint32_t> ids_;  // per row: position in names_, or kNoName
};

// Classes named by number, from "0" to the largest label.
std::vector<std::string> NumberedClasses(int64_t max_label);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_LABELS_H_
