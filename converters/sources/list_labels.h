// ListLabels: turns the labels of a list into indexes into a list of classes.
//
//   ListLabels labels;
//   labels.Add(row.line, "cat");                                                   // for each row
//   absl::Status done = labels.Finish({.classes = classes}, "train.csv", listing);
//
// If all labels are whole numbers (3.000000 counts as one), they are used as they are; the classes
// are then named "0", "1" and so on, unless `classes` names them. Otherwise labels are names:
// sorted, or looked up in `classes`. Numbers are names too if `classes` contains a number. Numbers
// with a fraction, and dates, are measurements: they name classes only on request.
//
// Thread-safety: one caller at a time.
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

// The largest number accepted as a label: each number below it becomes a class of the manifest.
inline constexpr int64_t kMaxNumberLabel = 999'999;

struct ListLabelOptions {
  std::vector<std::string> classes = {};  // if not empty: these, in this order
  ClassOrder order = ClassOrder::kLexical;
  std::string column = {};  // the labels' column, for messages; "" = the list has no columns
  bool asked = false;       // the user chose this column as the class: values are not doubted
};

// The warning when no label is 0 although the user has named the classes: of the list of this
// name, or, without one, of shards.
std::string CountedFromOneWarning(std::string_view file_name, std::string_view first_class);

class ListLabels {
 public:
  void Add(uint64_t line, std::string_view label);
  void AddNone();  // for a sample without a label
  uint64_t rows() const { return ids_.size(); }
  // `listing` has the rows and their skips: a label that occurs only for missing files makes no
  // class. Also adds to listing.warnings.
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
  absl::Status RefuseSlips(std::string_view file_name) const;
  void WarnAboutSlips(std::string_view file_name, Listing& listing) const;
  struct Name {
    std::string text;
    uint64_t line;  // of its first occurrence
  };
  std::map<std::string, uint32_t, std::less<>> known_;
  std::vector<Name> names_;
  static constexpr uint32_t kNoName = UINT32_MAX;
  std::vector<uint32_t> ids_;  // per row: index into names_, or kNoName
};

// Classes named by number, from "0" to the largest label.
std::vector<std::string> NumberedClasses(int64_t max_label);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_LABELS_H_
