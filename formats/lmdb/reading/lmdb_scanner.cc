#include "formats/lmdb/reading/lmdb_scanner.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"
#include "formats/lmdb/reading/layout_detection.h"
#include "formats/lmdb/reading/lmdb_pages.h"
#include "formats/lmdb/reading/meta_page.h"
#include "formats/lmdb/reading/page_window.h"
#include "formats/lmdb/reading/record_reader.h"
#include "formats/lmdb/reading/tree_walk.h"

namespace shardpack {
namespace {

// A map this many times the size of the file, and at least this large, may not fit on some
// machines.
constexpr uint64_t kHugeMapBytes = uint64_t{1} << 40, kHugeMapTimes = 16;

// Marks the pages in the free list. Each transaction's list is a count followed by page numbers.
absl::Status ReadFreeList(TreeWalk& walk, PageWindow& window, const LmdbMeta& meta,
                          const std::string& shard, FindingSink& findings) {
  return walk.Run(meta.free_pages, KeyOrder::kInteger, [&](const LmdbEntry& entry) {
    ASSIGN_OR_RETURN(Bytes value, window.Read(entry.value_offset, entry.value_bytes));
    const uint64_t words = value.size() / sizeof(uint64_t);
    const uint64_t count = words == 0 ? 0 : LoadLittle<uint64_t>(value.data());
    if (entry.key.size() != sizeof(uint64_t) || words == 0 || count > words - 1) {
      Finding finding = MakeFinding(FindingId::kLmdbFreeList, shard);
      finding.offset = entry.offset;
      finding.detail = "a list that contradicts its size";
      finding.expected = absl::StrCat("at most ", words == 0 ? 0 : words - 1, " pages");
      finding.actual = absl::StrCat(count);
      findings.Report(std::move(finding));
      return absl::OkStatus();
    }
    for (uint64_t i = 1; i <= count; ++i) {
      walk.Free(LoadLittle<uint64_t>(value.data() + i * sizeof(uint64_t)));
    }
    return absl::OkStatus();
  });
}

void CheckFileEnd(const LmdbMeta& meta, uint64_t size, const ScanOptions& options,
                  FindingSink& findings) {
  const uint64_t end = (meta.last_page + 1) * meta.page_bytes;
  if (size > end) {
    Finding finding = MakeFinding(FindingId::kTrailingData, options.shard_name);
    finding.offset = end;
    finding.length = size - end;
    findings.Report(std::move(finding));
  }
  if (options.strict && meta.map_bytes >= kHugeMapBytes && meta.map_bytes / kHugeMapTimes > size) {
    Finding finding = MakeFinding(FindingId::kLmdbMapSize, options.shard_name);
    finding.actual = absl::StrCat(meta.map_bytes, " bytes for a file of ", size);
    findings.Report(std::move(finding));
  }
}

// Walks all pages without looking at values.
absl::Status SkipEntries(TreeWalk& walk, const LmdbTree& tree) {
  return walk.Run(tree, KeyOrder::kBytes, [](const LmdbEntry&) { return absl::OkStatus(); });
}

void ReportLayout(const std::string& what, const ScanOptions& options, FindingSink& findings) {
  Finding finding = MakeFinding(FindingId::kLmdbLayout, options.shard_name);
  finding.detail = what;
  findings.Report(std::move(finding));
}

}  // namespace

constinit const LmdbScanner kLmdbScanner;

absl::Status LmdbScanner::Scan(SequentialReader& in, const ScanOptions& options,
                               RecordSink& records, FindingSink& findings) const {
  PageWindow window(in);
  ASSIGN_OR_RETURN(std::optional<LmdbMeta> chosen,
                   ChooseMeta(window, options.shard_name, findings));
  if (!chosen) return absl::OkStatus();
  const LmdbMeta& meta = *chosen;
  TreeWalk walk(window, meta, options.shard_name, findings);
  bool named_databases = false;
  absl::Status status;
  if (meta.entries.flags != 0) {
    ReportLayout("keys in another order, or several values a key", options, findings);
    status = absl::OkStatus();
    named_databases = true;  // pages of another kind, which are not walked
  } else {
    ASSIGN_OR_RETURN(FoundLayout found, DetectLayout(walk, meta.entries, window));
    window.FollowReader();  // the values that were looked at come again
    if (found.layout) {
      RecordReader reader(*found.layout, window, meta, options, records, findings);
      status = walk.Run(meta.entries, KeyOrder::kBytes,
                        [&](const LmdbEntry& entry) { return reader.OnEntry(entry); });
      if (status.ok()) status = reader.Finish();
      named_databases = reader.named_databases();
    } else {
      ReportLayout(std::string(found.name), options, findings);
      status = SkipEntries(walk, meta.entries);
    }
  }
  if (!status.ok()) return status;
  status = ReadFreeList(walk, window, meta, std::string(options.shard_name), findings);
  if (!status.ok()) return status;
  CheckFileEnd(meta, in.size(), options, findings);
  if (!named_databases) walk.ReportLostPages(options.strict);
  return absl::OkStatus();
}

}  // namespace shardpack
