//! Rows as the store hands them over, decoded by a layout.
