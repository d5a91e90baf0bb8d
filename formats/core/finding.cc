#include "formats/core/finding.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;
constexpr std::string_view kRepack = "rebuild this dataset from its source";
constexpr std::string_view kRestoreManifest =
    "run `pack repair OUT --from COPY`, where COPY is a copy of the dataset, or rebuild the "
    "dataset from its source; an index of shards that lie elsewhere is made again by `pack index "
    "SHARDS -o OUT --overwrite`";
constexpr std::string_view kRepair =
    "run `pack repair OUT`, which rebuilds the file from the source, or with --from from a copy";
constexpr std::string_view kRestore = "restore the file from a good copy";
constexpr std::string_view kResume =
    "run the same `pack` command again to finish it, or `pack commit OUT` if workers have built "
    "all shards";
constexpr std::string_view kReplaceManifest =
    "put a good copy of manifest.json in its place, or rebuild the dataset from its source";
constexpr std::string_view kFinishOrRestore =
    "run the same `pack` command again to finish it, or `pack commit OUT` if workers have built "
    "all shards; a lost file is taken from a copy by `pack repair OUT --from COPY`, and an index "
    "of shards that lie elsewhere is made again by `pack index SHARDS -o OUT --overwrite`";

constexpr std::string_view kOtherSource =
    "check that --against names the source that was packed; if the source is the one that is "
    "right, pack it again";

// clang-format off
constexpr FindingSpec kCatalogue[] = {
    {FindingId::kManifestMissing, "manifest-missing", kError, "the dataset has no manifest.json: its build has not finished, or the file was lost", kFinishOrRestore},
    {FindingId::kManifestInvalid, "manifest-invalid", kError, "manifest.json cannot be read", kRestoreManifest},
    {FindingId::kManifestSelfHash, "manifest-self-hash", kError, "manifest.json was changed after it was written", kRestoreManifest},
    {FindingId::kLeftoverPackFolder, "leftover-pack-folder", kWarning, "a .pack folder was left behind by an interrupted run", kResume},
    {FindingId::kFileMissing, "file-missing", kError, "a file that the manifest lists is missing", kRepair, kRestore},
    {FindingId::kFileExtra, "file-extra", kError, "a file that the manifest does not list", "move it out of the dataset folder"},
    {FindingId::kFileSize, "file-size", kError, "the file's size differs from the manifest", kRepair, kRestore},
    {FindingId::kFileHash, "file-hash", kError, "the file's hash differs from the manifest", kRepair, kRestore},
    {FindingId::kIndexInvalid, "index-invalid", kError, "the shard's index cannot be used", kRepair, kRestore},
    {FindingId::kIndexShardMismatch, "index-shard-mismatch", kError, "the index belongs to another shard", kRepair, kRestore},
    {FindingId::kRecordHash, "record-hash", kError, "a field's bytes differ from those that were packed", kRepair, kRestore},
    {FindingId::kRecordMissing, "record-missing", kError, "a record of the index is not in the shard", kRepair, kRestore},
    {FindingId::kRecordExtra, "record-extra", kError, "the shard holds a record that the index does not list", kRepair, kRestore},
    {FindingId::kRecordExtent, "record-extent", kError, "a record lies elsewhere than the index says", kRepair, kRestore},
    {FindingId::kKeyMismatch, "key-mismatch", kError, "a record's key differs from the index", kRepair, kRestore},
    {FindingId::kLabelMismatch, "label-mismatch", kError, "a record's label differs from the index", kRepair, kRestore},
    {FindingId::kKeyDuplicate, "key-duplicate", kError, "two records of the dataset have the same key", kRepack},
    {FindingId::kCountMismatch, "count-mismatch", kError, "the number of records differs from the manifest", kRepair, kRestore},
    {FindingId::kLabelRange, "label-range", kError, "a label is outside the dataset's classes", kRepack},
    {FindingId::kAccounting, "accounting", kError, "the manifest's counts do not add up", kRepack},
    {FindingId::kClassDuplicate, "class-duplicate", kError, "two classes of the dataset have the same name", kReplaceManifest},
    {FindingId::kSplitMismatch, "split-mismatch", kError, "a shard's name is not one of the split that the manifest puts it in", kReplaceManifest},
    {FindingId::kUnknownFormat, "unknown-format", kError, "the file is not a shard of any known format", "give a shard or the folder of a dataset; unpack what is compressed"},
    {FindingId::kOtherVersion, "other-version", kError, "another version of pack has written the manifest or the index", "validate with the version that has written it"},
    {FindingId::kWrongExtension, "wrong-extension", kError, "the name is that of another format than the bytes; programs that go by the name cannot read it", "rename the file"},
    {FindingId::kShardEmpty, "shard-empty", kError, "the shard holds no sample", kRepack},
    {FindingId::kIdentity, "identity-mismatch", kError, "the dataset is not the one that --expect names", "check which dataset was meant"},
    {FindingId::kReadError, "read-error", kError, "the file could not be read to its end", "check its permissions and the disk, then validate again"},
    {FindingId::kSourceMissing, "source-missing", kError, "a file that was packed is not in the source", kOtherSource},
    {FindingId::kSourceExtra, "source-extra", kError, "a file of the source is not in the dataset", kOtherSource},
    {FindingId::kSourceMoved, "source-moved", kError, "a file of the source lies elsewhere than when it was packed", kOtherSource},
    {FindingId::kSourceBytesMismatch, "source-bytes-mismatch", kError, "an image's bytes differ from its file in the source", kOtherSource},
    {FindingId::kSourceClassMismatch, "source-class-mismatch", kError, "a sample's class differs from its file's in the source", kOtherSource},
    {FindingId::kSourceFieldMissing, "source-field-missing", kError, "the file that a field was packed from is not in the source", kOtherSource},
    {FindingId::kSourceFieldExtra, "source-field-extra", kError, "the source has a file for a field that the sample was packed without", kOtherSource},
    {FindingId::kSourceFieldMismatch, "source-field-mismatch", kError, "a field's bytes differ from its file in the source", kOtherSource},
    {FindingId::kSourceUnreadable, "source-unreadable", kError, "a file of the source cannot be read, and was not compared", "check its permissions and the disk, then validate again"},
    {FindingId::kContainerTruncated, "container-truncated", kError, "the file ends inside a record", kRepair, kRestore},
    {FindingId::kTrailingData, "trailing-data", kWarning, "data follows the end of the container; readers stop before it", kRepack},
    {FindingId::kNotAnImage, "not-an-image", kError, "the image field does not begin like any image", kRepack},
    {FindingId::kImageDamaged, "image-damaged", kError, "the image cannot be decoded whole", kRepack},
    {FindingId::kImageUnsupported, "image-unsupported", kWarning, "a kind of image that is not decoded here; its pixels were not checked", "convert the source file to another kind, if other readers cannot read it either"},
    {FindingId::kImageWarning, "image-warning", kWarning, "the codec warns of the file; its pixels are whole", "write the source file again, if other readers complain"},
    {FindingId::kImageFacts, "image-facts", kError, "the index describes another image", kRepair, kRestore},
    {FindingId::kImagePixelLimit, "image-pixel-limit", kError, "the image has more pixels than are decoded", "leave it out, or pack a smaller version of it"},
    {FindingId::kImageAncillaryLimit, "image-ancillary-limit", kWarning, "the file contains much besides its pixels (text, profiles, previews); some readers refuse it", "strip what is not needed from the source file"},
    {FindingId::kImageScanLimit, "image-scan-limit", kError, "the JPEG has more scans than are decoded", "leave it out, or pack a re-encoded version of it"},
    {FindingId::kImageFileLimit, "image-file-limit", kError, "the image file is larger than is decoded", "leave it out, or pack a smaller version of it"},
    {FindingId::kTarChecksum, "tar-checksum", kError, "a tar header's checksum is wrong", kRepair, kRestore},
    {FindingId::kTarField, "tar-field", kError, "a tar header field is malformed", kRepair, kRestore},
    {FindingId::kTarName, "tar-name", kError, "a member's name leaves the archive's folder or is empty", kRepack},
    {FindingId::kTarType, "tar-type", kError, "a member is a link, device or folder; datasets hold regular files", kRepack},
    {FindingId::kTarPadding, "tar-padding", kError, "the padding after a member is not zero", kRepair, kRestore},
    {FindingId::kTarNoEnd, "tar-no-end", kWarning, "the two zero blocks at the end are missing", kRepack},
    {FindingId::kTarExtension, "tar-extension-record", kWarning, "a pax or GNU extension record; older DALI indexes miscompute offsets after one", kRepack},
    {FindingId::kTarPaxSize, "tar-pax-size", kError, "a pax record overrides a member's size with another value; readers disagree where the next member starts", kRepack},
    {FindingId::kTarDuplicateMember, "tar-duplicate-member", kError, "a sample has the same field twice", kRepack},
    {FindingId::kTarSparse, "tar-sparse", kError, "sparse and multi-volume members are not supported", kRepack},
    {FindingId::kTarFieldStyle, "tar-field-style", kWarning, "a tar header field is spelt as no writer of today spells it", kRepair, kRestore},
    {FindingId::kTarEndPadding, "tar-end-padding", kWarning, "the zeros at the end fill no whole record of 20 blocks; the file may have been cut there", kRepair, kRestore},
    {FindingId::kWdsKeySplit, "wds-key-split", kError, "a key comes back after another one; readers see two samples", kRepack},
    {FindingId::kWdsHiddenName, "wds-hidden-name", kWarning, "a hidden name (leading dot or __x__); readers treat it differently", kRepack},
    {FindingId::kWdsNoExtension, "wds-no-extension", kWarning, "a member without a dot in its name belongs to no sample", kRepack},
    {FindingId::kWdsNameStyle, "wds-name-style", kWarning, "a name has white space or bytes that are not ASCII; some readers fail on it", kRepack},
    {FindingId::kWdsFieldDrift, "wds-field-drift", kWarning, "samples have different sets of fields; HF datasets refuses such shards", kRepack},
    {FindingId::kWdsLabelNotInteger, "wds-label-not-integer", kError, "a .cls member is not an integer", kRepack},
    {FindingId::kWdsEmptyMember, "wds-empty-member", kWarning, "a member has no bytes", kRepack},
    {FindingId::kWdsNoImage, "wds-no-image", kWarning, "a sample has no image field", kRepack},
    {FindingId::kWdsLongName, "wds-long-name", kWarning, "a name is longer than 100 bytes; wids reads only its first 100", kRepack},
    {FindingId::kTfrecordLengthCrc, "tfrecord-length-crc", kError, "the checksum of a record's length is wrong", kRepair, kRestore},
    {FindingId::kTfrecordDataCrc, "tfrecord-data-crc", kError, "the checksum of a record's data is wrong", kRepair, kRestore},
    {FindingId::kTfrecordCompressed, "tfrecord-compressed", kError, "the file is compressed as a whole and cannot be indexed", kRepack},
    {FindingId::kTfrecordExample, "tfrecord-example", kError, "a record is not a well-formed tf.train.Example", kRepack},
    {FindingId::kTfrecordFeature, "tfrecord-feature", kWarning, "a record lacks a feature or holds it in an unexpected kind", kRepack},
    {FindingId::kTfrecordSequenceExample, "tfrecord-sequence-example", kError, "a record is a SequenceExample, which is not supported", kRepack},
    {FindingId::kTfrecordFeatureName, "tfrecord-feature-name", kWarning, "a feature's name is not UTF-8; protobuf refuses to parse the record", kRepack},
    {FindingId::kTfrecordFeatureDrift, "tfrecord-feature-drift", kWarning, "a record's features differ from the first record's; DALI reads undefined values or crashes on such shards", kRepack},
    {FindingId::kTfrecordImageFormat, "tfrecord-image-format", kWarning, "an image format that TensorFlow's decode_image cannot read", kRepack},
    {FindingId::kLmdbMeta, "lmdb-meta", kError, "a meta page of an LMDB file is malformed; liblmdb does not open it", kRepair, kRestore},
    {FindingId::kLmdbPage, "lmdb-page", kError, "a page of an LMDB file is malformed or lies outside the file", kRepair, kRestore},
    {FindingId::kLmdbTree, "lmdb-tree", kError, "the tree of an LMDB file contradicts itself: keys out of order, a page used twice, wrong counts", kRepair, kRestore},
    {FindingId::kLmdbFreeList, "lmdb-free-list", kError, "the list of free pages is wrong; the next writer destroys data", kRepair, kRestore},
    {FindingId::kLmdbLostPages, "lmdb-lost-pages", kWarning, "pages of an LMDB file are neither in use nor free", kRepack},
    {FindingId::kLmdbMapSize, "lmdb-map-size", kWarning, "the stored map size is far above the file's; readers need that much address space", kRepack},
    {FindingId::kLmdbLayout, "lmdb-layout", kError, "the entries are in a layout that is not read here", kRepack},
    {FindingId::kLmdbDatum, "lmdb-datum", kError, "a value is not a well-formed Datum with data", kRepack},
    {FindingId::kLmdbDatumStyle, "lmdb-datum-style", kWarning, "a Datum that Caffe and DALI read differently", kRepack},
    {FindingId::kLmdbPickle, "lmdb-pickle", kError, "an entry is not of the layout pickle, or holds more than plain data", kRepack},
    {FindingId::kLmdbKeyStyle, "lmdb-key-style", kWarning, "a key has white space or bytes that are not ASCII; some readers cannot look it up", kRepack},
    {FindingId::kLmdbEmptyValue, "lmdb-empty-value", kWarning, "a value has no bytes; some readers take it for a missing one", kRepack},
    {FindingId::kHdf5Structure, "hdf5-structure", kError, "a structure of the HDF5 file is malformed", kRepair, kRestore},
    {FindingId::kHdf5Layout, "hdf5-layout", kError, "the datasets are not those of a shard of images", kRepack},
    {FindingId::kHdf5Extent, "hdf5-extent", kError, "a record's bytes lie outside its dataset or are those of another record", kRepair, kRestore},
    {FindingId::kHdf5External, "hdf5-external", kError, "data lies in another file, which is not opened", kRepack},
    {FindingId::kNpyHeader, "npy-header", kError, "the header of a .npy file is malformed", kRepair, kRestore},
    {FindingId::kNpyLayout, "npy-layout", kError, "the array does not hold images", kRepack},
    {FindingId::kNpyLabels, "npy-labels", kError, "the labels do not fit the images", kRepair, kRestore},
};
// clang-format on

constexpr bool CatalogueIsInOrder() {
  for (size_t i = 0; i < std::size(kCatalogue); ++i) {
    if (static_cast<size_t>(kCatalogue[i].id) != i) return false;
  }
  return std::size(kCatalogue) == static_cast<size_t>(FindingId::kCount);
}
static_assert(CatalogueIsInOrder(), "one row for each FindingId, in its order");

}  // namespace

std::span<const FindingSpec> AllFindings() { return kCatalogue; }

const FindingSpec& SpecOf(FindingId id) {
  static constexpr FindingSpec kNone = {FindingId::kCount, "none", kError, "no finding", ""};
  return id < FindingId::kCount ? kCatalogue[static_cast<size_t>(id)] : kNone;
}

Finding MakeFinding(FindingId id, std::string_view shard) {
  Finding finding;
  finding.id = id;
  finding.severity = SpecOf(id).severity;
  finding.shard = std::string(shard);
  return finding;
}

std::string ToText(const Finding& finding) {
  const FindingSpec& spec = SpecOf(finding.id);
  std::string text = absl::StrCat(finding.severity == kError ? "error " : "warning ",
                                  std::string(spec.name), " ", EscapeForTerminal(finding.shard));
  if (finding.record) absl::StrAppend(&text, " record ", *finding.record);
  if (!finding.key.empty()) absl::StrAppend(&text, " key ", EscapeForTerminal(finding.key));
  if (!finding.field.empty()) absl::StrAppend(&text, " field ", EscapeForTerminal(finding.field));
  if (finding.offset) absl::StrAppend(&text, " at offset ", *finding.offset);
  if (finding.length) absl::StrAppend(&text, " (", *finding.length, " bytes)");
  absl::StrAppend(&text, ": ", std::string(spec.message));
  if (!finding.detail.empty()) absl::StrAppend(&text, ": ", EscapeForTerminal(finding.detail));
  if (!finding.expected.empty() || !finding.actual.empty()) {
    absl::StrAppend(&text, " (expected ", EscapeForTerminal(finding.expected), ", actual ",
                    EscapeForTerminal(finding.actual), ")");
  }
  return text;
}

void FindingList::Report(Finding finding) {
  ++(finding.severity == kError ? errors_ : warnings_);
  if (findings_.size() < keep_) findings_.push_back(std::move(finding));
}

}  // namespace shardpack
