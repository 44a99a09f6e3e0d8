//! The gRPC schema and the OpenAPI document only grow: everything that the previous release described
//! (`vectors/release`) still has its number, type and place, so that authorities can be replaced one at a time.
//!
//! gRPC: calls, fields and values of enumerations may be added; names of messages may change, which no wire shows.
//! JSON: paths, properties and problem codes may be added. A new property of a request must be optional, because
//! clients of the previous release do not send it; docs/CONTRIBUTING.md says when clients of this one may.

use std::collections::BTreeSet;

use protox::prost_reflect::{DescriptorPool, EnumDescriptor, Kind, MessageDescriptor, ServiceDescriptor};
use serde_json::{Value, json};

fn pool(folder: &str) -> DescriptorPool {
    let folder = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
    protox::Compiler::new([folder]).unwrap().open_file("fastpay.proto").unwrap().descriptor_pool()
}

/// What a peer of the earlier schema would misread or miss in the later one.
fn breaks(before: &DescriptorPool, now: &DescriptorPool) -> Vec<String> {
    let mut found = Vec::new();
    let mut compared = BTreeSet::new();
    for service in before.services() {
        match now.get_service_by_name(service.full_name()) {
            Some(now) => compare_services(&service, &now, &mut compared, &mut found),
            None => found.push(format!("{} is gone", service.full_name())),
        }
    }
    found
}

fn compare_services(
    before: &ServiceDescriptor,
    now: &ServiceDescriptor,
    compared: &mut BTreeSet<String>,
    found: &mut Vec<String>,
) {
    for method in before.methods() {
        let Some(now) = now.methods().find(|now| now.name() == method.name()) else {
            found.push(format!("{} is gone", method.name()));
            continue;
        };
        if (method.is_client_streaming(), method.is_server_streaming())
            != (now.is_client_streaming(), now.is_server_streaming())
        {
            found.push(format!("{} streams otherwise", method.name()));
        }
        compare_messages(&method.input(), &now.input(), compared, found);
        compare_messages(&method.output(), &now.output(), compared, found);
    }
}

fn compare_messages(
    before: &MessageDescriptor,
    now: &MessageDescriptor,
    compared: &mut BTreeSet<String>,
    found: &mut Vec<String>,
) {
    if !compared.insert(before.full_name().to_owned()) {
        return;
    }
    for field in before.fields() {
        let name = field.full_name();
        let Some(now) = now.get_field(field.number()) else {
            found.push(format!("{name} is gone"));
            continue;
        };
        let one_of = |field: &protox::prost_reflect::FieldDescriptor| {
            field.containing_oneof().filter(|one_of| !one_of.is_synthetic()).map(|one_of| one_of.name().to_owned())
        };
        if (field.cardinality(), one_of(&field)) != (now.cardinality(), one_of(&now)) {
            found.push(format!("{name} is repeated, or one of several, otherwise"));
        }
        match (field.kind(), now.kind()) {
            (Kind::Message(before), Kind::Message(now)) => compare_messages(&before, &now, compared, found),
            (Kind::Enum(before), Kind::Enum(now)) => compare_enums(&before, &now, found),
            (before, now) if before == now => {}
            (before, now) => found.push(format!("{name} is {now:?}, and was {before:?}")),
        }
    }
}

fn compare_enums(before: &EnumDescriptor, now: &EnumDescriptor, found: &mut Vec<String>) {
    for value in before.values() {
        if now.get_value(value.number()).is_none_or(|now| now.name() != value.name()) {
            found.push(format!("{} is gone", value.full_name()));
        }
    }
}

#[test]
fn the_grpc_schema_has_all_of_the_previous_release() {
    assert_eq!(breaks(&pool("../vectors/release"), &pool("proto")), [""; 0]);
}

#[test]
fn every_change_that_the_previous_release_would_misread_is_found() {
    let (before, text) = (pool("proto"), include_str!("../../proto/fastpay.proto"));
    for (from, to, what) in [
        ("  rpc GetStatus(StatusRequest) returns (StatusResponse);\n", "", "GetStatus is gone"),
        (
            "GetStatus(StatusRequest) returns (Stat",
            "GetStatus(StatusRequest) returns (stream Stat",
            "GetStatus streams",
        ),
        ("  bytes memo = 6;", "  bytes memo = 16;", "Payment.memo is gone"),
        ("  bytes memo = 6;", "  string memo = 6;", "Payment.memo is string"),
        ("  repeated Vote votes = 3;", "  Vote votes = 3;", "Certificate.votes is repeated"),
        ("  uint64 epoch = 4;", "", "Vote.epoch is gone"),
        ("    Redemption redemption = 2;", "    Payment redemption = 2;", "Redemption.memo is gone"),
        ("    MALFORMED = 1;", "    GARBLED = 1;", "MALFORMED is gone"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("fastpay.proto"), text.replace(from, to)).unwrap();
        let now = protox::Compiler::new([folder.path()]).unwrap().open_file("fastpay.proto").unwrap().descriptor_pool();
        let found = breaks(&before, &now);
        assert!(found.iter().any(|found| found.contains(what)), "{what}: {found:?}");
    }
}

/// The same of two OpenAPI documents.
fn json_breaks(before: &Value, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut requests = BTreeSet::new();
    for (path, operations) in before["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let now = &now["paths"][path][method];
            let Some(answers) = now["responses"].as_object() else {
                found.push(format!("{method} {path} is gone"));
                continue;
            };
            let answers_before = operation["responses"].as_object().unwrap();
            found.extend(
                answers_before
                    .keys()
                    .filter(|status| !answers.contains_key(*status))
                    .map(|status| format!("{method} {path} does not answer {status} any more")),
            );
            schemas_of(&operation["requestBody"], before, &mut requests);
            for parameter in now["parameters"].as_array().into_iter().flatten() {
                let was = operation["parameters"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|was| was["name"] == parameter["name"]);
                if parameter["required"] == json!(true) && !was {
                    found.push(format!("{method} {path} requires {}", parameter["name"]));
                }
            }
        }
    }
    for (name, schema) in before["components"]["schemas"].as_object().unwrap() {
        // A schema that no path reaches under its name any more was renamed, and its users are compared with it.
        let Some(later) = now["components"]["schemas"].get(name) else { continue };
        compare_schemas(name, schema, later, (before, now), requests.contains(name), &mut found);
    }
    found
}

/// The names of the schemas that a part of a document refers to.
fn schemas_of(part: &Value, document: &Value, names: &mut BTreeSet<String>) {
    match part {
        Value::Object(members) => {
            if let Some(name) = part["$ref"].as_str().and_then(|path| path.rsplit('/').next())
                && names.insert(name.to_owned())
            {
                schemas_of(&document["components"]["schemas"][name], document, names);
            }
            members.values().for_each(|part| schemas_of(part, document, names));
        }
        Value::Array(parts) => parts.iter().for_each(|part| schemas_of(part, document, names)),
        _ => {}
    }
}

fn compare_schemas(
    place: &str,
    before: &Value,
    now: &Value,
    documents: (&Value, &Value),
    is_asked: bool,
    found: &mut Vec<String>,
) {
    let required = |schema: &Value| -> BTreeSet<String> {
        schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let (was, is) = (required(before), required(now));
    let wrong = if is_asked { is.difference(&was) } else { was.difference(&is) };
    found.extend(wrong.map(|name| format!("{place}.{name} is required otherwise")));
    for (name, schema) in before["properties"].as_object().into_iter().flatten() {
        match now["properties"].get(name) {
            Some(later) => compare_schemas(&format!("{place}.{name}"), schema, later, documents, is_asked, found),
            None => found.push(format!("{place}.{name} is gone")),
        }
    }
    let values = |schema: &Value| schema["enum"].as_array().cloned().unwrap_or_default();
    let later = values(now);
    found.extend(
        values(before).iter().filter(|value| !later.contains(value)).map(|value| format!("{place}: {value} is gone")),
    );
    for (part, later) in alternatives(before).zip(alternatives(now)) {
        compare_schemas(place, part, later, documents, is_asked, found);
    }
    for fact in ["type", "format", "pattern", "minLength", "maxLength", "minItems"] {
        if before[fact] != now[fact] {
            found.push(format!("{place}: {fact} is {}, and was {}", now[fact], before[fact]));
        }
    }
    if let (Some(before), Some(now)) = (before["items"].as_object(), now["items"].as_object()) {
        compare_schemas(place, &json!(before), &json!(now), documents, is_asked, found);
    }
    if let (Some(was), Some(is)) = (before["$ref"].as_str(), now["$ref"].as_str())
        && was != is
    {
        let resolve = |document: &Value, path: &str| document.pointer(path.trim_start_matches('#')).unwrap().clone();
        let (was, is) = (resolve(documents.0, was), resolve(documents.1, is));
        compare_schemas(place, &was, &is, documents, is_asked, found);
    }
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|of| schema[of].as_array()).flatten()
}

fn document(path: &str) -> Value {
    let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_openapi_document_has_all_of_the_previous_release() {
    assert_eq!(json_breaks(&document("vectors/release/openapi.json"), &document("docs/openapi.json")), [""; 0]);
}

#[test]
fn every_change_of_the_openapi_document_that_the_previous_release_would_misread_is_found() {
    let before = document("docs/openapi.json");
    let changes: [(&str, Value, &str); 6] = [
        ("/paths/~1v1~1orders", json!({}), "post /v1/orders is gone"),
        ("/paths/~1v1~1orders/post/responses", json!({ "200": {} }), "post /v1/orders does not answer"),
        ("/components/schemas/Confirmed/properties", json!({}), "Confirmed.nextSequence is gone"),
        ("/components/schemas/Confirmed/required", json!([]), "Confirmed.nextSequence is required otherwise"),
        ("/components/schemas/Uint64/type", json!("integer"), "Uint64: type"),
        ("/components/schemas/ProblemCode/enum", json!(["busy"]), "ProblemCode: \"malformed\" is gone"),
    ];
    for (pointer, value, what) in changes {
        let mut now = before.clone();
        *now.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        let found = json_breaks(&before, &now);
        assert!(found.iter().any(|found| found.contains(what)), "{what}: {found:?}");
    }
    let mut now = before.clone();
    now["components"]["schemas"]["RedemptionBatch"]["required"].as_array_mut().unwrap().push(json!("reason"));
    assert_eq!(json_breaks(&before, &now), ["RedemptionBatch.reason is required otherwise"]);
}
