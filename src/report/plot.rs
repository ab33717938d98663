//! Numbers become a line plot as SVG text.

use super::ink::INK;
use crate::diag::{Diagnostic, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it; nothing where there is no legend.
    pub name: String,
    /// The values, one a step.
    pub values: Vec<f64>,
}

const SIZE: (u32, u32) = (760, 300);

/// Values above this ratio of the greatest to the least are drawn on a logarithmic axis.
const DECADES: f64 = 30.0;

/// Draws lines over a common axis of steps, the values on a logarithmic axis where they differ much.
///
/// # Errors
/// A bug, where the plot cannot be drawn.
pub fn lines(series: &[Series], across: &str, up: &str) -> Result<String> {
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        draw(&root, series, (across, up))
    };
    drawn.map_err(|e| Diagnostic::bug(format!("a plot cannot be drawn: {e}")))?;
    Ok(svg)
}

/// One drawing with all the plots, one below the other.
pub fn above(plots: &[String]) -> String {
    let (width, height) = SIZE;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{}\">\n",
        height as usize * plots.len()
    );
    for (k, plot) in plots.iter().enumerate() {
        out += &format!("<g transform=\"translate(0 {})\">\n{plot}</g>\n", height as usize * k);
    }
    out + "</svg>\n"
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw(root: &Area<'_>, series: &[Series], names: (&str, &str)) -> Drawn {
    let values = || series.iter().flat_map(|s| s.values.iter().copied()).filter(|v| v.is_finite());
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max).max(1e-9));
    let steps = series.iter().map(|s| s.values.len()).max().unwrap_or(0).max(2) - 1;
    let mut chart = ChartBuilder::on(root);
    chart.margin(12).x_label_area_size(38).y_label_area_size(72);
    if least > 0.0 && most / least > DECADES {
        let chart = chart.build_cartesian_2d(0..steps, (least * 0.8..most * 1.25).log_scale())?;
        plot(chart, series, names)
    } else {
        plot(chart.build_cartesian_2d(0..steps, 0.0..most * 1.08)?, series, names)
    }
}

fn plot<'a, Y>(
    mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<plotters::coord::types::RangedCoordusize, Y>>,
    series: &[Series],
    names: (&str, &str),
) -> Drawn
where
    Y: plotters::coord::ranged1d::Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(RGBColor(240, 240, 240))
        .bold_line_style(RGBColor(222, 222, 222))
        .axis_style(RGBColor(120, 120, 120));
    mesh.x_desc(names.0).y_desc(names.1).label_style(("sans-serif", 13)).y_label_formatter(&|v| short(*v)).draw()?;
    for (k, line) in series.iter().enumerate() {
        let (r, g, b) = INK[k % INK.len()];
        let ink = RGBColor(r, g, b);
        let points = || line.values.iter().copied().enumerate().filter(|(_, v)| v.is_finite());
        let drawn = chart.draw_series(LineSeries::new(points(), ink.stroke_width(2)))?;
        if !line.name.is_empty() {
            drawn
                .label(line.name.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], ink.stroke_width(2)));
        }
        if line.values.len() <= 120 {
            chart.draw_series(points().map(|p| Circle::new(p, 3, ink.filled())))?;
        }
    }
    if series.iter().any(|s| !s.name.is_empty()) {
        chart
            .configure_series_labels()
            .border_style(RGBColor(200, 200, 200))
            .background_style(WHITE.mix(0.85))
            .draw()?;
    }
    chart.plotting_area().present()?;
    Ok(())
}

/// A number for an axis.
fn short(v: f64) -> String {
    match v {
        v if v >= 1e6 => format!("{:.3}M", v / 1e6),
        v if v >= 1e4 => format!("{:.1}k", v / 1e3),
        v if v >= 100.0 || v == v.round() => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}
