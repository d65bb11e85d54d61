//! `cargo xtask image`: the container image of a node, built by buildah and tried out: it answers, and drains when it is told to stop.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::engines;
use crate::step::{cargo, root, run as step, target};

/// Builds the static program (or takes that which is there, with `--built`), puts it into an image, and runs that.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        [] => build_program()?,
        ["--built"] => {}
        _ => return Err("usage: cargo xtask image [--built]".to_owned()),
    }
    if !engines::starts("buildah") {
        return Err("the image needs buildah (`apt-get install buildah`)".to_owned());
    }
    let program = program()?;
    is_static(&program)?;
    is_stripped(&program)?;
    let folder = target()?.join("image");
    let context = folder.join("context");
    fs::create_dir_all(&context).map_err(|error| format!("cannot make {}: {error}", context.display()))?;
    let ours = [(program.as_path(), "greenroom"), (Path::new(AUTHORITIES), "ca-certificates.crt")];
    for (from, name) in ours {
        fs::copy(from, context.join(name)).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
    }
    let image = format!("localhost/greenroom:{}", env!("CARGO_PKG_VERSION"));
    let mut build = buildah(&folder);
    build.args([
        "build",
        "--isolation",
        "chroot",
        "--timestamp",
        &epoch()?,
        "--file",
        "deploy/Containerfile",
        "--tag",
        &image,
    ]);
    step("the image", build.arg(&context))?;
    let archive = folder.join("greenroom.oci.tar");
    drop(fs::remove_file(&archive));
    let mut push = buildah(&folder);
    push.args(["push", "--quiet", "--compression-format", "zstd", "--compression-level", "20", &image]);
    step("its archive", push.arg(format!("oci-archive:{}", archive.display())))?;
    try_out(&folder, &image)?;
    let bytes = fs::metadata(&archive).map_err(|error| format!("there is no archive: {error}"))?.len();
    println!("==> image: {image} answers and drains; {:.1} MB in {}", bytes as f64 / 1e6, archive.display());
    Ok(())
}

/// The program that has every provider but Kafka's, which wants a C library of its own.
pub(crate) fn build_program() -> Result<(), String> {
    let mut build = cargo();
    build.args(["build", "--locked", "--profile", "dist", "--target", TARGET, "--package", "greenroom-cli"]);
    step("the static program", build.args(["--features", FEATURES]))
}

/// Where it is.
pub(crate) fn program() -> Result<PathBuf, String> {
    let program = target()?.join(TARGET).join("dist/greenroom");
    match program.exists() {
        true => Ok(program),
        false => Err(format!("{} is not there; `cargo xtask image` builds it", program.display())),
    }
}

/// The time of the last commit, in seconds since 1970: the only one that archives know.
pub(crate) fn epoch() -> Result<String, String> {
    if let Ok(said) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(said);
    }
    let mut log = Command::new("git");
    let output = log.args(["log", "-1", "--format=%ct"]).current_dir(root()).output();
    let output = output.map_err(|error| format!("git does not start: {error}; set SOURCE_DATE_EPOCH"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn is_static(program: &Path) -> Result<(), String> {
    let output = Command::new("ldd").arg(program).output().map_err(|error| format!("ldd does not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let is_static = said.contains("statically linked") || said.contains("not a dynamic executable");
    if is_static {
        Ok(())
    } else {
        Err(format!("{} needs libraries, which the image has not: {said}", program.display()))
    }
}

/// A quarter of the program would be names that nobody reads there.
fn is_stripped(program: &Path) -> Result<(), String> {
    let bytes = fs::read(program).map_err(|error| format!("cannot read {}: {error}", program.display()))?;
    match bytes.windows(SYMBOLS.len()).any(|name| name == SYMBOLS) {
        true => Err(format!("{} has its symbols still; look at the profile `dist`", program.display())),
        false => Ok(()),
    }
}

/// The section that a stripped program has not, in the table of names.
const SYMBOLS: &[u8] = b"\0.symtab\0";

/// Runs the image's own command as its own user, asks it from outside, and ends it as a supervisor does.
fn try_out(folder: &Path, image: &str) -> Result<(), String> {
    let said = |command: &mut Command| -> Result<String, String> {
        let output =
            command.stderr(Stdio::inherit()).output().map_err(|error| format!("buildah does not start: {error}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let entry = "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}} {{.OCIv1.Config.User}}";
    let entry = said(buildah(folder).args(["inspect", "--type", "image", "--format", entry, image]))?;
    if entry != "[/usr/bin/greenroom] [node] 65532:65532" {
        return Err(format!("the image starts something else: {entry}"));
    }
    let container = said(buildah(folder).args(["from", image]))?;
    let done = in_container(folder, &container);
    said(buildah(folder).args(["rm", &container]))?;
    done
}

fn in_container(folder: &Path, container: &str) -> Result<(), String> {
    let door = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let door = door.map_err(|error| format!("there is no free port: {error}"))?.to_string();
    let mut run = buildah(folder);
    run.args(["run", "--isolation", "chroot", "--env", &format!("GREENROOM_HTTP={door}")]);
    run.args(["--env", "GREENROOM_DRAIN_DELAY=1s", container, "/usr/bin/greenroom", "node"]);
    let mut child = run.spawn().map_err(|error| format!("buildah does not start: {error}"))?;
    let answers = until(&mut child, || ask(&door, "GET", "/readyz", "").starts_with("HTTP/1.1 200"));
    let posted = ask(&door, "POST", "/chat_room/lobby/post", r#"{"user":"ada","text":"hi"}"#);
    let node = node(&child);
    match &node {
        Some(process) => step("SIGTERM", Command::new("kill").args(["-TERM", process]))?,
        None => drop(child.kill()),
    }
    let leaves = until(&mut child, || ask(&door, "GET", "/readyz", "").starts_with("HTTP/1.1 503"));
    let ended = ended(&mut child);
    answers.map_err(|why| format!("the image's node does not answer: {why}"))?;
    if !posted.starts_with("HTTP/1.1 200") {
        return Err(format!("the image's node answers a call so: {posted}"));
    }
    leaves.map_err(|why| format!("the image's node does not say that it leaves: {why}"))?;
    match ended {
        Some(status) if status.success() => Ok(()),
        other => Err(format!("the image's node does not end well after SIGTERM: {other:?}")),
    }
}

/// Waits until `holds`, as long as the child lives and patience lasts.
fn until(child: &mut Child, holds: impl Fn() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !holds() {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("it has ended: {status}"));
        }
        if began.elapsed() > PATIENCE {
            return Err("it never came to be".to_owned());
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn ended(child: &mut Child) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        sleep(Duration::from_millis(20));
    }
    // Nothing is left behind.
    if let Some(node) = node(child) {
        drop(Command::new("kill").args(["-KILL", &node]).status());
    }
    drop(child.kill());
    None
}

/// The node's process: the last of buildah's descendants.
fn node(child: &Child) -> Option<String> {
    let mut process = child.id().to_string();
    while let Some(next) = child_of(&process) {
        process = next;
    }
    (process != child.id().to_string()).then_some(process)
}

/// A process that `parent` has begun, whichever of its threads did.
fn child_of(parent: &str) -> Option<String> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).ok()?;
    tasks.flatten().find_map(|task| {
        let children = fs::read_to_string(task.path().join("children")).ok()?;
        children.split_whitespace().next().map(str::to_owned)
    })
}

/// One request, and the whole answer; nothing if there is none.
fn ask(door: &str, method: &str, path: &str, body: &str) -> String {
    let mut answer = Vec::new();
    let asked = TcpStream::connect(door).and_then(|mut stream| {
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {door}\r\nConnection: close\r\nContent-Length: {}", body.len());
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
        stream.read_to_end(&mut answer)
    });
    drop(asked);
    String::from_utf8_lossy(&answer).into_owned()
}

/// buildah, with all that it keeps in `folder`.
fn buildah(folder: &Path) -> Command {
    let mut command = Command::new("buildah");
    command.current_dir(root()).arg("--root").arg(folder.join("storage"));
    command.arg("--runroot").arg(folder.join("run")).args(["--storage-driver", "vfs"]);
    command
}

/// What programs that are handed out are built for.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";

/// All of the program's but Kafka's client.
pub(crate) const FEATURES: &str = "postgres,redis,etcd,s3,kube,otel";

/// The public authorities, where Debian has them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Far beyond any start or drain on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
