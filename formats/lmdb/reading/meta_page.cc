#include "formats/lmdb/reading/meta_page.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// nullptr if the page is sound.
absl::StatusOr<const char*> ReadMeta(PageWindow& window, uint64_t offset, uint64_t number,
                                     LmdbMeta& meta) {
  if (offset >= window.size()) return "the file ends before it";
  ASSIGN_OR_RETURN(Bytes head,
                   window.Read(offset, std::min<uint64_t>(kMetaBytes, window.size() - offset)));
  return ParseMeta(head, number, meta);
}

void Report(uint64_t number, uint64_t offset, const char* problem, std::string_view shard,
            FindingSink& findings) {
  Finding finding = MakeFinding(FindingId::kLmdbMeta, shard);
  finding.offset = offset;
  finding.length = kMetaBytes;
  finding.detail = absl::StrCat("meta page ", number, ": ", problem);
  findings.Report(std::move(finding));
}

// mdb_env_write_meta writes transaction n to page n % 2, a new environment has 0 in both, and a
// file never shrinks. If this does not hold, an older tree could be mistaken for the newest one.
bool FollowEachOther(const LmdbMeta& first, const LmdbMeta& second) {
  const bool second_is_newer = second.transaction > first.transaction;
  const LmdbMeta& older = second_is_newer ? first : second;
  const LmdbMeta& newer = second_is_newer ? second : first;
  if (newer.transaction == 0) return newer.last_page == older.last_page;
  return newer.transaction - older.transaction == 1 && first.transaction % 2 == 0 &&
         newer.last_page >= older.last_page;
}

}  // namespace

absl::StatusOr<std::optional<LmdbMeta>> ChooseMeta(PageWindow& window, std::string_view shard,
                                                   FindingSink& findings) {
  LmdbMeta first, second;
  absl::StatusOr<const char*> problem = ReadMeta(window, 0, 0, first);
  if (!problem.ok()) return problem.status();
  const bool has_first = *problem == nullptr;
  if (!has_first) Report(0, 0, *problem, shard, findings);
  // The first page says where the second one is. Without it, search: the second page states its own
  // offset.
  uint64_t offset = has_first ? first.page_bytes : kMinPageBytes;
  const uint64_t last = has_first ? first.page_bytes : kMaxPageBytes;
  bool has_second = false;
  for (; offset <= last && !has_second; offset *= 2) {
    problem = ReadMeta(window, offset, 1, second);
    if (!problem.ok()) return problem.status();
    const char* why = *problem;
    if (why == nullptr && second.page_bytes != offset) why = "the page size is another one";
    has_second = why == nullptr;
    if (!has_second && has_first) Report(1, offset, why, shard, findings);
  }
  if (!has_first && !has_second) {
    Report(1, kMinPageBytes, "there is none at any page size", shard, findings);
    return std::optional<LmdbMeta>();
  }
  if (has_first && has_second && !FollowEachOther(first, second)) {
    Report(1, first.page_bytes, "the two do not follow each other", shard, findings);
  }
  const bool take_second = has_second && (!has_first || second.transaction > first.transaction);
  return std::optional<LmdbMeta>(take_second ? second : first);
}

}  // namespace shardpack
