//! Engines that no package manager has: built once from their Go modules into a cache outside the checkout, and reused.
//!
//! Nothing is built unless [`GoEngine::install`] is asked to (minutes, the first time):
//! `cargo run -p greenroom-engines --example install -- etcd minio kube-apiserver`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// An engine that is built from its Go module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GoEngine {
    /// etcd 3.7.3: about a minute to build.
    Etcd,
    /// MinIO, the newest version that the module proxy has: about five minutes.
    Minio,
    /// Kubernetes' API server 1.36.3: about eight minutes.
    KubeApiserver,
    /// Helm 3.22.0, which renders what the API server is given: about two minutes.
    Helm,
    /// compose-go 2.16.2, which reads files as `docker compose` does: ten seconds.
    Compose,
}

impl GoEngine {
    /// Every engine that is built so.
    pub const ALL: [Self; 5] = [Self::Etcd, Self::Minio, Self::KubeApiserver, Self::Helm, Self::Compose];

    /// The name that the install command takes.
    pub fn name(self) -> &'static str {
        self.recipe().name
    }

    /// The engine called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// The built program.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] with the command that builds it, if it is not in the cache.
    pub fn installed(self) -> Result<PathBuf, Error> {
        let program = self.program();
        if program.is_file() { Ok(program) } else { Err(self.missing(format!("run `{INSTALL} {}`", self.name()))) }
    }

    /// The built program, which is built now if it is not in the cache. Only one process builds at a time; the others
    /// wait for it and use what it has built.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if there is no Go, [`Error::Start`] if the build fails.
    pub fn install(self) -> Result<PathBuf, Error> {
        let failed = |error: io::Error| self.failed(&error.to_string());
        let program = self.program();
        let folder = program.parent().expect("it is in the cache's folder");
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(folder.join(".lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        if !program.is_file() {
            let scratch = tempfile::tempdir_in(folder).map_err(failed)?;
            fs::rename(self.build(scratch.path())?, &program).map_err(failed)?;
        }
        Ok(program)
    }

    fn program(self) -> PathBuf {
        let Recipe { name, version, .. } = self.recipe();
        cache().join(format!("{name}-{version}"))
    }

    /// Builds the program somewhere inside `scratch`.
    fn build(self, scratch: &Path) -> Result<PathBuf, Error> {
        let recipe = self.recipe();
        let mut go = Command::new("go");
        go.current_dir(scratch).env("CGO_ENABLED", "0").env("GOBIN", scratch).stdin(Stdio::null());
        match recipe.module {
            Some(module) => {
                for (file, text) in module {
                    fs::write(scratch.join(file), text).map_err(|error| self.failed(&error.to_string()))?;
                }
                go.args(["build", "-o", recipe.name]);
            }
            None => drop(go.arg("install")),
        }
        go.args(["-trimpath", "-ldflags", recipe.link, recipe.package]);
        let output = go.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.missing("install Go 1.26 or newer, then build it again".to_owned()),
            _ => self.failed(&error.to_string()),
        })?;
        if !output.status.success() {
            return Err(self.failed(&String::from_utf8_lossy(&output.stderr)));
        }
        Ok(scratch.join(recipe.program()))
    }

    fn missing(self, remedy: String) -> Error {
        Error::Missing { engine: self.name(), remedy }
    }

    fn failed(self, reason: &str) -> Error {
        Error::Start { engine: self.name(), reason: format!("its build failed: {reason}") }
    }

    fn recipe(self) -> Recipe {
        match self {
            Self::Etcd => Recipe {
                name: "etcd",
                version: "3.7.3",
                package: "go.etcd.io/etcd/server/v3",
                link: "-s -w",
                module: Some([
                    ("go.mod", include_str!("../engines/etcd/go.mod")),
                    ("go.sum", include_str!("../engines/etcd/go.sum")),
                    ("tools.go", include_str!("../engines/etcd/tools.go")),
                ]),
            },
            // Their go.mod replaces nothing, so that they can be installed without a module around them.
            Self::Helm => Recipe {
                name: "helm",
                version: "3.22.0",
                package: "helm.sh/helm/v3/cmd/helm@v3.22.0",
                link: "-s -w",
                module: None,
            },
            Self::Compose => Recipe {
                name: "compose",
                version: "2.16.2",
                package: "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
                link: "-s -w",
                module: None,
            },
            Self::Minio => Recipe {
                name: "minio",
                version: "20260212",
                package: "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
                link: "-s -w",
                module: None,
            },
            Self::KubeApiserver => Recipe {
                name: "kube-apiserver",
                version: "1.36.3",
                package: "k8s.io/kubernetes/cmd/kube-apiserver",
                // Without its version, the server calls itself v0.0.0 and refuses to start.
                link: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
                       -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
                module: Some([
                    ("go.mod", include_str!("../engines/kube-apiserver/go.mod")),
                    ("go.sum", include_str!("../engines/kube-apiserver/go.sum")),
                    ("tools.go", include_str!("../engines/kube-apiserver/tools.go")),
                ]),
            },
        }
    }
}

/// How an engine is built.
struct Recipe {
    name: &'static str,
    version: &'static str,
    package: &'static str,
    link: &'static str,
    /// The files of the module to build in; `None` if the package is installed by itself.
    module: Option<[(&'static str, &'static str); 3]>,
}

impl Recipe {
    /// The file that is built: named by us, or after its package.
    fn program(&self) -> &'static str {
        let package = self.package.split('@').next().unwrap_or_default();
        let last = package.rsplit('/').next().unwrap_or_default();
        if self.module.is_some() { self.name } else { last }
    }
}

/// Where built engines are: [`CACHE_VARIABLE`], or `greenroom/engines` in the user's cache folder.
pub(crate) fn cache() -> PathBuf {
    let from = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = || from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    from(CACHE_VARIABLE).unwrap_or_else(|| user().unwrap_or_else(std::env::temp_dir).join("greenroom/engines"))
}

/// The environment variable that names another folder for built engines.
pub const CACHE_VARIABLE: &str = "GREENROOM_ENGINES_CACHE";

const INSTALL: &str = "cargo run -p greenroom-engines --example install --";
