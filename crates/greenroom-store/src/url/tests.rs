use super::*;

fn message(text: &str) -> String {
    text.parse::<StoreUrl>().unwrap_err().to_string()
}

#[test]
fn a_url_is_parsed_and_shown() {
    let sqlite = |path: &str| Ok(StoreUrl::Sqlite { path: path.into() });
    assert_eq!("memory://".parse(), Ok(StoreUrl::Memory));
    assert_eq!("sqlite:/a/b.db".parse(), sqlite("/a/b.db"));
    assert_eq!("sqlite:///a/b c%20.db".parse(), sqlite("/a/b c%20.db"));
    assert_eq!("sqlite:b.db".parse(), sqlite("b.db"));
    assert_eq!("sqlite://b.db".parse(), sqlite("b.db"));
    for text in ["memory:", "sqlite:/a/b.db", "sqlite:b.db"] {
        assert_eq!(text.parse::<StoreUrl>().map(|url| url.to_string()).as_deref(), Ok(text));
    }
}

#[test]
fn an_unknown_scheme_is_answered_with_the_near_name_and_all_names() {
    assert!(message("sqlit:/a").contains("did you mean \"sqlite\"; there are: memory, sqlite, postgres"));
    assert!(message("SQLite3:/a").contains("did you mean \"sqlite\""));
    assert!(message("mem:").contains("did you mean \"memory\""));
    assert!(message("postgre://host/db").contains("did you mean \"postgres\""));
    assert!(message("etc:").contains("did you mean \"etcd\""));
    assert!(!message("https://host/db").contains("did you mean"));
    // Engines that there is no provider for, and what is none.
    for scheme in ["mysql", "mssql", "mongodb", "file", "http", "s", "S3x", "aaa", "ésqlite", ""] {
        assert!(message(&format!("{scheme}://host/db")).contains("there are: memory"), "{scheme}");
    }
}

#[test]
fn what_is_missing_or_too_much_is_named_with_the_remedy() {
    assert!(message("/var/a.db").contains("write \"sqlite:/var/a.db\""));
    assert!(message("sqlite:").contains("incomplete"));
    assert!(message("memory").contains("write \"memory:\""));
    assert!(message("memory:shared").contains("never shared"));
}

fn remote(text: &str) -> Remote {
    match text.parse() {
        Ok(StoreUrl::Postgres(remote) | StoreUrl::Redis(remote) | StoreUrl::Etcd(remote) | StoreUrl::S3(remote)) => {
            remote
        }
        other => panic!("{text} is {other:?}"),
    }
}

fn hosts(remote: &Remote) -> Vec<(&str, u16)> {
    remote.hosts.iter().map(|host| (host.name.as_str(), host.port)).collect()
}

#[test]
fn an_engine_behind_a_network_is_parsed_with_its_own_port() {
    let postgres = remote("postgresql://ada@db-1,db-2:6000/green%20room?sslmode=require");
    assert_eq!(hosts(&postgres), [("db-1", 5432), ("db-2", 6000)]);
    assert_eq!((postgres.scheme, postgres.user.as_deref(), &*postgres.path), ("postgres", Some("ada"), "green room"));
    assert_eq!(postgres.parameters.find("sslmode"), Some("require"));
    let redis = remote("rediss://[::1]/3");
    assert_eq!((hosts(&redis), &*redis.path, redis.tls), (vec![("::1", 6379)], "3", Some(true)));
    let etcd = remote("etcd://a,b,c:23790/greenroom/one?tls=on&ca_file=/etc/ca.pem");
    assert_eq!(hosts(&etcd), [("a", 2379), ("b", 2379), ("c", 23790)]);
    assert_eq!((&*etcd.path, etcd.tls), ("greenroom/one", Some(true)));
    assert_eq!(etcd.parameters.path("ca_file"), Some("/etc/ca.pem".into()));
    let s3 = remote("s3://bucket/a/b?endpoint=http://127.0.0.1:9000");
    assert_eq!((hosts(&s3), &*s3.path), (vec![("bucket", 0)], "a/b"));
    assert_eq!(s3.parameters.find("endpoint"), Some("http://127.0.0.1:9000"));
    let Ok(StoreUrl::Kube { namespace, parameters }) = "kube:default?context=test".parse() else { panic!("kube") };
    assert_eq!((&*namespace, parameters.find("context")), ("default", Some("test")));
}

#[test]
fn a_remote_url_is_shown_as_it_is_parsed() {
    for text in [
        "postgres://ada@db-1:5432,db-2:6000/green%20room?password_file=/run/secrets/db&sslmode=require",
        "postgres://db:5432/x?password_env=DB_PASSWORD",
        "rediss://[::1]:6379/3",
        "redis://host:6379?tls=on",
        "etcd://a:2379,b:2379/x?tls=off",
        "s3://bucket/a/b?endpoint=http://127.0.0.1:9000&region=eu",
        "kube:default?context=test",
    ] {
        let url = text.parse::<StoreUrl>().unwrap();
        assert_eq!(url.to_string(), text);
        assert_eq!(url.to_string().parse(), Ok(url));
    }
}

#[test]
fn a_password_is_used_but_never_shown() {
    let url = "postgres://ada:love%2Flace%40@db/x";
    let parsed = remote(url);
    assert_eq!(parsed.password().unwrap().unwrap().expose(), "love/lace@");
    let mut shown = vec![parsed.to_string(), format!("{parsed:?}")];
    for malformed in [
        "postgres://ada:love/lace@db/x",
        "postgres://ada:lovelace@db:0/x",
        "postgres://ada:lovelace@",
        "postgres:ada:lovelace@db",
        "postgres://ada:lovelace@db/x?password_env=A",
        "postgres://ada@db/x?password=lovelace",
        "postgres://ada:lovelace%@db/x",
    ] {
        shown.push(message(malformed));
    }
    for shown in shown {
        assert!(!shown.contains("love") && !shown.contains("lace"), "{shown}");
    }
}

#[test]
fn a_password_is_read_from_a_file_or_the_environment_when_it_is_used() {
    let path = std::env::temp_dir().join(format!("greenroom-password-{}", std::process::id()));
    let parsed = remote(&format!("redis://host?password_file={}", path.display()));
    let error = parsed.password().unwrap_err().to_string();
    assert!(error.contains("cannot be read") && error.contains("let this user read it"), "{error}");
    for password in ["first", "second"] {
        std::fs::write(&path, format!("{password}\n")).unwrap();
        assert_eq!(parsed.password().unwrap().unwrap().expose(), password);
    }
    std::fs::remove_file(&path).unwrap();
    // Cargo sets it for every test.
    let package = remote("redis://host?password_env=CARGO_PKG_NAME").password().unwrap().unwrap();
    assert_eq!(package.expose(), "greenroom-store");
    let error = remote("redis://host?password_env=GREENROOM_NO_SUCH").password().unwrap_err();
    assert!(error.to_string().contains("GREENROOM_NO_SUCH for its password is not set"), "{error}");
}

#[test]
fn a_malformed_remote_url_is_answered_with_the_remedy() {
    assert!(message("postgres:").contains("write \"postgres://user@host/database"));
    assert!(message("etcd").contains("write \"etcd://host1,host2"));
    assert!(message("s3:///prefix").contains("write \"s3://bucket/prefix"));
    assert!(message("kube:").contains("write \"kube:default\""));
    assert!(message("redis://a,b/0").contains("several hosts"));
    assert!(message("redis://::1/0").contains("\"[::1]:5432\""));
    assert!(message("redis://a:x/0").contains("not a number from 1 to 65535"));
    assert!(message("redis://a?x=1&x=2").contains("\"x\" twice"));
    assert!(message("redis://a?tls=yes").contains("either \"on\" or \"off\""));
    assert!(message("redis://a/%zz").contains("\"%25\""));
    let error = remote("redis://a?tabel=x").check_parameters(&["table"]).unwrap_err();
    assert!(error.to_string().contains("no parameter \"tabel\"; there are: table"), "{error}");
}
