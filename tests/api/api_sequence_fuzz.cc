// Bytes as a sequence of calls of the C interface: what they open, use, misuse and release, in
// which order, with which arguments. Each call checks what it promises (random_caller.h).
#include <cstdint>
#include <cstdlib>
#include <span>

#include "gtest/gtest.h"
#include "tests/api/choices.h"
#include "tests/api/dataset_on_disk.h"
#include "tests/api/random_caller.h"

namespace {

using shardpack::testing::Choices;
using shardpack::testing::DatasetOnDisk;
using shardpack::testing::RandomCaller;

constexpr int kMostCalls = 300;

const DatasetOnDisk& Disk() {
  static const DatasetOnDisk* const disk = new DatasetOnDisk(
      shardpack::testing::WriteDamagedDataset(shardpack::testing::MakeTestFolder("sequences")));
  return *disk;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  RandomCaller caller(Disk(), Choices(std::span(data, size)));
  for (int calls = 0; calls < kMostCalls && !caller.choices_used_up(); ++calls) caller.Call();
  caller.ReleaseAll();
  if (::testing::Test::HasFailure()) std::abort();
  return 0;
}
