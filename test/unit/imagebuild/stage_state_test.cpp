#include "imagebuild/stage_state.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::imagebuild;

namespace {

using Words = std::vector<std::string>;

/// A stage on an image, instruction by instruction.
struct Trial {
    explicit Trial(ImageSettings settings = {}, Variables arguments = {}, Variables globals = {})
        : state(std::move(settings), globals, arguments, '\\') {}

    Result<Step> tell(const std::string& line) {
        auto file = parse_dockerfile("FROM x\n" + line + "\n", "Dockerfile");
        REQUIRE(file);
        return state.apply(file->stages[0].instructions[0]);
    }
    void set(const std::string& line) {
        auto step = tell(line);
        INFO(line);
        REQUIRE(step);
        REQUIRE(std::holds_alternative<std::monostate>(*step));
    }
    template <class T>
    T step(const std::string& line) {
        auto step = tell(line);
        INFO(line << ": " << (step ? "" : step.error().message()));
        REQUIRE(step);
        REQUIRE(std::holds_alternative<T>(*step));
        return std::get<T>(*step);
    }
    std::string refusal(const std::string& line) {
        auto step = tell(line);
        INFO(line);
        REQUIRE(!step);
        return step.error().message();
    }

    StageState state;
};

ImageSettings base() {
    ImageSettings settings;
    settings.environment = {{"PATH", "/bin"}, {"LANG", "C"}};
    settings.entrypoint = {"/old"};
    settings.cmd = {"old"};
    settings.labels = {{"kept", "yes"}};
    settings.exposed_ports = {"22/tcp"};
    return settings;
}

}  // namespace

TEST_CASE("ENV sees what was before its line") {
    Trial trial(base());
    trial.set("ENV PATH=/x:$PATH OTHER=${PATH}");
    CHECK(trial.state.settings().environment.at("PATH") == "/x:/bin");
    CHECK(trial.state.settings().environment.at("OTHER") == "/bin");
    trial.set("ENV TEXT a \"b\" $LANG");
    CHECK(trial.state.settings().environment.at("TEXT") == "a b C");
}

TEST_CASE("ARG has a value from the command line, its default or the top of the file") {
    Trial trial({}, {{"GIVEN", "1"}}, {{"TOP", "t"}, {"GIVEN", "0"}});
    for (const char* line : {"ARG GIVEN=2", "ARG DEFAULT=d", "ARG TOP", "ARG NONE"})
        trial.set(line);
    const auto run = trial.step<RunStep>("RUN x");
    CHECK(run.environment == Variables{{"GIVEN", "1"}, {"DEFAULT", "d"}, {"TOP", "t"}});
    CHECK(trial.state.used_arguments() == Words{"GIVEN"});
    // What was not declared is no variable.
    Trial other({}, {{"GIVEN", "1"}});
    other.set("ENV A=$GIVEN");
    CHECK(other.state.settings().environment.at("A").empty());
}

TEST_CASE("ENV goes before ARG of the same name") {
    Trial trial({}, {{"A", "argument"}});
    trial.set("ARG A");
    trial.set("ENV A=environment");
    CHECK(trial.step<RunStep>("RUN x").environment.at("A") == "environment");
}

TEST_CASE("RUN is run by the SHELL, or as it stands") {
    Trial trial;
    CHECK(trial.step<RunStep>("RUN a $B").arguments == Words{"/bin/sh", "-c", "a $B"});
    trial.set(R"(SHELL ["/bin/bash", "-ec"])");
    CHECK(trial.step<RunStep>("RUN a").arguments == Words{"/bin/bash", "-ec", "a"});
    CHECK(trial.step<RunStep>(R"(RUN ["a", "$B"])").arguments == Words{"a", "$B"});
}

TEST_CASE("RUN has user and directory of its place") {
    Trial trial;
    CHECK(trial.step<RunStep>("RUN x").directory == "/");
    trial.set("ARG WHO=app");
    trial.set("USER $WHO:staff");
    trial.step<DirectoryStep>("WORKDIR /srv");
    const auto run = trial.step<RunStep>("RUN x");
    CHECK(run.user == "app:staff");
    CHECK(run.directory == "/srv");
}

TEST_CASE("proxies reach a RUN without being part of it") {
    Trial trial({}, {{"HTTP_PROXY", "http://p"}, {"OTHER", "x"}});
    const auto run = trial.step<RunStep>("RUN x");
    CHECK(run.environment.empty());
    CHECK(run.proxies == Variables{{"HTTP_PROXY", "http://p"}});
}

TEST_CASE("WORKDIR is relative to the one before and made by its user") {
    Trial trial;
    CHECK(trial.step<DirectoryStep>("WORKDIR app").path == "/app");
    CHECK(trial.step<DirectoryStep>("WORKDIR b/../c/").path == "/app/c");
    trial.set("USER me:us");
    const auto step = trial.step<DirectoryStep>("WORKDIR \"/x y\"");
    CHECK(step.path == "/x y");
    CHECK(step.owner == "me");
    CHECK(step.group == "us");
    trial.set("WORKDIR /../..");
    CHECK(trial.state.settings().working_directory == "/");
    CHECK(trial.refusal("WORKDIR $NONE").find("is empty") != std::string::npos);
}

TEST_CASE("COPY has an absolute destination and numbers for its flags") {
    Trial trial;
    trial.step<DirectoryStep>("WORKDIR /app");
    auto copy = trial.step<CopyStep>("COPY --chown=1:2 --chmod=0640 a b sub/");
    CHECK(copy.sources == Words{"a", "b"});
    CHECK(copy.destination == "/app/sub/");
    CHECK(copy.into_directory);
    CHECK(copy.owner == "1");
    CHECK(copy.group == "2");
    CHECK(copy.mode == 0640u);
    CHECK(trial.step<CopyStep>("COPY a .").into_directory);
    copy = trial.step<CopyStep>("COPY a /b");
    CHECK_FALSE(copy.into_directory);
    CHECK(copy.destination == "/b");
    CHECK_FALSE(copy.mode);
    CHECK(trial.step<CopyStep>("ADD a /b").unpack);
}

TEST_CASE("COPY and ADD refuse what they do not do") {
    Trial trial;
    CHECK(trial.refusal("COPY a b /c").find("must end with /") != std::string::npos);
    CHECK(trial.refusal("ADD https://x/y /z").find("not fetched") != std::string::npos);
    CHECK(trial.refusal("ADD git@x:y.git /z").find("not fetched") != std::string::npos);
    CHECK(trial.refusal("COPY --chmod=u+x a /b").find("octal") != std::string::npos);
    CHECK(trial.refusal("COPY --chown=:g a /b").find("USER") != std::string::npos);
    CHECK(trial.refusal("COPY $NONE /b").find("is empty") != std::string::npos);
}

TEST_CASE("ENTRYPOINT takes away the CMD of the image below, not that of its own stage") {
    Trial trial(base());
    trial.set(R"(ENTRYPOINT ["/new"])");
    CHECK(trial.state.settings().entrypoint == Words{"/new"});
    CHECK(trial.state.settings().cmd.empty());
    Trial other(base());
    other.set("CMD mine");
    other.set(R"(ENTRYPOINT ["/new"])");
    CHECK(other.state.settings().cmd == Words{"/bin/sh", "-c", "mine"});
}

TEST_CASE("labels and ports are added to those of the image below") {
    Trial trial(base());
    trial.set("LABEL a=b \"c d\"='e f'");
    trial.set("EXPOSE 80 443/TCP 53/udp 8000-8001 80/tcp");
    CHECK(trial.state.settings().labels ==
          std::map<std::string, std::string>{{"kept", "yes"}, {"a", "b"}, {"c d", "e f"}});
    CHECK(trial.state.settings().exposed_ports ==
          Words{"22/tcp", "443/tcp", "53/udp", "80/tcp", "8000/tcp", "8001/tcp"});
    for (const char* port : {"0", "70000", "80/icmp", "x", "90-80", "-1"})
        CHECK(trial.refusal("EXPOSE " + std::string(port)).find(port) != std::string::npos);
}

TEST_CASE("what an image says of itself has limits") {
    Trial trial;
    trial.set("ENV A=" + std::string(600'000, 'x'));
    CHECK(trial.refusal("ENV B=$A").find("1 MiB") != std::string::npos);
    CHECK(trial.refusal("EXPOSE 1-65535").find("1000 ports") != std::string::npos);
    trial.set("EXPOSE 1-1000");
    CHECK(trial.refusal("EXPOSE 2000").find("1000 ports") != std::string::npos);
}
