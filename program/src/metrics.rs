//! Declares a program's metrics.

/// Declares a struct of metrics for OpenMetrics text. A metric has its type, its unit (`plain` for none), its name and
/// its help, which is its documentation, too; a histogram also has the bound of its first bucket, and their number, each
/// twice as wide as the one before. Further fields, which begin at their defaults, follow `..`.
///
/// `registered` makes them and shows them in a registry. The caller depends on `prometheus_client`.
#[macro_export]
macro_rules! metrics {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($visibility:vis $field:ident: $type:ty =
                $unit:ident($shown:literal, $help:literal $(, $first:literal, $buckets:literal)?),)*
            $(.. $($(#[$inner:meta])* $other_visibility:vis $other:ident: $other_type:ty,)*)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $(#[doc = $help] $visibility $field: $type,)*
            $($($(#[$inner])* $other_visibility $other: $other_type,)*)?
        }

        impl $name {
            pub(crate) fn registered(registry: &mut ::prometheus_client::registry::Registry) -> Self {
                $(
                    let $field: $type = $crate::metrics!(@new $($first, $buckets)?);
                    $crate::metrics!(@show $unit registry, $shown, $help, $field.clone());
                )*
                Self { $($field,)* $($($other: Default::default(),)*)? }
            }
        }
    };
    (@new) => { Default::default() };
    (@new $first:literal, $buckets:literal) => {{
        use ::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
        Histogram::new(exponential_buckets($first, 2.0, $buckets))
    }};
    (@show plain $registry:ident, $($metric:tt)*) => { $registry.register($($metric)*) };
    (@show seconds $($metric:tt)*) => { $crate::metrics!(@unit Seconds, $($metric)*) };
    (@show bytes $($metric:tt)*) => { $crate::metrics!(@unit Bytes, $($metric)*) };
    (@show ether $($metric:tt)*) => { $crate::metrics!(@unit Other("ether".into()), $($metric)*) };
    (@unit $unit:ident $(($text:expr))?, $registry:ident, $shown:literal, $help:literal, $metric:expr) => {
        $registry.register_with_unit($shown, $help, ::prometheus_client::registry::Unit::$unit $(($text))?, $metric)
    };
}
