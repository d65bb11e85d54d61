//! The program that answers: a child of this one, in any language.

use std::future::Future;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Echoed;
use crate::cli::Sdk;
use crate::cluster::{cpu_seconds, spawn_tied};
use crate::driver::Plan;
use crate::report::Report;

/// The program, which ends with this.
pub(super) struct Program(Child);

impl Program {
    /// Starts the echo of the plan's SDK in `form`, which is to dial `way`. What is built goes into `scratch`.
    ///
    /// # Errors
    /// What is missing for it.
    pub(super) fn start(plan: &Plan, form: &str, way: &str, scratch: &Path) -> Result<Self, String> {
        let mut command = command(plan, scratch)?;
        command.arg(form).env("GREENROOM_HOST", way).stdin(Stdio::null()).stdout(Stdio::null());
        let child = spawn_tied(&mut command);
        let child = child.map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))?;
        Ok(Self(child))
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// How it ended.
    pub(super) fn is_there(&mut self) -> Result<(), String> {
        match self.0.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("the host has ended: {status}")),
            Err(error) => Err(format!("the host is lost: {error}")),
        }
    }

    /// What `calls` take of it.
    ///
    /// # Errors
    /// Those of `calls`.
    pub(super) async fn timed(&self, calls: impl Future<Output = Result<Report, String>>) -> Result<Echoed, String> {
        let id = self.0.id().to_string();
        let before = cpu_seconds(&id);
        let report = calls.await?;
        Ok(Echoed { report, cpu_seconds: cpu_seconds(&id) - before })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(plan: &Plan, scratch: &Path) -> Result<Command, String> {
    let with = |usual: &str| Command::new(plan.host.interpreter.as_deref().unwrap_or(Path::new(usual)));
    let sdks = plan.host.sdks.canonicalize();
    let sdks = sdks.map_err(|error| format!("no SDKs in {}: {error}; say where by --sdks", plan.host.sdks.display()));
    match plan.host.sdk {
        Sdk::Python => {
            let sdk = sdks?.join("python");
            let mut python = with("python3");
            python.arg(sdk.join("bench/echo.py")).env("PYTHONPATH", sdk.join("src"));
            Ok(python)
        }
        Sdk::Node => {
            let program = sdks?.join("typescript/dist/bench/echo.js");
            if !program.exists() {
                let folder = program.ancestors().nth(3).unwrap_or(&program).display().to_string();
                return Err(format!("{} is not there: npm install in {folder}", program.display()));
            }
            let mut node = with("node");
            node.arg(program);
            Ok(node)
        }
        Sdk::Go => {
            let program = scratch.join("echo");
            let mut build = with("go");
            build.arg("-C").arg(sdks?.join("go")).args(["build", "-o"]).arg(&program).arg("./bench/echo");
            let built =
                build.status().map_err(|error| format!("cannot start {}: {error}", build.get_program().display()));
            if !built?.success() {
                return Err("the host in Go cannot be built".to_owned());
            }
            Ok(Command::new(program))
        }
        Sdk::Rust => {
            let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
            let mut rust = Command::new(program);
            rust.args(["bench", "host", "--echo"]);
            Ok(rust)
        }
    }
}
