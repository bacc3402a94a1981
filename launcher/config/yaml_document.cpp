#include "launcher/config/yaml_document.hpp"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>

#include <sstream>

namespace ddrun::launcher {
namespace {

// Sees a text before anything is built from it.
class Inspection : public YAML::EventHandler {
  public:
    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ == 1) {
            start_ = mark;
            return;
        }
        const bool moved = mark.pos != start_.pos;
        throw YAML::Exception(mark, moved ? "a job file is one document, not several"
                                          : "not YAML: something stands here that begins nothing");
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}

  private:
    int documents_ = 0;
    YAML::Mark start_;
};

void inspect(const std::string& text) {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Inspection inspection;
    while (parser.HandleNextDocument(inspection)) {
    }
}

}  // namespace

YAML::Node load_yaml_document(const std::string& text) {
    // A quote may run into the end of a text, but not into the end of a document.
    const bool whole_lines = text.empty() || text.back() == '\n';
    const std::string ended = text + (whole_lines ? "...\n" : "\n...\n");
    try {
        inspect(ended);
        return YAML::Load(ended);
    } catch (const YAML::DeepRecursion& error) {
        throw YAML::Exception(error.mark, "nested too deeply");
    } catch (const YAML::ParserException& error) {
        const bool open_quote = error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
        const std::string words = open_quote ? "a quote is never closed" : error.msg;
        throw YAML::Exception(error.mark, "not YAML: " + words);
    }
}

}  // namespace ddrun::launcher
