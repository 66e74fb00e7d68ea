//! Tests of what the rules allow, deny and cover, case by case and for random globs.

use proptest::{collection, prelude::*, string::string_regex};

use super::*;

fn rules(patterns: &[&str]) -> PathRules {
    let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
    PathRules::new(&patterns).expect("valid globs")
}

fn path(raw: &str) -> DocPath {
    DocPath::parse(raw).expect("valid path")
}

#[test]
fn everything_and_nothing() {
    let all = rules(&["**"]);
    assert!(all.allows(&path("a/b.ipynb")) && all.allows(&path("")) && all.may_enter(&path("")));
    let none = rules(&[]);
    assert!(!none.allows(&path("a")) && !none.may_enter(&path("")));
}

#[test]
fn a_star_stays_in_its_folder() {
    let rules = rules(&["projects/*.ipynb"]);
    assert!(rules.allows(&path("projects/a.ipynb")));
    assert!(!rules.allows(&path("projects/deep/a.ipynb")));
    assert!(!rules.allows(&path("projects2/a.ipynb")));
}

#[test]
fn denials_win_whatever_their_order_and_case() {
    let rules = rules(&["!projects/secret/**", "projects/**", "!**/*.key"]);
    assert!(rules.allows(&path("projects/a.ipynb")));
    assert!(!rules.allows(&path("projects/secret/a.ipynb")));
    assert!(!rules.allows(&path("projects/Secret/a.ipynb")));
    assert!(!rules.allows(&path("projects/x/id.key")));
    assert!(!rules.may_enter(&path("projects/secret")));
    assert!(!rules.may_enter(&path("projects/secret/deeper")));
    assert!(rules.may_enter(&path("projects/x")));
}

#[test]
fn a_denied_folder_covers_what_is_in_it() {
    let rules = rules(&["**", "!private"]);
    assert!(!rules.allows(&path("private")) && !rules.allows(&path("private/a/b.txt")));
    assert!(!rules.may_enter(&path("private/a")));
}

#[test]
fn only_denials_allow_the_rest() {
    let rules = rules(&["!private/**"]);
    assert!(rules.allows(&path("a.ipynb")) && rules.may_enter(&path("")));
    assert!(!rules.allows(&path("private/a.ipynb")));
}

#[test]
fn the_way_down_to_an_allowed_folder_is_visible() {
    let rules = rules(&["teams/ana/**"]);
    for visible in ["", "teams", "teams/ana", "teams/ana/deep"] {
        assert!(rules.may_enter(&path(visible)), "{visible}");
    }
    for hidden in ["other", "teams/bob", "teams/ana2"] {
        assert!(!rules.may_enter(&path(hidden)), "{hidden}");
    }
    assert!(!rules.allows(&path("teams/x.ipynb")));
}

#[test]
fn a_folder_in_which_no_glob_can_match_is_not_visible() {
    let rules = rules(&["*.md", "data/*", "teams/*/notes/**", "**/shared/*.csv"]);
    for visible in [
        "",
        "data",
        "data/a",
        "teams",
        "teams/ana",
        "teams/ana/notes/old",
        "x/shared",
    ] {
        assert!(rules.may_enter(&path(visible)), "{visible}");
    }
    let without_anywhere = self::rules(&["*.md", "data/*", "teams/*/notes/**"]);
    for hidden in ["example", "data/a/b", "teams/ana/other", "Data"] {
        assert!(!without_anywhere.may_enter(&path(hidden)), "{hidden}");
    }
}

#[test]
fn a_folder_of_which_everything_is_denied_is_denied_itself() {
    for denial in [
        "!secret/**",
        "!secret/*",
        "!secret/**/*",
        "!/secret/**",
        "!./secret/**/",
        "!secret/",
        "!{secret,hidden}/**",
        "!{secret/**,hidden/**}",
        "!**/secret/**",
        "!s?cret/**",
        "!SECRET/**",
    ] {
        let rules = rules(&["**", denial]);
        for denied in ["secret", "secret/a", "secret/a/b.txt", "Secret"] {
            assert!(!rules.allows(&path(denied)), "{denial}: {denied}");
            assert!(!rules.may_enter(&path(denied)), "{denial}: {denied}");
        }
        for open in ["a.txt", "secrets", "secret.txt"] {
            assert!(rules.allows(&path(open)), "{denial}: {open}");
        }
    }
    assert!(!rules(&["**", "!**"]).allows(&path("")));
}

#[test]
fn a_rule_about_everything_so_far_down_denies_no_file_above() {
    let rules = rules(&["**", "!data/*/**"]);
    assert!(rules.allows(&path("data/a.csv")) && !rules.allows(&path("data/sub/a.csv")));
    assert!(!rules.may_enter(&path("data/sub")) && rules.may_enter(&path("data")));
}

#[test]
fn a_directory_is_covered_if_nothing_in_it_could_be_denied() {
    let covered = |patterns: &[&str], directory: &str| rules(patterns).covers(&path(directory)).is_ok();
    for (patterns, directory) in [
        (&["**"][..], "a"),
        (&["**"], ""),
        (&["!x"], "a"),
        (&["a/**"], "a/b"),
        (&["a/**/*"], "a/b"),
        (&["{a,b}/**"], "b"),
        (&["**/lib/**"], "x/lib/y"),
        (&["**", "!secret/**"], "open"),
        (&["**", "!a/private/**"], "a/public"),
        (&["**", "!a/private[0-9]/**"], "a/public"),
        (&["**", "!a/{private,mine}/**"], "a/public"),
        (&["**", "!a/*.key"], "a/b"),
    ] {
        assert!(covered(patterns, directory), "{patterns:?} {directory}");
    }
    for (patterns, directory) in [
        (&[][..], "a"),
        (&["a/*"], "a/b"),
        (&["a/**/*.ipynb"], "a/b"),
        (&["a/[!s]*/**"], "a"),
        (&["a/**"], ""),
        (&["a/b/**"], "a"),
        (&["A/**"], "a"),
        (&["**", "!secret/**"], "secret"),
        (&["**", "!secret/**"], "SECRET"),
        (&["**", "!secret/**"], "secret/deeper"),
        (&["**", "!secret"], "secret/deeper"),
        (&["**", "!secret/**"], ""),
        (&["**", "!a/private/**"], "a"),
        (&["**", "!a/*/private"], "a/b"),
        (&["**", "!**/private/**"], "a"),
        (&["**", "!**/*.key"], "a/b"),
        (&["**", "!a/**/x/y"], "a/x"),
        (&["**", "!{a/b,c}/**"], "c"),
        (&["**", "!{a/b,c}/**"], "a"),
        (&["**", "!a[!x]b"], "a"),
        (&["**", r"!\a/b"], "a"),
    ] {
        assert!(!covered(patterns, directory), "{patterns:?} {directory}");
    }
    assert_eq!(
        rules(&["**", "!a/b/**"]).covers(&path("a")),
        Err(NotFullyAllowed::Denied("!a/b/**".to_owned()))
    );
    assert_eq!(rules(&["a/b/**"]).covers(&path("a")), Err(NotFullyAllowed::NotAllowed));
}

/// Pieces of which globs are made that match names of the letters a, b and c.
const PIECE: &str = r"(a|b|c|\*|\?|\*\*|a\*|\[ab\]|\[!a\]|\{a,b\}|\{a/b,c\}|\{\*\*,a\}|\[.-0\])";

fn globs(sign: &str) -> impl Strategy<Value = Vec<String>> {
    let glob = string_regex(&format!("{sign}{PIECE}(/{PIECE}){{0,3}}")).expect("a valid pattern");
    collection::vec(glob, 0..4)
}

proptest! {
    #[test]
    fn nothing_in_a_covered_directory_is_denied(
        patterns in globs("!?"),
        directory in "[abcA](/[abc]){0,2}",
        inside in "[abcB](/[abc]){0,2}",
    ) {
        let Ok(rules) = PathRules::new(&patterns) else { return Ok(()) };
        if rules.covers(&path(&directory)).is_ok() {
            let inside = path(&format!("{directory}/{inside}"));
            prop_assert!(rules.allows(&inside), "{:?} covers {} but denies {}", patterns, directory, inside);
        }
    }

    #[test]
    fn nothing_in_a_denied_folder_is_allowed(
        patterns in globs("!"),
        folder in "[abcA](/[abc]){0,2}",
        inside in "[abcB](/[abc]){0,2}",
    ) {
        let Ok(rules) = PathRules::new(&patterns) else { return Ok(()) };
        if rules.denies(&folder) {
            let inside = path(&format!("{folder}/{inside}"));
            prop_assert!(!rules.allows(&inside) && !rules.may_enter(&inside));
        }
    }
}
