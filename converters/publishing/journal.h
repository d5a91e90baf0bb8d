// ShardResult: everything known about one finished shard. Journal: the file that keeps these
// results across runs.
//
//   Journal journal = *Journal::Open("OUT/.pack/journal.jsonl", /*sync=*/true);
//   absl::Status kept = journal.Append(result);
//   std::vector<ShardResult> finished = *ReadJournals("OUT/.pack");
//
// Each line is one JSON object that names its shard's plan and ends with a checksum of the line.
//
// Lifetime: a ShardResult is a plain value; a Journal owns its file.
// Thread-safety: Append from any thread; a JournalReader has one caller at a time.
// Errors: I/O Status. A torn or damaged line is ignored: its shard is built again.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_JOURNAL_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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
  std::string sha256;                         // empty unless asked for
  std::vector<Skip> skips;                    // by Plan::source_row
  DatasetFacts facts;                         // of this shard alone
  std::optional<Digest> plan = std::nullopt;  // missing in lines of older versions
  // Plan::ShardTimes of the files that it was built from; missing in lines of older versions.
  std::optional<Digest> times = std::nullopt;
  std::string journal = {};  // name of the file that it was read from; not in the line
  bool pending = false;      // about to be published, not finished
};

// Adds an image of `bytes` bytes, except for its format; an image of unknown size counts by its
// bytes.
void AddImageFacts(const ImageInfo& image, uint64_t bytes, DatasetFacts& into);
// Adds `from` to `into`.
void MergeFacts(const DatasetFacts& from, DatasetFacts& into);

std::string ToJournalLine(const ShardResult& result);  // with the line end
// How much of a line is read: kFiles leaves `sha256`, `skips` and `facts` empty, and is faster.
enum class JournalParts : uint8_t { kAll, kFiles };
// False for anything that ToJournalLine has not written.
bool ParseJournalLine(std::string_view line, ShardResult* result,
                      JournalParts parts = JournalParts::kAll);
// Whether a file that begins with this text can be a journal: each line is one or the beginning of
// one, or there are none yet. A file with a journal's name may belong to another program.
bool IsJournalText(std::string_view text);
inline constexpr uint64_t kJournalBeginningBytes = uint64_t{1} << 20;  // enough for IsJournalText
// Whether a file in `.pack` is read as a journal, if its content is one.
bool IsJournalName(std::string_view name);

class Journal {
 public:
  // Appends to the file, creating it if missing. FailedPrecondition when it is not a journal.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path, bool sync);
  absl::Status Append(const ShardResult& result);
  // Call before the files of a shard are published: if the run is killed before the shard's line is
  // written, the files are recognized by their bytes.
  absl::Status AppendPending(const ShardResult& result);

 private:
  Journal(File file, bool sync) : file_(std::move(file)), sync_(sync) {}
  absl::Status Write(const std::string& line);  // under mutex_
  std::mutex mutex_;
  File file_;
  const bool sync_;
  bool torn_ = true;  // the last line may lack its end
};

// Reads all `journal*.jsonl` of a folder as they grow: each call returns the new lines, file by
// file.
class JournalReader {
 public:
  // `except`: name of a journal to ignore.
  explicit JournalReader(std::string pack_folder, std::string except = "",
                         JournalParts parts = JournalParts::kAll)
      : folder_(std::move(pack_folder)), except_(std::move(except)), parts_(parts) {}
  // `only`: the names of the journals to read, of which some may not exist; null = all.
  absl::StatusOr<std::vector<ShardResult>> ReadNew(const std::set<std::string>* only = nullptr);
  // The same, one line after another, pending ones among them: they need no memory.
  absl::Status ReadEachNew(const std::function<void(ShardResult&)>& take,
                           const std::set<std::string>* only = nullptr);
  // From now on, that journal is not read.
  void Leave(std::string name) { except_ = std::move(name); }
  // Pending lines found by all calls so far; the calls do not return these.
  const std::vector<ShardResult>& pending() const { return pending_; }

 private:
  std::string folder_, except_;
  JournalParts parts_;
  std::vector<ShardResult> pending_;
  std::map<std::string, uint64_t> read_;  // file -> bytes up to the last whole line
};

// The last of equal lines, sorted by shard. A shard has several lines if runs wrote it with other
// bytes or for another plan.
std::vector<ShardResult> LastOfEqual(std::vector<ShardResult> lines);
// The same of all journals in the folder.
// `only`: see JournalReader.
absl::StatusOr<std::vector<ShardResult>> ReadJournals(const std::string& pack_folder,
                                                      const std::set<std::string>* only = nullptr,
                                                      JournalParts parts = JournalParts::kAll);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_JOURNAL_H_
