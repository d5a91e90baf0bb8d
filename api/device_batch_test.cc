// Batches on a device through the C interface: what they hold, waits, and what they are after a
// release, a fork and the loss of the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/device_test_fixture.h"
#include "api/shardpack.h"
#include "api/shardpack.hpp"
#include "cuda/loading/dlpack_export.h"

namespace {

// How many allocations of this thread succeed before one fails; -1: all do, as under the
// sanitizers, which have functions of their own.
thread_local int64_t allocations_left = -1;

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(size_t bytes) {
  if (allocations_left < 0 || allocations_left-- > 0) {
    if (void* const made = std::malloc(bytes == 0 ? 1 : bytes); made != nullptr) return made;
  }
  throw std::bad_alloc();
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, size_t) noexcept { std::free(made); }
#endif

namespace shardpack {
namespace {

// Images that the loader does not decode; with their encoded bytes, and then decoded for the
// device.
TEST_F(DeviceTest, EncodedImagesComeAsBytesOrAreDecodedThere) {
  options_.decode = nullptr;
  shardpack_loader* loader = OpenOnDevice();
  shardpack_batch* batch = nullptr;
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  ASSERT_EQ(shardpack_batch_wait_on(batch, stream_, said_.into()), SHARDPACK_OK) << said_.text();
  ASSERT_TRUE(fake_.Synchronize(stream_).ok());
  shardpack_batch_view view = {};
  view.size = sizeof view;
  shardpack_batch_view_of(batch, &view, nullptr);
  EXPECT_EQ(view.pixels, nullptr);
  EXPECT_EQ(view.fields, 1u);
  std::vector<shardpack_span> spans(kBatch);
  ASSERT_EQ(shardpack_batch_spans(batch, nullptr, spans.data(), kBatch, said_.into()), SHARDPACK_OK)
      << said_.text();
  for (uint32_t slot = 0; slot < kBatch; ++slot) {
    EXPECT_EQ(std::string(static_cast<const char*>(spans[slot].data), spans[slot].bytes),
              data_.image(view.ids[slot]));
  }
  EXPECT_EQ(shardpack_batch_spans(batch, "mask", spans.data(), kBatch, said_.into()),
            SHARDPACK_NOT_FOUND);
  shardpack_batch_release(batch);
  shardpack_loader_release(loader);

  shardpack_device_options how = {};
  how.size = sizeof how;
  how.decode = &decode_;
  loader = OpenOnDevice(&how);
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(CopyOf(batch).pixels.size(), kPixelBytes);
  shardpack_crop crops[kBatch];
  EXPECT_EQ(shardpack_batch_crops(batch, crops, kBatch, said_.into()), SHARDPACK_UNSUPPORTED);
  EXPECT_THAT(said_.text(), ::testing::HasSubstr("also where the device is the CPU"));
  shardpack_batch_release(batch);
  shardpack_loader_release(loader);
}

// The fake GPU of this test has no nvJPEG.
TEST_F(DeviceTest, WhoDecodesIsChosenAndSaid) {
  options_.decode = nullptr;
  std::vector<std::string> pixels;
  for (const uint32_t by : {SHARDPACK_DECODE_BY_DEVICE, SHARDPACK_DECODE_BY_AUTO,
                            SHARDPACK_DECODE_BY_HYBRID, SHARDPACK_DECODE_BY_CPU}) {
    shardpack_device_options how = {};
    how.size = sizeof how;
    how.decode = &decode_;
    how.decode_by = by;
    how.share_decoding = by == SHARDPACK_DECODE_BY_AUTO ? 1 : 0;
    shardpack_loader* const loader = OpenOnDevice(&how);
    std::string all;
    for (const Copy& copy : Epoch(loader)) all += copy.pixels;
    pixels.push_back(std::move(all));
    EXPECT_EQ(pixels.back().size(), kSteps * kPixelBytes);
    EXPECT_TRUE(pixels.back() == pixels.front()) << by;
    char* stats = nullptr;
    ASSERT_EQ(shardpack_loader_stats_json(loader, &stats, said_.into()), SHARDPACK_OK);
    const std::string choice =
        by == SHARDPACK_DECODE_BY_AUTO ? "cpu: there is no other way here" : "";
    EXPECT_THAT(stats, ::testing::HasSubstr("\"decode_choice\":\"" + choice + "\""));
    shardpack_text_free(stats);
    char* explained = nullptr;
    ASSERT_EQ(shardpack_loader_explain(loader, &explained, said_.into()), SHARDPACK_OK);
    EXPECT_EQ(std::string(explained).find("decoded by cpu: there") != std::string::npos,
              by == SHARDPACK_DECODE_BY_AUTO)
        << explained;
    shardpack_text_free(explained);
    shardpack_loader_release(loader);
  }
}

TEST_F(DeviceTest, AWaitThatIsTooShortLosesNothing) {
  shardpack_loader* const loader = OpenOnDevice();
  shardpack_code code;
  while ((code = shardpack_loader_opened(loader, 1, said_.into())) == SHARDPACK_WAIT) {
  }
  ASSERT_EQ(code, SHARDPACK_OK) << said_.text();
  std::vector<shardpack_batch*> held;  // four, all that there are
  shardpack_batch* batch = nullptr;
  while (held.size() < 4) {
    ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK)
        << said_.text();
    held.push_back(batch);
  }
  EXPECT_EQ(shardpack_loader_next(loader, 0, &batch, said_.into()), SHARDPACK_WAIT);
  EXPECT_EQ(batch, nullptr);
  EXPECT_EQ(shardpack_loader_next(loader, 3, &batch, said_.into()), SHARDPACK_WAIT);
  for (shardpack_batch* each : held) shardpack_batch_release(each);
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(CopyOf(batch).step, 4u);
  shardpack_batch_release(batch);
  EXPECT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_END);
  shardpack_loader_release(loader);
}

TEST_F(DeviceTest, AForkedChildHasTheFactsOfABatchAlone) {
  shardpack_loader* const loader = OpenOnDevice();
  shardpack_batch* batch = nullptr;
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  shardpack_loader* const host = OpenHost(device_);
  shardpack_batch* in_host_memory = nullptr;
  ASSERT_EQ(shardpack_loader_next(host, -1, &in_host_memory, said_.into()), SHARDPACK_OK)
      << said_.text();
  const pid_t child = ::fork();
  if (child == 0) {
    shardpack_batch_view view = {};
    view.size = sizeof view;
    int failed = shardpack_batch_view_of(batch, &view, nullptr) != SHARDPACK_OK ||
                 view.slots != kBatch || view.pixels != nullptr;
    void* managed = nullptr;
    failed |=
        (shardpack_batch_dlpack(batch, SHARDPACK_PIXELS, 1, &managed, nullptr) != SHARDPACK_STATE)
        << 1;
    failed |= (shardpack_batch_wait_on(batch, nullptr, nullptr) != SHARDPACK_STATE) << 2;
    shardpack_device_info info = {};
    info.size = sizeof info;
    failed |= (shardpack_device_info_of(device_, &info, nullptr) != SHARDPACK_STATE) << 3;
    allocations_left = 0;
    shardpack_batch_release(batch);  // without the locks of the parent, and without memory
    shardpack_loader_release(loader);
    shardpack_batch_release(in_host_memory);
    shardpack_loader_release(host);
    ::_exit(failed);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  shardpack_batch_release(batch);
  shardpack_loader_release(loader);
  shardpack_batch_release(in_host_memory);
  shardpack_loader_release(host);
}

TEST_F(DeviceTest, ALoaderThatCannotBeTakenOverStaysAsItIs) {
  for (int64_t fails = 0;; ++fails) {
    shardpack_loader *const host = OpenHost(device_), *loader = nullptr;
    allocations_left = fails;
    const shardpack_code code =
        shardpack_loader_to_device(host, device_, nullptr, &loader, nullptr);
    const bool failed = std::exchange(allocations_left, -1) < 0;
    // Some are only tried.
    EXPECT_TRUE(code == SHARDPACK_OK || (failed && code == SHARDPACK_NO_MEMORY)) << code;
    shardpack_batch* batch = nullptr;
    EXPECT_EQ(shardpack_loader_next(loader == nullptr ? host : loader, -1, &batch, said_.into()),
              SHARDPACK_OK)
        << fails << ": " << said_.text();
    shardpack_batch_release(batch);
    shardpack_loader_release(loader);
    shardpack_loader_release(host);
    if (!failed) break;
    ASSERT_LT(fails, 1000);
  }
}

TEST_F(DeviceTest, AReleaseWithoutMemoryIsNoException) {
  shardpack_loader* const loader = OpenHost(device_);
  shardpack_batch* batch = nullptr;
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  shardpack_batch_release(batch);
  allocations_left = 0;
  shardpack_loader_release(loader);
  allocations_left = -1;
}

TEST_F(DeviceTest, ATargetOfTheWrongSizeGetsTheBatchLater) {
  shardpack_loader* const loader = OpenOnDevice();
  auto* const pixels = static_cast<char*>(*fake_.Allocate(kPixelBytes, "a target"));
  auto* const labels = static_cast<int64_t*>(*fake_.Allocate(kBatch * sizeof(int64_t), "labels"));
  shardpack_target target = {sizeof target, pixels, kPixelBytes - 1, labels, 0};
  shardpack_batch* batch = nullptr;
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, &batch, said_.into()),
            SHARDPACK_INVALID);
  uint64_t epoch = 9, step = 9;
  EXPECT_EQ(shardpack_loader_position(loader, &epoch, &step, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(step, 0u);
  target.pixel_bytes = kPixelBytes;
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, reinterpret_cast<void*>(intptr_t{-1}),
                                       &batch, said_.into()),
            SHARDPACK_INVALID);
  target.label_bytes = kBatch * sizeof(int64_t) - 8;
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, &batch, said_.into()),
            SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), ::testing::HasSubstr("56 bytes, those of a batch 64"));
  for (uint64_t n = 0; n < kSteps; ++n) {
    // A caller of before has no label_bytes.
    target.size = n == 0 ? offsetof(shardpack_target, label_bytes) : sizeof target;
    target.label_bytes = n == 1 ? 0 : kBatch * sizeof(int64_t);
    ASSERT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, &batch, said_.into()),
              SHARDPACK_OK)
        << said_.text();
    ASSERT_TRUE(fake_.Synchronize(stream_).ok());
    shardpack_batch_view view = {};
    view.size = sizeof view;
    shardpack_batch_view_of(batch, &view, nullptr);
    EXPECT_EQ(view.step, n);
    EXPECT_EQ(view.pixels, nullptr);
    EXPECT_EQ(std::memcmp(view.labels, labels, kBatch * sizeof(int64_t)), 0);
    EXPECT_EQ(shardpack_batch_wait_on(batch, stream_, said_.into()), SHARDPACK_STATE);
    shardpack_batch_release(batch);
  }
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, nullptr, said_.into()),
            SHARDPACK_END);
  target.pixels = nullptr;
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, nullptr, said_.into()),
            SHARDPACK_INVALID);
  shardpack_loader_release(loader);
  EXPECT_TRUE(fake_.Free(pixels).ok());
  EXPECT_TRUE(fake_.Free(labels).ok());
}

TEST_F(DeviceTest, LabelsThatWouldStayAsTheyAreAreRefused) {
  shardpack_device_options how = {};
  how.size = sizeof how;
  how.no_labels = 1;
  shardpack_loader* const loader = OpenOnDevice(&how);
  auto* const pixels = static_cast<char*>(*fake_.Allocate(kPixelBytes, "a target"));
  auto* const labels = static_cast<int64_t*>(*fake_.Allocate(kBatch * sizeof(int64_t), "labels"));
  shardpack_target target = {.size = sizeof target,
                             .pixels = pixels,
                             .pixel_bytes = kPixelBytes,
                             .labels = labels,
                             .label_bytes = 0};
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, nullptr, said_.into()),
            SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), ::testing::HasSubstr("no_labels"));
  target.labels = nullptr;
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, nullptr, said_.into()),
            SHARDPACK_OK)
      << said_.text();
  target.label_bytes = kBatch * sizeof(int64_t);
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target, stream_, nullptr, said_.into()),
            SHARDPACK_INVALID);
  ASSERT_TRUE(fake_.Synchronize(stream_).ok());
  shardpack_loader_release(loader);
  EXPECT_TRUE(fake_.Free(pixels).ok());
  EXPECT_TRUE(fake_.Free(labels).ok());
}

TEST_F(DeviceTest, AReleasedBatchKeepsItsFactsAlone) {
  shardpack_loader* const loader = OpenOnDevice();
  shardpack_batch* batch = nullptr;
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  ASSERT_EQ(shardpack_batch_wait_on(batch, stream_, said_.into()), SHARDPACK_OK);
  void* const host = reinterpret_cast<void*>(intptr_t{-1});
  EXPECT_EQ(shardpack_batch_wait_on(batch, host, said_.into()), SHARDPACK_OK) << said_.text();
  // The host is no place where memory of the device is used.
  EXPECT_EQ(shardpack_batch_release_on(batch, host, said_.into()), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_batch_release_on(batch, stream_, said_.into()), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(shardpack_batch_release_on(batch, stream_, said_.into()), SHARDPACK_STATE);
  EXPECT_EQ(shardpack_batch_wait_on(batch, stream_, said_.into()), SHARDPACK_STATE);
  void* managed = nullptr;
  EXPECT_EQ(shardpack_batch_dlpack(batch, SHARDPACK_PIXELS, 1, &managed, said_.into()),
            SHARDPACK_STATE);
  shardpack_batch_view view = {};
  view.size = sizeof view;
  EXPECT_EQ(shardpack_batch_view_of(batch, &view, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(view.slots, kBatch);
  EXPECT_EQ(view.pixels, nullptr);
  shardpack_batch_release(batch);
  shardpack_loader_release(loader);
}

TEST_F(DeviceTest, AllCopiesOfABatchKnowThatItWasReleased) {
  shardpack_loader* const loader = OpenOnDevice();
  shardpack_batch* taken = nullptr;
  ASSERT_EQ(shardpack_loader_next(loader, -1, &taken, said_.into()), SHARDPACK_OK) << said_.text();
  const shardpack_api::Batch batch(taken);
  EXPECT_EQ(batch.pixels().size(), kPixelBytes);
  EXPECT_NE(batch.view().device_labels, nullptr);
  shardpack_api::Batch other = batch;
  other.wait_on(stream_);
  other.release_on(stream_);
  EXPECT_TRUE(batch.pixels().empty());
  EXPECT_EQ(batch.pixels().data(), nullptr);
  EXPECT_EQ(batch.view().pixels, nullptr);
  EXPECT_EQ(batch.view().device_labels, nullptr);
  EXPECT_EQ(batch.ids().size(), kBatch);
  EXPECT_EQ(batch.view().ids, batch.ids().data());
  shardpack_loader_release(loader);
}

// What the thread sanitizer looks at.
TEST_F(DeviceTest, ABatchIsLookedAtWhileItIsReleased) {
  shardpack_loader* const loader = OpenOnDevice();
  for (uint64_t n = 0; n < kSteps; ++n) {
    shardpack_batch* batch = nullptr;
    ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK)
        << said_.text();
    ASSERT_EQ(shardpack_batch_wait_on(batch, stream_, said_.into()), SHARDPACK_OK);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([batch] {
        for (shardpack_code code = SHARDPACK_OK; code == SHARDPACK_OK;) {
          shardpack_batch_view view = {};
          view.size = sizeof view;
          EXPECT_EQ(shardpack_batch_view_of(batch, &view, nullptr), SHARDPACK_OK);
          EXPECT_EQ(view.pixel_bytes, view.pixels == nullptr ? 0 : kPixelBytes);
          shardpack_span spans[kBatch];
          (void)shardpack_batch_spans(batch, "image", spans, kBatch, nullptr);
          void* managed = nullptr;
          code = shardpack_batch_dlpack(batch, SHARDPACK_PIXELS, 1, &managed, nullptr);
          if (code != SHARDPACK_OK) continue;
          auto* const tensor = static_cast<DlpackManagedTensorVersioned*>(managed);
          tensor->deleter(tensor);
        }
      });
    }
    EXPECT_EQ(shardpack_batch_synchronize(batch, -1, said_.into()), SHARDPACK_OK);
    EXPECT_EQ(shardpack_batch_release_on(batch, stream_, said_.into()), SHARDPACK_OK);
    for (std::thread& thread : threads) thread.join();
    shardpack_batch_release(batch);
  }
  shardpack_loader_release(loader);
}

TEST_F(DeviceTest, ALostDeviceIsSaidAtOnce) {
  shardpack_loader* const loader = OpenOnDevice();
  ASSERT_EQ(shardpack_loader_opened(loader, -1, said_.into()), SHARDPACK_OK) << said_.text();
  fake_.LoseDevice();
  // Batches that were finished before come first.
  shardpack_code code = SHARDPACK_OK;
  while (code == SHARDPACK_OK) {
    shardpack_batch* batch = nullptr;
    code = shardpack_loader_next(loader, -1, &batch, said_.into());
    shardpack_batch_release(batch);
  }
  EXPECT_EQ(code, SHARDPACK_UNAVAILABLE) << said_.text();
  shardpack_loader_release(loader);
}

TEST_F(DeviceTest, ADeviceAugmentsWhatItDecodes) {
  options_.decode = nullptr;
  shardpack_device_options how = {};
  how.size = sizeof how;
  how.decode = &decode_;
  const auto pixels_of = [&](const char* augment) {
    how.augment = augment;
    shardpack_loader* const loader = OpenOnDevice(&how);
    std::string pixels;
    for (const Copy& copy : Epoch(loader)) pixels += copy.pixels;
    char* stats = nullptr;
    EXPECT_EQ(shardpack_loader_stats_json(loader, &stats, said_.into()), SHARDPACK_OK);
    EXPECT_EQ(std::string(stats).find("augmentation by the CPU: elastic") != std::string::npos,
              augment != nullptr && std::strcmp(augment, "elastic") == 0)
        << stats;
    shardpack_text_free(stats);
    shardpack_loader_release(loader);
    return pixels;
  };
  const std::string plain = pixels_of(nullptr), inverted = pixels_of("invert");
  ASSERT_EQ(plain.size(), inverted.size());
  for (size_t i = 0; i < plain.size(); ++i)
    ASSERT_EQ(static_cast<uint8_t>(inverted[i]), 255 - static_cast<uint8_t>(plain[i]));
  EXPECT_FALSE(pixels_of("elastic") == plain);

  // A cursor knows the plan, and a loader that cannot go on from it is not taken over.
  how.augment = "invert";
  shardpack_loader* const first = OpenOnDevice(&how);
  char* cursor = nullptr;
  EXPECT_EQ(shardpack_loader_cursor(first, &cursor, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(std::string(cursor).rfind("shardpack-cursor:2:", 0), 0u) << cursor;
  shardpack_loader_release(first);
  options_.cursor = cursor;
  shardpack_loader_release(OpenOnDevice(&how));
  how.augment = "hue(.1)";
  shardpack_loader *const host = OpenHost(device_), *other = nullptr;
  EXPECT_EQ(shardpack_loader_to_device(host, device_, &how, &other, said_.into()),
            SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), ::testing::HasSubstr("another augmentation"));
  how.augment = "invert";
  EXPECT_EQ(shardpack_loader_to_device(host, device_, &how, &other, said_.into()), SHARDPACK_OK)
      << said_.text();
  shardpack_loader_release(other);
  shardpack_loader_release(host);
  shardpack_text_free(cursor);
  options_.cursor = nullptr;

  how.augment = "elastic";
  how.augment_on_device_only = 1;
  shardpack_loader* const loader = OpenOnDevice(&how);
  EXPECT_EQ(shardpack_loader_opened(loader, -1, said_.into()), SHARDPACK_UNSUPPORTED);
  EXPECT_THAT(said_.text(), ::testing::HasSubstr("elastic"));
  shardpack_loader_release(loader);
}

// Signals are answered between such waits.
TEST_F(DeviceTest, AWaitForABatchThatIsNotThereEnds) {
  shardpack_loader* const loader = OpenOnDevice();
  shardpack_batch* batch = nullptr;
  ASSERT_EQ(shardpack_loader_opened(loader, -1, said_.into()), SHARDPACK_OK) << said_.text();
  fake_.Hold();
  shardpack_code code = SHARDPACK_OK;
  for (int held = 0; held < 4 && code == SHARDPACK_OK; ++held) {  // some may have come before
    ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK)
        << said_.text();
    code = shardpack_batch_synchronize(batch, held % 2, said_.into());
    if (code == SHARDPACK_OK) shardpack_batch_release(batch);
  }
  EXPECT_EQ(code, SHARDPACK_WAIT) << said_.text();
  EXPECT_EQ(shardpack_batch_synchronize(batch, -2, said_.into()), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_batch_synchronize(nullptr, 0, said_.into()), SHARDPACK_INVALID);
  fake_.LetGo();
  EXPECT_EQ(shardpack_batch_synchronize(batch, -1, said_.into()), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(shardpack_batch_synchronize(batch, 0, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(shardpack_batch_release_on(batch, stream_, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(shardpack_batch_synchronize(batch, 0, said_.into()), SHARDPACK_STATE);
  shardpack_batch_release(batch);
  shardpack_loader_release(loader);
}

}  // namespace
}  // namespace shardpack
