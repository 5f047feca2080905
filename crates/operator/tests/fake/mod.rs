//! A small world for the real loop: an API server in memory ([`api`]) and
//! agents over real TLS on loopback ([`agent`]). Models only what the loop
//! leans on: optimistic concurrency, watches, subresources, orders.

pub(crate) mod agent;
pub(crate) mod api;
pub(crate) mod world;
