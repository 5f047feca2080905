//! Every file in tests/scenarios is a picture: a cluster above the line, what
//! is judged and planned below it. `KATAZUKE_UPDATE_SCENARIOS=1` writes the part
//! below anew; read the difference before you keep it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the pictures are files; the core itself reads none"
)]

use std::path::{Path, PathBuf};

use katazuke_core::{judge, notation, plan};

const LINE: &str = "\n---\n";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn outcome(given: &str) -> String {
    let observed = notation::observed(given).unwrap_or_else(|error| panic!("{error}\n{given}"));
    let judgement = judge(&observed);
    let plan = plan(&observed, &judgement);
    format!(
        "{:?}: {}\n{}",
        judgement.situation,
        judgement.why,
        notation::plan(&plan)
    )
}

#[test]
fn every_scenario_is_judged_and_planned_as_its_file_says() {
    let files = files();
    assert!(
        files.len() >= 30,
        "only {} scenario files were found",
        files.len()
    );
    let mut wrong = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            text.starts_with("# "),
            "{name} does not begin with the sentence that it shows"
        );
        let (given, expected) = text.split_once(LINE).unwrap_or((text.trim_end(), ""));
        let found = outcome(given);
        if std::env::var_os("KATAZUKE_UPDATE_SCENARIOS").is_some() {
            std::fs::write(&file, format!("{given}{LINE}{found}")).unwrap();
        } else if found != expected {
            wrong = format!("{wrong}\n{name}: expected\n{expected}found\n{found}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_word_that_is_not_known_is_refused() {
    let error =
        notation::observed("spec: replicas=3\nshop-0: running=a exceuted=a:1-5").unwrap_err();
    assert_eq!(error.to_string(), "line 2: `exceuted` is not known here");
}
