//! Common code of the fuzz targets: calls an entry point of the store.

/// Passes bytes to an entry point.
///
/// # Panics
///
/// If the entry point does not exist, or if it panics, which fuzzing is to find.
pub fn run(name: &str, bytes: &[u8]) {
    let doors = store::fuzzing::DOORS;
    let (_, door) = doors.iter().find(|(door, _)| *door == name).expect("each target has a door");
    door(bytes);
}
