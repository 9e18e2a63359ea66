use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::statistics::median;
use super::axis::Axis;
use super::{Chart, Group, Panel};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const PUBLISHED: RGBColor = RGBColor(176, 176, 176);
const HERE: RGBColor = RGBColor(31, 98, 165);
const RUN: RGBColor = RGBColor(235, 130, 30);
const INK: RGBColor = RGBColor(40, 40, 40);
const LINES: RGBColor = RGBColor(225, 225, 225);

const GROUP_WIDTH: i32 = 118;
const BAR_WIDTH: i32 = 38;
/// Room for the numbers beside the axis.
const LEFT: i32 = 62;
const HEAD: i32 = 84;
const PLOT: i32 = 250;
/// Room for the names below the axis.
const FOOT: i32 = 96;
/// Room for a number above a bar.
const LABEL: i32 = 22;
const FONT: &str = "sans-serif";

pub fn write(chart: &Chart, path: &Path) -> Result<()> {
    let width = chart.panels.iter().map(width).sum::<i32>().max(620);
    let size = (width.unsigned_abs(), (HEAD + PLOT + FOOT).unsigned_abs());
    let area = SVGBackend::new(path, size).into_drawing_area();
    draw(chart, &area).map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
}

fn width(panel: &Panel) -> i32 {
    LEFT + GROUP_WIDTH * i32::try_from(panel.groups.len()).unwrap_or(i32::MAX / GROUP_WIDTH) + 14
}

fn draw(chart: &Chart, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    text(area, &chart.title, (16, 12), 18, HPos::Left)?;
    text(area, &chart.subtitle, (16, 36), 12, HPos::Left)?;
    legend(area, chart)?;
    let mut left = 0;
    for panel in &chart.panels {
        draw_panel(area, panel, left)?;
        left += width(panel);
    }
    area.present()?;
    Ok(())
}

fn legend(area: &Area<'_>, chart: &Chart) -> Result<(), Box<dyn std::error::Error>> {
    let bottom = HEAD + PLOT + FOOT - 22;
    let mut left = 16;
    let published =
        chart.panels.iter().flat_map(|panel| &panel.groups).any(|group| group.published.is_some());
    let published = published.then_some((PUBLISHED, "published"));
    for (color, name) in published.into_iter().chain([(HERE, &*chart.here)]) {
        area.draw(&Rectangle::new([(left, bottom), (left + 12, bottom + 12)], color.filled()))?;
        text(area, name, (left + 18, bottom), 12, HPos::Left)?;
        left += 44 + 7 * i32::try_from(name.len())?;
    }
    if chart.panels.iter().flat_map(|panel| &panel.groups).any(|group| group.here.len() > 1) {
        area.draw(&Circle::new((left + 6, bottom + 6), 3, RUN.filled()))?;
        text(area, "one run", (left + 16, bottom), 12, HPos::Left)?;
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, panel: &Panel, left: i32) -> Result<(), Box<dyn std::error::Error>> {
    let values = panel.groups.iter().flat_map(|group| group.here.iter().copied().chain(group.published));
    let axis = Axis::up_to(values.fold(0.0, f64::max));
    let right = left + width(panel) - 14;
    text(area, &panel.title, (left + LEFT, HEAD - 28), 14, HPos::Left)?;
    for line in axis.lines() {
        let y = y(axis, line);
        area.draw(&PathElement::new([(left + LEFT, y), (right, y)], if line > 0.0 { LINES } else { INK }))?;
        text(area, &number(line), (left + LEFT - 8, y - 6), 12, HPos::Right)?;
    }
    let mut middle = left + LEFT + GROUP_WIDTH / 2;
    for group in &panel.groups {
        draw_group(area, axis, group, middle)?;
        middle += GROUP_WIDTH;
    }
    Ok(())
}

fn draw_group(
    area: &Area<'_>,
    axis: Axis,
    group: &Group,
    middle: i32,
) -> Result<(), Box<dyn std::error::Error>> {
    let here = median(group.here.iter().copied());
    let left = if group.published.is_some() { middle + 3 } else { middle - BAR_WIDTH / 2 };
    let published = group.published.map(|published| (published, PUBLISHED, middle - BAR_WIDTH - 3));
    for (value, color, x) in published.into_iter().chain([(here, HERE, left)]) {
        let top = y(axis, value);
        area.draw(&Rectangle::new([(x, top), (x + BAR_WIDTH, y(axis, 0.0))], color.filled()))?;
        let above = if color == HERE { clear_of_dots(axis, value, &group.here) } else { value };
        text(area, &number(value), (x + BAR_WIDTH / 2, y(axis, above) - 17), 12, HPos::Center)?;
    }
    if group.here.len() > 1 {
        let mut x = left + 6;
        for run in &group.here {
            area.draw(&Circle::new((x, y(axis, *run)), 3, RUN.filled()))?;
            x += (BAR_WIDTH - 12) / i32::try_from(group.here.len() - 1)?;
        }
    }
    for (line, row) in group.label.iter().zip(0..) {
        text(area, line, (middle, HEAD + PLOT + 8 + 16 * row), 12, HPos::Center)?;
    }
    Ok(())
}

/// From the top of a bar up, the first height with room for a number.
fn clear_of_dots(axis: Axis, top: f64, dots: &[f64]) -> f64 {
    let mut dots = dots.to_vec();
    dots.sort_by(f64::total_cmp);
    dots.into_iter().fold(
        top,
        |clear, dot| {
            if dot > clear && y(axis, clear) - y(axis, dot) < LABEL { dot } else { clear }
        },
    )
}

#[expect(clippy::cast_possible_truncation, reason = "a height in pixels")]
fn y(axis: Axis, value: f64) -> i32 {
    HEAD + PLOT - (axis.height(value) * f64::from(PLOT)).round() as i32
}

fn text(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: i32,
    anchor: HPos,
) -> Result<(), Box<dyn std::error::Error>> {
    let style = (FONT, size).into_font().color(&INK).pos(Pos::new(anchor, VPos::Top));
    area.draw(&Text::new(text.to_owned(), at, style))?;
    Ok(())
}

/// With separated thousands, and decimals where they matter.
pub fn number(value: f64) -> String {
    let text = match value {
        whole if whole.fract() == 0.0 => format!("{whole:.0}"),
        small if small < 10.0 => format!("{small:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => format!("{value:.1}"),
    };
    let (whole, fraction) = text.split_once('.').map_or((&*text, None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{grouped}.{fraction}"),
        None => grouped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_above_the_dots_it_would_touch_and_below_those_it_would_not() {
        let axis = Axis::up_to(200.0);
        assert_eq!(y(axis, clear_of_dots(axis, 22.0, &[162.0, 30.0, 22.0])), y(axis, 30.0));
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0.5, 1.5, 1.999].map(number), ["0.5", "1.5", "2"]);
        assert_eq!(
            [0.0, 5.0, 118.1, 3_648.0, 100_000.0].map(number),
            ["0", "5", "118.1", "3,648", "100,000"]
        );
    }
}
