#include "jobs/recorded_request.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardpack {
namespace {

// The options of a plan survive a round trip through the manifest.
TEST(RecordedRequest, EveryOptionOfAPlanComesBack) {
  PlanOptions defaults;
  defaults.source = {{"split-by", "hash"}};
  PlanOptions other;
  other.layout = "caffe";
  other.image_field = "image";
  other.with_metadata = true;
  other.samples_per_shard = 100;
  other.splits = {{"train", 0.9}, {"val", 0.1}};
  other.split_by = SplitBy::kStratified;
  other.shuffle = false;
  other.seed = 18'446'744'073'709'551'615u;
  other.key = KeyMode::kIndex;
  other.on_duplicate = OnDuplicateKey::kSkip;
  other.limit = 12;
  other.verify = ProbeLevel::kHeader;
  other.allow_truncated = true;
  other.max_pixels = 5;
  other.max_file_bytes = 6;
  other.min_side = 7;
  other.max_aspect = 1.1;
  other.dedupe = Dedupe::kDrop;
  other.compute_stats = true;
  other.sha256 = true;
  other.sidecar_indexes = {"dali", "wids"};
  other.pixels = {.resize = ResizeMode::kCrop, .width = 224, .height = 160};
  other.pixels.interpolation = Interpolation::kLanczos;
  other.pixels.exact = other.pixels.only_if_bigger = other.pixels.depth8 = true;
  other.pixels.encode = EncodeAs::kWebp;
  other.pixels.quality = 80;
  other.pixels.color = ColorChange::kGray;
  other.pixels.alpha = AlphaChange::kBlend;
  other.pixels.background = 0x0a0b0c;
  other.pixels.orient = OrientChange::kKeep;
  other.pixels.profile = ProfileChange::kSrgb;
  PlanOptions by_count = other, by_bytes = other;
  by_count.shards = 3;
  by_bytes.samples_per_shard = 0;
  by_bytes.shard_bytes = 1'000'000;
  by_bytes.pixels.alpha = AlphaChange::kDrop;
  by_bytes.pixels.background = defaults.pixels.background;  // only used by kBlend
  for (const PlanOptions& options : {defaults, other, by_count, by_bytes}) {
    Manifest manifest;
    manifest.format = "lmdb";
    manifest.options = options.ToMap();
    const absl::StatusOr<PackRequest> request = RecordedRequest(manifest, "photos", "");
    ASSERT_TRUE(request.ok()) << request.status();
    PlanOptions read = request->plan;
    read.source = options.source;
    EXPECT_EQ(read.ToMap(), options.ToMap());
    EXPECT_EQ(read.pixels, options.pixels);
  }
}

TEST(RecordedRequest, EveryOptionOfAFolderComesBack) {
  FolderSourceOptions options;
  options.label_dir_given = true;
  options.label_dir = 2;
  options.class_order = ClassOrder::kNatural;
  options.extensions = {"jpg", "png"};
  options.include = {"a,b/*", "c"};
  options.exclude = {"/d/"};
  options.follow = true;
  options.sidecars = {{"txt", "caption"}, {"mask.png", "mask"}};
  options.missing = MissingPart::kKeep;
  Manifest manifest;
  manifest.options = options.ToMap();
  const absl::StatusOr<PackRequest> request = RecordedRequest(manifest, "photos", "");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->source.ToMap(), options.ToMap());
  EXPECT_EQ(request->source.include, options.include);
  EXPECT_EQ(request->input_format, "folder");
  EXPECT_TRUE(request->Given("class-order"));
  EXPECT_FALSE(request->Given("limit"));
}

TEST(RecordedRequest, WhatThisVersionDoesNotKnowIsRefused) {
  const std::vector<std::pair<std::string, std::string>> unknown = {
      {"brightness", "2"},
      {"key", "name"},
      {"seed", "-1"},
      {"seed", "1x"},
      {"seed", ""},
      {"shuffle", "yes"},
      {"size", "12x"},
      {"alpha", "blend"},
      {"alpha", "#12345g"},
      {"depth", "16"},
      {"split", "a=0.5"},
      {"split", "a=nan,b=1"},
      {"quality", "300"},
      {"limit", "1e3"},
      {"label-from", ""},
      {"label-from", "dir:-1"},
      {"missing-part", "ignore"},
      {"class-order", "lexical2"},
  };
  for (const auto& [name, value] : unknown) {
    Manifest manifest;
    manifest.options = {{name, value}};
    const absl::StatusOr<PackRequest> request = RecordedRequest(manifest, "photos", "");
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << name << " " << value;
    EXPECT_NE(request.status().message().find(name), std::string::npos) << request.status();
  }
}

}  // namespace
}  // namespace shardpack
