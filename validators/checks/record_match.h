// RecordMatch: compares the records of a scan with those of the shard's index, one by one.
//
//   RecordMatch match(index, shard_name, outcome.findings);
//   scanner.Scan(in, options, match, outcome.findings);
//   match.Finish();   // reports records of the index that the scan did not find
//
// After damage, the two are realigned by the record's offset, so that one lost record is one
// finding.
//
// Lifetime: borrows all arguments.
// Thread-safety: one caller at a time.
// Errors: findings.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_RECORD_MATCH_H_
#define SHARDPACK_VALIDATORS_CHECKS_RECORD_MATCH_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/finding.h"
#include "formats/core/shard_index.h"
#include "formats/core/shard_scanner.h"

namespace shardpack {

class RecordMatch : public RecordSink {
 public:
  // `scanned_labels`: the index was made from a scan, so a container record without a label has
  // lost it.
  RecordMatch(const ShardIndex& index, std::string_view shard, bool scanned_labels,
              FindingSink& findings);

  void OnRecord(const ScannedRecord& record) override;
  void Finish();
  uint64_t scanned() const { return scanned_; }
  // Records found where the index says, whatever their content.
  uint64_t matched() const { return matched_; }

 private:
  Finding Make(FindingId id, uint64_t record) const;
  bool Align(const ScannedRecord& record);
  void Missing(uint64_t begin, uint64_t end);
  void CompareFields(const ScannedRecord& record);
  size_t ColumnOf(std::string_view name, size_t guess) const;

  const ShardIndex& index_;
  const std::string shard_;
  const bool scanned_labels_;
  FindingSink& findings_;
  const size_t most_fields_;  // a foreign shard's index with so many fields may lack others
  bool ascending_ = true;     // whether the index's offsets ascend
  uint64_t next_ = 0;         // the index's record expected next
  uint64_t scanned_ = 0, matched_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_RECORD_MATCH_H_
