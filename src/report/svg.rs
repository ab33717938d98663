//! Rectangles in each other, with text and lines, become an SVG that stands alone: no scripts, nothing that is loaded.

use super::text::escape;
use crate::ir::deep;
use std::fmt::Write;

/// A rectangle with what stands in it; who points at it is told more.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Left and top.
    pub at: (f64, f64),
    /// Width and height.
    pub size: (f64, f64),
    /// The class that the style knows it by.
    pub class: String,
    /// What is told of it.
    pub title: String,
    /// Words in it.
    pub texts: Vec<Text>,
    /// Rectangles in it.
    pub inner: Vec<Shape>,
}

/// A line of text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Where its baseline begins, or, where it is `right`, ends.
    pub at: (f64, f64),
    /// The size of the font.
    pub size: f64,
    /// The class that the style knows it by.
    pub class: &'static str,
    /// Whether it ends at its place.
    pub right: bool,
    /// The words.
    pub words: String,
}

impl Text {
    /// Words that begin at a place.
    pub fn new(at: (f64, f64), size: f64, class: &'static str, words: impl Into<String>) -> Text {
        Text { at, size, class, right: false, words: words.into() }
    }
}

/// A drawing in the making.
pub struct Drawing {
    out: String,
}

impl Drawing {
    /// An empty drawing, which others read out as a title.
    pub fn new((width, height): (f64, f64), title: &str, style: &str) -> Drawing {
        let (w, h) = (number(width), number(height));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">\n<title>{}</title>\n<style>\n",
            escape(title)
        );
        out += style;
        out += "</style>\n";
        Drawing { out }
    }

    /// A rectangle and all in it.
    pub fn shape(&mut self, s: &Shape) {
        deep(|| {
            let _ = writeln!(self.out, "<g class=\"{}\">", s.class);
            self.title(&s.title);
            let round = (s.size.0.min(s.size.1) / 5.0).min(3.0);
            let [x, y, w, h, round] = [s.at.0, s.at.1, s.size.0, s.size.1, round].map(number);
            let _ = writeln!(self.out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{round}\"/>");
            s.texts.iter().for_each(|t| self.text(t));
            s.inner.iter().for_each(|s| self.shape(s));
            self.out += "</g>\n";
        });
    }

    /// A line of text.
    pub fn text(&mut self, t: &Text) {
        let end = if t.right { " text-anchor=\"end\"" } else { "" };
        let [x, y, size] = [t.at.0, t.at.1, t.size].map(number);
        let _ = writeln!(
            self.out,
            "<text class=\"{}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{end}>{}</text>",
            t.class,
            escape(&t.words)
        );
    }

    /// Begins a group with a title; an end must follow.
    pub fn begin(&mut self, class: &str, title: &str) {
        let _ = writeln!(self.out, "<g class=\"{class}\">");
        self.title(title);
    }

    /// Ends a group.
    pub fn end(&mut self) {
        self.out += "</g>\n";
    }

    /// Straight lines from place to place, in a colour of their own.
    pub fn line(&mut self, class: &str, colour: &str, places: &[(f64, f64)]) {
        let each = places.iter().map(|(x, y)| format!("{} {}", number(*x), number(*y)));
        let path = each.collect::<Vec<_>>().join("L");
        let _ = writeln!(self.out, "<path class=\"{class}\" stroke=\"{colour}\" d=\"M{path}\"/>");
    }

    /// A dot in a colour.
    pub fn dot(&mut self, class: &str, colour: &str, (x, y): (f64, f64), radius: f64) {
        let [x, y, r] = [x, y, radius].map(number);
        let _ = writeln!(self.out, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {colour}/>");
    }

    /// The whole text.
    pub fn done(self) -> String {
        self.out + "</svg>\n"
    }

    fn title(&mut self, title: &str) {
        if !title.is_empty() {
            let _ = writeln!(self.out, "<title>{}</title>", escape(title));
        }
    }
}

/// A number with one digit behind the point, if any.
fn number(v: f64) -> String {
    let tenths = (v * 10.0).round() / 10.0;
    format!("{tenths}")
}
