// OpenCudaDevice and OpenDevice: which GPU is touched, by which thread, and what is reported of one
// that cannot be used. On four fake GPUs, and (as :cuda_device_gpu_test) on those of this machine,
// where it fails without one; SHARDPACK_REQUIRE_GPU=2 makes it fail where there are fewer than two.
#include "cuda/device/cuda_device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "cuda/device/device_error.h"
#include "cuda/device/host_device.h"
#include "cuda/device/open_device.h"
#include "cuda/dynload/cuda_driver.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/dlpack_export.h"
#include "cuda/loading/open_pinned_loader.h"
#include "cuda/testing/loader_fixture.h"
#include "cuda/testing/test_gpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Context = CudaDriver::Context;

int GpusWanted() {
  const char* const wanted = std::getenv("SHARDPACK_REQUIRE_GPU");
  return wanted == nullptr ? 1 : std::max(std::atoi(wanted), 1);
}

// All tests use the last GPU, so that the first one stays without a context in this process; with
// one GPU, that others are left alone is not seen.
class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<Device*> first = OpenCudaDevice(0);
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::StatusOr<CudaDriver> driver = OpenCudaDriver();
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *driver;
    ASSERT_EQ(driver_.count(&gpus_), 0);
    ASSERT_GE(gpus_, GpusWanted());
    last_ = gpus_ - 1;
    device_ = *OpenCudaDevice(last_);
  }
  void TearDown() override {
    for (int gpu = 0; gpu < last_; ++gpu) EXPECT_FALSE(HasContext(gpu)) << "GPU " << gpu;
    EXPECT_THAT(GpuMisuses(), IsEmpty());
  }
  bool HasContext(int gpu) const {
    int device = -1, active = -1;
    unsigned flags = 0;
    EXPECT_EQ(driver_.get(&device, gpu), 0);
    EXPECT_EQ(driver_.primary_state(device, &flags, &active), 0);
    return active != 0;
  }
  Context Current() const {
    Context context = nullptr;
    EXPECT_EQ(driver_.current(&context), 0);
    return context;
  }
  void Check(const absl::Status& status) const { EXPECT_TRUE(status.ok()) << status; }
  // A call of each kind.
  void UseDevice() const {
    std::string text = "to the device and back", back(text.size(), '\0');
    void* const memory = *device_->Allocate(text.size(), "a test");
    const Stream stream = *device_->CreateStream();
    const Event event = *device_->CreateEvent();
    Check(device_->CopyToDevice(memory, text.data(), text.size(), stream));
    Check(device_->RecordEvent(event, stream));
    Check(device_->StreamWait(stream, event));
    Check(device_->CopyToHost(back.data(), memory, text.size(), stream));
    Check(device_->Synchronize(stream));
    EXPECT_EQ(back, text);
    Check(device_->DestroyEvent(event));
    Check(device_->DestroyStream(stream));
    Check(device_->Free(memory));
    const Stream other = *device_->CreateStream(StreamPriority::kHigh);
    void* const of_stream = *device_->AllocateOn(other, 1000, "a test");
    Check(device_->Fill(of_stream, 1, 1000, other));
    Check(device_->FreeOn(other, of_stream));
    Check(device_->Synchronize(other));
    Check(device_->DestroyStream(other));
    EXPECT_TRUE(absl::IsResourceExhausted(device_->Allocate(size_t{1} << 50, "a test").status()));
    EXPECT_EQ(TakeLastCudaError(), 0);  // not left for the next caller
  }

  CudaDriver driver_;
  Device* device_ = nullptr;
  int gpus_ = 0, last_ = 0;
};

// First: no other test has made one.
TEST_F(CudaDeviceTest, ThatADeviceIsThereMakesNoContext) {
  const absl::StatusOr<DeviceInfo> info = device_->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GT(info->memory_bytes, 0u);
  EXPECT_EQ(device_->kind(), DeviceKind::kCuda);
  EXPECT_EQ(*OpenCudaDevice(last_), device_);
  EXPECT_FALSE(HasContext(last_));
}

TEST_F(CudaDeviceTest, AThreadThatChoseNothingStaysSo) {
  EXPECT_EQ(Current(), nullptr);
  UseDevice();
  EXPECT_EQ(Current(), nullptr);
  std::thread([&] {
    UseDevice();
    EXPECT_EQ(Current(), nullptr);
  }).join();
  EXPECT_TRUE(HasContext(last_));
}

TEST_F(CudaDeviceTest, AThreadsOwnChoiceStays) {
  Context mine = nullptr;
  ASSERT_EQ(driver_.primary(&mine, last_), 0);
  std::thread([&] {
    ASSERT_EQ(driver_.push(mine), 0);
    UseDevice();
    EXPECT_EQ(Current(), mine);
    ASSERT_EQ(driver_.pop(&mine), 0);
    EXPECT_EQ(Current(), nullptr);
  }).join();
}

// Nor does a thread that chose nothing end the capture of another one.
TEST_F(CudaDeviceTest, AnotherThreadsCaptureGoesOn) {
  EXPECT_TRUE(IsCaptureLeftAlone(last_, [&] {
    const Stream stream = *device_->CreateStream(StreamPriority::kHigh);
    const Event event = *device_->CreateEvent();
    Check(device_->RecordEvent(event, stream));
    EXPECT_TRUE(device_->IsDone(event).ok());
    EXPECT_TRUE(device_->IsIdle(stream).ok());
    EXPECT_FALSE(*device_->IsCapturing(stream));
    void* const memory = *device_->Allocate(1000, "a test");
    Check(device_->Synchronize(stream));
    Check(device_->Free(memory));
    Check(device_->DestroyEvent(event));
    Check(device_->DestroyStream(stream));
  }));
}

TEST_F(CudaDeviceTest, ALoaderTouchesItsGpuAlone) {
  // nvJPEG works on what is current in the thread that calls it: one of the loader's, or of those
  // that decode, which all of this data then goes to.
  struct Case {
    const char* name;
    bool decode, hardware;
  };
  for (const Case& each : {Case{"ALoader", false, false}, Case{"ALoaderDecodes", true, true},
                           Case{"ALoaderDecodesByThreads", true, false}}) {
    SCOPED_TRACE(each.name);
    const LoaderFixture data(each.name, {.min_side = 64});
    LoaderOptions options = data.Options();
    DeviceOptions device{.preprocess = DevicePreprocess{.output = {}}, .log = nullptr};
    if (each.decode) {
      device.decode = DeviceDecode{.crop = options.decode->crop,
                                   .threads = 3,
                                   .use_hardware = each.hardware,
                                   .nvjpeg = NvjpegOfLastGpu()};
      options.decode.reset();
      options.image_infos = true;
    }
    auto memory = std::make_unique<PinnedMemory>(*device_, PinnedMemoryOptions{.log = nullptr});
    absl::StatusOr<Loader> host =
        OpenPinnedLoader(data.dataset(), data.order(), {}, options, *memory);
    ASSERT_TRUE(host.ok()) << host.status();
    std::optional<DeviceLoader> loader;
    {
      absl::StatusOr<DeviceLoader> opened = DeviceLoader::Open(*std::move(host), device, *device_);
      ASSERT_TRUE(opened.ok()) << opened.status();
      loader = *std::move(opened);
    }
    const Stream stream = *device_->CreateStream();
    for (int i = 0; i < 5; ++i) {
      absl::StatusOr<std::optional<DeviceBatch>> next = loader->Next();
      ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
      // As a framework has it: the last tensor ends in a thread of its own.
      auto batch = std::make_shared<DeviceBatch>(**std::move(next));
      ASSERT_TRUE(batch->WaitOn(stream).ok());
      const DeviceTensor& pixels = *batch->pixels();
      EXPECT_EQ(pixels.kind, DeviceKind::kCuda);
      DlpackManagedTensorVersioned* const tensor = ExportVersioned(pixels, std::move(batch), false);
      EXPECT_EQ(tensor->tensor.device.type, kDlpackCuda);
      EXPECT_EQ(tensor->tensor.device.id, last_);
      std::thread([&] {
        tensor->deleter(tensor);
        EXPECT_EQ(Current(), nullptr);
      }).join();
    }
    const DeviceLoaderStats stats = loader->stats();
    EXPECT_TRUE(stats.pinned);
    if (each.decode && GpusAreFake()) {
      EXPECT_EQ(stats.decode.hardware > 0, each.hardware) << stats.decode_backends;
      EXPECT_EQ(stats.decode.cpu, 0u) << stats.decode_backends;
    }
    Check(device_->Synchronize(stream));
    // And as a garbage collector has it.
    std::thread([&] {
      loader.reset();
      memory.reset();
      Check(device_->DestroyStream(stream));
      EXPECT_EQ(Current(), nullptr);
    }).join();
    EXPECT_EQ(Current(), nullptr);
  }
}

TEST_F(CudaDeviceTest, ANumberMeansThatGpu) {
  for (const std::string& wanted : {std::to_string(last_), "cuda:" + std::to_string(last_)}) {
    const absl::StatusOr<OpenedDevice> device = OpenDevice(wanted);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(device->device, device_);
    EXPECT_EQ(device->why_not, "");
  }
  ::setenv("LOCAL_RANK", std::to_string(last_).c_str(), 1);
  for (const char* const wanted : {"auto", "cuda"}) EXPECT_EQ(OpenDevice(wanted)->device, device_);
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", GpusAreFake() ? 1 : 0);
  ::setenv("LOCAL_RANK", "1000", 1);
  for (const char* const wanted : {"1000", "cuda:1000", "auto", "cuda"}) {
    EXPECT_THAT(OpenDevice(wanted).status().ToString(),
                AllOf(HasSubstr("NOT_FOUND"), HasSubstr("there is no GPU 1000; "),
                      HasSubstr(std::to_string(gpus_) + " are visible (CUDA_VISIBLE_DEVICES")));
  }
  ::setenv("LOCAL_RANK", "x", 1);
  EXPECT_THAT(OpenDevice("auto").status().ToString(), HasSubstr("LOCAL_RANK is not a number: x"));
  ::unsetenv("LOCAL_RANK");
  EXPECT_EQ(OpenDevice("cpu")->device, &HostDevice::Get());
  for (const char* const wanted : {"", "cuda:", "gpu", "1 ", "cuda:one"}) {
    EXPECT_THAT(OpenDevice(wanted).status().ToString(),
                AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("\"cuda:3\""), HasSubstr(wanted)));
  }
}

// Neither a GPU's number nor "auto" falls back to the CPU: the fork is a mistake of the program.
TEST_F(CudaDeviceTest, AForkedChildIsToldSo) {
  for (const char* const wanted : {"cuda:0", "auto"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const absl::Status status = OpenDevice(wanted).status();
      const bool right = absl::IsFailedPrecondition(status) &&
                         std::string(status.message()).find("forked") != std::string::npos;
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << wanted << " " << status;
  }
}

// A GPU's number is never the CPU; "auto" is where no GPU can be used, and says why.
TEST_F(CudaDeviceTest, SaysWhyNoGpuCanBeUsed) {
  if (!GpusAreFake()) GTEST_SKIP() << "makes fakes fail";
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const struct {
    int code, driver;
    bool may_be_cpu;
    const char* why;
  } kCases[] = {
      {kDeviceNone, 13000, true, "cudaErrorNoDevice: in words (CUDA_VISIBLE_DEVICES=)"},
      {kDeviceInsufficientDriver, 0, true, "no NVIDIA driver (libcuda.so.1) was found"},
      {kDeviceInsufficientDriver, 11040, true, "the driver is for CUDA 11.4, this program needs 1"},
      {kDeviceInsufficientDriver, 11040, true, " or newer"},
      {kDeviceUnknown, 13000, true, "no GPU can be used: cudaErrorOfTheFake"},
      {kDeviceNotInitialized, 13000, false, "forked after CUDA was used"},
  };
  for (const auto& wanted : kCases) {
    SCOPED_TRACE(wanted.why);
    FailCudaStart(wanted.code, wanted.driver);
    const absl::StatusOr<OpenedDevice> number = OpenDevice("0"), any = OpenDevice("auto");
    EXPECT_EQ(OpenDevice("cuda").status(), number.status());
    FailCudaStart(0, 13000);
    EXPECT_EQ(number.status().code(), wanted.may_be_cpu ? absl::StatusCode::kUnavailable
                                                        : absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(number.status().message()), HasSubstr(wanted.why));
    ASSERT_EQ(any.ok(), wanted.may_be_cpu) << any.status();
    if (!any.ok()) continue;
    EXPECT_EQ(any->device, &HostDevice::Get());
    EXPECT_THAT(any->why_not, HasSubstr(wanted.why));
  }
}

}  // namespace
}  // namespace shardpack
