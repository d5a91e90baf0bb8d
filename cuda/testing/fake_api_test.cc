// The fake device keeps the promises of the real one, and notices what breaks them.
#include "cuda/testing/fake_api.h"

#include <array>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Pinned memory, device memory, two streams, an event.
struct Bench {
  explicit Bench(FakeApi& fake, size_t size = 1000) : api(fake.api()), bytes(size) {
    EXPECT_TRUE(api.host_alloc(api.self, &host, bytes).ok());
    EXPECT_TRUE(api.allocate(api.self, &device, bytes).ok());
    EXPECT_TRUE(api.stream_create(api.self, &first).ok());
    EXPECT_TRUE(api.stream_create(api.self, &second).ok());
    EXPECT_TRUE(api.event_create(api.self, &event, false).ok());
  }
  ~Bench() {
    api.event_destroy(api.self, event);
    api.stream_destroy(api.self, first);
    api.stream_destroy(api.self, second);
    api.free(api.self, device);
    api.host_free(api.self, host);
  }
  void Fill(char value) { std::memset(host, value, bytes); }

  const DeviceApi& api;
  const size_t bytes;
  void* host = nullptr;
  void* device = nullptr;
  Stream first = nullptr, second = nullptr;
  Event event = nullptr;
};

TEST(FakeApi, CopiesReadTheirSourceWhenTheyRun) {
  FakeApi fake;
  Bench s(fake);
  s.Fill('a');
  fake.Hold();
  ASSERT_TRUE(s.api.copy_to_device(s.api.self, s.device, s.host, s.bytes, s.first).ok());
  EXPECT_EQ(s.api.stream_query(s.api.self, s.first).code, kDeviceNotReady);
  s.Fill('b');
  fake.LetGo();
  ASSERT_TRUE(s.api.stream_synchronize(s.api.self, s.first).ok());
  EXPECT_EQ(std::string(static_cast<char*>(s.device), 3), "bbb");
  EXPECT_EQ(fake.host_syncs(), 1u);
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

TEST(FakeApi, StreamsOvertakeEachOtherUnlessTheyWaitForAnEvent) {
  for (const bool waits : {false, true}) {
#ifdef __SANITIZE_THREAD__
    if (!waits) continue;  // it is a race indeed
#endif
    bool overtaken = false;
    for (uint64_t seed = 1; seed < 60 && !overtaken; ++seed) {
      FakeApi fake({.seed = seed, .max_delay_us = 300});
      Bench s(fake);
      s.api.fill(s.api.self, s.device, 1, s.bytes, s.first);
      s.api.event_record(s.api.self, s.event, s.first);
      if (waits) s.api.stream_wait(s.api.self, s.second, s.event);
      s.api.copy_to_host(s.api.self, s.host, s.device, s.bytes, s.second);
      s.api.stream_synchronize(s.api.self, s.second);
      overtaken = static_cast<char*>(s.host)[0] != 1;
      s.api.stream_synchronize(s.api.self, s.first);
    }
    EXPECT_EQ(overtaken, !waits);
  }
}

TEST(FakeApi, AWaitTakesTheEventAsItWasRecordedThen) {
  FakeApi fake({.max_delay_us = 0});
  Bench s(fake);
  // Never recorded: no wait, and done.
  EXPECT_TRUE(s.api.event_query(s.api.self, s.event).ok());
  s.api.stream_wait(s.api.self, s.second, s.event);
  EXPECT_TRUE(s.api.stream_synchronize(s.api.self, s.second).ok());
  fake.Hold();
  s.api.event_record(s.api.self, s.event, s.first);
  EXPECT_EQ(s.api.event_query(s.api.self, s.event).code, kDeviceNotReady);
  fake.LetGo();
  EXPECT_TRUE(s.api.event_synchronize(s.api.self, s.event).ok());
  EXPECT_TRUE(s.api.event_query(s.api.self, s.event).ok());
  float ms = -1;
  EXPECT_TRUE(s.api.event_elapsed_ms(s.api.self, &ms, s.event, s.event).ok());
  EXPECT_EQ(ms, 0);
}

TEST(FakeApi, CopiesOfPageableMemoryBlock) {
  FakeApi fake;
  Bench s(fake);
  std::array<char, 100> pageable;
  pageable.fill('p');
  ASSERT_TRUE(
      s.api.copy_to_device(s.api.self, s.device, pageable.data(), pageable.size(), s.first).ok());
  pageable.fill('q');
  EXPECT_EQ(static_cast<char*>(s.device)[0], 'p');
  EXPECT_EQ(fake.host_syncs(), 1u);
  ASSERT_TRUE(s.api.host_register(s.api.self, pageable.data(), pageable.size()).ok());
  s.api.copy_to_device(s.api.self, s.device, pageable.data(), pageable.size(), s.first);
  EXPECT_EQ(fake.host_syncs(), 1u);
  s.api.stream_synchronize(s.api.self, s.first);
  EXPECT_TRUE(s.api.host_unregister(s.api.self, pageable.data()).ok());
}

TEST(FakeApi, NoticesMisuse) {
  FakeApi fake;
  {
    Bench s(fake);
    EXPECT_EQ(s.api.copy_to_device(s.api.self, s.device, s.host, s.bytes + 1, s.first).code,
              kDeviceInvalidValue);
    EXPECT_EQ(s.api.copy_to_device(s.api.self, s.host, s.host, 1, s.first).code,
              kDeviceInvalidValue);
    EXPECT_EQ(s.api.event_record(s.api.self, reinterpret_cast<Event>(&s), s.first).code,
              kDeviceInvalidHandle);
    EXPECT_EQ(s.api.host_register(s.api.self, s.host, 1).code, kDeviceAlreadyRegistered);
    EXPECT_EQ(s.api.host_unregister(s.api.self, &s).code, kDeviceNotRegistered);
    EXPECT_EQ(fake.misuses().size(), 5u);
    static_cast<char*>(s.device)[s.bytes] = 0;
    EXPECT_EQ(fake.misuses().size(), 6u);
    EXPECT_THAT(fake.misuses().back(), HasSubstr("beyond device memory"));
  }
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
}

TEST(FakeApi, FailsWhereItIsTold) {
  FakeApi fake;
  Bench s(fake);
  fake.FailCall(1, kDeviceInvalidValue);
  EXPECT_TRUE(s.api.event_query(s.api.self, s.event).ok());
  EXPECT_FALSE(fake.failed());
  EXPECT_EQ(s.api.event_query(s.api.self, s.event).code, kDeviceInvalidValue);
  EXPECT_TRUE(fake.failed());
  EXPECT_TRUE(s.api.event_query(s.api.self, s.event).ok());
  fake.FailEntry("event_query", kDeviceNotSupported, 2);
  EXPECT_EQ(s.api.event_query(s.api.self, s.event).code, kDeviceNotSupported);
  EXPECT_TRUE(s.api.stream_query(s.api.self, s.first).ok());
  EXPECT_EQ(s.api.event_query(s.api.self, s.event).code, kDeviceNotSupported);
  EXPECT_TRUE(s.api.event_query(s.api.self, s.event).ok());
  // What frees does so.
  fake.FailEntry("free", kDeviceInvalidValue, 1);
  void* more = nullptr;
  ASSERT_TRUE(s.api.allocate(s.api.self, &more, 10).ok());
  const uint64_t live = fake.live_objects();
  EXPECT_EQ(s.api.free(s.api.self, more).code, kDeviceInvalidValue);
  EXPECT_EQ(fake.live_objects(), live - 1);
}

TEST(FakeApi, ALostDeviceStaysLostAndWakesWhoWaits) {
  FakeApi fake;
  Bench s(fake);
  s.Fill('z');
  fake.Hold();
  s.api.copy_to_device(s.api.self, s.device, s.host, s.bytes, s.first);
  fake.LoseDevice();
  EXPECT_EQ(s.api.stream_synchronize(s.api.self, s.first).code, kDeviceIllegalAddress);
  EXPECT_EQ(s.api.event_query(s.api.self, s.event).code, kDeviceIllegalAddress);
  EXPECT_EQ(s.api.free(s.api.self, s.device).code, kDeviceIllegalAddress);
  EXPECT_EQ(fake.frees_after_loss(), 0u) << "nobody kept it in mind";
  EXPECT_FALSE(Checked(s.api, s.api.event_query(s.api.self, s.event), "a question").ok());
  EXPECT_TRUE(IsLost(s.api));
  EXPECT_EQ(s.api.free(s.api.self, s.device).code, kDeviceIllegalAddress);
  EXPECT_EQ(fake.frees_after_loss(), 1u);
  EXPECT_NE(static_cast<char*>(s.device)[0], 'z');
}

TEST(FakeApi, MemoryHasAnEnd) {
  FakeApi fake({.pinned_cap_bytes = 1500, .device_cap_bytes = 1500});
  Bench s(fake);
  void* more = nullptr;
  EXPECT_EQ(s.api.allocate(s.api.self, &more, 501).code, kDeviceOutOfMemory);
  EXPECT_EQ(s.api.host_alloc(s.api.self, &more, 501).code, kDeviceOutOfMemory);
  EXPECT_TRUE(s.api.host_alloc(s.api.self, &more, 500).ok());
  EXPECT_TRUE(s.api.host_free(s.api.self, more).ok());
  EXPECT_EQ(fake.calls("allocate"), 2u);
}

TEST(FakeApi, GathersRowsAndZeros) {
  FakeApi fake;
  const DeviceApi& api = fake.api();
  Bench s(fake);
  void* rows = nullptr;
  void* out = nullptr;
  api.allocate(api.self, &rows, 3 * sizeof(uint64_t));
  api.allocate(api.self, &out, 6);
  const std::array<uint64_t, 3> wanted = {2, kNoRow, 0};
  std::memcpy(s.host, wanted.data(), sizeof(wanted));
  std::memcpy(static_cast<char*>(s.host) + 100, "aabbcc", 6);
  api.copy_to_device(api.self, rows, s.host, sizeof(wanted), s.first);
  api.copy_to_device(api.self, s.device, static_cast<char*>(s.host) + 100, 6, s.first);
  api.gather(api.self,
             {.table = static_cast<uint8_t*>(s.device),
              .rows = static_cast<uint64_t*>(rows),
              .count = 3,
              .row_bytes = 2,
              .out = static_cast<uint8_t*>(out)},
             s.first);
  api.stream_synchronize(api.self, s.first);
  EXPECT_EQ(std::string(static_cast<char*>(out), 6), std::string("cc\0\0aa", 6));
  EXPECT_THAT(fake.misuses(), IsEmpty());
  api.free(api.self, rows);
  api.free(api.self, out);
}

TEST(DeviceApi, ErrorsHaveAClassAndAMessage) {
  EXPECT_EQ(ClassOf({}), FailureClass::kNone);
  EXPECT_EQ(ClassOf({kDeviceNotSupported, ""}), FailureClass::kCapability);
  EXPECT_EQ(ClassOf({kDeviceOutOfMemory, ""}), FailureClass::kResource);
  EXPECT_EQ(ClassOf({kDeviceIllegalAddress, ""}), FailureClass::kLost);
  EXPECT_EQ(ClassOf({kDeviceInvalidValue, ""}), FailureClass::kOther);
  EXPECT_TRUE(ToStatus({}, "x").ok());
  const absl::Status lost = ToStatus({kDeviceIllegalAddress, "cudaErrorIllegalAddress"}, "a copy");
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.message()),
              HasSubstr("a copy: cudaErrorIllegalAddress (error 700)"));
}

}  // namespace
}  // namespace shardpack
