#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::imagebuild {

/// A here-document that follows an instruction (`RUN <<EOF`).
struct HereDocument {
    std::string name;         ///< the word that ends it
    std::string content;      ///< its lines as they stand, each with its line end
    bool strip_tabs = false;  ///< `<<-`: leading tabs are no part of it
};

/// One instruction with its continuation lines put together, comments left out.
struct LogicalLine {
    std::size_t number = 0;  ///< of its first line, from 1
    std::string text;
    std::vector<HereDocument> documents;
};

struct DockerfileLines {
    std::string file;  ///< as errors name it
    char escape = '\\';
    std::vector<LogicalLine> lines;
};

/// Most bytes of a Dockerfile.
inline constexpr std::size_t kLargestDockerfile = std::size_t{1} << 20;

/// "Dockerfile:12: rule"; `invalid_argument`.
Error dockerfile_error(std::string_view file, std::size_t line, std::string_view rule);

/// Applies the directives at the top (`# escape=`, `# syntax=`, `# check=`), joins continued lines,
/// drops comments and takes here-documents of RUN, COPY and ADD. Pure; `too_large` past 1 MiB.
Result<DockerfileLines> split_dockerfile(std::string_view text, std::string file);

/// The here-document that a word of a RUN begins ("<<EOF", "<<-'EOF'"); without content. Empty name
/// when the word begins none.
HereDocument here_document_of(std::string_view word);

}  // namespace opensandbox::imagebuild
