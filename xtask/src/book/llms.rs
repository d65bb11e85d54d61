//! `llms.txt`: the pages for language models, each as Markdown, with what it is about (<https://llmstxt.org>).

use std::path::Path;

use super::contents::Contents;
use super::read;

/// The list of all pages whose Markdown is in `source`.
pub(crate) fn list(contents: &Contents, source: &Path) -> Result<String, String> {
    let mut text = HEAD.to_owned();
    for (part, pages) in &contents.0 {
        if !part.is_empty() && pages.iter().any(|page| page.ends_with(".md")) {
            text.push_str(&format!("\n## {part}\n\n"));
        }
        for page in pages.iter().filter(|page| page.ends_with(".md")) {
            let (title, about) = described(&read(&source.join(page))?);
            text.push_str(&format!("- [{title}]({page}): {about}\n"));
        }
    }
    Ok(text)
}

/// A page's title, and its first sentence.
fn described(page: &str) -> (String, String) {
    let title = page.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
    let paragraph = page.lines().skip_while(|line| line.is_empty() || line.starts_with('#'));
    let paragraph = paragraph.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    (title.to_owned(), paragraph[..end].to_owned())
}

const HEAD: &str = "\
# Greenroom

> A virtual-actor runtime in Rust. Actors are structs with async methods, found by kind and key; the cluster runs at most one activation
> of each, and starts it again elsewhere when its node dies. Callable by typed references, HTTP, gRPC, Python, TypeScript and Go.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_described_by_its_title_and_its_first_sentence() {
        let page = "# Install\n\nFor who wants it,\nand now. Afterwards it runs.\n\nmore\n";
        assert_eq!(described(page), ("Install".to_owned(), "For who wants it, and now.".to_owned()));
    }
}
