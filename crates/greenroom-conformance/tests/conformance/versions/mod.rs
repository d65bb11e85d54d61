//! Interface versions: nodes of two versions of a program in one cluster.

mod fitting;
mod tills;
mod upgrade;
