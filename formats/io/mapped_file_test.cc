#include "formats/io/mapped_file.h"

#include <fstream>
#include <string>
#include <utility>

#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFile Map(const std::string& name, const std::string& bytes) {
    std::ofstream(scratch_.File(name), std::ios::binary) << bytes;
    return *MappedFile::Open(scratch_.File(name));
  }
  testing::ScratchFolder scratch_;
};

TEST_F(MappedFileTest, HoldsTheBytesOfTheFile) {
  testing::Random random(4);
  for (const size_t bytes : {1, 4095, 4096, 4097, 100000}) {
    const std::string text = random.Bytes(bytes);
    EXPECT_EQ(AsText(Map("file", text).bytes()), text);
  }
}

TEST_F(MappedFileTest, AnEmptyFileIsNoBytes) { EXPECT_TRUE(Map("empty", "").bytes().empty()); }

TEST_F(MappedFileTest, TheMappingOutlivesTheName) {
  const MappedFile mapped = Map("file", "abc");
  ASSERT_EQ(::remove(scratch_.File("file").c_str()), 0);
  EXPECT_EQ(AsText(mapped.bytes()), "abc");
}

TEST_F(MappedFileTest, Moves) {
  MappedFile a = Map("a", "first"), b = Map("b", "second");
  MappedFile c = std::move(a);
  EXPECT_TRUE(a.bytes().empty());
  EXPECT_EQ(AsText(c.bytes()), "first");
  c = std::move(b);
  EXPECT_EQ(AsText(c.bytes()), "second");
  MappedFile& itself = c;
  c = std::move(itself);
  EXPECT_EQ(AsText(c.bytes()), "second");
}

TEST_F(MappedFileTest, Errors) {
  EXPECT_TRUE(absl::IsNotFound(MappedFile::Open(scratch_.File("none")).status()));
  EXPECT_FALSE(MappedFile::Open(scratch_.path()).ok()) << "a folder";
}

}  // namespace
}  // namespace shardpack
