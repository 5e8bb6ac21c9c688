//! One plot, as SVG.
//!
//! Every subject has its colour, its dashes and its marker, the same in all plots of a report: so
//! readers who don't see the colours can distinguish the lines, and so can readers on paper. The
//! colours are Okabe and Ito's.

use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::words;
use crate::target::Failure;

const WIDTH: u32 = 620;
const HEIGHT: u32 = 360;
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(150, 110, 0),
    RGBColor(90, 90, 90),
    RGBColor(0, 0, 0),
];
/// Length of the dash and of the gap, in pixels; none is a whole line. A colour has one of them
/// only.
const DASHES: [Option<(i32, i32)>; 4] = [None, Some((8, 4)), Some((2, 3)), Some((14, 4))];
const _: () = assert!(COLOURS.len().is_multiple_of(DASHES.len()));
const LINE_WIDTH: u32 = 2;
const MARKER_SIZE: i32 = 4;

/// The division of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Evenly, from zero.
    Linear,
    /// By factors: values must be positive.
    Log,
    /// By factors of what is left above a quantile: the values are 1 / (1 - quantile).
    Quantile,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// The line's look: the subject's position in the report.
    pub look: usize,
    /// The points in order of x.
    pub points: Vec<(f64, f64)>,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// Name and division of the x axis.
    pub x: (String, Axis),
    /// Name and division of the y axis.
    pub y: (String, Axis),
    /// The place on the x axis of a mark, such as the beginning of the measured time.
    pub mark: Option<f64>,
    /// The lines to draw.
    pub lines: Vec<Line>,
}

impl Plot {
    /// Draws it; `None` if there is nothing to draw.
    pub fn svg(&self) -> Result<Option<String>, Failure> {
        let x = self.bounds(|point| point.0, self.x.1);
        let y = self.bounds(|point| point.1, self.y.1);
        let (Some((left, right)), Some((bottom, top))) = (x, y) else { return Ok(None) };
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
            let (x, y) = (left..right, bottom..top);
            match (self.x.1 == Axis::Linear, self.y.1 == Axis::Linear) {
                (true, true) => self.draw(&area, x, y),
                (true, false) => self.draw(&area, x, y.log_scale()),
                (false, true) => self.draw(&area, x.log_scale(), y),
                (false, false) => self.draw(&area, x.log_scale(), y.log_scale()),
            }
            .map_err(|error| Failure::Other(format!("the plot {}: {error}", self.title)))?;
        }
        Ok(Some(dashed(text)))
    }

    fn bounds(&self, of: impl Fn(&(f64, f64)) -> f64, axis: Axis) -> Option<(f64, f64)> {
        let values = self.lines.iter().flat_map(|line| line.points.iter().map(&of));
        let values: Vec<f64> = values.filter(|value| fits(*value, axis)).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some(match axis {
            Axis::Linear => (0.0, if high > 0.0 { high * 1.06 } else { 1.0 }),
            Axis::Log => (low / 1.3, high * 1.3),
            Axis::Quantile => (1.0, high.max(10.0)),
        })
    }

    fn draw<'a, X, Y>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
        x: X,
        y: Y,
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        area.fill(&WHITE).map_err(own)?;
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(74)
            .build_cartesian_2d(x, y)
            .map_err(own)?;
        let x_label = |value: &f64| match self.x.1 {
            Axis::Quantile => format!("{}%", words::digits(100.0 * (1.0 - 1.0 / value))),
            _ => words::digits(*value),
        };
        chart
            .configure_mesh()
            .x_desc(&self.x.0)
            .y_desc(&self.y.0)
            .x_labels(8)
            .y_labels(8)
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .x_label_formatter(&x_label)
            .y_label_formatter(&|value| words::digits(*value))
            .draw()
            .map_err(own)?;
        if let Some(mark) = self.mark
            && let Some((bottom, top)) = self.bounds(|point| point.1, self.y.1)
        {
            let line = [(mark, bottom), (mark, top)];
            chart.draw_series(LineSeries::new(line, RGBColor(150, 150, 150))).map_err(own)?;
        }
        for line in &self.lines {
            let colour = COLOURS[line.look % COLOURS.len()];
            let style = colour.stroke_width(LINE_WIDTH);
            let shown = |point: &(f64, f64)| fits(point.0, self.x.1) && fits(point.1, self.y.1);
            let points: Vec<_> = line.points.iter().copied().filter(shown).collect();
            chart.draw_series(LineSeries::new(points.clone(), style)).map_err(own)?;
            if points.len() <= 40 {
                let markers = points.iter().map(|point| marker(line.look, *point));
                chart.draw_series(markers).map_err(own)?;
            }
        }
        Ok(())
    }
}

/// Gives the lines of a picture their dashes, which the drawing library would write one by one, and
/// leaves out what is so anyway.
fn dashed(svg: String) -> String {
    let mut svg = svg.replace(" opacity=\"1\"", "").replace(" stroke=\"none\"", "");
    for (look, RGBColor(red, green, blue)) in COLOURS.iter().enumerate() {
        let Some((dash, gap)) = DASHES[look % DASHES.len()] else { continue };
        let line =
            format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\" stroke-width=\"{LINE_WIDTH}\"");
        let dashes = format!("{line} stroke-dasharray=\"{dash} {gap}\" points");
        svg = svg.replace(&format!("{line} points"), &dashes);
    }
    svg
}

/// The error of the drawing library borrows what it draws on; its text doesn't.
fn own(error: impl std::fmt::Display) -> Box<dyn std::error::Error> {
    error.to_string().into()
}

fn fits(value: f64, axis: Axis) -> bool {
    value.is_finite() && (axis == Axis::Linear || value > 0.0)
}

fn marker<'a>(look: usize, point: (f64, f64)) -> DynElement<'static, SVGBackend<'a>, (f64, f64)> {
    let colour = COLOURS[look % COLOURS.len()];
    match look % 3 {
        0 => Circle::new(point, MARKER_SIZE, colour.filled()).into_dyn(),
        1 => TriangleMarker::new(point, MARKER_SIZE + 1, colour.filled()).into_dyn(),
        _ => Cross::new(point, MARKER_SIZE, colour.stroke_width(2)).into_dyn(),
    }
}

/// Returns the mark beside a subject's name in the legend: its line and marker.
pub fn swatch(look: usize) -> String {
    let RGBColor(red, green, blue) = COLOURS[look % COLOURS.len()];
    let colour = format!("rgb({red},{green},{blue})");
    let dashes = DASHES[look % DASHES.len()];
    let dashes =
        dashes.map_or(String::new(), |(dash, gap)| format!(" stroke-dasharray='{dash} {gap}'"));
    let marker = match look % 3 {
        0 => format!("<circle cx='18' cy='7' r='4' fill='{colour}'/>"),
        1 => format!("<path d='M18 2 L23 11 L13 11 Z' fill='{colour}'/>"),
        _ => format!("<path d='M14 3 L22 11 M14 11 L22 3' stroke='{colour}' stroke-width='2'/>"),
    };
    format!(
        "<svg class='swatch' width='36' height='14' aria-hidden='true'><line x1='0' y1='7' x2='36' \
         y2='7' stroke='{colour}' stroke-width='2'{dashes}/>{marker}</svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(x: Axis, y: Axis, points: Vec<(f64, f64)>) -> Plot {
        Plot {
            title: "t".into(),
            x: ("clients".into(), x),
            y: ("ms".into(), y),
            mark: None,
            lines: vec![Line { look: 0, points: points.clone() }, Line { look: 1, points }],
        }
    }

    #[test]
    fn every_pair_of_axes_can_be_drawn() {
        for x in [Axis::Linear, Axis::Log, Axis::Quantile] {
            for y in [Axis::Linear, Axis::Log] {
                let points = vec![(1.0, 3.0), (10.0, 0.5), (1_000.0, 80_000.0)];
                let svg = plot(x, y, points).svg().expect("it can be drawn");
                let svg = svg.expect("there is something to draw");
                assert!(svg.contains("<polyline") && svg.contains("clients"), "{x:?} {y:?}: {svg}");
                let dashes = svg.matches("stroke-dasharray=\"8 4\" points").count();
                assert_eq!(dashes, 1, "of the second line: {svg}");
            }
        }
    }

    #[test]
    fn nothing_and_zeros_are_no_plot_of_factors() {
        for points in [vec![], vec![(0.0, 0.0)], vec![(f64::NAN, 1.0)]] {
            assert_eq!(plot(Axis::Log, Axis::Log, points).svg().expect("no error"), None);
        }
        let one = plot(Axis::Log, Axis::Log, vec![(8.0, 2.0)]).svg().expect("no error");
        assert!(one.is_some());
    }
}
