//! The program; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    acp_skills_proxy::cli::main()
}
