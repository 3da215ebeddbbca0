#include "imagebuild/dockerfile.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::imagebuild;

namespace {

Dockerfile parsed(std::string_view text) {
    auto file = parse_dockerfile(text, "Dockerfile");
    INFO((file ? std::string() : file.error().message()));
    REQUIRE(file);
    return std::move(*file);
}

std::string refusal(std::string_view text) {
    auto file = parse_dockerfile(text, "Dockerfile");
    REQUIRE(!file);
    return file.error().message();
}

Instruction only(std::string_view line) {
    Dockerfile file = parsed("FROM x\n" + std::string(line) + "\n");
    REQUIRE(file.stages.size() == 1);
    REQUIRE(file.stages[0].instructions.size() == 1);
    return file.stages[0].instructions[0];
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a Dockerfile is read into stages") {
    const Dockerfile file = parsed(
        "ARG V=1\nFROM busybox:$V AS Build\nRUN make\nFROM scratch\nCOPY --from=build /a /b\n");
    REQUIRE(file.global_arguments.size() == 1);
    REQUIRE(file.stages.size() == 2);
    CHECK(file.stages[0].base == "busybox:$V");
    CHECK(file.stages[0].name == "build");
    CHECK(file.stages[0].line == 2);
    CHECK(file.stages[1].name.empty());
    CHECK(file.stages[1].instructions[0].from == "build");
    CHECK(file.stages[1].instructions[0].line == 5);
}

TEST_CASE("instructions are known in any case") {
    CHECK(only("run make").verb == Verb::run);
    CHECK(parsed("from x as y\n").stages[0].name == "y");
}

TEST_CASE("continued lines are one, comments and empty lines among them are none") {
    const Instruction run = only("RUN a \\\n  # why\n\n  && b \\  \n  && c");
    CHECK(run.words == Words{"a   && b   && c"});
    CHECK(run.line == 2);
    // Two escape characters are none at the end of a line.
    CHECK(parsed("FROM x\nRUN echo \\\\\nENV a=b\n").stages[0].instructions.size() == 2);
}

TEST_CASE("the escape directive changes the character") {
    const Dockerfile file = parsed("# escape=`\nFROM x\nRUN a `\n b\\\n");
    CHECK(file.escape == '`');
    CHECK(file.stages[0].instructions[0].words == Words{"a  b\\"});
    CHECK(refusal("# escape=x\nFROM x").find("Dockerfile:1: escape") == 0);
    CHECK(refusal("# escape=`\n# escape=`\nFROM x").find("twice") != std::string::npos);
    // After anything else it is a comment.
    CHECK(parsed("# a comment\n# escape=`\nFROM x\n").escape == '\\');
}

TEST_CASE("the usual syntax directive is taken, another language is refused") {
    CHECK(parsed("# syntax=docker/dockerfile:1.7\nFROM x\n").stages.size() == 1);
    CHECK(parsed("#syntax = docker.io/docker/dockerfile\nFROM x\n").stages.size() == 1);
    CHECK(refusal("# syntax=other/frontend\nFROM x").find("other/frontend") != std::string::npos);
}

TEST_CASE("CR LF line ends and a byte order mark are nothing") {
    const Dockerfile file = parsed(
        "\xef\xbb\xbf"
        "FROM x\r\nRUN a \\\r\n b\r\n");
    CHECK(file.stages[0].base == "x");
    CHECK(file.stages[0].instructions[0].words == Words{"a  b"});
}

TEST_CASE("the JSON form holds the arguments, all else is for the shell") {
    const Instruction exec = only(R"(CMD ["a b", "c\"d"])");
    CHECK(exec.exec_form);
    CHECK(exec.words == Words{"a b", "c\"d"});
    const Instruction shell = only("RUN [ -f x ] && y");
    CHECK_FALSE(shell.exec_form);
    CHECK(shell.words == Words{"[ -f x ] && y"});
    CHECK(only("ENTRYPOINT []").words.empty());
    CHECK(refusal("FROM x\nCMD [1]").find("strings only") != std::string::npos);
    CHECK(refusal("FROM x\nSHELL sh -c").find("JSON array") != std::string::npos);
}

TEST_CASE("ENV and LABEL take pairs, or the old form") {
    auto pairs = only(R"(ENV a=1 b="x y" c=d\ e)").pairs;
    REQUIRE(pairs.size() == 3);
    CHECK(pairs[1].second == "\"x y\"");
    CHECK(pairs[2].second == "d\\ e");
    pairs = only("ENV name the rest = of it").pairs;
    REQUIRE(pairs.size() == 1);
    CHECK(pairs[0].first == "name");
    CHECK(pairs[0].second == "the rest = of it");
    CHECK(refusal("FROM x\nENV a").find("Dockerfile:2: ENV: 'a'") == 0);
    CHECK(refusal("FROM x\nENV a=b c").find("'c'") != std::string::npos);
    CHECK(refusal("FROM x\nLABEL =b").find("no name") != std::string::npos);
}

TEST_CASE("ARG takes names with and without values") {
    const auto pairs = only("ARG a b=2").pairs;
    REQUIRE(pairs.size() == 2);
    CHECK_FALSE(pairs[0].second);
    CHECK(pairs[1].second == "2");
}

TEST_CASE("COPY takes its flags, several sources and the JSON form") {
    const Instruction copy = only("COPY --chown=a:b --chmod=755 x y /z/");
    CHECK(copy.chown == "a:b");
    CHECK(copy.chmod == "755");
    CHECK(copy.words == Words{"x", "y", "/z/"});
    CHECK(only(R"(COPY ["a b", "/c"])").words == Words{"a b", "/c"});
    CHECK(refusal("FROM x\nCOPY a").find("at least one source") != std::string::npos);
    CHECK(refusal("FROM x\nCOPY --link a b").find("--link is not supported") != std::string::npos);
    CHECK(refusal("FROM x\nCOPY --chown= a b").find("needs a value") != std::string::npos);
    CHECK(refusal("FROM x\nADD --from=y a b").find("--from is not supported") != std::string::npos);
}

TEST_CASE("a here-document alone is the script") {
    const Instruction run = only("RUN <<EOF\nset -e\n  echo $HOME # no comment here\nEOF");
    CHECK(run.words == Words{"set -e\n  echo $HOME # no comment here\n"});
    CHECK(only("RUN <<-'E'\n\t\ta\n\tE").words == Words{"a\n"});
}

TEST_CASE("here-documents of a command go to the shell as they are") {
    CHECK(only("RUN cat <<A <<B > /x\n1\nA\n2\nB").words ==
          Words{"cat <<A <<B > /x\n1\nA\n2\nB\n"});
    CHECK(only("RUN cat <<< word").words == Words{"cat <<< word"});
    CHECK(refusal("FROM x\nRUN <<EOF\na\n").find("'EOF' does not end") != std::string::npos);
    CHECK(refusal("FROM x\nRUN <<EOF\n#!/bin/x\nEOF\n").find("#!") != std::string::npos);
    CHECK(refusal("FROM x\nCOPY <<EOF /x\na\nEOF\n").find("RUN only") != std::string::npos);
}

TEST_CASE("what is no part of the subset is refused by name with its line") {
    CHECK(refusal("FROM x\n\nHEALTHCHECK NONE") ==
          "Dockerfile:3: HEALTHCHECK: this instruction is not supported");
    CHECK(refusal("FROM x\nvolume /a").find("Dockerfile:2: VOLUME: ") == 0);
    CHECK(refusal("FROM x\nFORM y") == "Dockerfile:2: FORM: there is no such instruction");
    CHECK(refusal("FROM x\nRUN --mount=type=cache,target=/x y").find("--mount is not supported") !=
          std::string::npos);
    CHECK(refusal("FROM --platform=linux/arm64 x").find("--platform") != std::string::npos);
    CHECK(refusal("FROM x y z").find("AS NAME") != std::string::npos);
    CHECK(refusal("FROM x AS 1a").find("cannot name a stage") != std::string::npos);
    CHECK(refusal("FROM x AS a\nFROM y AS A").find("already") != std::string::npos);
    CHECK(refusal("RUN x\nFROM y").find("before the first FROM") != std::string::npos);
    CHECK(refusal("# nothing\n") == "Dockerfile: there is no FROM in it");
    CHECK(refusal(std::string("FROM x\nRUN a\0b", 15)).find("NUL") != std::string::npos);
    CHECK(refusal("FROM x\n" + std::string(2 << 20, '#')).find("1 MiB") != std::string::npos);
}
