//! semisync
