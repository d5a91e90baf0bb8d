// WebdatasetChecker: checks the members and samples of a shard, beyond the structure of the tar
// file.
//
//   WebdatasetChecker checker("train-000000.tar", /*strict=*/true, findings);
//   std::optional<MemberName> name = checker.OnMember(member, record);  // nullopt: not a field
//   checker.OnSample({.key = "cat/1", .extensions = extensions});  ...  checker.Finish();
//
// Lifetime: borrows the shard name and the sink; a MemberName borrows the member.
// Thread-safety: one caller at a time.
// Errors: reported as findings.
// Memory: about eight bytes per sample, to detect repeated keys.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_CHECKER_H_
#define SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_CHECKER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "formats/core/finding.h"
#include "formats/tar/tar_walker.h"
#include "formats/webdataset/webdataset_layout.h"

namespace shardpack {

class WebdatasetChecker {
 public:
  struct Sample {
    uint64_t record = 0;
    std::string_view key;
    uint64_t offset = 0;
    std::span<const std::string_view> extensions;  // in member order, lower case
    bool has_image = false;
  };
  enum class FieldSet : uint8_t { kUnknown, kUsual, kOther };

  // If not strict, checks only what makes readers see different samples, and names and types that
  // are dangerous to unpack.
  WebdatasetChecker(std::string_view shard_name, bool strict, FindingSink& findings)
      : shard_(shard_name), strict_(strict), findings_(findings) {}

  // Returns the key and extension under which readers see the member. `record` is the number of the
  // current sample, or of the next one if the member begins it.
  std::optional<MemberName> OnMember(const TarMember& member, uint64_t record);
  void OnDuplicate(const TarMember& member, const MemberName& name, uint64_t record);
  void OnLabelNotInteger(const TarMember& member, const MemberName& name, uint64_t record);
  void OnSample(const Sample& sample);
  // Compares these extensions with those of the first sample. Takes as long as these are many.
  FieldSet Compare(std::span<const std::string_view> extensions) const;
  // Reports what was counted over the whole shard.
  void Finish();

 private:
  // A property that many members share is reported as one finding with a count.
  struct Counted {
    uint64_t members = 0, first_offset = 0;
    void Add(uint64_t offset) {
      if (members++ == 0) first_offset = offset;
    }
  };

  bool CheckType(const TarMember& member);
  void CheckNameStyle(const TarMember& member);
  void Report(FindingId id, const TarMember& member, std::string detail = {});
  void ReportCounted(FindingId id, const Counted& counted);
  Finding OfField(FindingId id, const TarMember& member, const MemberName& name,
                  uint64_t record) const;

  const std::string_view shard_;
  const bool strict_;
  FindingSink& findings_;
  Counted extension_records_, long_names_;
  std::vector<std::string> usual_extensions_;  // of the first sample
  std::string usual_text_;                     // the same for findings
  absl::flat_hash_set<uint64_t> keys_;         // XXH3-64 of each
};

// The names for a finding: a long list is cut off, and so are long names.
std::string TextOfNames(std::span<const std::string_view> names);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_CHECKER_H_
