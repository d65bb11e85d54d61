//! `cargo xtask chart`: what the Helm chart renders, and what it refuses; and whether compose takes its file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engines;
use crate::step::{root, run as step, say};

/// Lints the chart, compares what it renders of each file of values with the expectation beside it, and holds it to what it must
/// refuse; with `--renew` writes the expectations.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let is_renewal = match options {
        [] => false,
        ["--renew"] => true,
        _ => return Err("usage: cargo xtask chart [--renew]".to_owned()),
    };
    let helm = Helm { program: engines::built("helm")? };
    let values = values()?;
    for (name, file) in &values {
        step(&format!("chart: lint of {name}"), helm.command().args(["lint", "--quiet", CHART, "--values"]).arg(file))?;
    }
    let mut differ = Vec::new();
    for (name, file) in &values {
        let rendered = render(helm.template().arg("--values").arg(file));
        let rendered = rendered.map_err(|why| format!("{name} is not rendered: {why}"))?;
        let expected = root().join(RENDERS).join(format!("{name}.yaml"));
        if is_renewal {
            fs::write(&expected, rendered).map_err(|error| format!("cannot write {}: {error}", expected.display()))?;
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(&rendered) {
            differ.push(format!("{}: {}", expected.display(), first_difference(&expected, &rendered)));
        }
    }
    if !differ.is_empty() {
        return Err(format!(
            "the chart renders otherwise; `cargo xtask chart --renew` if so meant:\n  {}",
            differ.join("\n  ")
        ));
    }
    refusals(&helm)?;
    composed()?;
    say(&format!("==> chart: {} files of values render as expected, and {} are refused", values.len(), REFUSED.len()));
    Ok(())
}

/// Lets the file for compose be read as compose reads it.
fn composed() -> Result<(), String> {
    let mut compose = Command::new(engines::built("compose")?);
    compose.arg(root().join(COMPOSED));
    render(&mut compose).map_err(|why| format!("{COMPOSED} is not what compose takes: {why}")).map(drop)
}

fn refusals(helm: &Helm) -> Result<(), String> {
    for (settings, why) in REFUSED {
        let mut command = helm.template();
        settings.iter().for_each(|setting| _ = command.args(["--set", setting]));
        match render(&mut command) {
            Ok(_) => return Err(format!("the chart renders {settings:?}, which it must refuse: {why}")),
            Err(said) if said.contains(why) => {}
            Err(said) => {
                return Err(format!("the chart refuses {settings:?}, but for another reason than `{why}`: {said}"));
            }
        }
    }
    Ok(())
}

/// Files of values by name: those beside the expectations, and the one that the chart offers.
fn values() -> Result<Vec<(String, PathBuf)>, String> {
    let folder = root().join(RENDERS);
    let entries = fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let named = paths.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".values.yaml")?.to_owned();
        Some((name, path))
    });
    let mut values: Vec<_> = named.collect();
    values.push(("production".to_owned(), root().join(CHART).join("values-production.yaml")));
    values.sort();
    Ok(values)
}

/// Renders charts.
struct Helm {
    program: PathBuf,
}

impl Helm {
    fn template(&self) -> Command {
        let mut command = self.command();
        command.args(["template", "shop", CHART, "--namespace", "games", "--kube-version", KUBERNETES]);
        command
    }

    fn command(&self) -> Command {
        let mut helm = Command::new(&self.program);
        helm.current_dir(root());
        helm
    }
}

/// What is rendered, or what is said.
fn render(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?} does not start: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn first_difference(expected: &Path, rendered: &str) -> String {
    let expected = fs::read_to_string(expected).unwrap_or_default();
    let lines = expected.lines().map(Some).chain([None]).zip(rendered.lines().map(Some).chain([None]));
    let difference = lines.enumerate().find(|(_, (one, other))| one != other);
    let Some((number, (one, other))) = difference else { return "another length".to_owned() };
    format!("line {}: {:?} became {:?}", number + 1, one.unwrap_or_default(), other.unwrap_or_default())
}

/// Settings, and what must be said of them.
const REFUSED: &[(&[&str], &str)] = &[
    (&[], "have no certificate: set tls.secretName or tls.certManager.enabled, or insecureListen=true"),
    (&["tls.secretName=a"], "takes no credentials: set tokens.secretName or [auth] in config, or insecureListen=true"),
    (&["tokens.secretName=a"], "have no certificate"),
    (&["insecureListen=true", "tls.secretName=a", "tls.certManager.enabled=true"], "two sources of one certificate"),
    (&["insecureListen=true", "tls.certManager.enabled=true"], "tls.certManager.issuer names no issuer"),
    (&["insecureListen=true", "geo.enabled=true"], "geo.clusters does not list this cluster"),
    (&["tls.secretName=a", "tokens.secretName=b", "serviceMonitor.enabled=true"], "serviceMonitor.tokenSecret"),
    (&["insecureListen=true", "autoscaling.enabled=true", "autoscaling.maxReplicas=2"], "maxReplicas is below"),
    (&["insecureListen=true", "config=drain_timeout = 5"], "drain_timeout in config is written by the chart already"),
    (
        &["insecureListen=true", "store=redis://a", "config=store = \"redis://b\""],
        "store in config is written by the chart already",
    ),
    (
        &["insecureListen=true", "geo.enabled=true", "geo.clusters.greenroom={a:1}", "config=[geo]\nepoch = 2"],
        "[geo] in config is written by the chart already",
    ),
    (
        &["insecureListen=true", "table=redis://a", "config=[stores]\nsmall = \"kube:games\""],
        "config names a store kube: and neither table nor store is one",
    ),
    (&["insecureListen=true", "replica=2"], "additional properties 'replica' not allowed"),
    (&["insecureListen=true", "replicas=0"], "at '/replicas'"),
    (&["insecureListen=true", "drainDelay=5s"], "at '/drainDelay'"),
];

const CHART: &str = "deploy/chart";

const COMPOSED: &str = "deploy/compose.yaml";

const RENDERS: &str = "deploy/chart/renders";

/// The version of the API server that tests run.
const KUBERNETES: &str = "1.36.3";
