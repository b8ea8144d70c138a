//! What users see of the engine, one behaviour a file. Scenario numbers are in the names.

mod children;
mod submit;
mod support;
