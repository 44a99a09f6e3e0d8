//! A program's OpenAPI document, as it is served.

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::OpenApi;

/// Its text.
#[derive(Clone, Debug)]
pub struct Document(Bytes);

impl From<&OpenApi> for Document {
    fn from(document: &OpenApi) -> Self {
        let text = document.to_pretty_json().expect("the document is text and numbers");
        Self((text + "\n").into())
    }
}

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}
