//! Greenroom's store in etcd.
