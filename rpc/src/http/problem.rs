//! Problem details (RFC 9457): kinds of problems, problems as answers, and their description in OpenAPI documents.

use std::collections::BTreeMap;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

const CONTENT_TYPE: &str = "application/problem+json";
/// Begins the type of every problem.
pub const TYPE_PREFIX: &str = "urn:fastpay:problem:";

/// Whether the same request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// It will never be accepted.
    Never,
    /// As it is, after `retryAfterMs` or a while.
    Later,
    /// Once what the problem names has changed.
    AfterChange,
}

/// The kinds of problems of one port. The texts and the status of a kind are stable.
pub trait ProblemKind: Copy + Sized + 'static {
    /// All of them.
    const ALL: &'static [Self];

    /// Its code, for programs.
    fn as_str(self) -> &'static str;

    /// The HTTP status that it comes with.
    fn status(self) -> u16;

    /// A short title.
    fn title(self) -> &'static str;

    /// The recommended action, for people.
    fn action(self) -> &'static str;

    /// Whether the same request may be sent again.
    fn retry(self) -> Retry;
}

/// Kinds of problems: each with its code, its HTTP status, whether to retry, its title, and what to do.
#[macro_export]
macro_rules! problem_kinds {
    ($(#[$of_all:meta])* $all:ident
     $($(#[$meta:meta])* $name:ident $text:literal $status:literal $retry:ident $title:literal, $action:literal;)*) => {
        $(#[$of_all])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize, ::utoipa::ToSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum $all { $($(#[$meta])* $name,)* }

        impl $crate::http::ProblemKind for $all {
            const ALL: &'static [Self] = &[$(Self::$name),*];

            fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            fn action(self) -> &'static str {
                match self { $(Self::$name => $action,)* }
            }

            fn retry(self) -> $crate::http::Retry {
                match self { $(Self::$name => $crate::http::Retry::$retry,)* }
            }
        }
    };
}

/// Names sets of problems, to annotate the operations that can return them. `waits` tells which kinds include a time
/// to wait.
#[macro_export]
macro_rules! problem_sets {
    ($kind:ident, $waits:path; $($(#[$meta:meta])* $name:ident: $($code:ident),*;)*) => { $(
        $(#[$meta])*
        pub(super) struct $name;

        impl ::utoipa::IntoResponses for $name {
            fn responses() -> ::std::collections::BTreeMap<
                ::std::string::String,
                ::utoipa::openapi::RefOr<::utoipa::openapi::Response>,
            > {
                $crate::http::problem_responses(&[$($kind::$code),*], $waits)
            }
        }
    )* };
}

/// A problem as an answer.
#[must_use]
pub fn problem_response(problem: &impl Serialize, status: u16, retry_after_ms: Option<u64>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_vec(problem).expect("a problem is text, numbers and an order");
    let mut response = (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response();
    if let Some(milliseconds) = retry_after_ms {
        // Whole seconds are all that the header knows.
        response.headers_mut().insert(header::RETRY_AFTER, milliseconds.div_ceil(1_000).max(1).into());
    }
    response
}

/// The responses of an operation that may answer these problems, in a form that [`utoipa`] documents.
#[must_use]
pub fn problem_responses<K: ProblemKind>(
    kinds: &[K],
    waits: fn(K) -> bool,
) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let mut by_status: BTreeMap<u16, Vec<K>> = BTreeMap::new();
    kinds.iter().for_each(|kind| by_status.entry(kind.status()).or_default().push(*kind));
    let response = |kinds: &[K]| {
        let described = kinds.iter().map(|kind| format!("`{}`: {}.", kind.as_str(), kind.title()));
        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let mut response =
            ResponseBuilder::new().description(described.collect::<Vec<_>>().join(" ")).content(CONTENT_TYPE, problem);
        if kinds.iter().any(|kind| waits(*kind)) {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
            let header =
                HeaderBuilder::new().schema(Some(seconds)).description(Some("When to send it again, in seconds."));
            response = response.header("Retry-After", header.build());
        }
        RefOr::T(response.build())
    };
    by_status.iter().map(|(status, kinds)| (status.to_string(), response(kinds))).collect()
}
