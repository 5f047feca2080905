//! Images without a registry: made here, kept in the cache, put into nodes.
//! Nothing is ever pulled, so every name begins with `localhost/`.

mod archive;
mod error;
mod golden;
mod katazuke;
mod mysql;

pub use error::ImageError;
pub use golden::{Golden, golden};
pub use katazuke::{build_katazuke, load_katazuke};
pub use mysql::mysql_archive;

/// mysqld and its client.
pub const MYSQL: &str = "localhost/katazuke/mysql:9.7";
/// The one server binary of this project.
pub const KATAZUKE: &str = "localhost/katazuke/katazuke:dev";
/// PID 1 of every Pod sandbox.
pub const PAUSE: &str = "localhost/katazuke/pause:1";
