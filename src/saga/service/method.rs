//! One method of a service, whatever it was made of.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::record::BAD_RESULT;
use super::{Arguments, Call, Fault, Service, json};

/// What a state calls. It is told its name: one may stand for several.
pub(super) trait Method: Send + Sync {
    fn call<'a>(&'a self, name: &'a str, arguments: Vec<Value>, call: Call)
    -> LocalBoxFuture<'a, Result<Value, Fault>>;
}

/// A closure with typed arguments.
pub(super) struct Closure<F, A, R> {
    pub(super) run: F,
    pub(super) types: PhantomData<fn(A) -> R>,
}

impl<F, A, R> Method for Closure<F, A, R>
where
    F: AsyncFn(Call, A) -> Result<R, Fault> + Send + Sync,
    A: Arguments,
    R: Serialize,
{
    fn call<'a>(&'a self, _: &'a str, arguments: Vec<Value>, call: Call) -> LocalBoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move {
            let result = (self.run)(call, A::decode(arguments)?).await?;
            json::value_of(&result).map_err(no_json)
        })
    }
}

/// The methods of a service that has several.
#[derive(Clone)]
pub(super) struct Several(pub(super) Arc<dyn Service>);

impl Method for Several {
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Vec<Value>,
        call: Call,
    ) -> LocalBoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move {
            let result = self.0.call(name, arguments, call).await?;
            json::check(&result).map_err(no_json)?;
            Ok(result)
        })
    }
}

pub(super) fn no_json(why: String) -> Fault {
    Fault::new(BAD_RESULT, format!("its result is no JSON: {why}"))
}

/// Which method, for a sentence.
#[derive(Clone, Copy)]
pub(super) struct MethodName<'a> {
    pub(super) service: &'a str,
    pub(super) method: &'a str,
}

impl fmt::Display for MethodName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "method [{}] of service [{}]", self.method, self.service)
    }
}
