//! Node processes beside real engines: databases that keep the membership table, and Kubernetes' API server.

#[cfg(feature = "kube")]
mod chart;
#[cfg(feature = "stores")]
mod tables;
