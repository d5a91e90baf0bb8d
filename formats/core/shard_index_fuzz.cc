// Opens arbitrary bytes as a .pidx: rejected, or readable to the last row. Each input is also tried
// with a correct hash; otherwise the code after that check would never be reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "formats/core/shard_index.h"

namespace {

using namespace shardpack;

constexpr size_t kFooterBytes = 40, kDigestFromEnd = 24;

void ReadAll(const std::string& bytes, uint64_t shard_bytes) {
  const absl::StatusOr<ShardIndex> index = ShardIndex::FromBytes(bytes, shard_bytes);
  if (!index.ok()) return;
  uint64_t sum = 0;
  const auto inside = [&](const Extent& extent) {
    if (extent.offset > shard_bytes || extent.length > shard_bytes - extent.offset) abort();
  };
  for (uint64_t r = 0; r < index->records(); ++r) {
    inside(index->record(r));
    for (size_t f = 0; f < index->fields(); ++f) {
      if (index->has_field(r, f)) inside(index->field(r, f));
      sum += index->hash(r, f) + index->field_name(f).size();
    }
    for (const char c : index->key(r)) sum += static_cast<unsigned char>(c);
    for (const char c : index->source_path(r)) sum += static_cast<unsigned char>(c);
    sum += static_cast<uint64_t>(index->label(r)) + index->image(r).width;
  }
  volatile uint64_t sink = sum;
  (void)sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadAll(bytes, 100'000);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  if (bytes.size() < kFooterBytes) return 0;
  const auto shard_bytes = LoadLittle<uint64_t>(bytes.data() + bytes.size() - kFooterBytes);
  const size_t digest_at = bytes.size() - kDigestFromEnd;
  std::memcpy(bytes.data(), "SPKPIDX1\1\0\0\0", 12);
  std::memcpy(bytes.data() + bytes.size() - 8, "SPKPIDX1", 8);
  const Digest digest = Xxh3_128(AsBytes(std::string_view(bytes).substr(0, digest_at)));
  StoreLittle(bytes.data() + digest_at, digest.high);
  StoreLittle(bytes.data() + digest_at + 8, digest.low);
  ReadAll(bytes, shard_bytes);
  return 0;
}
