//! Services as states call them: what is decoded, what a call comes to, and what a fault is.

mod arguments;
mod calls;
mod classes;
mod faults;
mod json;
mod registered;

/// An error with a text, below which there may be another one.
#[derive(Debug)]
struct Layer<E>(&'static str, E);

impl<E> std::fmt::Display for Layer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Layer<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.1)
    }
}

/// An error with nothing below it.
#[derive(Debug)]
struct OutOfFunds;

impl std::fmt::Display for OutOfFunds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("out of funds")
    }
}

impl std::error::Error for OutOfFunds {}

/// The same, of another type.
#[derive(Debug)]
struct OutOfStock;

impl std::fmt::Display for OutOfStock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("out of stock")
    }
}

impl std::error::Error for OutOfStock {}
