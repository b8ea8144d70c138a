//! The test kit finds the faults that it is for, each planted in a procedure that is
//! sound without it, and finds none in sound ones.

mod faults;
mod outside;
mod own_parts;
mod provision;
mod pure;
mod replay;
mod seeds;
mod sound;
mod statuses;

/// Tests pass errors up; the harness prints them.
type Tested = Result<(), Box<dyn std::error::Error>>;
