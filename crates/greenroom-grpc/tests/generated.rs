//! The generated code in the tree is what the generator makes of the `.proto`: `GREENROOM_WRITE_PROTO=1` renews it.

use std::path::{Path, PathBuf};

use prost::Message;

/// What is generated: a file in the tree, and its bytes.
fn generated() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(["greenroom/v1/actors.proto"], [root.join("proto")]).expect("it compiles");
    let folder = tempfile::tempdir().expect("there is room");
    let made = |client: bool| {
        let out = folder.path().join(if client { "client" } else { "server" });
        std::fs::create_dir(&out).expect("there is room");
        let builder = tonic_prost_build::configure().out_dir(&out).build_transport(false);
        let builder = match client {
            true => builder.build_server(false).build_client(true).extern_path(".greenroom.v1", "::greenroom_grpc::v1"),
            false => builder.build_server(true).build_client(false),
        };
        builder.compile_fds(descriptors.clone()).expect("it has code");
        std::fs::read(out.join("greenroom.v1.rs")).expect("it was written")
    };
    let (service, client) = (made(false), made(true));
    vec![
        (root.join("src/generated/greenroom.v1.bin"), descriptors.encode_to_vec()),
        (root.join("src/generated/greenroom.v1.rs"), service),
        (root.join("tests/door/client.rs"), client),
    ]
}

#[test]
fn the_generated_code_is_that_of_the_proto() {
    for (path, bytes) in generated() {
        if std::env::var_os("GREENROOM_WRITE_PROTO").is_some() {
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("there is room");
            std::fs::write(&path, &bytes).expect("it can be written");
        }
        let there = std::fs::read(&path).unwrap_or_default();
        assert!(there == bytes, "{} is not current: run this test with GREENROOM_WRITE_PROTO=1", path.display());
    }
}
