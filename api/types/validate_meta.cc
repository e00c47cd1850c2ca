// ValidateObjectMeta: metadata as kube-apiserver checks it on every kind.
#include <algorithm>

#include "api/types/field_errors.h"
#include "api/types/kind.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

namespace {

constexpr char kSubdomain[] = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
constexpr char kLabel[] = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr char kNamePart[] = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr char kLabelValue[] = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
constexpr size_t kMaxAnnotations = 256 * 1024;

bool WholeMatch(const char* pattern, std::string_view text) {
  return MatchesPattern("^" + std::string(pattern) + "$", text);
}

std::string NoMoreThan(size_t count, const char* unit) {
  return "must be no more than " + std::to_string(count) + " " + unit;
}

std::vector<std::string> SubdomainProblems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > 253) out.push_back(NoMoreThan(253, "characters"));
  if (text.size() > 253 || !WholeMatch(kSubdomain, text)) {
    out.push_back(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '" +
        std::string(kSubdomain) + "')");
  }
  return out;
}

std::vector<std::string> LabelProblems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > 63) out.push_back(NoMoreThan(63, "characters"));
  if (!WholeMatch(kLabel, text.substr(0, 4096))) {
    out.push_back(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '" +
        std::string(kLabel) + "')");
  }
  return out;
}

// "name" or "prefix/name".
std::vector<std::string> QualifiedNameProblems(std::string_view text) {
  static const std::string form =
      "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
      "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" +
      std::string(kNamePart) + "')";
  std::vector<std::string> out;
  std::string_view name = text;
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return {
          "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" +
          std::string(kNamePart) + "') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
    }
    if (prefix.empty()) {
      out.push_back("prefix part must be non-empty");
    } else {
      for (const std::string& problem : SubdomainProblems(prefix)) out.push_back("prefix part " + problem);
    }
  }
  if (name.empty()) {
    out.push_back("name part must be non-empty");
  } else if (name.size() > 63) {
    out.push_back("name part " + NoMoreThan(63, "characters"));
  }
  if (name.size() > 4096 || !WholeMatch(kNamePart, name)) out.push_back(form);
  return out;
}

void Add(const std::string& field, std::string_view value, const std::vector<std::string>& problems,
         std::vector<FieldError>* errors) {
  for (const std::string& problem : problems) errors->push_back(InvalidError(field, Json(value), problem));
}

void CheckName(const KindInfo& kind, const Json& meta, std::vector<FieldError>* errors) {
  const bool label = kind.kind == "Namespace" && kind.group.empty();
  const auto problems = [&](std::string_view text) { return label ? LabelProblems(text) : SubdomainProblems(text); };
  if (const std::string& prefix = meta.Get("generateName").AsString(); !prefix.empty()) {
    // A prefix may end in what a suffix makes right.
    std::string masked = prefix;
    if (masked.size() > 1 && masked.back() == '-') masked.back() = 'a';
    Add("metadata.generateName", prefix, problems(masked), errors);
  }
  const std::string& name = meta.Get("name").AsString();
  if (name.empty()) {
    if (meta.Get("generateName").AsString().empty()) {
      FieldError error = RequiredError("metadata.name");
      error.message += ": name or generateName is required";
      errors->push_back(std::move(error));
    }
    return;
  }
  Add("metadata.name", name, problems(name), errors);
}

void CheckLabels(const Json& labels, std::vector<FieldError>* errors) {
  for (const auto& [key, value] : labels.AsObject()) {
    Add("metadata.labels", key, QualifiedNameProblems(key), errors);
    const std::string& text = value.AsString();
    std::vector<std::string> problems;
    if (text.size() > 63) problems.push_back(NoMoreThan(63, "characters"));
    if (text.size() > 4096 || !WholeMatch(kLabelValue, text)) {
      problems.push_back(
          "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
          "start "
          "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
          "validation "
          "is '" +
          std::string(kLabelValue) + "')");
    }
    Add("metadata.labels", text, problems, errors);
  }
}

void CheckAnnotations(const Json& annotations, std::vector<FieldError>* errors) {
  size_t total = 0;
  for (const auto& [key, value] : annotations.AsObject()) {
    std::string lower = key;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    Add("metadata.annotations", key, QualifiedNameProblems(lower), errors);
    total += key.size() + value.AsString().size();
  }
  if (total > kMaxAnnotations) {
    errors->push_back(TooLongError("metadata.annotations", static_cast<int64_t>(kMaxAnnotations)));
  }
}

void CheckOwners(const Json& owners, std::vector<FieldError>* errors) {
  const std::string field = "metadata.ownerReferences";
  std::string first_controller;
  for (const Json& owner : owners.AsArray()) {
    for (const char* member : {"apiVersion", "kind", "name", "uid"}) {
      if (!owner.Get(member).AsString().empty()) continue;
      errors->push_back(InvalidError(field + "." + member, Json(""),
                                     std::string(member) == "apiVersion" ? "version must not be empty"
                                                                         : std::string(member) + " must not be empty"));
    }
    if (!owner.Get("controller").AsBool()) continue;
    const std::string name = owner.Get("kind").AsString() + "/" + owner.Get("name").AsString();
    if (first_controller.empty()) {
      first_controller = name;
    } else {
      errors->push_back(InvalidError(field, Json(name),
                                     "Only one reference can have Controller set to true. Found \"true\" in references "
                                     "for " +
                                         first_controller + " and " + name));
    }
  }
}

}  // namespace

std::vector<FieldError> ValidateObjectMeta(const KindInfo& kind, const Json& object) {
  std::vector<FieldError> errors;
  const Json& meta = object.Get("metadata");
  CheckName(kind, meta, &errors);
  CheckLabels(meta.Get("labels"), &errors);
  CheckAnnotations(meta.Get("annotations"), &errors);
  const Json& finalizers = meta.Get("finalizers");
  for (size_t i = 0; i < finalizers.size(); ++i) {
    const std::string& name = finalizers.AsArray()[i].AsString();
    Add("metadata.finalizers[" + std::to_string(i) + "]", name, QualifiedNameProblems(name), &errors);
  }
  CheckOwners(meta.Get("ownerReferences"), &errors);
  return errors;
}

}  // namespace lockkeeper
