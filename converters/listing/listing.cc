#include "converters/listing/listing.h"

#include "formats/io/bytes.h"

namespace shardpack {
namespace {

// Every part is preceded by its length, so that no two listings feed the same bytes.
class ListingDigest {
 public:
  template <typename T>
  void AddColumn(std::span<const T> column) {
    AddNumber(column.size());
    stream_.Update(std::as_bytes(column));
  }
  template <typename T>
  void AddColumn(const Column<T>& column) {
    AddColumn(std::span<const T>(column));
  }
  void AddText(std::string_view text) {
    AddNumber(text.size());
    stream_.Update(AsBytes(text));
  }
  void AddNumber(uint64_t number) { stream_.Update(std::as_bytes(std::span(&number, 1))); }
  void AddNamed(std::string_view name, uint64_t number) {
    AddText(name);
    AddNumber(number);
  }
  Digest Finish() const { return stream_.Finish(); }

 private:
  DigestStream stream_;
};

}  // namespace

Digest Listing::ComputeDigest() const {
  ListingDigest digest;
  digest.AddText("shardpack listing 1");
  digest.AddNumber(folders.size());
  for (const std::string& path : folders) digest.AddText(path);
  digest.AddColumn(folder);
  digest.AddColumn(name_ends);
  digest.AddText(names);
  digest.AddColumn(bytes);
  digest.AddColumn(label);
  digest.AddNumber(classes.size());
  for (const std::string& name : classes) digest.AddText(name);
  digest.AddNumber(skips.size());
  for (const Skip& skip : skips) {
    digest.AddNumber(skip.row);
    digest.AddNumber(static_cast<uint64_t>(skip.reason));
    digest.AddText(skip.detail);
  }
  // Columns that plain folders do not have must not change their digest.
  if (left_out > 0) digest.AddNamed("left out", left_out);
  if (!fields.empty()) {
    digest.AddNamed("fields", fields.size());
    for (const ListedField& field : fields) digest.AddText(field.name);
    digest.AddColumn(field_bytes);
  }
  if (content_digest) {
    digest.AddNamed("content", content_digest->high);
    digest.AddNumber(content_digest->low);
  }
  if (has_keys()) {
    digest.AddNamed("keys", key_ends.size());
    digest.AddColumn(key_ends);
    digest.AddText(keys);
  }
  if (!splits.empty()) {
    digest.AddNamed("splits", splits.size());
    for (const std::string& name : splits) digest.AddText(name);
    digest.AddColumn(split);
  }
  digest.AddColumn(images);
  digest.AddColumn(content_hash);
  return digest.Finish();
}

Digest TimesDigest(std::span<const int64_t> mtime_ns, std::span<const int64_t> field_mtime_ns) {
  ListingDigest digest;
  digest.AddText("shardpack times 1");
  digest.AddColumn(mtime_ns);
  digest.AddColumn(field_mtime_ns);
  return digest.Finish();
}

}  // namespace shardpack
