//! What the supervisor still does for two wings in files of its own.

mod health;
