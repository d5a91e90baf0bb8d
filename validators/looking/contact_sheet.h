// MakeContactSheet: pictures of samples of every class, as many as fit a budget.
//
//   absl::StatusOr<ContactSheet> sheet = MakeContactSheet(rows, {.each = 8, .budget_bytes = 2e6});
//   for (const SheetRow& row : sheet->rows) ...
//
// The samples of a class are those whose keys have the least hashes, so the same dataset gives the
// same sheet; samples in files that are missing or too short come last. All classes have the same
// number. If one picture of each does not fit, the pictures are smaller, and if that does not help,
// the largest and the smallest classes alone have one.
//
// Lifetime: owns everything.
// Thread-safety: works on all cores.
// Errors: none; a sample that cannot be shown says why.
// Units: bytes of the page.
#ifndef SHARDPACK_VALIDATORS_LOOKING_CONTACT_SHEET_H_
#define SHARDPACK_VALIDATORS_LOOKING_CONTACT_SHEET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "validators/looking/sample_rows.h"
#include "validators/looking/thumbnails.h"

namespace shardpack {

struct SheetPicture {
  uint64_t row = 0;
  std::string key;
  Thumbnail thumbnail;
};

struct SheetRow {
  int64_t label = -1;
  uint64_t samples = 0;  // of the class
  std::vector<SheetPicture> pictures;
};

struct SheetOptions {
  size_t each = 8;
  uint64_t budget_bytes = 2'000'000;
};

struct ContactSheet {
  std::vector<SheetRow> rows;  // by label
  uint32_t side = 64;          // of the pictures
  size_t each = 0;             // pictures per class, at most
  size_t classes = 0;          // with samples, of which not all may have a row
  uint64_t not_shown = 0;      // pictures that could not be made
  uint64_t unread = 0;         // of these, because the image could not be read
  MeanImage mean;
};

ContactSheet MakeContactSheet(const SampleRows& rows, const SheetOptions& options);

// The bytes that a picture takes in the page, with its markup.
uint64_t PageBytes(const SheetPicture& picture);

// All pictures, in parallel; those that cannot be made say why.
std::vector<SheetPicture> MakePictures(const SampleRows& rows, const std::vector<uint64_t>& which,
                                       uint32_t side, MeanImage* mean);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_CONTACT_SHEET_H_
