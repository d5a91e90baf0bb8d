// ShardResult: all there is to say about one finished shard; Journal: the file that remembers them
// across runs.
//
//   Journal journal = *Journal::Open("OUT/.pack/journal.jsonl", /*sync=*/true);
//   absl::Status kept = journal.Append(result);
//   std::vector<ShardResult> finished = *ReadJournals("OUT/.pack");
//
// One JSON object a line, closed by a checksum of the line; it names the plan that the shard is of.
//
// Lifetime: a ShardResult is a plain value; a Journal owns its file.
// Thread-safety: Append from any thread; a JournalReader has one caller at a time.
// Errors: I/O Status. A torn or damaged line is as if it were not there: its shard is built again.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_JOURNAL_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_JOURNAL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/skip.h"
#include "formats/core/image_info.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"

namespace shardpack {

struct ShardResult {
  uint32_t shard = 0;  // number in the plan
  FileEntry file;      // the shard
  FileEntry index;
  uint64_t records = 0;
  std::string sha256;  // empty unless asked for
  std::vector<Skip> skips;
  DatasetFacts facts;                         // of this shard alone
  std::optional<Digest> plan = std::nullopt;  // not in lines of older versions
  // ShardTimes of the files that it was built from; not in lines of older versions.
  std::optional<Digest> times = std::nullopt;
  std::string journal = {};  // the name of the file that it was read from; not in the line
  bool pending = false;      // it says what is about to be published, not what is finished
};

// Adds an image of so many bytes, but for its format; one of unknown size counts by its bytes.
void AddImageFacts(const ImageInfo& image, uint64_t bytes, DatasetFacts& into);
// Adds `from` to `into`.
void MergeFacts(const DatasetFacts& from, DatasetFacts& into);

std::string ToJournalLine(const ShardResult& result);  // with the line end
// False for anything that ToJournalLine has not written.
bool ParseJournalLine(std::string_view line, ShardResult* result);
// Whether a file that begins so can be a journal: a line is one or the beginning of one, or there
// is none yet. A file of a journal's name may be somebody else's.
bool IsJournalText(std::string_view text);
inline constexpr uint64_t kJournalBeginningBytes = uint64_t{1} << 20;  // enough to tell
// Of a file in `.pack`: it is read as a journal, if it is one.
bool IsJournalName(std::string_view name);

class Journal {
 public:
  // Appends to the file, which is created when missing. FailedPrecondition when it is not a
  // journal.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path, bool sync);
  absl::Status Append(const ShardResult& result);
  // Before the files of a shard are published: should the run be killed before its line is there,
  // they are known by their bytes.
  absl::Status AppendPending(const ShardResult& result);

 private:
  Journal(File file, bool sync) : file_(std::move(file)), sync_(sync) {}
  std::mutex mutex_;
  File file_;
  const bool sync_;
};

// Reads all `journal*.jsonl` of a folder as they grow: each call answers the lines that are new,
// file by file.
class JournalReader {
 public:
  // `except`: the name of a journal that is not read.
  explicit JournalReader(std::string pack_folder, std::string except = "")
      : folder_(std::move(pack_folder)), except_(std::move(except)) {}
  absl::StatusOr<std::vector<ShardResult>> ReadNew();
  // Of all calls: what was about to be published. Not among the lines that these answer.
  const std::vector<ShardResult>& pending() const { return pending_; }

 private:
  std::string folder_, except_;
  std::vector<ShardResult> pending_;
  std::map<std::string, uint64_t> read_;  // file -> bytes up to the last whole line
};

// The last of equal lines from all journals in the folder, sorted by shard. A shard has several
// where runs wrote it with other bytes, or of another plan.
absl::StatusOr<std::vector<ShardResult>> ReadJournals(const std::string& pack_folder);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_JOURNAL_H_
