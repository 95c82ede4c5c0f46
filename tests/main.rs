//! The integration tests of the whole, in one binary so that it is linked once.

mod tidy;
