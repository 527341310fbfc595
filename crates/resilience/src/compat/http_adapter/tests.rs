//! The unit tests of that library, by their numbers in the port list, and its traps.

mod circuit;
mod policies;
