//! What the supervisor still does for one wing in a file of its own.

mod admission;
