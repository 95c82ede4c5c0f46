//! What the fuzz targets share: the way to a door of the store.

/// Gives bytes to a door.
///
/// # Panics
///
/// If there is no such door; or if the store does, which is what fuzzing is for.
pub fn run(name: &str, bytes: &[u8]) {
    let doors = store::fuzzing::DOORS;
    let (_, door) = doors.iter().find(|(door, _)| *door == name).expect("each target has a door");
    door(bytes);
}
