#include "formats/hdf5/reading/hdf5_scanner.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/hdf5/reading/hdf5_reader.h"
#include "formats/hdf5/reading/shard_map.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// A field of a sample, hashed when the reader reaches it.
struct Piece {
  uint64_t offset, length;
  uint64_t sample;
  size_t field;
};

// The state of one Scan.
class ShardWalk {
 public:
  ShardWalk(SequentialReader& in, const ScanOptions& options, RecordSink& records,
            FindingSink& findings)
      : in_(in),
        options_(options),
        records_(records),
        findings_(findings),
        reader_(in.file(), in.size(), options.shard_name) {}

  absl::Status Run();

 private:
  absl::Status HashPieces();
  void HandOn(uint64_t sample);

  SequentialReader& in_;
  const ScanOptions& options_;
  RecordSink& records_;
  FindingSink& findings_;
  Hdf5Reader reader_;
  ShardMap map_;
  std::vector<std::vector<uint64_t>> hashes_;  // by field and sample
  std::vector<ScannedField> fields_;
};

absl::Status ShardWalk::Run() {
  absl::Status opened = reader_.Open();
  if (opened.ok()) {
    if (reader_.end() < in_.size()) {
      Finding finding = MakeFinding(FindingId::kTrailingData, options_.shard_name);
      finding.offset = reader_.end();
      finding.length = in_.size() - reader_.end();
      findings_.Report(std::move(finding));
    }
    absl::StatusOr<ShardMap> map = ReadShardMap(reader_, findings_);
    opened = map.status();
    if (map.ok()) map_ = *std::move(map);
  }
  if (absl::IsDataLoss(opened)) {
    findings_.Report(reader_.problem());
    return absl::OkStatus();
  }
  if (!opened.ok()) return opened;
  std::erase_if(map_.fields, [&](const MappedField& field) {
    const bool left_out = field.extents.size() != map_.samples;
    if (left_out) records_.OnLeftOut(field.name);
    return left_out;
  });
  RETURN_IF_ERROR(HashPieces());
  for (uint64_t sample = 0; sample < map_.samples; ++sample) HandOn(sample);
  return absl::OkStatus();
}

absl::Status ShardWalk::HashPieces() {
  std::vector<Piece> pieces;
  pieces.reserve(map_.fields.size() * map_.samples);
  for (size_t f = 0; f < map_.fields.size(); ++f) {
    hashes_.emplace_back(map_.samples, Xxh3_64({}));
    for (uint64_t s = 0; s < map_.samples; ++s) {
      const MappedExtent& extent = map_.fields[f].extents[s];
      if (extent.offset == kUndefinedAddress || extent.length == 0) continue;
      pieces.push_back({extent.offset, extent.length, s, f});
    }
  }
  const auto before = [](const Piece& a, const Piece& b) { return a.offset < b.offset; };
  if (!std::is_sorted(pieces.begin(), pieces.end(), before)) {
    std::stable_sort(pieces.begin(), pieces.end(), before);
  }
  for (const Piece& piece : pieces) {
    if (piece.offset < in_.position()) {
      Finding finding = MakeFinding(FindingId::kHdf5Extent, options_.shard_name);
      finding.record = piece.sample;
      finding.field = map_.fields[piece.field].name;
      finding.offset = piece.offset;
      finding.length = piece.length;
      finding.detail = "bytes that another record or field has, too";
      findings_.Report(std::move(finding));
      map_.fields[piece.field].extents[piece.sample] = {};
      continue;
    }
    RETURN_IF_ERROR(in_.Skip(piece.offset - in_.position()));
    ASSIGN_OR_RETURN(uint64_t hash, in_.HashNext(piece.length));
    hashes_[piece.field][piece.sample] = hash;
  }
  return absl::OkStatus();
}

// A record whose image is damaged is not delivered, nor is a damaged further field.
void ShardWalk::HandOn(uint64_t sample) {
  const MappedExtent& image = map_.fields[0].extents[sample];
  if (image.offset == kUndefinedAddress) return;
  fields_.clear();
  for (size_t f = 0; f < map_.fields.size(); ++f) {
    const MappedExtent& extent = map_.fields[f].extents[sample];
    if (extent.offset == kUndefinedAddress) continue;
    fields_.push_back({.name = map_.fields[f].name,
                       .offset = extent.offset,
                       .length = extent.length,
                       .hash = hashes_[f][sample]});
  }
  ScannedRecord record;
  record.key = map_.keys.at(sample);
  record.source_path = map_.source_paths.at(sample);
  if (!map_.labels.empty()) record.label = map_.labels[sample];
  record.offset = image.offset;
  record.length = image.length;
  if (image.length > 0) {
    const uint64_t alignment = map_.image_alignment;
    record.offset -= map_.before_image;
    record.length = map_.before_image + (image.length + alignment - 1) / alignment * alignment;
    record.length = std::min(record.length, in_.size() - record.offset);
  }
  record.fields = fields_;
  record.image = map_.image;
  records_.OnRecord(record);
}

}  // namespace

constinit const Hdf5Scanner kHdf5Scanner;

absl::Status Hdf5Scanner::Scan(SequentialReader& in, const ScanOptions& options,
                               RecordSink& records, FindingSink& findings) const {
  return ShardWalk(in, options, records, findings).Run();
}

}  // namespace shardpack
