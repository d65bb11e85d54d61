mod restarts;

use greenroom_engines::{KubeApiserver, free_port, unless_missing};
use greenroom_store_conformance::{Harness, Relay, network, store};

use super::*;

const BY: Duration = Duration::from_secs(30);

/// A server that knows the resource.
fn prepared() -> Option<KubeApiserver> {
    let server = unless_missing(KubeApiserver::start())?;
    server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).unwrap();
    assert!(server.wait_for("/apis/greenroom.dev/v1/namespaces/default/greenroomrecords"));
    Some(server)
}

async fn open(server: &KubeApiserver, token: &str, store: &str) -> Result<KubeStore> {
    let kubeconfig = server.kubeconfig(token).unwrap();
    KubeStore::open(&format!("kube:default?kubeconfig={}&store={store}", kubeconfig.display())).await
}

#[tokio::test]
async fn an_api_server_is_a_store() {
    let Some(server) = prepared() else { return };
    let one = Arc::new(open(&server, KubeApiserver::ADMIN, "all").await.unwrap());
    let other = Arc::new(open(&server, KubeApiserver::ADMIN, "all").await.unwrap());
    store::all(&Harness::new(one).also(other).value_bytes_max(VALUE_BYTES_MAX)).await;
}

#[tokio::test]
async fn an_api_server_behind_a_bad_network_keeps_its_promises() {
    let Some(server) = prepared() else { return };
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    let behind = server.kubeconfig_at(relay.addr().port(), KubeApiserver::ADMIN).unwrap();
    let through = KubeStore::open(&format!("kube:default?kubeconfig={}&store=net", behind.display())).await.unwrap();
    let direct = open(&server, KubeApiserver::ADMIN, "net").await.unwrap();
    network::store(&relay, Arc::new(through), Arc::new(direct)).await;
}

#[tokio::test]
async fn a_missing_right_is_denied_with_the_role_that_gives_it() {
    let Some(server) = prepared() else { return };
    let error = open(&server, KubeApiserver::LIMITED, "rights").await.unwrap_err();
    let expected = "--verb=get,list,create,update,delete --resource=greenroomrecords.greenroom.dev";
    assert!(matches!(error, StoreError::Denied { .. }) && error.to_string().contains(expected), "{error}");
    assert!(!error.to_string().contains(KubeApiserver::LIMITED), "{error}");

    let (role, binding) = ROLE.split_once("---\n").unwrap();
    let rights = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    server.create(&format!("{rights}/roles"), role).unwrap();
    let (account, user) = (
        "kind: ServiceAccount\n    name: default\n    namespace: default",
        "kind: User\n    apiGroup: rbac.authorization.k8s.io\n    name: limited",
    );
    assert!(binding.contains(account));
    server.create(&format!("{rights}/rolebindings"), &binding.replace(account, user)).unwrap();
    let mut opened = open(&server, KubeApiserver::LIMITED, "rights").await;
    for _ in 0..50 {
        if opened.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        opened = open(&server, KubeApiserver::LIMITED, "rights").await;
    }
    let store = opened.unwrap();
    let first = store.create("key", "one".into(), BY).await.unwrap();
    let second = store.replace("key", "two".into(), &first, BY).await.unwrap();
    assert_eq!(store.scan("", None, 9, BY).await.unwrap().items.len(), 1);
    store.delete("key", &second, BY).await.unwrap();
}

#[tokio::test]
async fn what_is_wrong_with_a_url_or_a_cluster_is_answered_with_the_remedy() {
    let Some(server) = unless_missing(KubeApiserver::start()) else { return };
    let error = open(&server, KubeApiserver::ADMIN, "early").await.unwrap_err();
    let is_bad = |error: &StoreError| matches!(error, StoreError::Configuration { .. });
    assert!(is_bad(&error) && error.to_string().contains("CustomResourceDefinition"), "{error}");
    let error = open(&server, "wrong-token", "early").await.unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }) && error.to_string().contains("see to the token"), "{error}");
    let nobody = server.kubeconfig_at(free_port(), KubeApiserver::ADMIN).unwrap();
    let error = KubeStore::open(&format!("kube:default?kubeconfig={}", nobody.display())).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }) && error.to_string().contains("runs"), "{error}");
    for (url, part) in [
        ("kube:Default", "not plain"),
        ("kube:default?store=a%2Fb", "not plain"),
        ("kube:default?kubeconfig=/none/such", "see to /none/such"),
        ("kube:default?name=x", "there are: store, kubeconfig, context"),
        ("etcd://127.0.0.1", "no Kubernetes"),
    ] {
        let error = KubeStore::open(url).await.unwrap_err();
        assert!(is_bad(&error) && error.to_string().contains(part), "{url}: {error}");
    }
}
