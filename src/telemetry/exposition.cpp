#include "telemetry/exposition.hpp"

#include <charconv>
#include <cmath>

namespace opensandbox::telemetry {
namespace {

void append_escaped(std::string& out, std::string_view text, bool quotes) {
    for (char c : text) {
        if (c == '\\') {
            out += "\\\\";
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '"' && quotes) {
            out += "\\\"";
        } else {
            out += c;
        }
    }
}

}  // namespace

std::string format_number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    char text[32];
    auto [end, problem] = std::to_chars(text, text + sizeof text, value);
    return std::string(text, end);
}

void Exposition::metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += "# HELP " + name_ + " ";
    append_escaped(text_, help, false);
    text_ += "\n# TYPE " + name_ + " " + std::string(type) + "\n";
}

void Exposition::line(std::string_view suffix, const Labels& labels, std::string_view value) {
    text_ += name_;
    text_ += suffix;
    if (!labels.empty()) {
        text_ += '{';
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (i > 0) text_ += ',';
            text_ += labels[i].first + "=\"";
            append_escaped(text_, labels[i].second, true);
            text_ += '"';
        }
        text_ += '}';
    }
    text_ += ' ';
    text_ += value;
    text_ += '\n';
}

void Exposition::sample(double value, const Labels& labels) {
    line("", labels, format_number(value));
}

void Exposition::sample(std::uint64_t value, const Labels& labels) {
    line("", labels, std::to_string(value));
}

void Exposition::histogram(const Histogram& histogram, const Labels& labels) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
        below += histogram.counts()[i];
        Labels bucket = labels;
        bool last = i == histogram.bounds().size();
        bucket.emplace_back("le", last ? "+Inf" : format_number(histogram.bounds()[i]));
        line("_bucket", bucket, std::to_string(below));
    }
    line("_sum", labels, format_number(histogram.sum()));
    line("_count", labels, std::to_string(histogram.count()));
}

void Exposition::summary(double sum, std::uint64_t count) {
    line("_sum", {}, format_number(sum));
    line("_count", {}, std::to_string(count));
}

}  // namespace opensandbox::telemetry
