#include "readers/loading/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// The size of the mapping for this many bytes, which Free computes again.
size_t MappedBytes(size_t bytes) {
  return RoundUp(bytes, bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes);
}

absl::Status Exhausted(size_t bytes, const std::string& why) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", bytes, " bytes for batches: ", why));
}

}  // namespace

absl::StatusOr<std::span<std::byte>> PageableMemory::Allocate(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("an allocation of 0 bytes");
  if (bytes > (size_t{1} << 46)) return Exhausted(bytes, "beyond the address space");
  const size_t mapped = MappedBytes(bytes);
  if (allocated_bytes_.fetch_add(mapped) + mapped > budget_bytes_) {
    allocated_bytes_.fetch_sub(mapped);
    return Exhausted(bytes, absl::StrCat("the budget of ", budget_bytes_, " bytes is used up"));
  }
  const bool huge = mapped >= kHugePageBytes;
  // Mappings are page-aligned, so leave room to cut out a huge-page-aligned piece.
  const size_t room = huge ? mapped + kHugePageBytes : mapped;
  void* const raw =
      ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    allocated_bytes_.fetch_sub(mapped);
    return Exhausted(bytes, std::strerror(errno));
  }
  auto* begin = static_cast<std::byte*>(raw);
  if (huge) {
    const size_t before = RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePageBytes) -
                          reinterpret_cast<uintptr_t>(begin);
    if (before > 0) ::munmap(begin, before);
    if (before < kHugePageBytes) ::munmap(begin + before + mapped, kHugePageBytes - before);
    begin += before;
    (void)::madvise(begin, mapped, MADV_HUGEPAGE);  // only advice: small pages work too
  }
  return std::span(begin, bytes);
}

// On a kernel without support, the memory stays inherited.
void PageableMemory::SetInherited(std::span<std::byte> memory, bool inherited) {
  (void)::madvise(memory.data(), MappedBytes(memory.size()),
                  inherited ? MADV_DOFORK : MADV_DONTFORK);
}

void PageableMemory::Free(std::span<std::byte> memory) {
  const size_t mapped = MappedBytes(memory.size());
  ::munmap(memory.data(), mapped);
  allocated_bytes_.fetch_sub(mapped);
}

}  // namespace shardpack
