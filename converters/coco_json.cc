#include "converters/coco_json.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr double kLargestExact = 9007199254740992.0;  // 2^53

// Follows the parser through {"images": [{...}], "annotations": [{...}], "categories": [{...}]}:
// members of those objects, and the numbers of a bbox one level below. All else is passed over.
class CocoSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit CocoSax(CocoFile* coco) : coco_(coco) {}

  std::string error = {};
  std::map<int64_t, std::string> categories;
  bool has_images = false;

  bool null() override { return depth_ > 0 || Fail("the file is no object"); }
  bool boolean(bool value) override { return Take(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override { return Take(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= INT64_MAX ? Take(static_cast<int64_t>(value))
                              : TakeReal(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return TakeReal(value); }
  bool string(string_t& text) override {
    if (depth_ == 0) return Fail("the file is no object");
    if (!AtMember()) return true;
    if (section_ == Section::kImages && key_ == "file_name") image_.file_name = text;
    if (section_ == Section::kCategories && key_ == "name") name_ = text;
    if (IsId()) return Fail(absl::StrCat("the member ", key_, " is text; ids are numbers"));
    return true;
  }
  bool binary(binary_t&) override { return Fail("binary data"); }

  bool start_object(size_t) override {
    if (++depth_ > kMaxDepth) return Fail("nested too deeply");
    if (depth_ == 3 && in_list_) Begin();
    return true;
  }
  bool end_object() override {
    const bool ends = depth_-- == 3 && in_list_;
    return !ends || End();
  }
  bool start_array(size_t) override {
    if (depth_ == 0) return Fail("the file is no object");
    if (++depth_ > kMaxDepth) return Fail("nested too deeply");
    if (depth_ == 2) in_list_ = section_ != Section::kOther;
    in_box_ = depth_ == 4 && in_list_ && section_ == Section::kObjects && key_ == "bbox";
    if (in_box_) box_numbers_ = 0;
    return true;
  }
  bool end_array() override {
    in_box_ = false;
    if (depth_-- == 2) in_list_ = false;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      section_ = name == "images"        ? Section::kImages
                 : name == "annotations" ? Section::kObjects
                 : name == "categories"  ? Section::kCategories
                                         : Section::kOther;
      has_images = has_images || section_ == Section::kImages;
    }
    if (depth_ == 3 && in_list_) key_ = name;
    return true;
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& failure) override {
    const std::string what = failure.what();
    const size_t line = what.find("at line ");
    return Fail(absl::StrCat("not JSON ", line == std::string::npos ? what : what.substr(line)));
  }

 private:
  enum class Section : uint8_t { kOther, kImages, kObjects, kCategories };

  bool Fail(std::string why) {
    if (error.empty()) error = std::move(why);
    return false;
  }
  bool AtMember() const { return depth_ == 3 && in_list_; }
  bool IsId() const {
    return key_ == "id" ||
           (section_ == Section::kObjects && (key_ == "image_id" || key_ == "category_id"));
  }

  void Begin() {
    key_.clear();
    id_ = std::nullopt;
    image_id_ = category_id_ = std::nullopt;
    image_ = {};
    object_ = {};
    name_ = std::nullopt;
    box_numbers_ = 0;
  }

  bool Take(int64_t value) {
    if (depth_ == 0) return Fail("the file is no object");
    if (AtMember() && key_ == "id") id_ = value;
    if (AtMember() && section_ == Section::kObjects) {
      if (key_ == "image_id") image_id_ = value;
      if (key_ == "category_id") category_id_ = value;
      if (key_ == "iscrowd") object_.crowd = value != 0;
    }
    return TakeReal(static_cast<double>(value));
  }
  bool TakeReal(double value) {
    if (depth_ == 0) return Fail("the file is no object");
    if (AtMember() && section_ == Section::kObjects && key_ == "area") object_.area = value;
    if (!in_box_ || depth_ != 4) return true;
    if (box_numbers_ < 4) object_.box[box_numbers_] = value;
    ++box_numbers_;
    return true;
  }

  bool End() {
    switch (section_) {
      case Section::kImages:
        if (!id_) return Fail(absl::StrCat("image number ", coco_->images.size(), " has no id"));
        if (image_.file_name.empty())
          return Fail(absl::StrCat("the image ", *id_, " has no file_name"));
        image_.id = *id_;
        coco_->images.push_back(std::move(image_));
        return true;
      case Section::kObjects:
        return EndObject();
      case Section::kCategories:
        if (!id_ || !name_)
          return Fail(absl::StrCat("category number ", categories.size(), " has no id or no name"));
        return categories.emplace(*id_, *name_).second ||
               Fail(absl::StrCat("the category ", *id_, " stands there twice"));
      case Section::kOther:
        break;
    }
    return true;
  }

  bool EndObject() {
    const std::string which = id_ ? absl::StrCat("the annotation ", *id_)
                                  : absl::StrCat("annotation number ", coco_->objects.size());
    if (!image_id_ || !category_id_)
      return Fail(absl::StrCat(which, " has no image_id or no category_id"));
    if (box_numbers_ != 4)
      return Fail(absl::StrCat(which, " has a bbox of ", box_numbers_, " numbers; expected 4"));
    object_.image_id = *image_id_;
    if (*category_id_ < INT32_MIN || *category_id_ > INT32_MAX)
      return Fail(absl::StrCat(which, " has the category_id ", *category_id_));
    object_.category =
        static_cast<int32_t>(*category_id_);  // the id: its place is known at the end
    coco_->objects.push_back(object_);
    return true;
  }

  CocoFile* const coco_;
  size_t depth_ = 0;
  Section section_ = Section::kOther;
  bool in_list_ = false, in_box_ = false;
  std::string key_;
  std::optional<int64_t> id_, image_id_, category_id_;
  std::optional<std::string> name_;
  CocoImage image_;
  CocoObject object_;
  size_t box_numbers_ = 0;
};

// What only the whole file tells: ids that exist, names that are unique.
absl::Status Join(const CocoSax& sax, CocoFile* coco) {
  std::map<int64_t, int32_t> place;
  std::set<std::string_view> names;
  for (const auto& [id, name] : sax.categories) {
    place[id] = static_cast<int32_t>(coco->categories.size());
    if (name.empty() || !names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the category ", id, " has the name of another one, or none: ", EscapeForTerminal(name)));
    }
    coco->categories.push_back(name);
  }
  std::vector<int64_t> ids;
  for (const CocoImage& image : coco->images) ids.push_back(image.id);
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end())
    return absl::InvalidArgumentError(absl::StrCat("the image ", *twice, " stands there twice"));
  for (CocoObject& object : coco->objects) {
    const auto known = place.find(object.category);
    if (known == place.end()) {
      return absl::InvalidArgumentError(absl::StrCat("an annotation of image ", object.image_id,
                                                     " has the category_id ", object.category,
                                                     ", which no category has"));
    }
    object.category = known->second;
    if (!std::binary_search(ids.begin(), ids.end(), object.image_id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("an annotation has the image_id ", object.image_id, ", which no image has"));
    }
    if (object.area < 0) object.area = object.box[2] * object.box[3];
  }
  std::stable_sort(
      coco->objects.begin(), coco->objects.end(),
      [](const CocoObject& a, const CocoObject& b) { return a.image_id < b.image_id; });
  return absl::OkStatus();
}

template <typename Input>
absl::Status Parse(Input&& input, std::string_view name, CocoFile* coco) {
  CocoSax sax(coco);
  const bool parsed = nlohmann::json::sax_parse(std::forward<Input>(input), &sax);
  absl::Status status;
  if (!parsed) {
    status = absl::InvalidArgumentError(sax.error.empty() ? "not JSON" : sax.error);
  } else if (!sax.has_images) {
    status = absl::InvalidArgumentError("no member \"images\": this is no COCO json");
  } else {
    status = Join(sax, coco);
  }
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(name), ": ",
                                                 EscapeForTerminal(std::string(status.message()))));
}

// Whole numbers without a fraction, as most tools write them.
nlohmann::json Number(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < kLargestExact;
  return whole ? nlohmann::json(static_cast<int64_t>(value)) : nlohmann::json(value);
}

}  // namespace

std::span<const CocoObject> CocoFile::ObjectsOf(const CocoImage& image) const {
  const auto [begin, end] = std::equal_range(
      objects.begin(), objects.end(), CocoObject{.image_id = image.id},
      [](const CocoObject& a, const CocoObject& b) { return a.image_id < b.image_id; });
  return {begin, end};
}

absl::Status ReadCoco(const std::string& path, CocoFile* coco) {
  absl::StatusOr<File> opened = File::OpenRead(path);
  if (!opened.ok()) {
    const absl::Status failed = opened.status();
    return absl::IsNotFound(failed) ? absl::InvalidArgumentError(failed.message()) : failed;
  }
  struct stat facts;
  if (::fstat(opened->descriptor(), &facts) != 0) return IoStatus("stat", path, errno);
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(path), " is not a regular file"));
  }
  const int copy = ::dup(opened->descriptor());
  const std::unique_ptr<FILE, decltype(&fclose)> file(copy < 0 ? nullptr : ::fdopen(copy, "rb"),
                                                       &fclose);
  if (file == nullptr) return IoStatus("open", path, errno);
  absl::Status parsed = Parse(file.get(), path, coco);
  return ferror(file.get()) != 0 ? IoStatus("read", path, EIO) : parsed;
}

absl::Status ParseCoco(std::string_view text, std::string_view name, CocoFile* coco) {
  return Parse(text, name, coco);
}

std::string BoxesJson(const CocoFile& coco, const CocoImage& image,
                      std::span<const int32_t> label_of_category) {
  nlohmann::json boxes = nlohmann::json::array();
  for (const CocoObject& object : coco.ObjectsOf(image)) {
    nlohmann::json box = nlohmann::json::array();
    for (const double number : object.box) box.push_back(Number(number));
    const auto category = static_cast<size_t>(object.category);
    boxes.push_back({{"area", Number(object.area)},
                     {"bbox", std::move(box)},
                     {"category", PercentEscape(coco.categories[category])},
                     {"iscrowd", object.crowd ? 1 : 0},
                     {"label", label_of_category[category]}});
  }
  return nlohmann::json({{"boxes", std::move(boxes)}, {"image_id", image.id}}).dump();
}

}  // namespace shardpack
