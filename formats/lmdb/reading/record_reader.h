// RecordReader: turns the entries of an LMDB environment into records, by the rules of its layout.
//
//   RecordReader reader(LmdbLayout::kCaffe, window, meta, options, records, findings);
//   walk.Run(tree, KeyOrder::kBytes, [&](const LmdbEntry& e) { return reader.OnEntry(e); });
//   absl::Status finished = reader.Finish();
//
// A value that does not parse is a finding and gives no record. Strict mode also reports what
// readers of the layout treat differently.
//
// Lifetime: borrows all constructor arguments.
// Thread-safety: one caller at a time.
// Errors: read errors.
// Memory: the largest value; for the pickle layout, whose records are delivered at the end, also 16
// bytes per entry.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_READING_RECORD_READER_H_
#define SHARDPACK_FORMATS_LMDB_READING_RECORD_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "formats/core/finding.h"
#include "formats/core/shard_scanner.h"
#include "formats/lmdb/lmdb_layout.h"
#include "formats/lmdb/reading/page_window.h"
#include "formats/lmdb/reading/tree_walk.h"

namespace shardpack {

class RecordReader {
 public:
  RecordReader(LmdbLayout layout, PageWindow& window, const LmdbMeta& meta,
               const ScanOptions& options, RecordSink& records, FindingSink& findings);

  absl::Status OnEntry(const LmdbEntry& entry);
  absl::Status Finish();
  // True if some entries are themselves databases.
  bool named_databases() const { return named_databases_; }

 private:
  // A value of the pickle layout: its position, which together with the number's digits gives the
  // extent of its entry.
  struct Waiting {
    uint64_t value_offset;
    uint32_t value_bytes, number;
  };

  Finding Make(FindingId id, const LmdbEntry& entry) const;
  void Report(FindingId id, const LmdbEntry& entry, std::string detail);
  void OnDatum(const LmdbEntry& entry, Bytes value);
  void OnRaw(const LmdbEntry& entry, Bytes value);
  absl::Status KeepPickle(const LmdbEntry& entry);
  absl::Status OnPickle(const Waiting& waiting);
  void OnPickleKeys(const LmdbEntry& entry, Bytes value);
  void HandOn(const LmdbEntry& entry, Bytes value, uint64_t image_offset, uint64_t image_bytes,
              std::string_view key, std::string_view source_path, int64_t label);

  const LmdbLayout layout_;
  PageWindow& window_;
  const uint64_t page_bytes_;
  const ScanOptions& options_;
  RecordSink& records_;
  FindingSink& findings_;
  bool named_databases_ = false;
  std::vector<Waiting> waiting_;
  std::optional<uint64_t> stated_length_, listed_keys_;
  bool keys_in_order_ = true;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_RECORD_READER_H_
