//! Services: what states of a machine call. It owns calls, their arguments and results, faults and their classes; it
//! knows no definition and no stage.

mod arguments;
mod call;
mod classes;
mod fault;
#[cfg(feature = "saga-http")]
mod http;
mod json;
mod method;
mod missing;
mod record;
mod said;
mod services;

pub use arguments::Arguments;
pub use call::{Call, CallToken};
pub use fault::{Fault, Network};
#[cfg(feature = "saga-http")]
pub use http::Endpoint;
#[expect(unused_imports, reason = "what runs machines uses them")]
pub(super) use {
    call::{CallParts, Element},
    classes::Classes,
    json::{DEPTH_MAX, is_too_deep, value_of},
    missing::Missing,
    record::{FaultRecord, PANIC},
    services::Services,
};

use futures::future::LocalBoxFuture;
use serde_json::Value;

/// A service with several methods, which the states of machines call by name.
///
/// Closures are shorter where each method stands alone. Implement this trait for methods that share something, or whose
/// names are known only at run time.
///
/// A call is made *at least* once: a process that ends in the middle of one makes it again after the next start, with the
/// same [`Call::token`]. The future runs on one thread and need not be `Send`. It must not block that thread. A panic is
/// a fault of class `procession.Panic`, and leaves the engine running.
///
/// ```
/// use futures::future::LocalBoxFuture;
/// use procession::saga::{Arguments, Call, Fault, Service};
/// use serde_json::{Value, json};
///
/// struct Stock { free: u32 }
///
/// impl Stock {
///     async fn reduce(&self, article: &str, count: u32) -> Result<Value, Fault> {
///         if count > self.free {
///             return Err(Fault::new("com.acme.OutOfStock", format!("{} of {article} are left", self.free)));
///         }
///         Ok(json!({ "article": article, "count": count }))
///     }
/// }
///
/// impl Service for Stock {
///     fn methods(&self) -> &[&str] {
///         &["reduce"]
///     }
///
///     fn call(&self, _: &str, arguments: Vec<Value>, _: Call) -> LocalBoxFuture<'_, Result<Value, Fault>> {
///         Box::pin(async move {
///             let (article, count) = <(String, u32)>::decode(arguments)?;
///             self.reduce(&article, count).await
///         })
///     }
/// }
/// # let stock = Stock { free: 3 };
/// # assert_eq!(stock.methods(), ["reduce"]);
/// # let fault = futures::executor::block_on(stock.reduce("tea", 4)).unwrap_err();
/// # assert_eq!(fault.to_string(), "com.acme.OutOfStock: 3 of tea are left");
/// ```
pub trait Service: Send + Sync + 'static {
    /// Returns the names of its methods. They are read once, when the service is registered.
    fn methods(&self) -> &[&str];

    /// Returns `true` if it has this method. By default it has those that [`methods`](Self::methods) lists. A service
    /// whose methods are elsewhere, behind a network for instance, says here which it takes, and may list none.
    fn has_method(&self, method: &str) -> bool {
        self.methods().contains(&method)
    }

    /// Calls one of its methods. The arguments are the state's `Input`, evaluated; [`Arguments::decode`] gives them
    /// types. The result is what the state's `Output` and `Status` read.
    ///
    /// # Errors
    ///
    /// The future gives a [`Fault`] if the call failed. What follows is for the definition to say: its `Retry`, its
    /// `Catch`, its `Status`.
    fn call(&self, method: &str, arguments: Vec<Value>, call: Call) -> LocalBoxFuture<'_, Result<Value, Fault>>;
}

#[cfg(test)]
mod tests;
