#include "formats/lmdb/reading/tree_walk.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"
#include "formats/lmdb/map_size_bound.h"

namespace shardpack {
namespace {

// -1, 0, 1 as in mdb_cmp_memn and mdb_cmp_long of mdb.c.
int Compare(std::string_view a, std::string_view b, KeyOrder order) {
  if (order == KeyOrder::kInteger && a.size() == sizeof(uint64_t) && b.size() == sizeof(uint64_t)) {
    const auto left = LoadLittle<uint64_t>(a.data()), right = LoadLittle<uint64_t>(b.data());
    return left < right ? -1 : left > right ? 1 : 0;
  }
  return a.compare(b);
}

}  // namespace

TreeWalk::TreeWalk(PageWindow& window, const LmdbMeta& meta, std::string_view shard,
                   FindingSink& findings)
    : window_(window),
      meta_(meta),
      shard_(shard),
      findings_(findings),
      used_(std::min(meta.last_page + 1, window.size() / meta.page_bytes)),
      free_(used_.size()) {
  std::fill_n(used_.begin(), std::min<size_t>(kMetaPages, used_.size()), true);
}

Finding TreeWalk::Make(FindingId id, uint64_t page) const {
  Finding finding = MakeFinding(id, shard_);
  finding.offset = PageOffset(page);
  finding.length = meta_.page_bytes;
  return finding;
}

void TreeWalk::Damage(FindingId id, uint64_t page, std::string detail, std::string expected,
                      std::string actual) {
  damaged_ = true;
  Finding finding = Make(id, page);
  finding.detail = absl::StrCat("page ", page, ": ", detail);
  finding.expected = std::move(expected);
  finding.actual = std::move(actual);
  findings_.Report(std::move(finding));
}

// Marks the pages as used; reports `what` if one is out of range or already used.
bool TreeWalk::Claim(uint64_t page, uint64_t pages, const char* what) {
  if (!IsPage(page) || pages > used_.size() - page) {
    damaged_ = true;
    Finding finding = MakeFinding(FindingId::kLmdbPage, shard_);
    finding.detail = absl::StrCat(what, " lies outside the file");
    finding.expected = absl::StrCat("pages from ", kMetaPages, " to ", used_.size() - 1);
    finding.actual =
        absl::StrCat("page ", page, pages == 1 ? "" : absl::StrCat(" and ", pages - 1, " more"));
    findings_.Report(std::move(finding));
    return false;
  }
  const auto begin = used_.begin() + static_cast<ptrdiff_t>(page);
  const auto end = begin + static_cast<ptrdiff_t>(pages);
  const auto taken = std::find(begin, end, true);
  if (taken != end) {
    // Used pages are not read again, so the walk is linear in the file's size.
    std::fill(begin, taken, true);
    Damage(FindingId::kLmdbTree, page + static_cast<uint64_t>(taken - begin),
           absl::StrCat(what, " is in use already"));
    return false;
  }
  std::fill(begin, end, true);
  return true;
}

absl::StatusOr<bool> TreeWalk::Load(uint64_t page, Level& level, const char** problem) {
  ASSIGN_OR_RETURN(Bytes bytes, window_.Read(PageOffset(page), meta_.page_bytes));
  level.page = page;
  level.next = 0;
  level.bytes.assign(bytes.begin(), bytes.end());
  *problem = ParseTreePage(level.bytes, page, level.parsed);
  return *problem == nullptr;
}

absl::StatusOr<bool> TreeWalk::Enter(uint64_t page, size_t depth, const LmdbTree& tree) {
  if (!Claim(page, 1, "a page of the tree")) return false;
  if (levels_.size() <= depth) levels_.resize(depth + 1);
  Level& level = levels_[depth];
  const char* problem = nullptr;
  absl::StatusOr<bool> loaded = Load(page, level, &problem);
  if (!loaded.ok()) return loaded;
  if (!*loaded) {
    Damage(FindingId::kLmdbPage, page, problem);
    return false;
  }
  // Some node's length was shrunk; nothing says which, so the nodes are kept as stored.
  if (!level.parsed.is_packed) Damage(FindingId::kLmdbPage, page, "its nodes leave a gap");
  const bool must_be_leaf = depth + 1 == tree.depth;
  if (level.parsed.is_leaf != must_be_leaf || level.parsed.nodes.empty()) {
    Damage(FindingId::kLmdbTree, page,
           level.parsed.nodes.empty() ? "a page without nodes" : "a page at the wrong level",
           absl::StrCat(must_be_leaf ? "a leaf" : "a branch", " at depth ", depth + 1),
           absl::StrCat(level.parsed.is_leaf ? "a leaf" : "a branch", " with ",
                        level.parsed.nodes.size(), " nodes"));
    return false;
  }
  ++(must_be_leaf ? leaf_pages_ : branch_pages_);
  return true;
}

// Checks that keys ascend. A branch's first key stands for everything below it and is ignored. The
// first key below a separator may equal that separator.
bool TreeWalk::CheckKey(const Level& level, const LmdbNode& node, KeyOrder order) {
  if (!level.parsed.is_leaf && &node == level.parsed.nodes.data()) return true;
  const int compared = has_key_ ? Compare(key_, node.key, order) : -1;
  const bool ascends = compared < 0 || (compared == 0 && at_separator_);
  if (ascends && !node.key.empty()) {
    has_key_ = true;
    at_separator_ = !level.parsed.is_leaf;
    key_.assign(node.key);
    return true;
  }
  damaged_ = true;
  Finding finding = Make(FindingId::kLmdbTree, level.page);
  finding.key = std::string(node.key);
  finding.detail = absl::StrCat("page ", level.page, ": ",
                                node.key.empty() ? "an empty key" : "keys do not ascend");
  if (!node.key.empty()) finding.expected = absl::StrCat("a key above ", key_);
  findings_.Report(std::move(finding));
  return false;
}

// With `claim` false, only looks: marks and reports nothing.
absl::StatusOr<bool> TreeWalk::Locate(uint64_t page, const LmdbNode& node, bool claim,
                                      LmdbEntry& entry) {
  entry.key = node.key;
  entry.number = entries_;
  entry.is_plain = node.is_plain;
  entry.value_bytes = node.value_bytes;
  entry.value_offset = PageOffset(page) + node.value_offset();
  entry.offset = PageOffset(page) + node.offset;
  entry.length = node.end() - node.offset;
  if (!node.is_overflow) return true;
  const uint64_t needed = OverflowPages(node.value_bytes, meta_.page_bytes);
  const bool inside = IsPage(node.child) && needed <= used_.size() - node.child;
  if (!inside && !claim) return false;
  if (!inside) return Claim(node.child, needed, "a value");
  ASSIGN_OR_RETURN(Bytes header, window_.Read(PageOffset(node.child), kPageHeaderBytes));
  uint64_t pages = 0;
  const char* problem = ParseOverflowHeader(header, node.child, pages);
  if (problem == nullptr && pages < needed) problem = "it has fewer pages than its value needs";
  if (problem != nullptr) {
    if (claim) Damage(FindingId::kLmdbPage, node.child, problem);
    return false;
  }
  if (claim && !Claim(node.child, pages, "a value")) return false;
  if (claim) overflow_pages_ += pages;
  entry.value_offset = PageOffset(node.child) + kPageHeaderBytes;
  entry.offset = PageOffset(node.child);
  entry.length = std::min(pages, used_.size() - node.child) * meta_.page_bytes;
  return true;
}

absl::Status TreeWalk::VisitNodes(Level& level, KeyOrder order, const Visitor& visit) {
  for (const LmdbNode& node : level.parsed.nodes) {
    if (!CheckKey(level, node, order)) continue;
    LmdbEntry entry;
    ASSIGN_OR_RETURN(bool located, Locate(level.page, node, /*claim=*/true, entry));
    if (located) {
      RETURN_IF_ERROR(visit(entry));
    }
    ++entries_;
  }
  return absl::OkStatus();
}

absl::Status TreeWalk::Run(const LmdbTree& tree, KeyOrder order, const Visitor& visit) {
  has_key_ = at_separator_ = false;
  branch_pages_ = leaf_pages_ = overflow_pages_ = entries_ = 0;
  if (tree.root == kNoPage) return absl::OkStatus();
  const bool was_damaged = std::exchange(damaged_, false);
  size_t depth = 0;  // of the current level
  absl::StatusOr<bool> entered = Enter(tree.root, depth, tree);
  if (!entered.ok()) return entered.status();
  bool done = !*entered;
  while (!done) {
    Level& level = levels_[depth];
    if (level.parsed.is_leaf) {
      RETURN_IF_ERROR(VisitNodes(level, order, visit));
      level.next = level.parsed.nodes.size();
    }
    if (level.next == level.parsed.nodes.size()) {
      done = depth == 0;
      depth -= done ? 0 : 1;
      continue;
    }
    const LmdbNode& node = level.parsed.nodes[level.next++];
    if (!CheckKey(level, node, order)) continue;
    entered = Enter(node.child, depth + 1, tree);
    if (!entered.ok()) return entered.status();
    if (*entered) ++depth;
  }
  if (!damaged_) CheckCounts(tree);
  damaged_ = damaged_ || was_damaged;
  return absl::OkStatus();
}

// After damage, wrong counts would only repeat it.
void TreeWalk::CheckCounts(const LmdbTree& tree) {
  const std::tuple<const char*, uint64_t, uint64_t> counts[] = {
      {"branch pages", tree.branch_pages, branch_pages_},
      {"leaf pages", tree.leaf_pages, leaf_pages_},
      {"overflow pages", tree.overflow_pages, overflow_pages_},
      {"entries", tree.entries, entries_}};
  for (const auto& [what, stated, found] : counts) {
    if (stated == found) continue;
    damaged_ = true;
    Finding finding = MakeFinding(FindingId::kLmdbTree, shard_);
    finding.detail = absl::StrCat("the meta page counts other ", what);
    finding.expected = absl::StrCat(stated);
    finding.actual = absl::StrCat(found);
    findings_.Report(std::move(finding));
  }
}

absl::Status TreeWalk::VisitLeaf(const LmdbTree& tree, std::string_view key, const Visitor& visit) {
  Level level;
  uint64_t page = tree.root;
  for (int depth = 0; depth < tree.depth; ++depth) {
    if (!IsPage(page)) return absl::OkStatus();
    const char* problem = nullptr;
    ASSIGN_OR_RETURN(bool loaded, Load(page, level, &problem));
    if (!loaded || level.parsed.nodes.empty()) return absl::OkStatus();
    if (level.parsed.is_leaf) break;
    const std::vector<LmdbNode>& nodes = level.parsed.nodes;
    const auto after = std::upper_bound(
        nodes.begin() + 1, nodes.end(), key,
        [](std::string_view wanted, const LmdbNode& node) { return wanted < node.key; });
    page = (after - 1)->child;
  }
  if (!level.parsed.is_leaf) return absl::OkStatus();
  for (const LmdbNode& node : level.parsed.nodes) {
    LmdbEntry entry;
    ASSIGN_OR_RETURN(bool located, Locate(level.page, node, /*claim=*/false, entry));
    if (!located) continue;
    RETURN_IF_ERROR(visit(entry));
  }
  return absl::OkStatus();
}

void TreeWalk::Free(uint64_t page) {
  // The last pages of a file may be free and never written.
  if (page >= kMetaPages && page >= used_.size() && page <= meta_.last_page) {
    ++free_beyond_;
    return;
  }
  const char* problem = !IsPage(page) ? "a page that does not exist is listed as free"
                        : used_[page] ? "it is in use and listed as free"
                        : free_[page] ? "it is listed as free twice"
                                      : nullptr;
  if (problem != nullptr) return Damage(FindingId::kLmdbFreeList, page, problem);
  free_[page] = true;
}

void TreeWalk::ReportLostPages(bool strict) {
  const uint64_t all = meta_.last_page + 1;
  if (used_.size() + free_beyond_ < all) {
    damaged_ = true;
    Finding finding = MakeFinding(FindingId::kContainerTruncated, shard_);
    finding.offset = window_.size();
    finding.detail = "pages that the meta page counts are missing";
    finding.expected = absl::StrCat(all * meta_.page_bytes, " bytes");
    finding.actual = absl::StrCat(window_.size(), " bytes");
    findings_.Report(std::move(finding));
  }
  if (damaged_ || !strict) return;
  uint64_t lost = 0, first = 0;
  for (uint64_t page = kMetaPages; page < used_.size(); ++page) {
    if (used_[page] || free_[page]) continue;
    if (lost++ == 0) first = page;
  }
  if (lost == 0) return;
  Finding finding = Make(FindingId::kLmdbLostPages, first);
  finding.detail = absl::StrCat(lost, " pages, the first is page ", first);
  findings_.Report(std::move(finding));
}

}  // namespace shardpack
