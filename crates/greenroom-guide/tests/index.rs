//! The guide's first page.

use std::path::Path;

#[test]
fn the_first_page_leads_to_every_chapter() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let index = std::fs::read_to_string(docs.join("index.md")).expect("the first page");
    let chapters = std::fs::read_dir(docs.join("guide")).expect("the chapters");
    let names = chapters.map(|entry| entry.expect("a chapter").file_name().to_string_lossy().into_owned());
    let missing: Vec<String> =
        names.filter(|name| name.ends_with(".md") && !index.contains(&format!("(guide/{name})"))).collect();
    assert!(missing.is_empty(), "docs/index.md does not lead to {missing:?}");
}
