// TreeWalk: walks the B-trees of an LMDB file, checks every page on the way and delivers the
// entries in key order.
//
//   TreeWalk walk(window, meta, "train-00000-of-00001.lmdb", findings);
//   absl::Status walked = walk.Run(meta.entries, KeyOrder::kBytes,
//                                  [&](const LmdbEntry& entry) { return Visit(entry); });
//   walk.ReportLostPages(/*strict=*/true);
//
// A page is entered at most once, so cycles and shared pages are detected and the work is linear in
// the file's size. A damaged page is a finding, and the subtree below it is left out.
//
// Lifetime: borrows the window and the findings; an entry is valid during the call.
// Thread-safety: one caller at a time.
// Errors: damage is a finding; Status for read errors and for errors from the visitor.
// Memory: one page per level, and one or two bits per page of the file.
// Units: bytes from the start of the file; page numbers from 0.
#ifndef SHARDPACK_FORMATS_LMDB_READING_TREE_WALK_H_
#define SHARDPACK_FORMATS_LMDB_READING_TREE_WALK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/lmdb/reading/lmdb_pages.h"
#include "formats/lmdb/reading/page_window.h"

namespace shardpack {

struct LmdbEntry {
  std::string_view key;
  uint64_t number = 0;                         // in key order
  uint64_t value_offset = 0, value_bytes = 0;  // in the file
  uint64_t offset = 0, length = 0;  // the entry's exclusive bytes: its node or overflow pages
  bool is_plain = true;             // false: a named database or duplicates
};

enum class KeyOrder : uint8_t { kBytes, kInteger };

class TreeWalk {
 public:
  using Visitor = std::function<absl::Status(const LmdbEntry&)>;

  TreeWalk(PageWindow& window, const LmdbMeta& meta, std::string_view shard, FindingSink& findings);

  absl::Status Run(const LmdbTree& tree, KeyOrder order, const Visitor& visit);

  // Visits the entries of the leaf in which `key` would be, up to the first damage; reports no
  // findings.
  absl::Status VisitLeaf(const LmdbTree& tree, std::string_view key, const Visitor& visit);

  // Marks a page as free; a finding if it is in use, already free, or out of range.
  void Free(uint64_t page);
  // Reports pages beyond the file's end; strict: also those that are neither in use nor free.
  void ReportLostPages(bool strict);

  bool damaged() const { return damaged_; }

 private:
  struct Level {
    uint64_t page = 0;
    std::vector<std::byte> bytes;
    LmdbTreePage parsed;
    size_t next = 0;  // node
  };

  uint64_t PageOffset(uint64_t page) const { return page * meta_.page_bytes; }
  bool IsPage(uint64_t page) const { return page >= kMetaPages && page < used_.size(); }
  Finding Make(FindingId id, uint64_t page) const;
  void Damage(FindingId id, uint64_t page, std::string detail, std::string expected = "",
              std::string actual = "");
  bool Claim(uint64_t page, uint64_t pages, const char* what);
  // Returns false if the page is damaged.
  absl::StatusOr<bool> Enter(uint64_t page, size_t depth, const LmdbTree& tree);
  absl::StatusOr<bool> Load(uint64_t page, Level& level, const char** problem);
  bool CheckKey(const Level& level, const LmdbNode& node, KeyOrder order);
  absl::StatusOr<bool> Locate(uint64_t page, const LmdbNode& node, bool claim, LmdbEntry& entry);
  absl::Status VisitNodes(Level& level, KeyOrder order, const Visitor& visit);
  void CheckCounts(const LmdbTree& tree);

  PageWindow& window_;
  const LmdbMeta& meta_;
  const std::string shard_;
  FindingSink& findings_;
  std::vector<bool> used_, free_;  // for the pages that lie completely in the file
  uint64_t free_beyond_ = 0;       // free pages beyond the file's end
  std::vector<Level> levels_;
  bool damaged_ = false;
  // For the current tree.
  bool has_key_ = false;
  std::string key_;  // the last key, or the last separator passed
  bool at_separator_ = false;
  uint64_t branch_pages_ = 0, leaf_pages_ = 0, overflow_pages_ = 0, entries_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_TREE_WALK_H_
