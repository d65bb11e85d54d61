//! The chapters of the guide (`docs/guide`), one a module: `cargo test -p greenroom-guide` compiles and runs their code
//! blocks, those marked `no_run` aside. For readers, `cargo xtask book` makes a site of them.

include!(concat!(env!("OUT_DIR"), "/chapters.rs"));
