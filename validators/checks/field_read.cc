#include "validators/checks/field_read.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kBlockBytes = 256 << 10;

}  // namespace

absl::StatusOr<uint64_t> HashField(const File& file, const Extent& extent,
                                   std::vector<std::byte>& block) {
  block.resize(std::max<uint64_t>(block.size(), std::min(extent.length, kBlockBytes)));
  if (extent.length <= kBlockBytes) {
    const std::span<std::byte> whole(block.data(), extent.length);
    RETURN_IF_ERROR(file.ReadExactlyAt(extent.offset, whole));
    return Xxh3_64(whole);
  }
  FieldHashStream stream;
  for (uint64_t done = 0; done < extent.length;) {
    const std::span<std::byte> part(block.data(), std::min(kBlockBytes, extent.length - done));
    RETURN_IF_ERROR(file.ReadExactlyAt(extent.offset + done, part));
    stream.Update(part);
    done += part.size();
  }
  return stream.Finish();
}

absl::StatusOr<Digest> HashFile(const File& file, uint64_t size, const CheckRun& run) {
  SequentialReader in(file, size);
  in.OnBlock([&run](uint64_t bytes) { return run.Advance(bytes); });
  return in.Finish();
}

absl::Status CheckRecordFields(const File& file, const ShardIndex& index, uint64_t record,
                               std::string_view shard, std::vector<std::byte>& block,
                               uint64_t& bytes, FindingSink& findings) {
  for (size_t f = 0; f < index.fields(); ++f) {
    if (!index.has_field(record, f)) continue;
    const Extent extent = index.field(record, f);
    absl::StatusOr<uint64_t> hash = HashField(file, extent, block);
    if (!hash.ok() && !absl::IsOutOfRange(hash.status())) return hash.status();
    if (hash.ok()) bytes += extent.length;
    if (hash.ok() && *hash == index.hash(record, f)) continue;
    Finding finding =
        MakeFinding(hash.ok() ? FindingId::kRecordHash : FindingId::kRecordMissing, shard);
    finding.record = record;
    finding.key = std::string(index.key(record));
    finding.field = std::string(index.field_name(f));
    finding.offset = extent.offset;
    finding.length = extent.length;
    if (hash.ok()) {
      finding.expected = absl::StrCat(absl::Hex(index.hash(record, f), absl::kZeroPad16));
      finding.actual = absl::StrCat(absl::Hex(*hash, absl::kZeroPad16));
    } else {
      finding.detail = "the shard ends before it";
    }
    findings.Report(std::move(finding));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
