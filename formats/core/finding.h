// Finding: one thing that is wrong with a dataset or a shard. Findings are data; a Status means
// "could not look".
//
//   Finding finding = MakeFinding(FindingId::kTarChecksum, shard_path);
//   finding.offset = 512;  finding.expected = "006377";  finding.actual = "006370";
//   sink.Report(std::move(finding));
//
// Thread-safety: as a plain value; a FindingSink takes one caller at a time unless it says
// otherwise.
// Units: offset and length are bytes from the start of the shard file.
#ifndef SHARDPACK_FORMATS_CORE_FINDING_H_
#define SHARDPACK_FORMATS_CORE_FINDING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

enum class Severity : uint8_t { kWarning, kError };

// Each value has one row in the catalogue in finding.cc; the id string is stable and part of the
// JSON output.
enum class FindingId : uint16_t {
  // dataset
  kManifestMissing,
  kManifestInvalid,
  kManifestSelfHash,
  kLeftoverPackFolder,
  kFileMissing,
  kFileExtra,
  kFileSize,
  kFileHash,
  kIndexInvalid,
  kIndexShardMismatch,
  kRecordHash,
  kRecordMissing,
  kRecordExtra,
  kRecordExtent,
  kKeyMismatch,
  kLabelMismatch,
  kKeyDuplicate,
  kCountMismatch,
  kLabelRange,
  kAccounting,
  kClassDuplicate,
  kSplitMismatch,
  kUnknownFormat,
  kOtherVersion,
  kWrongExtension,
  kShardEmpty,
  kIdentity,
  kReadError,
  kSourceMissing,
  kSourceExtra,
  kSourceMoved,
  kSourceBytesMismatch,
  kSourceClassMismatch,
  kSourceFieldMissing,
  kSourceFieldExtra,
  kSourceFieldMismatch,
  kSourceUnreadable,
  // any container
  kContainerTruncated,
  kTrailingData,
  kNotAnImage,
  // the images themselves
  kImageDamaged,
  kImageUnsupported,
  kImageWarning,
  kImageFacts,
  kImagePixelLimit,
  kImageAncillaryLimit,
  kImageScanLimit,
  kImageFileLimit,
  // webdataset (tar)
  kTarChecksum,
  kTarField,
  kTarName,
  kTarType,
  kTarPadding,
  kTarNoEnd,
  kTarExtension,
  kTarPaxSize,
  kTarDuplicateMember,
  kTarSparse,
  kTarFieldStyle,
  kTarEndPadding,
  kWdsKeySplit,
  kWdsHiddenName,
  kWdsNoExtension,
  kWdsNameStyle,
  kWdsFieldDrift,
  kWdsLabelNotInteger,
  kWdsEmptyMember,
  kWdsNoImage,
  kWdsLongName,
  // tfrecord
  kTfrecordLengthCrc,
  kTfrecordDataCrc,
  kTfrecordCompressed,
  kTfrecordExample,
  kTfrecordFeature,
  kTfrecordSequenceExample,
  kTfrecordFeatureName,
  kTfrecordFeatureDrift,
  kTfrecordImageFormat,
  // lmdb
  kLmdbMeta,
  kLmdbPage,
  kLmdbTree,
  kLmdbFreeList,
  kLmdbLostPages,
  kLmdbMapSize,
  kLmdbLayout,
  kLmdbDatum,
  kLmdbDatumStyle,
  kLmdbPickle,
  kLmdbKeyStyle,
  kLmdbEmptyValue,
  // hdf5
  kHdf5Structure,
  kHdf5Layout,
  kHdf5Extent,
  kHdf5External,
  // npy
  kNpyHeader,
  kNpyLayout,
  kNpyLabels,
  kCount,  // not a finding
};

struct FindingSpec {
  FindingId id;
  std::string_view name;  // stable, kebab-case
  Severity severity;
  std::string_view message;         // one sentence
  std::string_view hint;            // what to do or run next; OUT stands for the dataset's name
  std::string_view lone_hint = {};  // replaces hint for a shard without a dataset; may be empty
};

// All findings, in the order of FindingId. Static storage.
std::span<const FindingSpec> AllFindings();
const FindingSpec& SpecOf(FindingId id);

struct Finding {
  FindingId id = FindingId::kCount;
  Severity severity = Severity::kError;
  std::string shard;               // path, as the user would write it
  std::optional<uint64_t> record;  // number within the shard, from 0
  std::string key, field;          // raw bytes; printed escaped
  std::optional<uint64_t> offset, length;
  std::string expected, actual;  // empty if not applicable
  std::string detail;            // appended to the message
};

// Creates a Finding with the severity from its catalogue row.
Finding MakeFinding(FindingId id, std::string_view shard);
// "error tar-checksum train-000000.tar record 3 key cat/1 at offset 512: message: detail (expected
// X, actual Y)"
std::string ToText(const Finding& finding);

class FindingSink {
 public:
  virtual ~FindingSink() = default;
  virtual void Report(Finding finding) = 0;
};

// Keeps a limited number of findings and counts the rest, so that a completely damaged shard cannot
// fill the memory.
class FindingList : public FindingSink {
 public:
  explicit FindingList(size_t keep = 10000) : keep_(keep) {}
  void Report(Finding finding) override;
  const std::vector<Finding>& findings() const { return findings_; }
  uint64_t errors() const { return errors_; }
  uint64_t warnings() const { return warnings_; }

 private:
  size_t keep_;
  std::vector<Finding> findings_;
  uint64_t errors_ = 0, warnings_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_FINDING_H_
