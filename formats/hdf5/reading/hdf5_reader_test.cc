// Tests the limit for the total cost of reads of an HDF5 file.
#include "formats/hdf5/reading/hdf5_reader.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

class Hdf5ReaderCost : public ::testing::Test {
 protected:
  Hdf5ReaderCost() {
    bytes_.resize(4 << 20);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i * 31 + i / 251);
    std::ofstream(scratch_.File("file"), std::ios::binary) << bytes_;
    file_ = *File::OpenRead(scratch_.File("file"));
  }
  // Reads every position at this stride once, in this order.
  static void ExpectAll(Hdf5Reader& reader, const std::string& bytes, uint64_t stride,
                        const std::vector<uint64_t>& order) {
    for (const uint64_t i : order) {
      absl::StatusOr<Bytes> read = reader.Read(i * stride, 16, "a place");
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_EQ(AsText(*read), std::string_view(bytes).substr(i * stride, 16)) << i;
    }
  }

  const testing::ScratchFolder scratch_;
  std::string bytes_;
  File file_;
};

TEST_F(Hdf5ReaderCost, ReadsThatJumpToAndFroComeToAnEnd) {
  Hdf5Reader reader(file_, bytes_.size(), "shard");
  // The fetched bytes count, not the one byte requested.
  const uint64_t bound = (16 * bytes_.size() + (1 << 20)) / 512;
  uint64_t reads = 0;
  while (reads <= bound && reader.Read(reads % 2 * (3 << 20), 1, "a place").ok()) ++reads;
  EXPECT_LT(reads, bound);
  EXPECT_EQ(reader.problem().id, FindingId::kHdf5Structure);
}

TEST_F(Hdf5ReaderCost, SmallObjectsMayLieInAnyOrder) {
  for (const uint64_t stride : {56u, 300u, 900u, 5000u, 40000u}) {
    SCOPED_TRACE(stride);
    std::vector<uint64_t> order((bytes_.size() - 16) / stride);
    std::iota(order.begin(), order.end(), uint64_t{0});
    Hdf5Reader ascending(file_, bytes_.size(), "shard");
    ExpectAll(ascending, bytes_, stride, order);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    Hdf5Reader shuffled(file_, bytes_.size(), "shard");
    ExpectAll(shuffled, bytes_, stride, order);
    std::sort(order.begin(), order.end(), std::greater<>());
    Hdf5Reader descending(file_, bytes_.size(), "shard");
    ExpectAll(descending, bytes_, stride, order);
  }
}

}  // namespace
}  // namespace shardpack
