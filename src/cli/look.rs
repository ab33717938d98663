//! What is shown on a terminal, and how: colours, progress, and how much of a result.

use clap::ValueEnum;

/// When there are colours.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum Colour {
    /// On terminals, unless the environment asks for none
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

impl Colour {
    /// Whether text has colours that goes to a terminal or elsewhere; `plain` where the environment asks for none.
    pub fn shown(self, terminal: bool, plain: bool) -> bool {
        match self {
            Colour::Auto => terminal && !plain,
            Colour::Always => true,
            Colour::Never => false,
        }
    }
}

/// What is shown, and how.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Look {
    /// Whether a person reads the results from a terminal: then large ones are shortened.
    pub results: bool,
    /// Whether results have colours.
    pub colour: bool,
    /// Whether messages have colours.
    pub message_colour: bool,
    /// Whether it is shown how far the work is.
    pub progress: bool,
    /// Whether no results are printed.
    pub quiet: bool,
}

/// What text means, for its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    /// The head of a table.
    Head,
    /// Something became better.
    Good,
    /// Something is wrong.
    Bad,
}

impl Look {
    /// Text of a result in its colour.
    pub fn ink(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Head => "1",
            Ink::Good => "32",
            Ink::Bad => "31",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: colours are on terminals alone, and neither where the environment nor where the user says no.
    #[test]
    fn colours_are_where_they_are_wanted() {
        let shown = |c: Colour| [(true, false), (true, true), (false, false)].map(|(t, plain)| c.shown(t, plain));
        assert_eq!(shown(Colour::Auto), [true, false, false]);
        assert_eq!(shown(Colour::Always), [true; 3]);
        assert_eq!(shown(Colour::Never), [false; 3]);
        let look = Look { colour: true, ..Look::default() };
        assert_eq!(look.ink(Ink::Bad, "wrong"), "\x1b[31mwrong\x1b[0m");
        assert_eq!(Look::default().ink(Ink::Bad, "wrong"), "wrong");
    }
}
