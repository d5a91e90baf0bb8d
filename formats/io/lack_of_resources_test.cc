#include "formats/io/lack_of_resources.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>

#include "formats/io/file.h"

namespace shardpack {
namespace {

TEST(IsLackOfResources, TellsThatOfTheProcessFromThatOfAFile) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EFBIG})
    EXPECT_TRUE(IsLackOfResources(IoStatus("open", "a", error))) << strerror(error);
  for (const int error : {ENOENT, EACCES, EIO, ESTALE, ETIMEDOUT, EISDIR})
    EXPECT_FALSE(IsLackOfResources(IoStatus("open", "a", error))) << strerror(error);
  EXPECT_FALSE(IsLackOfResources(absl::OkStatus()));
  EXPECT_FALSE(IsLackOfResources(absl::UnavailableError("open a: Too many open files")));
}

}  // namespace
}  // namespace shardpack
