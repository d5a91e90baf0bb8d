#include "cuda/dynload/nvjpeg_library.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cuda/device/host_device.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "formats/testing/scratch_folder.h"

namespace shardpack {
namespace {

std::string Stub(const std::string& name) {
  return std::filesystem::absolute("cuda/dynload/" + name);
}

class NvjpegLibraryTest : public ::testing::Test {
 protected:
  NvjpegLibraryTest() { unsetenv("SHARDPACK_NVJPEG"); }
  ~NvjpegLibraryTest() override { unsetenv("SHARDPACK_NVJPEG"); }

  // A library under another name in a folder of Python packages.
  void Place(const std::string& stub, const std::string& path) {
    const std::filesystem::path full = scratch_.File(path);
    std::filesystem::create_directories(full.parent_path());
    std::filesystem::create_symlink(Stub(stub), full);
  }
  absl::StatusOr<NvjpegLibrary> OpenPlaced() {
    return NvjpegLibrary::Open(
        {.package_folders = {scratch_.File("")}, .search_loader_paths = false});
  }

  const testing::ScratchFolder scratch_;
};

TEST_F(NvjpegLibraryTest, PathOfTheEnvironmentAlone) {
  setenv("SHARDPACK_NVJPEG", Stub("libnvjpeg_stub_13.so").c_str(), 1);
  const auto library = NvjpegLibrary::Open();
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->path(), Stub("libnvjpeg_stub_13.so"));
  EXPECT_EQ(library->major(), 13);
  EXPECT_EQ(library->minor(), 7);
  EXPECT_NE(library->functions().CreateEx, nullptr);
  EXPECT_EQ(library->functions().DecodeBatched, nullptr);
  EXPECT_EQ(library->absent().size(), 32u);
  EXPECT_EQ(library->absent().front(), "nvjpegCreateExV2");

  Place("libnvjpeg_stub_13.so", "nvidia/cu13/lib/libnvjpeg.so.13");
  setenv("SHARDPACK_NVJPEG", "/no/such/libnvjpeg.so", 1);
  const auto missing = OpenPlaced();
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/no/such/libnvjpeg.so"), std::string::npos);
}

TEST_F(NvjpegLibraryTest, OtherVersionsAndOthersAreRefused) {
  setenv("SHARDPACK_NVJPEG", Stub("libnvjpeg_stub_11.so").c_str(), 1);
  const auto old = NvjpegLibrary::Open();
  EXPECT_EQ(old.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(old.status().message().find("version 11.7, expected 12 or 13"), std::string::npos)
      << old.status();
  setenv("SHARDPACK_NVJPEG", Stub("libnvjpeg_stub_14.so").c_str(), 1);
  EXPECT_EQ(NvjpegLibrary::Open().status().code(), absl::StatusCode::kFailedPrecondition);
  setenv("SHARDPACK_NVJPEG", Stub("libnvjpeg_stub_bare.so").c_str(), 1);
  const auto bare = NvjpegLibrary::Open();
  EXPECT_EQ(bare.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(bare.status().message().find("lacks nvjpegCreateEx"), std::string::npos)
      << bare.status();
  // A library, but not this one.
  setenv("SHARDPACK_NVJPEG", "libm.so.6", 1);
  EXPECT_EQ(NvjpegLibrary::Open().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(NvjpegLibraryTest, WheelsAndPrivateCopies) {
  EXPECT_EQ(OpenPlaced().status().code(), absl::StatusCode::kNotFound);
  Place("libnvjpeg_stub_12.so", "torchvision.libs/libnvjpeg.0a1b2c3d.so.12");
  auto library = OpenPlaced();
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->major(), 12);
  // Tried first, but refused.
  Place("libnvjpeg_stub_11.so", "nvidia/nvjpeg/lib/libnvjpeg.so.11");
  library = OpenPlaced();
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->major(), 12);
  Place("libnvjpeg_stub_13.so", "nvidia/cu13/lib/libnvjpeg.so.13");
  library = OpenPlaced();
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->major(), 13);
}

TEST_F(NvjpegLibraryTest, FoldersOfTheEnvironment) {
  const std::string folder = scratch_.File("lib/python3.11/site-packages");
  std::filesystem::create_directories(folder);
  setenv("VIRTUAL_ENV", scratch_.File("").c_str(), 1);
  bool found = false;
  for (const std::string& one : PythonPackageFolders()) {
    found = found || std::filesystem::equivalent(one, folder);
  }
  EXPECT_TRUE(found);
  unsetenv("VIRTUAL_ENV");
}

// The real one, where there is one: $SHARDPACK_TEST_NVJPEG, else what Open finds.
TEST_F(NvjpegLibraryTest, TheRealLibraryHasAllSymbols) {
  if (const char* path = std::getenv("SHARDPACK_TEST_NVJPEG")) setenv("SHARDPACK_NVJPEG", path, 1);
  const auto library = NvjpegLibrary::Open();
  if (!library.ok()) GTEST_SKIP() << "NOT TESTED: " << library.status().message();
  std::printf("%s: version %d.%d\n", library->path().c_str(), library->major(), library->minor());
  EXPECT_TRUE(library->absent().empty());
  // Without a driver it says so when it is asked, and everything is left to the CPU.
  const JpegDecoder decoder(&library->functions(), HostDevice::Get(), {.hardware_batches = 0});
  std::printf("%s\n", decoder.backends().c_str());
  EXPECT_NE(decoder.backends().find("hardware: "), std::string::npos);
}

}  // namespace
}  // namespace shardpack
