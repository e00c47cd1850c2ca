#include "reconcilers/server/expand.h"

#include <utility>
#include <vector>

namespace lockkeeper::roll {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

void Fill(std::string& text, const Values& values) {
  for (const auto& [name, value] : values) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size())) {
      text.replace(at, name.size(), value);
    }
  }
}

void Fill(std::vector<std::string>& texts, const Values& values) {
  for (std::string& text : texts) Fill(text, values);
}

void Fill(std::vector<EnvVar>& env, const Values& values) {
  for (EnvVar& e : env) Fill(e.value, values);
}

}  // namespace

ServerSpec ExpandSpec(const ServerSpec& spec, const std::string& data_dir, const ServerKey& key) {
  ServerSpec out = spec;
  Values values = {{"{data}", data_dir}};
  Fill(out.layout.data_dir, values);
  Fill(out.layout.path_link, values);
  const std::string base = LayoutOf(data_dir, key, out).base;
  values.emplace_back("{dataDir}", base);
  if (out.seed) Fill(out.seed->shared, values);
  values.emplace_back("{shared}", LayoutOf(data_dir, key, out).shared);
  if (out.store) {
    Fill(out.store->url, values);
    for (StoreUnit& unit : out.store->units) {
      Fill(unit.command, values);
      Fill(unit.data_dir, values);
    }
    values.emplace_back("{store}", out.store->url);
  }
  if (out.source) {
    Fill(out.source->url, values);
    Fill(out.source->index, values);
    Fill(out.source->checksum.url, values);
  }
  if (out.member_token) Fill(out.member_token->file, values);
  if (out.access) Fill(out.access->kubeconfig_file, values);
  if (out.backup.sqlite) Fill(out.backup.sqlite->file, values);
  if (out.backup.etcd) {
    Fill(out.backup.etcd->ca_file, values);
    Fill(out.backup.etcd->cert_file, values);
    Fill(out.backup.etcd->key_file, values);
  }
  if (out.backup.command) {
    Fill(out.backup.command->backup, values);
    Fill(out.backup.command->restore, values);
  }
  ServerTemplate& t = out.template_;
  Fill(t.command, values);
  Fill(t.env, values);
  Fill(t.working_directory, values);
  Fill(t.readiness.ca_file, values);
  for (auto& c : t.companions) {
    Fill(c.command, values);
    Fill(c.env, values);
  }
  return out;
}

}  // namespace lockkeeper::roll
