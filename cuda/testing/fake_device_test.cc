// The fake device keeps the promises of the real one, and notices what breaks them.
#include "cuda/testing/fake_device.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Pinned memory, device memory, two streams, an event.
struct Bench {
  explicit Bench(FakeDevice& fake, size_t size = 1000)
      : fake(fake),
        bytes(size),
        host(*fake.AllocateHost(bytes)),
        device(*fake.Allocate(bytes, "a test")),
        first(*fake.CreateStream()),
        second(*fake.CreateStream()),
        event(*fake.CreateEvent()) {}
  ~Bench() {
    (void)fake.DestroyEvent(event);
    (void)fake.DestroyStream(first);
    (void)fake.DestroyStream(second);
    (void)fake.Free(device);
    (void)fake.FreeHost(host);
  }
  void Fill(char value) { std::memset(host, value, bytes); }

  FakeDevice& fake;
  const size_t bytes;
  void* const host;
  void* const device;
  const Stream first, second;
  const Event event;
};

// Whether the call failed with CUDA's error of this number.
bool FailedWith(int code, const absl::Status& status) {
  return std::string(status.message()).find(absl::StrCat(" (error ", code, ")")) !=
         std::string::npos;
}
template <typename T>
bool FailedWith(int code, const absl::StatusOr<T>& result) {
  return FailedWith(code, result.status());
}

TEST(FakeDevice, CopiesReadTheirSourceWhenTheyRun) {
  FakeDevice fake;
  Bench s(fake);
  s.Fill('a');
  fake.Hold();
  ASSERT_TRUE(fake.CopyToDevice(s.device, s.host, s.bytes, s.first).ok());
  EXPECT_FALSE(*fake.IsIdle(s.first));
  s.Fill('b');
  fake.LetGo();
  ASSERT_TRUE(fake.Synchronize(s.first).ok());
  EXPECT_EQ(std::string(static_cast<char*>(s.device), 3), "bbb");
  EXPECT_EQ(fake.host_syncs(), 1u);
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

TEST(FakeDevice, StreamsOvertakeEachOtherUnlessTheyWaitForAnEvent) {
  for (const bool waits : {false, true}) {
#ifdef __SANITIZE_THREAD__
    if (!waits) continue;  // it really is a race
#endif
    bool overtaken = false;
    for (uint64_t seed = 1; seed < 60 && !overtaken; ++seed) {
      FakeDevice fake({.seed = seed, .max_delay_us = 300});
      Bench s(fake);
      EXPECT_TRUE(fake.Fill(s.device, 1, s.bytes, s.first).ok());
      EXPECT_TRUE(fake.RecordEvent(s.event, s.first).ok());
      if (waits) {
        EXPECT_TRUE(fake.StreamWait(s.second, s.event).ok());
      }
      EXPECT_TRUE(fake.CopyToHost(s.host, s.device, s.bytes, s.second).ok());
      EXPECT_TRUE(fake.Synchronize(s.second).ok());
      overtaken = static_cast<char*>(s.host)[0] != 1;
      EXPECT_TRUE(fake.Synchronize(s.first).ok());
    }
    EXPECT_EQ(overtaken, !waits);
  }
}

TEST(FakeDevice, AWaitTakesTheEventAsItWasRecordedThen) {
  FakeDevice fake({.max_delay_us = 0});
  Bench s(fake);
  // Never recorded: no wait, and done.
  EXPECT_TRUE(*fake.IsDone(s.event));
  EXPECT_TRUE(fake.StreamWait(s.second, s.event).ok());
  EXPECT_TRUE(fake.Synchronize(s.second).ok());
  fake.Hold();
  EXPECT_TRUE(fake.RecordEvent(s.event, s.first).ok());
  EXPECT_FALSE(*fake.IsDone(s.event));
  fake.LetGo();
  EXPECT_TRUE(fake.Synchronize(s.first).ok());
  EXPECT_TRUE(*fake.IsDone(s.event));
}

TEST(FakeDevice, CopiesOfPageableMemoryBlock) {
  FakeDevice fake;
  Bench s(fake);
  std::array<char, 100> pageable;
  pageable.fill('p');
  ASSERT_TRUE(fake.CopyToDevice(s.device, pageable.data(), pageable.size(), s.first).ok());
  pageable.fill('q');
  EXPECT_EQ(static_cast<char*>(s.device)[0], 'p');
  EXPECT_EQ(fake.host_syncs(), 1u);
  ASSERT_TRUE(fake.RegisterHost(pageable.data(), pageable.size()).ok());
  EXPECT_TRUE(fake.CopyToDevice(s.device, pageable.data(), pageable.size(), s.first).ok());
  EXPECT_EQ(fake.host_syncs(), 1u);
  EXPECT_TRUE(fake.Synchronize(s.first).ok());
  EXPECT_TRUE(fake.UnregisterHost(pageable.data()).ok());
}

TEST(FakeDevice, NoticesMisuse) {
  FakeDevice fake;
  {
    Bench s(fake);
    EXPECT_TRUE(
        FailedWith(kDeviceInvalidValue, fake.CopyToDevice(s.device, s.host, s.bytes + 1, s.first)));
    EXPECT_TRUE(FailedWith(kDeviceInvalidValue, fake.CopyToDevice(s.host, s.host, 1, s.first)));
    EXPECT_TRUE(
        FailedWith(kDeviceInvalidHandle, fake.RecordEvent(reinterpret_cast<Event>(&s), s.first)));
    EXPECT_TRUE(FailedWith(kDeviceAlreadyRegistered, fake.RegisterHost(s.host, 1)));
    EXPECT_TRUE(FailedWith(kDeviceNotRegistered, fake.UnregisterHost(&s)));
    EXPECT_EQ(fake.misuses().size(), 5u);
    static_cast<char*>(s.device)[s.bytes] = 0;
    EXPECT_EQ(fake.misuses().size(), 6u);
    EXPECT_THAT(fake.misuses().back(), HasSubstr("beyond device memory"));
  }
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
}

TEST(FakeDevice, FailsWhereItIsTold) {
  FakeDevice fake;
  Bench s(fake);
  fake.FailCall(1, kDeviceInvalidValue);
  EXPECT_TRUE(*fake.IsDone(s.event));
  EXPECT_FALSE(fake.failed());
  EXPECT_TRUE(FailedWith(kDeviceInvalidValue, fake.IsDone(s.event)));
  EXPECT_TRUE(fake.failed());
  EXPECT_TRUE(*fake.IsDone(s.event));
  fake.FailEntry("IsDone", kDeviceNotSupported, 2);
  EXPECT_TRUE(FailedWith(kDeviceNotSupported, fake.IsDone(s.event)));
  EXPECT_TRUE(fake.IsIdle(s.first).ok());
  EXPECT_TRUE(FailedWith(kDeviceNotSupported, fake.IsDone(s.event)));
  EXPECT_TRUE(*fake.IsDone(s.event));
  // A call that frees does so even when it fails.
  fake.FailEntry("Free", kDeviceInvalidValue, 1);
  void* const more = *fake.Allocate(10, "a test");
  const uint64_t live = fake.live_objects();
  EXPECT_TRUE(FailedWith(kDeviceInvalidValue, fake.Free(more)));
  EXPECT_EQ(fake.live_objects(), live - 1);
}

TEST(FakeDevice, ALostDeviceStaysLostAndWakesWaitingCalls) {
  FakeDevice fake;
  Bench s(fake);
  s.Fill('z');
  fake.Hold();
  EXPECT_TRUE(fake.CopyToDevice(s.device, s.host, s.bytes, s.first).ok());
  fake.LoseDevice();
  EXPECT_FALSE(fake.lost()) << "no call has told the caller so far";
  EXPECT_TRUE(FailedWith(kDeviceIllegalAddress, fake.Free(s.device)));
  EXPECT_EQ(fake.frees_after_loss(), 0u);
  EXPECT_TRUE(fake.lost());
  EXPECT_TRUE(FailedWith(kDeviceIllegalAddress, fake.Synchronize(s.first)));
  EXPECT_TRUE(FailedWith(kDeviceIllegalAddress, fake.IsDone(s.event)));
  EXPECT_TRUE(FailedWith(kDeviceIllegalAddress, fake.Free(s.device)));
  EXPECT_EQ(fake.frees_after_loss(), 1u);
  EXPECT_THAT(std::string(fake.LostStatus().message()), HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_NE(static_cast<char*>(s.device)[0], 'z');
}

TEST(FakeDevice, MemoryHasAnEnd) {
  FakeDevice fake({.pinned_cap_bytes = 1500, .device_cap_bytes = 1500});
  Bench s(fake);
  EXPECT_TRUE(FailedWith(kDeviceOutOfMemory, fake.Allocate(501, "a test")));
  EXPECT_TRUE(FailedWith(kDeviceOutOfMemory, fake.AllocateHost(501)));
  const absl::StatusOr<void*> more = fake.AllocateHost(500);
  ASSERT_TRUE(more.ok());
  EXPECT_TRUE(fake.FreeHost(*more).ok());
  EXPECT_EQ(fake.calls("Allocate"), 2u);
}

TEST(FakeDevice, GathersRowsAndZeros) {
  FakeDevice fake;
  Bench s(fake);
  void* const rows = *fake.Allocate(3 * sizeof(uint64_t), "a test");
  void* const out = *fake.Allocate(6, "a test");
  const std::array<uint64_t, 3> wanted = {2, kNoRow, 0};
  std::memcpy(s.host, wanted.data(), sizeof(wanted));
  char* const table = static_cast<char*>(s.host) + 100;
  std::memcpy(table, "aabbcc", 6);
  EXPECT_TRUE(fake.CopyToDevice(rows, s.host, sizeof(wanted), s.first).ok());
  EXPECT_TRUE(fake.CopyToDevice(s.device, table, 6, s.first).ok());
  const GatherLaunch launch = {.table = static_cast<uint8_t*>(s.device),
                               .rows = static_cast<uint64_t*>(rows),
                               .count = 3,
                               .row_bytes = 2,
                               .out = static_cast<uint8_t*>(out)};
  EXPECT_TRUE(fake.Gather(launch, s.first).ok());
  EXPECT_TRUE(fake.Synchronize(s.first).ok());
  EXPECT_EQ(std::string(static_cast<char*>(out), 6), std::string("cc\0\0aa", 6));
  EXPECT_THAT(fake.misuses(), IsEmpty());
  EXPECT_TRUE(fake.Free(rows).ok());
  EXPECT_TRUE(fake.Free(out).ok());
}

TEST(DeviceError, HasACodeAndAMessage) {
  EXPECT_TRUE(absl::IsUnimplemented(DeviceError(kDeviceNotSupported, "x", "y", false)));
  EXPECT_TRUE(absl::IsResourceExhausted(DeviceError(kDeviceOutOfMemory, "x", "y", false)));
  EXPECT_TRUE(absl::IsInternal(DeviceError(kDeviceInvalidValue, "x", "y", false)));
  for (const int code : {kDeviceContained, kDeviceTensorLeak, kDeviceExternal, kDeviceNvlink}) {
    EXPECT_TRUE(LosesDevice(code) && IsKnownError(code)) << code;
  }
  const absl::Status lost =
      DeviceError(kDeviceIllegalAddress, "cudaErrorIllegalAddress", "a copy", true);
  EXPECT_TRUE(absl::IsUnavailable(lost));
  EXPECT_THAT(std::string(lost.message()),
              HasSubstr("a copy: cudaErrorIllegalAddress (error 700)"));
}

// An error of a number that nobody knows: of one call, or one that stays.
TEST(FakeDevice, AnUnknownErrorThatStaysIsALoss) {
  constexpr int kUnheardOf = 997;
  FakeDevice fake;
  fake.FailCall(0, kUnheardOf);
  EXPECT_TRUE(absl::IsInternal(fake.CreateEvent().status()));
  EXPECT_FALSE(fake.lost());
  EXPECT_TRUE(fake.DestroyEvent(*fake.CreateEvent()).ok());
  fake.LoseDevice(kUnheardOf);
  const absl::Status status = fake.CreateEvent().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(fake.lost());
  EXPECT_THAT(std::string(fake.LostStatus().message()), HasSubstr("(error 997)"));
}

TEST(FakeDevice, AFailureOfAnOperationIsToldByALaterCall) {
  FakeDevice fake;
  Bench s(fake);
  fake.FailOperation(1);
  EXPECT_TRUE(fake.Fill(s.device, 1, s.bytes, s.first).ok());
  EXPECT_TRUE(fake.Synchronize(s.first).ok());
  EXPECT_TRUE(fake.Fill(s.device, 2, s.bytes, s.first).ok());
  EXPECT_TRUE(absl::IsUnavailable(fake.Synchronize(s.first)));
  EXPECT_TRUE(fake.lost());
}

TEST(FakeDevice, DefaultStreamsAreOrderedAndAThreadHasItsOwn) {
  FakeDevice fake({.max_delay_us = 0});
  std::atomic<bool> go{false};
  std::vector<int> order;
  std::thread([&] {
    fake.Enqueue(ThreadStream(), [&] {
      while (!go.load()) std::this_thread::yield();
      order.push_back(1);
    });
  }).join();
  EXPECT_TRUE(*fake.IsIdle(ThreadStream())) << "this thread's";
  EXPECT_TRUE(fake.Synchronize(ThreadStream()).ok());
  fake.Enqueue(LegacyStream(), [&] { order.push_back(2); });
  fake.Enqueue(ThreadStream(), [&] { order.push_back(3); });
  EXPECT_FALSE(*fake.IsIdle(nullptr)) << "the legacy one";
  go.store(true);
  EXPECT_TRUE(fake.Synchronize(ThreadStream()).ok());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(fake.live_objects(), 0u);
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

TEST(FakeDevice, CapturesRunNothingAndShareNoEvents) {
  FakeDevice fake({.max_delay_us = 0});
  Bench s(fake);
  s.Fill('a');
  ASSERT_TRUE(fake.RecordEvent(s.event, s.second).ok());
  fake.BeginCapture(s.first);
  EXPECT_TRUE(*fake.IsCapturing(s.first));
  EXPECT_FALSE(*fake.IsCapturing(s.second));
  EXPECT_TRUE(fake.CopyToDevice(s.device, s.host, s.bytes, s.first).ok());
  EXPECT_TRUE(fake.EndCapture(s.first));
  EXPECT_NE(static_cast<char*>(s.device)[0], 'a');
  fake.BeginCapture(s.first);
  EXPECT_TRUE(FailedWith(kDeviceCaptureIsolation, fake.StreamWait(s.first, s.event)));
  EXPECT_FALSE(fake.EndCapture(s.first));
  fake.BeginCapture(s.first);
  EXPECT_TRUE(fake.RecordEvent(s.event, s.first).ok());
  EXPECT_TRUE(fake.EndCapture(s.first));
  EXPECT_TRUE(FailedWith(kDeviceCapturedEvent, fake.IsDone(s.event)));
  EXPECT_TRUE(FailedWith(kDeviceCaptureIsolation, fake.StreamWait(s.second, s.event)));
}

TEST(FakeDevice, AGraphIsLaunchedAgainWithItsArguments) {
  FakeDevice fake({.max_delay_us = 0});
  Bench s(fake);
  FakeDevice::Graph graph;
  fake.BeginCapture(s.first);
  EXPECT_TRUE(fake.CopyToDevice(s.device, s.host, s.bytes, s.first).ok());
  ASSERT_TRUE(fake.EndCapture(s.first, &graph));
  for (const char byte : {'a', 'b'}) {
    s.Fill(byte);  // what the copy reads when it runs
    fake.LaunchGraph(graph, s.first);
    ASSERT_TRUE(fake.Synchronize(s.first).ok());
    EXPECT_EQ(static_cast<char*>(s.device)[0], byte);
  }
}

// A stream that captures has nothing to wait for; to ask ends the capture.
TEST(FakeDevice, WaitingForACaptureEndsIt) {
  FakeDevice fake({.max_delay_us = 0});
  Bench s(fake);
  fake.BeginCapture(s.first);
  EXPECT_TRUE(FailedWith(kDeviceCaptureUnsupported, fake.Synchronize(s.first)));
  EXPECT_FALSE(fake.EndCapture(s.first));
  fake.BeginCapture(s.first);
  EXPECT_TRUE(FailedWith(kDeviceCaptureUnsupported, fake.IsIdle(s.first)));
  EXPECT_FALSE(fake.EndCapture(s.first));
}

TEST(FakeDevice, CopiesTakeTimeOnOneEngine) {
  FakeDevice fake({.max_delay_us = 0, .copy_us_per_mib = 40'000});
  Bench s(fake, size_t{1} << 20);
  const auto start = std::chrono::steady_clock::now();
  auto* const to = static_cast<char*>(s.device);
  ASSERT_TRUE(fake.CopyToDevice(to, s.host, s.bytes / 2, s.first).ok());
  ASSERT_TRUE(fake.CopyToDevice(to + s.bytes / 2, s.host, s.bytes / 2, s.second).ok());
  ASSERT_TRUE(fake.Synchronize(s.first).ok());
  ASSERT_TRUE(fake.Synchronize(s.second).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40));
}

// The device goes on reading the pages that a child has too; those that it does not have are the
// parent's alone.
TEST(FakeDevice, ForkedPagesAreTheDevices) {
  constexpr size_t kBytes = 8192;
  for (const bool inherited : {true, false}) {
    FakeDevice fake;
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    if (!inherited) {
      ASSERT_EQ(::madvise(memory, kBytes, MADV_DONTFORK), 0);
    }
    std::memset(memory, 1, kBytes);
    ASSERT_TRUE(fake.RegisterHost(memory, kBytes).ok());
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    std::memset(memory, 2, kBytes);
    const Stream stream = *fake.CreateStream();
    auto* const there = static_cast<uint8_t*>(*fake.Allocate(kBytes, "a copy"));
    ASSERT_TRUE(fake.CopyToDevice(there, memory, kBytes, stream).ok());
    ASSERT_TRUE(fake.Synchronize(stream).ok());
    EXPECT_EQ(int{there[kBytes - 1]}, inherited ? 1 : 2);
    EXPECT_TRUE(fake.Free(there).ok());
    EXPECT_TRUE(fake.DestroyStream(stream).ok());
    EXPECT_TRUE(fake.UnregisterHost(memory).ok());
    ::munmap(memory, kBytes);
  }
}

}  // namespace
}  // namespace shardpack
