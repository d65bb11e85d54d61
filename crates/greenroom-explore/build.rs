//! Tells the crate how far the compiler optimises it, so that slow tests can say what helps.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=GREENROOM_EXPLORE_OPT_LEVEL={level}");
}
