#include "formats/lmdb/reading/lmdb_pages.h"

#include <bit>

namespace shardpack {
namespace {

constexpr uint16_t kBranchPage = 0x01, kLeafPage = 0x02, kOverflowPage = 0x04, kMetaPage = 0x08;
constexpr uint16_t kBigData = 0x01, kSubData = 0x02, kDupData = 0x04;
constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
// Offsets in a page: MDB_page, then MDB_meta.
constexpr size_t kFlagsAt = 10, kLowerAt = 12, kUpperAt = 14, kPagesAt = 12;
constexpr size_t kMagicAt = 16, kVersionAt = 20, kMapBytesAt = 32, kFreeTreeAt = 40;
constexpr size_t kEntryTreeAt = 88, kLastPageAt = 136, kTransactionAt = 144;
constexpr size_t kNodeHeaderBytes = 8;

template <typename T>
T At(Bytes bytes, size_t offset) {
  return LoadLittle<T>(bytes.data() + offset);
}

LmdbTree TreeAt(Bytes head, size_t offset) {
  return {.flags = At<uint16_t>(head, offset + 4),
          .depth = At<uint16_t>(head, offset + 6),
          .branch_pages = At<uint64_t>(head, offset + 8),
          .leaf_pages = At<uint64_t>(head, offset + 16),
          .overflow_pages = At<uint64_t>(head, offset + 24),
          .entries = At<uint64_t>(head, offset + 32),
          .root = At<uint64_t>(head, offset + 40)};
}

const char* CheckTree(const LmdbTree& tree, uint64_t last_page) {
  if (tree.root == kNoPage) {
    const bool empty = tree.depth == 0 && tree.entries == 0 && tree.leaf_pages == 0 &&
                       tree.branch_pages == 0 && tree.overflow_pages == 0;
    return empty ? nullptr : "a tree without a root has pages or entries";
  }
  if (tree.root < kMetaPages || tree.root > last_page) return "the root of a tree is not a page";
  if (tree.depth == 0 || tree.depth > kMaxDepth) return "the depth of a tree is out of range";
  return nullptr;
}

}  // namespace

bool HasMetaMagic(Bytes head) {
  return head.size() >= kVersionAt + 4 && At<uint32_t>(head, kMagicAt) == kMagic;
}

const char* ParseMeta(Bytes head, uint64_t page_number, LmdbMeta& meta) {
  if (head.size() < kMetaBytes) return "the file ends inside it";
  if (At<uint64_t>(head, 0) != page_number) return "it has another page number";
  if (At<uint16_t>(head, kFlagsAt) != kMetaPage) return "its page flags are not those of one";
  if (!HasMetaMagic(head)) return "the magic number is wrong";
  if (At<uint32_t>(head, kVersionAt) != kVersion) return "the version of the format is not 1";
  meta.map_bytes = At<uint64_t>(head, kMapBytesAt);
  meta.page_bytes = At<uint32_t>(head, kFreeTreeAt);  // md_pad of the free list's tree
  meta.free_pages = TreeAt(head, kFreeTreeAt);
  meta.entries = TreeAt(head, kEntryTreeAt);
  meta.last_page = At<uint64_t>(head, kLastPageAt);
  meta.transaction = At<uint64_t>(head, kTransactionAt);
  if (!std::has_single_bit(meta.page_bytes) || meta.page_bytes < kMinPageBytes ||
      meta.page_bytes > kMaxPageBytes) {
    return "the page size is not a power of two from 256 to 32768";
  }
  if (meta.last_page < kMetaPages - 1 || meta.last_page > kNoPage / kMaxPageBytes - 1) {
    return "the number of the last page is out of range";
  }
  const char* problem = CheckTree(meta.free_pages, meta.last_page);
  return problem != nullptr ? problem : CheckTree(meta.entries, meta.last_page);
}

const char* ParseTreePage(Bytes page, uint64_t page_number, LmdbTreePage& parsed) {
  parsed.nodes.clear();
  if (At<uint64_t>(page, 0) != page_number) return "it has another page number";
  const auto flags = At<uint16_t>(page, kFlagsAt);
  if (flags != kBranchPage && flags != kLeafPage) return "its flags are not those of a tree page";
  parsed.is_leaf = flags == kLeafPage;
  const size_t lower = At<uint16_t>(page, kLowerAt), upper = At<uint16_t>(page, kUpperAt);
  if (lower < kPageHeaderBytes || lower % 2 != 0 || lower > upper || upper > page.size()) {
    return "its bounds are wrong";
  }
  size_t used = 0;
  for (size_t at = kPageHeaderBytes; at < lower; at += 2) {
    LmdbNode node;
    node.offset = At<uint16_t>(page, at);
    if (node.offset < upper || node.offset % 2 != 0) return "a node lies outside its part";
    if (node.offset > page.size() - kNodeHeaderBytes) return "a node passes the page's end";
    const Bytes bytes = page.subspan(node.offset);
    const uint64_t low = At<uint16_t>(bytes, 0), high = At<uint16_t>(bytes, 2);
    const auto node_flags = At<uint16_t>(bytes, 4);
    const size_t key_bytes = At<uint16_t>(bytes, 6);
    if (key_bytes > bytes.size() - kNodeHeaderBytes) return "a key passes the page's end";
    node.key = AsText(bytes.subspan(kNodeHeaderBytes, key_bytes));
    if (parsed.is_leaf) {
      node.value_bytes = static_cast<uint32_t>(low | high << 16);
      node.is_overflow = (node_flags & kBigData) != 0;
      node.is_plain = (node_flags & (kSubData | kDupData)) == 0;
      if ((node_flags & ~(kBigData | kSubData | kDupData)) != 0) return "a node has unknown flags";
      const size_t in_page = node.is_overflow ? sizeof(uint64_t) : node.value_bytes;
      if (in_page > bytes.size() - kNodeHeaderBytes - key_bytes) {
        return "a value passes the page's end";
      }
      if (node.is_overflow) node.child = At<uint64_t>(bytes, kNodeHeaderBytes + key_bytes);
      used += (kNodeHeaderBytes + key_bytes + in_page + 1) / 2 * 2;
    } else {
      node.child = low | high << 16 | uint64_t{node_flags} << 32;
      used += (kNodeHeaderBytes + key_bytes + 1) / 2 * 2;
    }
    // Check this before the next node: overlapping nodes could be very many.
    if (used > page.size() - upper) return "nodes overlap";
    parsed.nodes.push_back(node);
  }
  // mdb_node_add and mdb_node_del keep the nodes packed against the page's end.
  parsed.is_packed = used == page.size() - upper;
  return nullptr;
}

const char* ParseOverflowHeader(Bytes header, uint64_t page_number, uint64_t& pages) {
  if (At<uint64_t>(header, 0) != page_number) return "it has another page number";
  if (At<uint16_t>(header, kFlagsAt) != kOverflowPage) {
    return "its flags are not those of an overflow page";
  }
  pages = At<uint32_t>(header, kPagesAt);
  return nullptr;
}

}  // namespace shardpack
