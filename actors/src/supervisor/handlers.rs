//! What the supervisor still does for the health wing in a file of its own.

mod health;
