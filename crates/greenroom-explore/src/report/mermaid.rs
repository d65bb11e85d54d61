//! A schedule as the text of a Mermaid diagram, for issues.

use std::fmt::Write as _;

use super::story::Story;

/// The diagram. Names and values are text in it, whatever they contain.
pub(crate) fn mermaid(story: &Story) -> String {
    let mut out = String::from("sequenceDiagram\n");
    let mut line = |text: std::fmt::Arguments<'_>| {
        // A string takes all that is written.
        let _ = writeln!(out, "  {text}");
    };
    for (at, lane) in story.lanes.iter().enumerate() {
        line(format_args!("participant p{at} as {}", text(&lane.name)));
    }
    for scene in &story.steps {
        if let Some(other) = &scene.instead_of {
            line(format_args!("Note over p{}: {} before {}", scene.lane, text(&scene.name), text(other)));
        }
        match (scene.from, scene.is_answer) {
            (Some(from), false) => line(format_args!("p{from}->>p{}: {}", scene.lane, text(&scene.what))),
            (Some(from), true) => line(format_args!("p{from}-->>p{}: {}", scene.lane, text(&scene.what))),
            (None, _) => {
                let what = match scene.what.as_str() {
                    "" => scene.name.clone(),
                    with if scene.deed.starts_with("chooses") => with.to_owned(),
                    with => format!("{} {with}", scene.name),
                };
                line(format_args!("Note over p{}: {}", scene.lane, text(&what)));
            }
        }
        for note in &scene.notes {
            line(format_args!("Note over p{}: {}", scene.lane, text(note)));
        }
    }
    if let (Some(last), false) = (story.lanes.len().checked_sub(1), story.lanes.is_empty()) {
        line(format_args!("Note over p0,p{last}: {}", text(&story.violated)));
    }
    out
}

/// Text that means nothing to Mermaid.
fn text(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for letter in value.chars().take(TEXT_LEN_MAX) {
        match letter {
            letter
                if letter.is_alphanumeric()
                    || matches!(letter, ' ' | '.' | '/' | '(' | ')' | ',' | '=' | '-' | '_') =>
            {
                out.push(letter);
            }
            letter if letter.is_control() => out.push(' '),
            letter => {
                // A string takes all that is written.
                let _ = write!(out, "#{};", letter as u32);
            }
        }
    }
    out
}

const TEXT_LEN_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn what_means_something_to_mermaid_is_text() {
        assert_eq!(text("a;b#c\n<script>"), "a#59;b#35;c #60;script#62;");
        assert_eq!(text("account/ada.add(10)"), "account/ada.add(10)");
    }
}
