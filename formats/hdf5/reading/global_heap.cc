#include "formats/hdf5/reading/global_heap.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kCollectionHeadBytes = 16;

}  // namespace

absl::StatusOr<HeapObject> GlobalHeap::Find(uint64_t collection, uint32_t index) {
  ASSIGN_OR_RETURN(const Collection* loaded, Load(collection));
  const auto entry =
      std::lower_bound(loaded->begin(), loaded->end(), index,
                       [](const Entry& e, uint32_t wanted) { return e.index < wanted; });
  if (entry == loaded->end() || entry->index != index) {
    return reader_.Malformed(collection, absl::StrCat("a heap collection has no object ", index));
  }
  return entry->object;
}

absl::StatusOr<const GlobalHeap::Collection*> GlobalHeap::Load(uint64_t address) {
  if (const auto known = collections_.find(address); known != collections_.end()) {
    return &known->second;
  }
  Collection& collection = collections_[address];
  absl::Status walked = Walk(address, collection);
  std::stable_sort(collection.begin(), collection.end(),
                   [](const Entry& a, const Entry& b) { return a.index < b.index; });
  if (walked.ok()) return &collection;
  if (!absl::IsDataLoss(walked)) {
    collections_.erase(address);
    return walked;
  }
  // The objects before the damage are sound.
  if (collection.empty()) return walked;
  findings_.Report(reader_.problem());
  return &collection;
}

absl::Status GlobalHeap::Walk(uint64_t address, Collection& objects) {
  ASSIGN_OR_RETURN(Bytes head, reader_.Read(address, kCollectionHeadBytes, "a heap collection"));
  if (AsText(head.first(4)) != "GCOL" || head[4] != std::byte{1}) {
    return reader_.Malformed(address, "no heap collection of version 1");
  }
  const auto bytes = LoadLittle<uint64_t>(head.data() + 8);
  if (bytes < kCollectionHeadBytes || !reader_.Holds(address, bytes)) {
    return reader_.Malformed(address, "a heap collection of an impossible size", "",
                             absl::StrCat(bytes, " bytes"));
  }
  uint64_t at = kCollectionHeadBytes;
  while (bytes - at >= kHeapObjectHeadBytes) {
    // Sound collections have at most as many bytes as the file; a damaged one may pass its end.
    if (walked_bytes_ > 2 * reader_.size()) {
      return reader_.Malformed(address, "heap collections share bytes again and again");
    }
    ASSIGN_OR_RETURN(Bytes object, reader_.Read(address + at, kHeapObjectHeadBytes,
                                                "an object of a heap collection"));
    const auto index = LoadLittle<uint16_t>(object.data());
    const auto object_bytes = LoadLittle<uint64_t>(object.data() + 8);
    if (index == 0) break;  // the free space comes last
    at += kHeapObjectHeadBytes;
    if (object_bytes > bytes - at) {
      return reader_.Malformed(address + at, "a heap object passes the end of its collection",
                               absl::StrCat("at most ", bytes - at, " bytes"),
                               absl::StrCat(object_bytes, " bytes"));
    }
    objects.push_back({index, {address + at, object_bytes}});
    const uint64_t padded_bytes = std::min(object_bytes + (8 - object_bytes % 8) % 8, bytes - at);
    at += padded_bytes;
    walked_bytes_ += kHeapObjectHeadBytes + padded_bytes;
  }
  return absl::OkStatus();
}

}  // namespace shardpack
