//! Jacobians: a definition becomes a function that gives the derivative of every float of its result by every float of
//! its parameters, without those that are zero whatever the arguments are.
//!
//! The result is taken apart into its floats (`component`), and it is found which elements of a parameter each of them
//! reads (`reads`, `settled`). By rows each float is differentiated in reverse mode, by the elements that it reads and
//! no others (`rows`). By columns all floats are differentiated in forward mode, along one float of the parameters at a
//! time, or along one of each element where no float reads two elements (`columns`, `seed`): the compression of Curtis,
//! Powell and Reid (1974), where one color is enough. `pattern` says which elements the blocks belong to. It must not
//! know how either derivative is made.

mod columns;
mod component;
mod make;
mod maker;
mod pattern;
mod product;
mod reads;
mod rows;
mod seed;
mod settled;

pub use make::{Jacobian, Layout, jacobian, jacobian_keeping};
pub use product::product;
