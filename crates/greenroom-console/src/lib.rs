//! The console's pages: files for a browser, which show what a node's door says as JSON.
//!
//! They hold nothing of any cluster, need nothing from elsewhere, and are the same for everybody.

/// A file of the console.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its media type.
    pub content_type: &'static str,
    /// Its bytes, compressed by gzip.
    pub gzipped: &'static [u8],
    /// Whether its path changes when its bytes do, so that it may be kept for ever.
    pub lasting: bool,
}

/// The file at `path` below the console's own, without a slash in front; the empty path is the page itself.
pub fn find(path: &str) -> Option<Asset> {
    if path.is_empty() {
        return file("index.html").map(|asset| Asset { lasting: false, ..asset });
    }
    let (folder, name) = path.split_once('/')?;
    (folder == FOLDER && name != "index.html").then(|| file(name)).flatten()
}

fn file(name: &str) -> Option<Asset> {
    let (_, content_type, gzipped) = FILES.iter().find(|(file, ..)| *file == name)?;
    Some(Asset { content_type, gzipped, lasting: true })
}

/// What a browser may load and run on the pages: files of this origin, and nothing that is made out of text.
pub const SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'";

include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_together_are_small() {
        let all: usize = FILES.iter().map(|(.., bytes)| bytes.len()).sum();
        assert!(all <= ALL_LEN_MAX, "{all} bytes gzipped, and {ALL_LEN_MAX} are the bound");
    }

    /// The files that a browser loads before it draws: what the page names, and what those import by themselves.
    fn first() -> std::collections::BTreeSet<String> {
        let text = |name: &str| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
            std::fs::read_to_string(folder.join(name)).unwrap()
        };
        let mut wanted: Vec<String> = text("index.html")
            .split("{folder}/")
            .skip(1)
            .filter_map(|part| Some(part.split_once('"')?.0.to_owned()))
            .collect();
        let mut first = std::collections::BTreeSet::new();
        while let Some(name) = wanted.pop() {
            let imports: Vec<String> = text(&name)
                .split("from \"./")
                .skip(1)
                .filter_map(|part| Some(part.split_once('"')?.0.to_owned()))
                .collect();
            if first.insert(name) {
                wanted.extend(imports);
            }
        }
        first
    }

    #[test]
    fn what_is_loaded_before_the_first_picture_is_small_and_the_stage_is_none_of_it() {
        let first = first();
        assert!(
            first.contains("main.js") && first.contains("vendor/preact.mjs") && !first.contains("stage.js"),
            "{first:?}"
        );
        let vendor = FILES.iter().filter(|(name, ..)| name.starts_with("vendor/"));
        let own = FILES.iter().filter(|(name, ..)| !name.starts_with("vendor/") && first.contains(*name));
        let len: usize = vendor.chain(own).map(|(.., bytes)| bytes.len()).sum();
        assert!(len <= FIRST_LEN_MAX, "{len} bytes gzipped, and {FIRST_LEN_MAX} are the bound");
    }

    #[test]
    fn a_page_is_found_under_the_hash_of_all_and_nowhere_else() {
        assert!(find("").is_some_and(|page| !page.lasting && page.content_type.starts_with("text/html")));
        assert!(find(&format!("{FOLDER}/main.js")).is_some_and(|script| script.lasting));
        for path in ["main.js", "index.html", "000000000000/main.js", "../main.js", &format!("{FOLDER}/index.html")] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn no_page_makes_elements_out_of_text_nor_asks_another_site() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut seen = 0;
        for (name, ..) in FILES.iter().filter(|(name, ..)| !name.starts_with("vendor/")) {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            // `dangerouslySetInnerHTML` among them, which is preact's.
            for banned in ["innerhtml", "outerhtml", "insertadjacenthtml", "document.write", "eval(", "document.cookie"]
            {
                assert!(!text.to_lowercase().contains(banned), "{name} uses {banned}");
            }
            for part in text.split("://").skip(1) {
                assert!(part.starts_with("www.w3.org") || part.starts_with("$"), "{name} names a site: {part:.30}");
            }
            assert!(text.lines().count() <= 300, "{name} has more than 300 lines");
            seen += 1;
        }
        assert!(seen > 10);
    }

    #[test]
    fn each_library_is_what_was_published() {
        use sha2::Digest;
        let vendor = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/vendor");
        let lock = std::fs::read_to_string(vendor.join("lock.tsv")).unwrap();
        let mut locked = std::collections::BTreeSet::from(["lock.tsv".to_owned()]);
        for line in lock.lines() {
            let [package, version, _, file, hash] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let found = sha2::Sha256::digest(std::fs::read(vendor.join(file)).unwrap());
            let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hash, "{file} is not that of {package} {version}; `cargo xtask vendor` gets it again");
            locked.insert(file.to_owned());
        }
        for entry in std::fs::read_dir(&vendor).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(locked.contains(&name), "{name} is not in lock.tsv");
        }
    }

    /// More than a page of a status display is worth on a slow line.
    const ALL_LEN_MAX: usize = 120 << 10;
    /// What a browser waits for on a slow line before it shows anything.
    const FIRST_LEN_MAX: usize = 60 << 10;
}
