// The on-disk pages of an LMDB file: parses meta pages, tree pages and their nodes, with bounds
// checks.
//
//   LmdbMeta meta;  const char* problem = ParseMeta(first_bytes, 0, meta);   // nullptr: sound
//   std::vector<LmdbNode> nodes;
//   problem = ParseTreePage(page, 7, nodes);  for (const LmdbNode& node : nodes) ... node.key
//
// For 64-bit liblmdb 0.9 (LMDB/lmdb: libraries/liblmdb/mdb.c, MDB_page, MDB_node, MDB_meta).
//
// Lifetime: a node's key points into the page.
// Errors: a static text that says what is wrong; the output is then unspecified.
// Units: bytes; page numbers from 0.
#ifndef SHARDPACK_FORMATS_LMDB_READING_LMDB_PAGES_H_
#define SHARDPACK_FORMATS_LMDB_READING_LMDB_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/io/bytes.h"

namespace shardpack {

inline constexpr size_t kPageHeaderBytes = 16;
inline constexpr size_t kMetaBytes = 152;  // a meta page including its header
inline constexpr uint64_t kMinPageBytes = 256, kMaxPageBytes = 0x8000;
inline constexpr uint64_t kNoPage = ~uint64_t{0};  // the root of an empty tree
inline constexpr uint64_t kMetaPages = 2;
inline constexpr int kMaxDepth = 32;  // CURSOR_STACK of mdb.c

// MDB_db: one B-tree.
struct LmdbTree {
  uint16_t flags = 0, depth = 0;
  uint64_t branch_pages = 0, leaf_pages = 0, overflow_pages = 0, entries = 0, root = kNoPage;
};

struct LmdbMeta {
  uint64_t map_bytes = 0, page_bytes = 0;
  LmdbTree free_pages, entries;
  uint64_t last_page = 0, transaction = 0;
};

// True for the first bytes of a meta page.
bool HasMetaMagic(Bytes head);
const char* ParseMeta(Bytes head, uint64_t page_number, LmdbMeta& meta);

struct LmdbNode {
  std::string_view key;
  uint64_t child = 0;        // branch: child page; leaf: first overflow page, if is_overflow
  size_t offset = 0;         // in the page
  uint32_t value_bytes = 0;  // leaf only
  bool is_overflow = false;
  bool is_plain = true;  // false: a named database or duplicates
  size_t value_offset() const { return offset + 8 + key.size(); }  // unless is_overflow
  size_t end() const { return value_offset() + (is_overflow ? 8 : value_bytes); }
};

struct LmdbTreePage {
  bool is_leaf = false;
  bool is_packed = true;  // false: a gap between the nodes, which liblmdb never leaves
  std::vector<LmdbNode> nodes;
};
const char* ParseTreePage(Bytes page, uint64_t page_number, LmdbTreePage& parsed);

// `header` has kPageHeaderBytes; sets `pages` to the number of pages of the value.
const char* ParseOverflowHeader(Bytes header, uint64_t page_number, uint64_t& pages);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_LMDB_PAGES_H_
