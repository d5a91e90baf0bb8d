// PinnedMemory: what it gives, what it falls back to, and what it reports; OpenPinnedLoader.
#include "cuda/loading/pinned_memory.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/loading/open_pinned_loader.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Lines {
  std::vector<std::string> lines;
  std::function<void(const std::string&)> function() {
    return [this](const std::string& line) { lines.push_back(line); };
  }
};

TEST(PinnedMemory, GivesLockedMemoryAndTakesItBack) {
  FakeDevice fake;
  Lines log;
  PinnedMemory memory(fake, {.touch_threads = 3, .log = log.function()});
  for (const size_t bytes : {size_t{1}, size_t{5000}, size_t{40} << 20}) {
    absl::StatusOr<std::span<std::byte>> got = memory.Allocate(bytes);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), bytes);
    const size_t alignment = bytes >= (2 << 20) ? 2 << 20 : 4096;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got->data()) % alignment, 0u);
    EXPECT_TRUE(*fake.IsPinned(&got->back()));
    std::memset(got->data(), 7, bytes);
    EXPECT_EQ(memory.stats().registered_bytes, bytes);
    memory.Free(*got);
    EXPECT_EQ(memory.stats().registered_bytes, 0u);
  }
  EXPECT_EQ(fake.calls("RegisterHost"), 3u) << "one a piece, whatever its size";
  EXPECT_EQ(fake.live_objects(), 0u);
  EXPECT_THAT(log.lines, IsEmpty());
  EXPECT_EQ(memory.Allocate(0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PinnedMemory, HasABudget) {
  FakeDevice fake;
  PinnedMemory memory(fake, {.budget_bytes = 10'000});
  const auto first = memory.Allocate(6000);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(memory.Allocate(5000).status().ToString(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("5000"), HasSubstr("6000"),
                    HasSubstr("budget of 10000"), HasSubstr("memory_bytes")));
  memory.Free(*first);
  const auto second = memory.Allocate(10'000);
  ASSERT_TRUE(second.ok());
  memory.Free(*second);
}

TEST(PinnedMemory, FallsBackStepByStepAndSaysSo) {
  FakeDevice fake({.pinned_cap_bytes = 10'000});
  Lines log;
  PinnedMemory memory(fake, {.log = log.function()});
  const auto pageable = memory.Allocate(20'000);  // beyond the cap
  ASSERT_TRUE(pageable.ok());
  EXPECT_EQ(memory.stats().pageable_bytes, 20'000u);
  EXPECT_EQ(memory.stats().refusals, 2u);
  EXPECT_THAT(memory.stats().why, HasSubstr("20000 bytes was refused: cudaErrorMemoryAllocation"));
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("asking the driver"), HasSubstr("stays pageable")));
  fake.FailEntry("RegisterHost", kDeviceNotSupported, 1);
  const auto driver = memory.Allocate(5000);
  ASSERT_TRUE(driver.ok());
  EXPECT_EQ(memory.stats().driver_bytes, 5000u);
  EXPECT_EQ(log.lines.size(), 2u) << "once a kind";
  memory.Free(*pageable);
  memory.Free(*driver);
  EXPECT_EQ(memory.stats().pageable_bytes + memory.stats().driver_bytes, 0u);
  EXPECT_EQ(fake.live_objects(), 0u);
}

// Whether a child of a fork has it.
bool ChildHas(std::span<std::byte> memory) {
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char in_core = 0;
    const auto last = reinterpret_cast<uintptr_t>(&memory.back()) / 4096 * 4096;
    const bool first_there = ::mincore(memory.data(), 1, &in_core) == 0;
    const bool last_there = ::mincore(reinterpret_cast<void*>(last), 1, &in_core) == 0;
    ::_exit(first_there && last_there ? 1 : first_there || last_there ? 2 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
  return WEXITSTATUS(status) == 1;
}

// A device reads the pages of the process that locked them: a fork must not share them.
TEST(PinnedMemory, ChildrenHaveNoLockedMemory) {
  FakeDevice fake({.pinned_cap_bytes = 4 << 20});
  PinnedMemory memory(fake, {.log = nullptr});
  for (const size_t bytes : {size_t{5000}, (size_t{3} << 20) + 1}) {
    const auto locked = memory.Allocate(bytes);
    ASSERT_TRUE(locked.ok());
    ASSERT_EQ(memory.stats().registered_bytes, bytes);
    EXPECT_FALSE(ChildHas(*locked));
    (*locked)[0] = locked->back() = std::byte{7};  // the parent still has it
    memory.Free(*locked);
    // Other mappings may be where the memory was; they do not matter.
    void* const again = ::mmap(locked->data(), bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(again, static_cast<void*>(locked->data()));
    EXPECT_TRUE(ChildHas({static_cast<std::byte*>(again), bytes}));
    ::munmap(again, bytes);
  }
  const auto pageable = memory.Allocate(5 << 20);  // beyond the cap
  ASSERT_TRUE(pageable.ok());
  ASSERT_EQ(memory.stats().pageable_bytes, uint64_t{5} << 20);
  EXPECT_TRUE(ChildHas(*pageable));
  memory.Free(*pageable);
}

TEST(PinnedMemory, ALostDeviceIsNotAskedToFree) {
  FakeDevice fake;
  PinnedMemory memory(fake, {.log = nullptr});
  const auto got = memory.Allocate(1000);
  ASSERT_TRUE(got.ok());
  fake.LoseDevice();
  EXPECT_EQ(memory.Allocate(1000).status().code(), absl::StatusCode::kUnavailable);
  memory.Free(*got);
  EXPECT_EQ(fake.frees_after_loss(), 0u);
  (*got)[0] = std::byte{1};  // it stays mapped: the device may still use it
}

TEST(OpenPinnedLoader, TriesHalfThenPageable) {
  const LoaderFixture data("TriesHalfThenPageable", {.jpegs = false});
  LoaderOptions options = data.Options();
  options.memory_bytes = 512 << 10;  // eight slabs
  const struct {
    uint64_t cap_bytes;
    bool pageable_fallback;
    uint64_t slabs, pageable_slabs;
    size_t lines;
  } kCases[] = {{uint64_t{1} << 30, true, 8, 0, 0},
                {300 << 10, true, 4, 0, 3},
                {1000, true, 8, 8, 5},
                {1000, false, 0, 0, 3}};
  for (const auto& wanted : kCases) {
    SCOPED_TRACE(wanted.cap_bytes);
    FakeDevice fake({.pinned_cap_bytes = wanted.cap_bytes});
    Lines log;
    PinnedMemory memory(fake,
                        {.pageable_fallback = wanted.pageable_fallback, .log = log.function()});
    {
      absl::StatusOr<Loader> loader =
          OpenPinnedLoader(data.dataset(), data.order(), {}, options, memory);
      ASSERT_EQ(loader.ok(), wanted.slabs > 0) << loader.status();
      if (!loader.ok()) {
        EXPECT_EQ(loader.status().code(), absl::StatusCode::kResourceExhausted);
        continue;
      }
      EXPECT_EQ(loader->stats().slabs, wanted.slabs);
      EXPECT_EQ(memory.stats().pageable_bytes, wanted.pageable_slabs * (64 << 10));
      EXPECT_GE(log.lines.size() + 2, wanted.lines);
      EXPECT_EQ(log.lines.empty(), wanted.lines == 0);
      EXPECT_TRUE(loader->Next().ok());
    }
    EXPECT_EQ(fake.live_objects(), 0u);
  }
}

}  // namespace
}  // namespace shardpack
