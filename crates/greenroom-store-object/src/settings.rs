//! What a URL says about a bucket.

use greenroom_store::url::{Remote, is_on_this_machine};
use greenroom_store::{Result, StoreError};
use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::{Certificate, ClientOptions, RetryConfig};

/// The client for `remote`'s bucket.
pub(crate) fn client(remote: &Remote) -> Result<AmazonS3> {
    remote.check_parameters(&["endpoint", "region", "ca", "virtual_hosts"])?;
    let bad = |reason: String| StoreError::Configuration { store: remote.to_string(), reason };
    let [bucket] = &remote.hosts[..] else { return Err(bad("it names more than one bucket".to_owned())) };
    // A proxy of the environment's is used for other machines; deadlines are the caller's.
    let mut options = ClientOptions::new().with_timeout_disabled().with_connect_timeout(CONNECT_TIMEOUT);
    if let Some(path) = remote.parameters.path("ca") {
        let read = std::fs::read(&path).map_err(|error| {
            bad(format!("the file {} cannot be read ({error}); let this user read it", path.display()))
        })?;
        let certificate = Certificate::from_pem(&read);
        options = options.with_root_certificate(certificate.map_err(|error| bad(error.to_string()))?);
    }
    // The environment first: AWS_ACCESS_KEY_ID, AWS_REGION, a role of the machine or the pod.
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(&bucket.name);
    if let Some(endpoint) = remote.parameters.find("endpoint") {
        options = options.with_allow_http(endpoint.starts_with("http://"));
        if is_on_this_machine(endpoint) {
            // The environment is not read once a proxy is named; this one is used for no host.
            options = options.with_proxy_url(endpoint).with_proxy_excludes(ALL_HOSTS);
        }
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = remote.parameters.find("region") {
        builder = builder.with_region(region);
    }
    if let Some(user) = &remote.user {
        let Some(secret) = remote.password()? else {
            let remedy = "say password_file=FILE or password_env=NAME, or leave out both for the environment's";
            return Err(bad(format!("it names an access key and no secret; {remedy}")));
        };
        builder = builder.with_access_key_id(user).with_secret_access_key(secret.expose());
    }
    match remote.parameters.find("virtual_hosts") {
        None | Some("off") => {}
        Some("on") => builder = builder.with_virtual_hosted_style_request(true),
        Some(_) => return Err(bad("virtual_hosts is either \"on\" or \"off\"".to_owned())),
    }
    // A conditional write that the client repeats would be refused by its own success.
    let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    builder = builder.with_client_options(options).with_retry(retry).with_conditional_put(S3ConditionalPut::ETagMatch);
    builder.build().map_err(|error| bad(error.to_string()))
}

const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(3);
/// All names, and all addresses of both versions, as reqwest reads them.
const ALL_HOSTS: &str = "*,0.0.0.0/0,::/0";
