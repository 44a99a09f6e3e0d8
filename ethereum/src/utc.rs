//! Formats moments for people and programs.

/// Formats a moment for people and programs: `2026-11-21T19:31:05Z`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    moment.map_or_else(|| format!("{seconds} s after 1970"), |moment| moment.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_for_people() {
        assert_eq!(utc(1_795_289_465), "2026-11-21T19:31:05Z");
        assert_eq!(utc(u64::MAX), "18446744073709551615 s after 1970");
    }
}
