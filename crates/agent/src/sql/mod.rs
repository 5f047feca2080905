//! The agent's statements. Never waits without a bound, never asks anything
//! that hangs behind waiting commits (fact 8).

pub(crate) mod accounts;
pub(crate) mod observe;
pub(crate) mod session;
