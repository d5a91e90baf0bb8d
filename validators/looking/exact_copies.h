// FindExactCopies: images that are in the datasets more than once, byte for byte, by the lengths
// and hashes in the indexes.
//
//   const SampleRows rows(datasets);
//   absl::StatusOr<std::vector<CopyGroup>> groups = FindExactCopies(rows);
//   CompareBytes(rows, *groups, stop, unread);   // to be sure: reads those images
//
// Groups with a label conflict come first, then those in several splits or datasets, then the
// others; among them, in the order of their first samples.
//
// Lifetime: groups own their rows.
// Thread-safety: any thread.
// Errors: those of opening indexes; Cancelled if `stop` becomes nonzero.
// Memory: 16 bytes a sample.
#ifndef SHARDPACK_VALIDATORS_LOOKING_EXACT_COPIES_H_
#define SHARDPACK_VALIDATORS_LOOKING_EXACT_COPIES_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "validators/looking/sample_rows.h"

namespace shardpack {

struct CopyGroup {
  std::vector<uint64_t> rows;  // two or more, ascending
  // Samples of two classes. Samples without a label do not count, and datasets whose classes have
  // no names are compared only with each other.
  bool label_conflict = false;
  // A sample without a label has a text in kLabelTextField, and another one a label or another
  // text: whether it is a label conflict is not known.
  bool unread_labels = false;
  bool labelled = false;  // every sample has a label
  bool leak = false;      // samples of two splits, or of two datasets
};

absl::StatusOr<std::vector<CopyGroup>> FindExactCopies(const SampleRows& rows);

// Samples that could not be read, which stay in their groups.
struct UnreadSamples {
  uint64_t count = 0;
  std::vector<std::string> messages;  // of the first ones
  static constexpr size_t kMostMessages = 20;
};

// Reads the images of all groups, and divides groups whose images differ.
absl::Status CompareBytes(const SampleRows& rows, std::vector<CopyGroup>& groups,
                          const std::atomic<int>& stop, UnreadSamples& unread);

// Sets the marks of a group with these rows.
absl::Status MarkGroup(const SampleRows& rows, CopyGroup& group);
void SortGroups(std::vector<CopyGroup>& groups);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_EXACT_COPIES_H_
