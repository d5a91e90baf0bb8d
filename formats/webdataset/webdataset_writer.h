// WebdatasetWriter: writes samples as tar members named key.extension, in the tar dialect of
// FORMAT.md.
//
//   auto writer = WebdatasetWriter::Create(staged_file, ShardSpec{.layout = "ustar"});
//   absl::Status added = (*writer)->Append(sample);           // cat/1.cls, cat/1.jpg
//   absl::Status finished = (*writer)->Finish();
//
// Lifetime: borrows the file and the spec.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument, before any byte is written, for a sample that readers could not read
// back (key, field names, sizes); otherwise as StagedFile. Payloads of 32 KiB and more are not
// copied.
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

// 255 bytes minus a dot and an extension of four letters. Both layouts refuse longer keys; the
// ustar layout also refuses shorter ones whose slashes do not allow a split.
inline constexpr size_t kMaxWebdatasetKeyBytes = 250;

class WebdatasetWriter : public ShardWriter {
 public:
  // InvalidArgument for a layout other than ustar and pax, and for an image_field that cannot name
  // an image member.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(StagedFile& file,
                                                             const ShardSpec& spec);

  // What a writer of this spec would refuse as its first sample.
  static absl::Status CheckSample(const ShardSpec& spec, const SampleView& sample);

  absl::Status Append(const SampleView& sample) override;
  absl::Status Finish() override;

  // The size of one member: its header, pax records if the layout and the name need them, padded
  // data.
  static uint64_t MemberBytes(bool pax, size_t path_bytes, uint64_t data_bytes);
  // An upper bound for the length of a sample's json member.
  static uint64_t MetadataBound(size_t source_path_bytes, size_t class_name_bytes);

 private:
  struct Member {
    std::string_view extension;
    Bytes bytes;
    bool own = false;  // small bytes made here, which are copied between the headers
  };

  WebdatasetWriter(StagedFile* file, const ShardSpec& spec, bool pax)
      : file_(file), spec_(spec), pax_(pax) {}

  // Everything that could go wrong before a byte is written; collects the members.
  absl::Status Check(const SampleView& sample);
  absl::Status CheckKey(std::string_view key) const;
  absl::Status CollectMembers(const SampleView& sample);
  absl::Status CheckMembers(const SampleView& sample);
  absl::Status CheckImageIsFound(const SampleView& sample, const Member& image) const;
  void MakeMetadata(const SampleView& sample);
  void AddHeaders(std::string_view path, uint64_t size_bytes);
  void AddData(const Member& member);
  // Turns the bytes in scratch_ since the last payload into one part.
  void EndRun();

  StagedFile* const file_;  // nullptr: nothing is written
  const ShardSpec& spec_;
  const bool pax_;
  bool finished_ = false;
  bool any_ = false;
  std::string last_key_;
  // Reused for each sample: no allocations once they have grown.
  std::vector<Member> members_;
  std::string path_, metadata_, label_;
  std::vector<std::byte> scratch_;
  std::byte* run_begin_ = nullptr;
  std::byte* run_end_ = nullptr;
  std::vector<Bytes> parts_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_WEBDATASET_WRITER_H_
