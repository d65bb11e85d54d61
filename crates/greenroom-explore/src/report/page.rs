//! A schedule as a page: one file that needs no network.

use super::mermaid::mermaid;
use super::story::Story;

/// The page. All that comes from the test is text in it: it is read as JSON, and shown as text.
pub(crate) fn page(story: &Story) -> String {
    let told = serde_json::to_string(story).unwrap_or_else(|error| panic!("a story is plain data: {error}"));
    let diagram = serde_json::Value::String(mermaid(story)).to_string();
    // Nothing in it can end the element that it stands in.
    let [told, diagram] = [told, diagram].map(|text| text.replace('<', "\\u003c"));
    PAGE.replacen("__STORY__", &told, 1).replacen("__MERMAID__", &diagram, 1)
}

const PAGE: &str = include_str!("page.html");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_test_is_markup() {
        let name = "</script><img src=x onerror=alert(1)>";
        let story = Story::new(name.to_owned(), name.to_owned(), name.to_owned(), &[], &[]);
        let page = page(&story);
        assert!(!page.contains("<img") && page.contains("\\u003c/script>"), "{page}");
        assert!(!page.contains("https://"), "it needs the network");
        assert_eq!(page.matches("http://").count(), page.matches("http://www.w3.org/2000/svg").count());
    }
}
