//! What an optimization did becomes a page that a person would rather look at: one HTML file, with
//! plots, that needs nothing else; a schedule becomes a drawing, and a page; so do a definition and its derivative. It knows texts and numbers, nothing of
//! terms and searches.

mod derived;
mod flow;
mod frame;
mod html;
mod ink;
mod marks;
mod picture;
mod plot;
mod schedule;
mod story;
mod svg;
mod text;

pub use derived::{Derived, Kept, Side, Stage, derived};
pub use html::page;
pub use marks::{Kind, Mark, marks};
pub use picture::picture;
pub use plot::{Series, above, lines};
pub use schedule::{Row, Scheduled, Tried, schedule};
pub use story::{About, Story};
