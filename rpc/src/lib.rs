//! The wire: protobuf schema, conversions to and from core's types, client and server glue.
