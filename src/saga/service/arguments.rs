//! Argument lists, decoded into types.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Fault;

/// The class of a fault that says that arguments do not fit a method.
pub(super) const BAD_ARGUMENTS: &str = "procession.BadArguments";

/// What a method takes: a tuple of up to eight types that `serde` reads, `Vec<Value>` for the list as it is, or `()`.
///
/// The list is the state's `Input`. Arguments that it lacks are null, which an `Option` takes; arguments behind the last
/// type are dropped.
///
/// ```
/// use procession::saga::Arguments;
/// use serde_json::json;
///
/// let (article, count) = <(String, Option<u32>)>::decode(vec![json!("tea")])?;
/// assert_eq!((article.as_str(), count), ("tea", None));
///
/// let fault = <(String, u32)>::decode(vec![json!("tea"), json!("many")]).unwrap_err();
/// assert_eq!(fault.class(), "procession.BadArguments");
/// assert_eq!(fault.message(), "argument 2: invalid type: string \"many\", expected u32");
/// # Ok::<(), procession::saga::Fault>(())
/// ```
///
/// A method of one argument takes a tuple of one, as `(article,): (String,)`.
pub trait Arguments: Sized {
    /// Decodes the list.
    ///
    /// # Errors
    ///
    /// A fault of class `procession.BadArguments` for the first argument that does not fit, with its number from 1.
    fn decode(arguments: Vec<Value>) -> Result<Self, Fault>;
}

impl Arguments for () {
    fn decode(_: Vec<Value>) -> Result<Self, Fault> {
        Ok(())
    }
}

impl Arguments for Vec<Value> {
    fn decode(arguments: Vec<Value>) -> Result<Self, Fault> {
        Ok(arguments)
    }
}

/// An argument list that is read from its beginning.
struct Reading {
    left: std::vec::IntoIter<Value>,
    number: usize,
}

impl Reading {
    fn new(arguments: Vec<Value>) -> Self {
        Self {
            left: arguments.into_iter(),
            number: 0,
        }
    }

    fn next<T: DeserializeOwned>(&mut self) -> Result<T, Fault> {
        self.number += 1;
        let number = self.number;
        let (value, lack) = match self.left.next() {
            Some(value) => (value, ""),
            None => (Value::Null, " is missing"),
        };
        let decoded = serde_json::from_value(value);
        decoded.map_err(|error| Fault::new(BAD_ARGUMENTS, format!("argument {number}{lack}: {error}")))
    }
}

macro_rules! tuples {
    ($(($($name:ident),+))+) => {
        $(impl<$($name: DeserializeOwned),+> Arguments for ($($name,)+) {
            fn decode(arguments: Vec<Value>) -> Result<Self, Fault> {
                let mut reading = Reading::new(arguments);
                Ok(($(reading.next::<$name>()?,)+))
            }
        })+
    };
}

tuples! {
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, F)
    (A, B, C, D, E, F, G)
    (A, B, C, D, E, F, G, H)
}
