#include "converters/listing/path_filter.h"

#include <initializer_list>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

using Texts = std::vector<std::string>;

PathFilter Globs(const Texts& include, const Texts& exclude) {
  return PathFilter({}, false, include, exclude);
}

TEST(PathFilterTest, ImageExtensionsInAnyCase) {
  const PathFilter filter({}, false, {}, {});
  for (const char* name : {"a.jpg", "a.JPG", "a.JpEg", "a.jpe", "a.png", "a.webp", "a.gif", "a.bmp",
                           "a.tif", "a.TIFF", ".x.jpg", ".jpg", "a.txt.jpg"}) {
    EXPECT_TRUE(filter.HasInputExtension(name)) << name;
  }
  for (const char* name : {"a", "a.jp", "a.jpgx", "jpg", "a.jpg.txt", "a.", ""}) {
    EXPECT_FALSE(filter.HasInputExtension(name)) << name;
  }
}

TEST(PathFilterTest, OtherExtensions) {
  const PathFilter filter(Texts{".PPM", "npy"}, false, {}, {});
  EXPECT_TRUE(filter.HasInputExtension("a.ppm"));
  EXPECT_TRUE(filter.HasInputExtension("a.NPY"));
  EXPECT_FALSE(filter.HasInputExtension("a.jpg"));
  EXPECT_TRUE(PathFilter({}, true, {}, {}).HasInputExtension("README"));
}

TEST(PathFilterTest, SaysWhichMatchNothing) {
  const PathFilter filter = Globs({"cat/*", "*.png", "dgo/*"}, {"cat", "thumbs/", "tmp/", "it's"});
  EXPECT_TRUE(filter.Accepts("cat", "1.png"));  // matched by the first, but the second matches too
  EXPECT_TRUE(filter.ExcludesFolder("cat/thumbs"));
  EXPECT_EQ(filter.Unmatched(),
            (Texts{"--include dgo/* matches no image",
                   "--exclude cat matches no image; --exclude cat/ leaves out a folder",
                   "--exclude tmp/ matches no folder",
                   "--exclude it's matches no image; --exclude 'it'\\''s/' leaves out a folder"}));
}

TEST(PathFilterTest, GlobsOnNameAndPath) {
  EXPECT_TRUE(Globs({"*.png"}, {}).Accepts("a/b", "1.png"));
  EXPECT_FALSE(Globs({"*.png"}, {}).Accepts("a/b", "1.jpg"));
  EXPECT_TRUE(Globs({"a/*.png"}, {}).Accepts("a", "1.png"));
  EXPECT_FALSE(Globs({"a/*.png"}, {}).Accepts("a/b", "1.png"));
  EXPECT_TRUE(Globs({"a/**.png"}, {}).Accepts("a/b", "1.png"));
  EXPECT_FALSE(Globs({}, {"/1.png"}).Accepts("", "1.png"));
  EXPECT_FALSE(Globs({"*"}, {"a/1.png"}).Accepts("a", "1.png"));
  EXPECT_TRUE(Globs({}, {"a/"}).Accepts("b", "a"));
}

TEST(PathFilterTest, FoldersAreExcludedByATrailingSlash) {
  EXPECT_TRUE(Globs({}, {"thumbs/"}).ExcludesFolder("a/thumbs"));
  EXPECT_TRUE(Globs({}, {"a/thumbs/"}).ExcludesFolder("a/thumbs"));
  EXPECT_FALSE(Globs({}, {"a/thumbs/"}).ExcludesFolder("b/thumbs"));
  EXPECT_FALSE(Globs({}, {"thumbs"}).ExcludesFolder("thumbs"));
}

TEST(NameExtensionTest, IsLowerCaseAndBounded) {
  EXPECT_EQ(NameExtension("a.TXT"), "txt");
  EXPECT_EQ(NameExtension("README"), "");
  EXPECT_EQ(NameExtension("log.000123"), "");
  EXPECT_EQ(NameExtension("a." + std::string(17, 'x')), "");
  EXPECT_EQ(NameExtension(".DS_Store"), "ds_store");
}

}  // namespace
}  // namespace shardpack
