//! The report: one HTML file that needs nothing else, for the screen and for paper.
//!
//! Every number is text, in a table; plots are drawn from the same rows. Losing figures stand
//! beside the winning ones, in the same size. There is no script: what is folded away opens by
//! itself in any browser, and printing shows what is open.

mod matrix;
mod plot;
mod plots;
mod processor;
pub mod words;

#[cfg(test)]
pub mod example;

use self::matrix::Sides;
use self::words::{escaped, put};
use crate::ratio::geometric_mean;
use crate::results::{Results, Row, Status};
use crate::target::Failure;
use crate::workloads;

const STYLE: &str = include_str!("report/style.css");
/// A one-minute load above this share of the processors when a run begins gives a warning.
const LOAD_SHARE_MAX: f64 = 0.5;

/// The report on some results, which must not overlap; the first file's run and targets lead.
pub fn html(files: &[Results], subject: Option<&str>) -> Result<String, Failure> {
    let results = together(files)?;
    let looks = subjects(&results);
    let subject = chosen(&looks, subject)?;
    let sides = Sides::new(&results, &subject);
    let mut page = String::new();
    let title = format!("DocBench, scale {}", results.run.scale);
    put(
        &mut page,
        format_args!(
            "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' \
             content='width=device-width'><title>{0}</title><style>{STYLE}</style></head><body>\
             <h1>{0}</h1>",
            escaped(&title)
        ),
    );
    header(&mut page, &results);
    summary(&mut page, &results, &sides, &looks);
    for workload in workload_names(&results) {
        section(&mut page, &results, &workload, &looks)?;
    }
    targets(&mut page, &results);
    for file in files {
        run(&mut page, file);
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

/// The files as one: each row must stand in one of them only.
fn together(files: &[Results]) -> Result<Results, Failure> {
    let mut files = files.iter();
    let Some(mut all) = files.next().cloned() else {
        return Err(Failure::Other("there is no results file".into()));
    };
    for file in files {
        if file.run.durability != all.run.durability {
            return Err(Failure::Other("the files' durability differs: one report each".into()));
        }
        for target in &file.targets {
            if all.targets.iter().all(|known| known.name != target.name) {
                all.targets.push(target.clone());
            }
        }
        for row in &file.rows {
            let same = |known: &Row| {
                (&known.workload, &known.target, &known.metric, &known.parameters)
                    == (&row.workload, &row.target, &row.metric, &row.parameters)
            };
            if all.rows.iter().any(same) {
                let name = words::full_name(row);
                let message = format!("{name} stands in two files: docbench compare is for that");
                return Err(Failure::Other(message));
            }
            all.rows.push(row.clone());
        }
        all.end = all.end.filter(|_| file.end.is_some());
    }
    Ok(all)
}

/// The targets, in the order of the run, and whatever else has rows.
fn subjects(results: &Results) -> Vec<String> {
    let mut names: Vec<String> = results.targets.iter().map(|target| target.name.clone()).collect();
    for row in &results.rows {
        if !names.contains(&row.target) {
            names.push(row.target.clone());
        }
    }
    names
}

fn chosen(looks: &[String], subject: Option<&str>) -> Result<String, Failure> {
    let first = || looks.first().cloned().unwrap_or_default();
    match subject {
        None => Ok(looks.iter().find(|name| *name == "frond").cloned().unwrap_or_else(first)),
        Some(name) if looks.iter().any(|look| look == name) => Ok(name.to_owned()),
        Some(name) => Err(Failure::Other(format!(
            "the results have no target {name}; they have {}",
            looks.join(", ")
        ))),
    }
}

fn workload_names(results: &Results) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in &results.rows {
        if !names.contains(&row.workload) {
            names.push(row.workload.clone());
        }
    }
    names
}

fn rows_of<'a>(results: &'a Results, workload: &str) -> Vec<&'a Row> {
    results.rows.iter().filter(|row| row.workload == workload).collect()
}

/// Those of the subjects that have rows, in the report's order.
fn columns(rows: &[&Row], looks: &[String]) -> Vec<String> {
    looks.iter().filter(|look| rows.iter().any(|row| row.target == **look)).cloned().collect()
}

fn header(page: &mut String, results: &Results) {
    let run = &results.run;
    let machine = &run.machine;
    put(
        page,
        format_args!(
            "<p>{} on {} logical processors ({}), {} of memory, {}. Begun {}; durability: {}; {} \
             repetitions, targets interleaved. Medians; a ratio is not ranked where its 95 % bootstrap \
             interval holds 1.</p>",
            escaped(&machine.system),
            machine.processors,
            escaped(&machine.processor),
            words::figure(machine.memory_bytes as f64, "bytes"),
            escaped(&machine.disk),
            escaped(&run.started_utc),
            escaped(&run.durability),
            run.repetitions,
        ),
    );
    for warning in warnings(results) {
        put(page, format_args!("<p class='warning'>{}</p>", escaped(&warning)));
    }
    page.push_str("<nav><a href='#summary'>Summary</a>");
    for name in workload_names(results) {
        put(page, format_args!("<a href='#{0}'>{0}</a>", escaped(&name)));
    }
    page.push_str("<a href='#targets'>Databases</a><a href='#method'>Method and machine</a></nav>");
}

fn warnings(results: &Results) -> Vec<String> {
    let mut warnings = Vec::new();
    if results.run.scale == "smoke" {
        warnings.push("Scale smoke shows that all works; its figures mean nothing.".into());
    }
    if results.end.is_none() {
        warnings.push("The run was cut off: what it had measured is shown.".into());
    }
    let load =
        results.run.machine.load.split_whitespace().next().and_then(|load| load.parse().ok());
    if load.is_some_and(|load: f64| load > LOAD_SHARE_MAX * results.run.machine.processors as f64) {
        warnings.push(format!(
            "The machine was busy when the run began (load {}): believe ratios, not figures.",
            results.run.machine.load
        ));
    }
    let faults =
        results.rows.iter().filter(|row| matches!(row.status, Status::Wrong | Status::Failed));
    let faults = faults.count();
    if faults > 0 {
        warnings.push(format!("{faults} rows were disqualified or failed: see the tables."));
    }
    warnings
}

fn summary(page: &mut String, results: &Results, sides: &Sides<'_>, looks: &[String]) {
    page.push_str("<h2 id='summary' class='first'>Summary</h2>");
    let ours: Vec<&str> =
        looks.iter().map(String::as_str).filter(|name| sides.is_subject(name)).collect();
    put(
        page,
        format_args!(
            "<p>Each cell of a peer: how many times better <b>{}</b> is (&#9650; blue: better; \
             &#9660; orange: worse; &asymp;: inside the noise), and the peer's own median below. An \
             embedded peer is compared with the embedded form, if there is one.</p>",
            escaped(&ours.join(" / "))
        ),
    );
    for workload in workload_names(results) {
        let rows = rows_of(results, &workload);
        page.push_str(&matrix::matrix(sides, &workload, &rows, &columns(&rows, looks)));
    }
    overall(page, results, sides, looks);
}

/// The geometric mean of each workload's ratios, by peer.
fn overall(page: &mut String, results: &Results, sides: &Sides<'_>, looks: &[String]) {
    let peers: Vec<&String> = looks.iter().filter(|name| !sides.is_subject(name)).collect();
    page.push_str("<h3>Geometric means of the ratios</h3><div class='wide'><table class='matrix'>");
    page.push_str("<thead><tr><th>workload</th>");
    for peer in &peers {
        put(page, format_args!("<th>{}</th>", escaped(peer)));
    }
    page.push_str("</tr></thead><tbody>");
    for workload in workload_names(results) {
        put(page, format_args!("<tr><th>{}</th>", escaped(&workload)));
        let rows = rows_of(results, &workload);
        for peer in &peers {
            let ratios = matrix::headings(&rows).into_iter().flat_map(|heading| {
                let durability = sides.durability(peer);
                let same = |row: &&Row| {
                    row.target == **peer
                        || (sides.is_subject(&row.target)
                            && sides.durability(&row.target) == durability)
                };
                let rows: Vec<&Row> = heading.rows.iter().copied().filter(same).collect();
                sides.ratios(&rows).into_iter().map(|(_, ratio)| ratio.value)
            });
            match geometric_mean(&ratios.collect::<Vec<_>>()) {
                Some(mean) => put(page, format_args!("<td>{mean:.2}&times;</td>")),
                None => page.push_str("<td class='none'>none</td>"),
            }
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
}

fn section(
    page: &mut String,
    results: &Results,
    workload: &str,
    looks: &[String],
) -> Result<(), Failure> {
    let rows = rows_of(results, workload);
    put(page, format_args!("<h2 id='{0}'>{0}</h2>", escaped(workload)));
    if let Some(known) = workloads::find(workload) {
        let original = known.original();
        put(
            page,
            format_args!(
                "<p>{}.</p><p class='original'><b>Published:</b> {}. <br>{}</p>",
                escaped(known.title()),
                escaped(original.finding),
                escaped(original.source)
            ),
        );
    }
    page.push_str("<ul class='legend'>");
    for (look, name) in looks.iter().enumerate() {
        if rows.iter().any(|row| row.target == *name) {
            put(page, format_args!("<li>{}{}</li>", plot::swatch(look), escaped(name)));
        }
    }
    page.push_str("</ul><div class='plots'>");
    for plot in plots::plots(&rows, looks)? {
        if let Some(svg) = plot.svg()? {
            let title = escaped(&plot.title);
            put(page, format_args!("<figure><figcaption>{title}</figcaption>{svg}</figure>"));
        }
    }
    page.push_str("</div>");
    page.push_str(&processor::table(&rows, &columns(&rows, looks)));
    figures(page, &rows);
    Ok(())
}

/// All rows of a workload.
fn figures(page: &mut String, rows: &[&Row]) {
    put(
        page,
        format_args!(
            "<details><summary>All {} figures</summary><div class='wide'><table><thead><tr>\
             <th>database</th><th>metric</th><th>case</th><th>median</th><th>unit</th>\
             <th>95 % interval</th><th>samples</th></tr></thead><tbody>",
            rows.len()
        ),
    );
    for row in rows {
        let head = [&row.target, &words::metric(&row.metric), &words::case(row, &[])]
            .map(|text| format!("<td>{}</td>", escaped(text)))
            .concat();
        put(page, format_args!("<tr>{head}"));
        if row.status == Status::Ok {
            let interval = row.interval.map_or(String::new(), |(low, high)| {
                format!("{} to {}", words::digits(low), words::digits(high))
            });
            let samples: Vec<String> =
                row.samples.iter().map(|value| words::digits(*value)).collect();
            put(
                page,
                format_args!(
                    "<td class='number'>{}</td><td>{}</td><td>{interval}</td><td>{}</td></tr>",
                    words::digits(row.median.unwrap_or(f64::NAN)),
                    escaped(&row.unit),
                    samples.join(" &nbsp; ")
                ),
            );
        } else {
            put(
                page,
                format_args!(
                    "<td class='none' colspan='4'>{}: {}</td></tr>",
                    matrix::status_name(row.status),
                    escaped(row.reason.as_deref().unwrap_or(""))
                ),
            );
        }
    }
    page.push_str("</tbody></table></div></details>");
}

fn targets(page: &mut String, results: &Results) {
    page.push_str("<h2 id='targets'>Databases</h2><div class='wide'><table><thead><tr>");
    for name in ["name", "version", "reached by", "durability", "flushes a write", "settings"] {
        put(page, format_args!("<th>{name}</th>"));
    }
    page.push_str("</tr></thead><tbody>");
    for target in &results.targets {
        put(page, format_args!("<tr><th>{}</th>", escaped(&target.name)));
        let Some(about) = &target.about else {
            let reason = escaped(target.reason.as_deref().unwrap_or(""));
            let name = matrix::status_name(target.status);
            put(page, format_args!("<td class='none' colspan='5'>{name}: {reason}</td></tr>"));
            continue;
        };
        for field in ["version", "connection", "durability"] {
            let value = about.get(field).and_then(|value| value.as_str()).unwrap_or("");
            put(page, format_args!("<td>{}</td>", escaped(value)));
        }
        let flushes = target.flushes_a_write.map_or("not counted".into(), words::digits);
        put(
            page,
            format_args!("<td class='number'>{flushes}</td><td>{}</td></tr>", settings(about)),
        );
    }
    page.push_str("</tbody></table></div>");
}

fn settings(about: &serde_json::Value) -> String {
    let pairs = about.get("settings").and_then(|settings| settings.as_array());
    let pair = |pair: &serde_json::Value| {
        let part = |position: usize| pair.get(position).map(words::parameter).unwrap_or_default();
        escaped(&format!("{} = {}", part(0), part(1)))
    };
    pairs.map_or(String::new(), |pairs| pairs.iter().map(pair).collect::<Vec<_>>().join("<br>"))
}

fn run(page: &mut String, results: &Results) {
    let run = &results.run;
    let generator = &run.generator;
    let [median, high, highest] = generator.open_micros;
    let probe = crate::statistics::median(&run.fsync_probe_micros).unwrap_or(f64::NAN);
    let end = results.end.as_ref().map_or("cut off".into(), |end| {
        format!("{:.0} s, load at the end {}", end.seconds, end.load)
    });
    let facts = [
        ("command", run.command.join(" ")),
        ("commit", run.commit.clone()),
        ("docbench", run.docbench.clone()),
        ("seed", run.seed.to_string()),
        ("begun", run.started_utc.clone()),
        ("took", end),
        ("kernel", run.machine.kernel.clone()),
        ("load at the beginning", run.machine.load.clone()),
        ("4 KB appended and synced", format!("{} microseconds (median)", words::digits(probe))),
        (
            "disk flushes",
            if run.flushes_counted { "counted" } else { "can't be counted here" }.into(),
        ),
        ("generator alone, closed loop", format!("{:.0} ns an operation", generator.closed_nanos)),
        (
            "generator alone, open loop",
            format!("{median:.0} / {high:.0} / {highest:.0} microseconds (p50 / p95 / p99.9)"),
        ),
    ];
    page.push_str("<h2 id='method'>Method and machine</h2><p>Answers are checked, and a wrong one \
        disqualifies. In a closed loop each client waits for its answer before it sends again; in an \
        open loop operations arrive at a rate, and latency counts from the moment when one should have \
        begun. Each repetition starts the database anew on an empty directory.</p><dl>");
    for (name, value) in facts {
        put(page, format_args!("<dt>{name}</dt><dd>{}</dd>", escaped(&value)));
    }
    page.push_str("</dl>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_all_figures_and_all_faults() {
        let page = html(&[example::results()], None).expect("the results are right");
        for expected in [
            "WRONG ANSWER",
            "key 7 has another&#39;s value",
            "a &lt;processor&gt;",
            "The run was cut off",
            "its figures mean nothing",
            "cache = 256 MB",
            "Couchbase",
            "<svg",
            "All 5 figures",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("<script") && !page.contains("src="), "it needs nothing else");
    }

    #[test]
    fn files_that_overlap_are_refused() {
        let results = example::results();
        let refused = html(&[results.clone(), results.clone()], None).expect_err("they overlap");
        assert!(refused.to_string().contains("compare"), "{refused}");
        let refused = html(&[results], Some("three")).expect_err("there is no such target");
        assert!(refused.to_string().contains("one, two"), "{refused}");
    }
}
