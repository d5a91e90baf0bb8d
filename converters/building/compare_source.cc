#include "converters/building/compare_source.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "converters/building/sample_chunk.h"
#include "converters/listing/first_few.h"
#include "converters/listing/offered_flags.h"
#include "converters/listing/skip_answers.h"
#include "converters/publishing/shard_results.h"
#include "formats/core/format.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kChunkRows = 64, kChunkBytes = uint64_t{8} << 20;

// Fields that the writer of a format makes itself are not the source's.
bool SameFields(const PreparedSample& sample, std::span<const uint64_t> hashes,
                const ShardIndex& index, uint64_t record) {
  for (size_t f = 0; f < sample.fields.size(); ++f) {
    const std::optional<size_t> packed = index.FindField(sample.fields[f].name);
    if (!packed || !index.has_field(record, *packed)) return false;
    if (index.field(record, *packed).length != sample.fields[f].bytes.size() ||
        index.hash(record, *packed) != hashes[f])
      return false;
  }
  for (size_t f = 0; f < index.fields(); ++f) {
    if (!index.has_field(record, f) || index.field_name(f) == kMetadataField) continue;
    const bool has =
        std::any_of(sample.fields.begin(), sample.fields.end(),
                    [&](const FieldView& field) { return field.name == index.field_name(f); });
    if (!has) return false;
  }
  return true;
}

class Comparison {
 public:
  Comparison(const std::string& out, const Manifest& manifest, const Plan& plan,
             const SampleSource& source, BuildProgress& progress, const std::atomic<int>& stop)
      : out_(out),
        manifest_(manifest),
        plan_(plan),
        source_(source),
        progress_(progress),
        stop_(stop) {
    for (const ManifestShard& shard : manifest.shards) shards_[shard.name] = &shard;
  }

  absl::Status Run(IoPool& pool) {
    for (const PlannedShard& planned : plan_.shards()) progress_.total_rows += planned.count;
    for (const PlannedShard& planned : plan_.shards()) RETURN_IF_ERROR(CompareShard(planned, pool));
    if (unread_.count() > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          unread_.count(), unread_.count() == 1 ? " input" : " inputs",
          " of the source could not be read, so it is unknown whether the bytes are those of ",
          EscapeForTerminal(out_), ":\n  ", unread_.Text(),
          "\nMake them readable and run the same command again"));
    }
    if (differing_.count() + unpacked_.count() == 0) return absl::OkStatus();
    std::string text = absl::StrCat(EscapeForTerminal(out_), " is whole, but ");
    const auto add = [&](const FirstLines& lines, std::string_view one, std::string_view many,
                         std::string_view what) {
      if (lines.count() == 0) return;
      absl::StrAppend(&text, lines.count(), " ", std::string(lines.count() == 1 ? one : many), " ",
                      std::string(what), ":\n  ", lines.Text(), "\n");
    };
    add(differing_, "input of the source has", "inputs of the source have",
        "other bytes than were packed");
    add(unpacked_, "input of the source was", "inputs of the source were",
        "left out when it was packed, and can be packed now");
    absl::StrAppend(&text, "--overwrite packs the files as they are now");
    return OfferFlags(absl::FailedPreconditionError(text), {{"--overwrite"}});
  }

 private:
  struct Chunk {
    uint64_t first, count, bytes;
  };

  // Which record each position of the shard became, if any.
  absl::Status FindRecords(const PlannedShard& planned) {
    index_.reset();
    record_of_.assign(planned.count, std::nullopt);
    const auto found = shards_.find(planned.name);
    if (found == shards_.end()) {
      return absl::DataLossError(absl::StrCat("the manifest of ", EscapeForTerminal(out_),
                                              " lacks the shard ", planned.name));
    }
    const ManifestShard& shard = *found->second;
    ASSIGN_OR_RETURN(ShardIndex index, ShardIndex::Open(PathInDataset(out_, shard.index.name),
                                                        shard.bytes, shard.index.xxh3_128));
    uint64_t record = 0;
    std::string path, key;
    for (uint64_t i = 0; i < planned.count && record < index.records(); ++i) {
      path.clear();
      plan_.listing().AppendPath(plan_.row(planned.first + i), path);
      if (index.source_path(record) != path) continue;
      key.clear();  // a source may have a path twice
      plan_.AppendKey(planned.first + i, key);
      if (index.key(record).empty() || index.key(record) == key) record_of_[i] = record++;
    }
    if (record < index.records()) {
      return absl::DataLossError(absl::StrCat(EscapeForTerminal(shard.index.name),
                                              " holds other records than were planned"));
    }
    index_ = std::move(index);
    return absl::OkStatus();
  }

  absl::Status CompareShard(const PlannedShard& planned, IoPool& pool) {
    RETURN_IF_ERROR(FindRecords(planned));
    std::vector<Chunk> chunks;
    for (uint64_t p = planned.first; p < planned.first + planned.count; ++p) {
      const uint64_t sample = plan_.listing().SampleBytes(plan_.row(p));
      if (chunks.empty() || chunks.back().bytes + sample > kChunkBytes ||
          chunks.back().count == kChunkRows)
        chunks.push_back({p, 0, 0});
      ++chunks.back().count;
      chunks.back().bytes += sample;
    }
    pool.ForEach(chunks.size(), [&](size_t n) {
      if (stop_.load() == 0) CompareChunk(planned, chunks[n]);
    });
    if (stop_.load() != 0) return absl::CancelledError("stopped");
    return failed_;
  }

  void CompareChunk(const PlannedShard& planned, const Chunk& rows) {
    std::unique_lock alone(large_, std::defer_lock);
    if (rows.bytes > kChunkBytes) alone.lock();
    SampleChunk chunk(plan_);
    chunk.Load(source_, rows.first, rows.count);
    chunk.Probe();
    chunk.Hash();
    const std::lock_guard lock(mutex_);
    if (!chunk.status().ok()) failed_ = chunk.status();
    if (!failed_.ok()) return;
    progress_.done_rows += rows.count;
    progress_.bytes_in += chunk.bytes_in();
    std::map<uint64_t, const Skip*> unread;
    for (const Skip& skip : chunk.skips()) {
      if (MayBeBack(skip)) unread[skip.row] = &skip;
    }
    auto sample = chunk.samples().begin();
    for (uint64_t p = rows.first; p < rows.first + rows.count; ++p) {
      const uint32_t row = plan_.row(p);
      const bool good = sample != chunk.samples().end() && sample->position == p;
      const std::optional<uint64_t> record = record_of_[p - planned.first];
      // What cannot be packed now could not be packed then: none of its bytes is in the dataset.
      const bool same = good && record
                            ? SameFields(*sample, chunk.hashes(*sample), *index_, *record)
                            : !good && !record;
      const std::string path = plan_.listing().Path(row);
      if (const auto skip = unread.find(row); skip != unread.end()) {
        unread_.Add(SkipText(path, *skip->second));
      } else if (!same) {
        (record ? differing_ : unpacked_).Add(EscapeForTerminal(path));
      }
      if (good) ++sample;
    }
  }

  const std::string& out_;
  const Manifest& manifest_;
  const Plan& plan_;
  const SampleSource& source_;
  BuildProgress& progress_;
  const std::atomic<int>& stop_;
  absl::flat_hash_map<std::string_view, const ManifestShard*> shards_;
  std::optional<ShardIndex> index_;  // of the current shard
  std::vector<std::optional<uint64_t>> record_of_;
  std::mutex large_;  // held by the one chunk in memory that is larger than kChunkBytes
  std::mutex mutex_;  // guards what follows
  FirstLines differing_, unread_;
  FirstLines unpacked_;  // that were left out, and are good now
  absl::Status failed_;
};

}  // namespace

absl::Status CompareWithSource(const std::string& out, const Manifest& manifest, const Plan& plan,
                               const SampleSource& source, IoPool& pool, BuildProgress& progress,
                               const std::atomic<int>& stop) {
  if (!plan.options().pixels.identity()) {
    return OfferFlags(
        absl::InvalidArgumentError(absl::StrCat(
            "--compare: pixels were changed when ", EscapeForTerminal(out),
            " was packed, and no hash of the source's images was kept, so that nothing tells "
            "whether their bytes are the same. What is missing, new or of another class is told "
            "by\n  ",
            TypedProgram(), " validate ", ShellQuoted(out), " --against ",
            ShellQuoted(plan.listing().root), "\nand --overwrite packs the source as it is now")),
        {{"--overwrite"}});
  }
  return Comparison(out, manifest, plan, source, progress, stop).Run(pool);
}

}  // namespace shardpack
