//! `cargo xtask monitoring`: the rules and alerts of `deploy/monitoring`, as Prometheus reads them.

use std::process::Command;

use crate::engines;
use crate::step::run as step;

/// Checks them, and lets each alert fire and not fire.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    if !options.is_empty() {
        return Err("usage: cargo xtask monitoring".to_owned());
    }
    if let Some(missing) = missing() {
        return Err(format!("rules and alerts need {missing}"));
    }
    let promtool = |words: &[&str]| {
        let mut promtool = Command::new("promtool");
        promtool.args(words);
        promtool
    };
    let rules = ["records.yaml", "alerts.yaml"].map(|file| format!("{FOLDER}/{file}"));
    step("rules and alerts", promtool(&["check", "rules"]).args(rules))?;
    step("alerts that fire and do not", &mut promtool(&["test", "rules", &format!("{FOLDER}/alerts_test.yaml")]))
}

/// What is missing, if they cannot be checked here.
pub(crate) fn missing() -> Option<&'static str> {
    (!engines::starts("promtool")).then_some("promtool (`apt-get install prometheus`)")
}

const FOLDER: &str = "deploy/monitoring";
