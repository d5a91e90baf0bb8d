#include "formats/core/index_name.h"

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(IndexName, IsTheShardsWithoutTheExtension) {
  EXPECT_EQ(IndexName("train-000000.tar"), "train-000000.pidx");
  EXPECT_EQ(IndexName("train-00000-of-00004.lmdb"), "train-00000-of-00004.pidx");
  EXPECT_EQ(IndexName("val-00000-of-00004.h5"), "val-00000-of-00004.pidx");
  EXPECT_EQ(IndexName("a.b.tar"), "a.b.pidx");
}

TEST(IndexName, WhatTellsShardsApartIsNoExtension) {
  EXPECT_EQ(IndexName("train-00000-of-00004"), "train-00000-of-00004.pidx");
  EXPECT_EQ(IndexName("dataset-train.tfrecord-00000-of-00004"),
            "dataset-train.tfrecord-00000-of-00004.pidx");
  EXPECT_EQ(IndexName("part.000"), "part.000.pidx");
  EXPECT_EQ(IndexName(".tar"), ".tar.pidx");
  EXPECT_EQ(IndexName("a."), "a..pidx");
}

TEST(IndexName, TheLongOneKeepsTheWholeName) {
  EXPECT_EQ(LongIndexName("train-000000.tar"), "train-000000.tar.pidx");
}

}  // namespace
}  // namespace shardpack
