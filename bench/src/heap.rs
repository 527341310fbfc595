//! The allocator of this program, which counts when other crates are measured beside ours.
//!
//! Never: be counted on for figures but those of `bench policies`; counting costs some nanoseconds.

#[cfg(not(feature = "peers"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "peers")]
#[global_allocator]
static ALLOCATOR: cap::Cap<mimalloc::MiMalloc> = cap::Cap::new(mimalloc::MiMalloc, usize::MAX);

/// Bytes that were ever allocated, where they are counted.
#[cfg(feature = "peers")]
pub(crate) fn allocated() -> Option<usize> {
    Some(ALLOCATOR.total_allocated())
}

/// Bytes that were ever allocated, where they are counted.
#[cfg(not(feature = "peers"))]
pub(crate) const fn allocated() -> Option<usize> {
    None
}
