// ImageCheck: decodes images of a shard, several at a time, and reports problems in the order in
// which the images were added.
//
//   ImageCheck check(file, shard_name, run, outcome);
//   check.Add({.record = 7, .key = "cat/1", .field = "image", .extent = extent});
//   check.Flush();   // decode the images that are still queued
//
// Lifetime: borrows the constructor's arguments.
// Thread-safety: one caller at a time; the work runs on the caller's TBB arena.
// Errors: findings; an image that is incomplete in the file is left to the check of its record.
// Memory: what the gates allow.
// Units: bytes, images.
#ifndef SHARDPACK_VALIDATORS_CHECKS_IMAGE_CHECK_H_
#define SHARDPACK_VALIDATORS_CHECKS_IMAGE_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/image_info.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "images/codecs/inspect.h"
#include "validators/checks/check_run.h"

namespace shardpack {

struct ImageToCheck {
  uint64_t record = 0;
  std::string key = {}, field = {};
  Extent extent = {};
  // What an index says about it.
  std::optional<ImageInfo> indexed = std::nullopt;
};

class ImageCheck {
 public:
  ImageCheck(const File& file, std::string_view shard, const CheckRun& run, ShardOutcome& outcome)
      : file_(file), shard_(shard), run_(run), out_(outcome) {}

  void Add(ImageToCheck image);
  void Flush();

  // Whether a further field with this name ("mask.png") contains an image.
  static bool IsImageField(std::string_view name);

 private:
  struct Result {
    bool looked = false;
    ImageReport report = {};
    std::vector<Finding> findings = {};
  };
  struct Worker {
    ImageInspector inspector;
    std::vector<std::byte> bytes;
  };

  void Check(const ImageToCheck& image, Worker& worker, Result& result) const;
  void CheckEncoded(const ImageToCheck& image, Worker& worker, Result& result) const;
  Finding Make(FindingId id, const ImageToCheck& image) const;

  const File& file_;
  const std::string shard_;
  const CheckRun& run_;
  ShardOutcome& out_;
  std::vector<ImageToCheck> waiting_;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_IMAGE_CHECK_H_
