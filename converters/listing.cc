#include "converters/listing.h"

#include "formats/io/bytes.h"

namespace shardpack {
namespace {

// Every part is led by its length, so that no two listings feed the same bytes.
class ListingDigest {
 public:
  template <typename T>
  void AddColumn(const std::vector<T>& column) {
    AddNumber(column.size());
    stream_.Update(std::as_bytes(std::span(column)));
  }
  void AddText(std::string_view text) {
    AddNumber(text.size());
    stream_.Update(AsBytes(text));
  }
  void AddNumber(uint64_t number) { stream_.Update(std::as_bytes(std::span(&number, 1))); }
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
  digest.AddColumn(images);
  digest.AddColumn(content_hash);
  return digest.Finish();
}

}  // namespace shardpack
