//! Colours of lines that stand beside each other.

/// The colours, in order.
pub const INK: [(u8, u8, u8); 8] = [
    (38, 92, 168),
    (196, 88, 33),
    (46, 128, 84),
    (128, 70, 140),
    (170, 44, 60),
    (20, 136, 150),
    (150, 120, 30),
    (96, 96, 96),
];

/// A colour as attributes have it.
pub fn colour((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
