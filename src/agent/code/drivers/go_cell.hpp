#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// A piece of Go at the top level of a cell.
struct GoPiece {
    enum class Kind : unsigned char { package, import, declaration, entry, statement };
    Kind kind;
    std::string text;
    std::size_t line;                ///< its first line in the cell, from 1
    std::string file;                ///< the cell's name in messages of the compiler
    std::vector<std::string> names;  ///< what a declaration declares, "Type.Method" for methods
};

/// Cuts a cell into its pieces, by the rules for tokens and line ends of the Go specification; what
/// is no Go comes out as statements for the compiler to refuse. `func main` and `func init` are
/// entries. `x := value` without a call becomes a variable of the package. Pure.
std::vector<GoPiece> split_go_cell(std::string_view code);

/// The declarations of a context so far and one cell on top make one program (the limits of this:
/// every run is a program of its own, so variables begin with their initial values again and
/// initialisers run again; statements run once). Pure.
class GoProgram {
  public:
    /// What a cell adds.
    struct Build {
        std::string source;       ///< package main
        bool has_result = false;  ///< the last expression is handed to show_result()
        std::vector<GoPiece> kept;
    };
    /// The program that runs `code` as cell number `cell`. With `show` the last expression of the
    /// cell is its result.
    [[nodiscard]] Build build(std::string_view code, std::size_t cell, bool show) const;
    /// The cell compiled: its declarations stay, in place of those of the same names.
    void keep(const Build& build);

  private:
    std::vector<GoPiece> pieces_;
};

/// The source file that has show_result(): it writes a state frame with the values to descriptor 3.
std::string_view go_result_source();

}  // namespace opensandbox::agent
