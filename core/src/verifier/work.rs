//! Counts the key comparisons of the verifier's tables; tests measure these instead of time.

#[cfg(test)]
thread_local! {
    static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Two keys are compared.
#[inline(always)]
pub(super) fn compared() {
    #[cfg(test)]
    COMPARED.set(COMPARED.get().saturating_add(1));
}

/// The number of keys that `f` makes this thread compare.
#[cfg(test)]
pub(super) fn of(f: impl FnOnce()) -> usize {
    COMPARED.set(0);
    f();
    COMPARED.get()
}
