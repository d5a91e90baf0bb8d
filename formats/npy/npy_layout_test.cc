#include "formats/npy/npy_layout.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

// A file of version 1.0 with this dictionary.
std::string File(const std::string& dictionary, char major = 1) {
  std::string file(kNpyMagic);
  file += major;
  file += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    file += static_cast<char>(dictionary.size() >> 8 * i);
  return file + dictionary;
}

std::string Why(const std::string& file) {
  NpyHeader header;
  return ParseNpyHeader(AsBytes(file), &header);
}

TEST(NpyHeader, WhatIsMadeIsRead) {
  const std::vector<uint64_t> shapes[] = {{7}, {}, {0, 4, 6, 3}, {INT64_MAX, 1 << 20, 1 << 20, 4}};
  for (const std::vector<uint64_t>& shape : shapes) {
    const std::string file = MakeNpyHeader("|u1", shape);
    EXPECT_EQ(file.size(), kNpyHeaderBytes);
    EXPECT_EQ(file.back(), '\n');
    NpyHeader header;
    EXPECT_EQ(ParseNpyHeader(AsBytes(file), &header), "");
    EXPECT_EQ(header.descr, "|u1");
    EXPECT_FALSE(header.fortran_order);
    EXPECT_EQ(header.shape, shape);
    EXPECT_EQ(header.data_offset, kNpyHeaderBytes);
  }
}

TEST(NpyHeader, OtherSpellings) {
  NpyHeader header;
  for (const char major : {1, 2, 3}) {
    const std::string file =
        File("{\"shape\":(3L,2) ,'fortran_order' : True, 'descr':'<f4'}", major);
    EXPECT_EQ(ParseNpyHeader(AsBytes(file), &header), "") << int{major};
    EXPECT_EQ(header.shape, (std::vector<uint64_t>{3, 2}));
    EXPECT_TRUE(header.fortran_order);
    EXPECT_EQ(header.descr, "<f4");
    EXPECT_EQ(header.data_offset, file.size());
  }
  const std::string file = File(
      "{'descr': [('a]', '<i4', (2, 3)), ('b', [('c', 'u1')])], 'fortran_order': False, "
      "'shape': (1,), }\n");
  EXPECT_EQ(ParseNpyHeader(AsBytes(file), &header), "");
  EXPECT_EQ(header.descr, "");
}

TEST(NpyHeader, Damage) {
  const std::string sound = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }";
  ASSERT_EQ(Why(File(sound)), "");
  for (size_t size = 0; size < File(sound).size(); ++size) {
    EXPECT_NE(Why(File(sound).substr(0, size)), "") << size;
  }
  for (const char* dictionary : {
           "",
           "{}",
           "{'descr': '|u1', 'fortran_order': False}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), } x",
           "{'descr': '|u1', 'fortran_order': 0, 'shape': (1, 2)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (1, -2)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': 5}",
           "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 'x'}",
           "{'descr': [('a', '<i4'), 'fortran_order': False, 'shape': (1,)}",
           "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}",
       }) {
    EXPECT_NE(Why(File(dictionary)), "") << dictionary;
  }
  EXPECT_NE(Why(File(sound, 4)), "");
  EXPECT_EQ(Why(File(sound + std::string(kMaxNpyHeaderBytes - sound.size(), ' '))), "");
  EXPECT_NE(Why(File(sound + std::string(kMaxNpyHeaderBytes, ' '))), "");
  // A length of 4 GB.
  std::string huge = File(sound, 2);
  huge.replace(8, 4, "\xff\xff\xff\xff");
  EXPECT_NE(Why(huge), "");
}

}  // namespace
}  // namespace shardpack
