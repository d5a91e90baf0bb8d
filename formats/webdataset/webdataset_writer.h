// WebdatasetWriter: writes samples as tar members named key.extension, in the dialect that
// FORMAT.md describes.
//
//   auto writer = WebdatasetWriter::Create(staged_file, ShardSpec{.layout = "ustar"});
//   absl::Status added = (*writer)->Append(sample);           // cat/1.cls, cat/1.jpg
//   absl::Status finished = (*writer)->Finish();
//
// Lifetime: borrows the file and the spec.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument for a sample that cannot be stored so that readers find it again (key,
// field names, sizes), before anything of it is written; all else as StagedFile. Payloads of 32 KiB
// and more are not copied.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_WRITER_H_
#define SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_WRITER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/sample.h"
#include "formats/core/shard_writer.h"
#include "formats/io/staged_file.h"

namespace shardpack {

inline constexpr std::string_view kUstarLayout = "ustar", kPaxLayout = "pax";

// 255 bytes less a dot and an extension of four letters. A longer key is refused in either layout;
// a shorter one too in the ustar layout where its slashes do not let it be split.
inline constexpr size_t kMaxWebdatasetKeyBytes = 250;

class WebdatasetWriter : public ShardWriter {
 public:
  // InvalidArgument: a layout that is neither ustar nor pax, or an image_field that cannot name an
  // image member.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(StagedFile& file,
                                                             const ShardSpec& spec);

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

  // Of one member: its header, pax records where the layout and the name ask for them, padded data.
  static uint64_t MemberBytes(bool pax, size_t path_bytes, uint64_t data_bytes);
  // At least the length of the json member of a sample.
  static uint64_t MetadataBound(size_t source_path_bytes, size_t class_name_bytes);

 private:
  struct Member {
    std::string_view extension;
    Bytes bytes;
    bool own = false;  // bytes made here and small: copied between the headers
  };

  WebdatasetWriter(StagedFile& file, const ShardSpec& spec, bool pax)
      : file_(file), spec_(spec), pax_(pax) {}

  absl::Status CheckKey(std::string_view key) const;
  absl::Status CollectMembers(const SampleView& sample);
  absl::Status CheckMembers(const SampleView& sample);
  absl::Status CheckImageIsFound(const SampleView& sample, const Member& image) const;
  void MakeMetadata(const SampleView& sample);
  void AddHeaders(std::string_view path, uint64_t size_bytes);
  void AddData(const Member& member);
  // A run of bytes in scratch_ between two payloads is one part.
  void EndRun();

  StagedFile& file_;
  const ShardSpec& spec_;
  const bool pax_;
  bool finished_ = false;
  bool any_ = false;
  std::string last_key_;
  // Used again for each sample, so that no sample allocates once they have grown.
  std::vector<Member> members_;
  std::string path_, metadata_, label_;
  std::vector<std::byte> scratch_;
  std::byte* run_begin_ = nullptr;
  std::byte* run_end_ = nullptr;
  std::vector<Bytes> parts_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_WRITER_H_
