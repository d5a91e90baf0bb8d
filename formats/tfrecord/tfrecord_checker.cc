#include "formats/tfrecord/tfrecord_checker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"

namespace shardpack {
namespace {

void Report(const Finding& here, FindingId id, std::string_view field, std::string detail,
            std::string_view expected, std::string actual, FindingSink& findings) {
  Finding finding = here;
  finding.id = id;
  finding.severity = SpecOf(id).severity;
  finding.field = std::string(field);
  finding.detail = std::move(detail);
  finding.expected = std::string(expected);
  finding.actual = std::move(actual);
  findings.Report(std::move(finding));
}

std::string Describe(const ScannedFeature& feature) {
  if (feature.kind == FeatureKind::kNone) return std::string(KindName(feature.kind));
  return absl::StrCat(std::string(KindName(feature.kind)), " of ", feature.values);
}

bool IsTiff(Bytes image) {
  const std::string_view magic = AsText(image.first(std::min<size_t>(image.size(), 4)));
  return magic == std::string_view("II*\0", 4) || magic == std::string_view("MM\0*", 4);
}

bool IsLabelName(std::string_view name) {
  const std::span<const std::string_view> names = LabelFeatureNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void TfrecordChecker::Check(const ExampleScan& example, Bytes payload, const Finding& here,
                            FindingSink& findings) {
  if (!has_first_) Remember(example);
  CheckImage(example, payload, here, findings);
  const std::span<const ScannedFeature> features = example.features();
  bool alike = features.size() == first_.size();
  for (size_t i = 0; i < features.size(); ++i) {
    const ScannedFeature& feature = features[i];
    const Known* known = i < first_.size() ? &first_[i] : nullptr;
    const bool same =
        known != nullptr && known->kind == feature.kind && known->name == feature.name;
    alike = alike && same;
    if (same && known->sound && (!known->single || feature.values == 1)) continue;
    CheckFeature(feature, here, findings);
  }
  if (!alike) ReportDrift(example, here, findings);
}

void TfrecordChecker::Remember(const ExampleScan& example) {
  has_first_ = true;
  for (const ScannedFeature& feature : example.features()) {
    const std::optional<FeatureKind> kind = KindInLayout(feature.name);
    first_.push_back({.name = std::string(feature.name),
                      .kind = feature.kind,
                      .sound = IsUtf8(feature.name) && feature.kind != FeatureKind::kNone &&
                               (!kind || *kind == feature.kind),
                      .single = kind || IsLabelName(feature.name)});
  }
}

void TfrecordChecker::CheckImage(const ExampleScan& example, Bytes payload, const Finding& here,
                                 FindingSink& findings) const {
  const ScannedFeature* image = example.image();
  if (image == nullptr) {
    Report(here, FindingId::kTfrecordFeature, kFeatureEncoded, "no image feature",
           "bytes_list of 1", "missing", findings);
    return;
  }
  // tf.io.decode_image of TensorFlow 2.21: "One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required".
  if (IsTiff(payload.subspan(image->offset, image->length))) {
    Report(here, FindingId::kTfrecordImageFormat, image->name, "TIFF", "", "", findings);
  }
  // The layout's own feature is checked together with the others.
  if (image->name != kFeatureEncoded && image->values != 1) {
    Report(here, FindingId::kTfrecordFeature, image->name, "several images in one record",
           "bytes_list of 1", Describe(*image), findings);
  }
}

void TfrecordChecker::CheckFeature(const ScannedFeature& feature, const Finding& here,
                                   FindingSink& findings) const {
  if (!IsUtf8(feature.name)) {
    Report(here, FindingId::kTfrecordFeatureName, feature.name, "", "", "", findings);
  }
  const std::optional<FeatureKind> kind = KindInLayout(feature.name);
  const bool wrong = kind && (feature.kind != *kind || feature.values != 1);
  if (wrong) {
    Report(here, FindingId::kTfrecordFeature, feature.name, "",
           absl::StrCat(std::string(KindName(*kind)), " of 1"), Describe(feature), findings);
  } else if (feature.kind == FeatureKind::kNone) {
    Report(here, FindingId::kTfrecordFeature, feature.name, "a feature without a list",
           "a list, even if it is empty", Describe(feature), findings);
  } else if (IsLabelName(feature.name) && feature.kind == FeatureKind::kInt64 &&
             feature.values != 1) {
    Report(here, FindingId::kTfrecordFeature, feature.name, "", "int64_list of 1",
           Describe(feature), findings);
  }
}

// Reports only the first difference: one missing feature would otherwise make all later ones
// differ.
void TfrecordChecker::ReportDrift(const ExampleScan& example, const Finding& here,
                                  FindingSink& findings) const {
  const std::span<const ScannedFeature> now = example.features();
  for (size_t i = 0; i < std::max(now.size(), first_.size()); ++i) {
    const bool ended = i == now.size(), more = i == first_.size();
    if (!ended && !more && now[i].name == first_[i].name && now[i].kind == first_[i].kind) continue;
    if (more || (!ended && now[i].name < first_[i].name)) {
      Report(here, FindingId::kTfrecordFeatureDrift, now[i].name, "",
             "absent, as in the first record", Describe(now[i]), findings);
    } else if (ended || now[i].name > first_[i].name) {
      Report(here, FindingId::kTfrecordFeatureDrift, first_[i].name, "",
             absl::StrCat(std::string(KindName(first_[i].kind)), ", as in the first record"),
             "missing", findings);
    } else {
      Report(here, FindingId::kTfrecordFeatureDrift, now[i].name, "",
             absl::StrCat(std::string(KindName(first_[i].kind)), ", as in the first record"),
             std::string(KindName(now[i].kind)), findings);
    }
    return;
  }
}

}  // namespace shardpack
