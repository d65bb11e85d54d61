//! greenroom
