//! Programming languages by the names that kernels give them.

/// The ending of a source file.
pub fn extension(language: &str) -> &'static str {
    known(language).map_or("txt", |(_, extension, _)| extension)
}

pub fn mime_type(language: &str) -> &'static str {
    known(language).map_or("text/plain", |(_, _, mime)| mime)
}

type Language = (&'static [&'static str], &'static str, &'static str);

const LANGUAGES: &[Language] = &[
    (&["python", "ipython", "python3"], "py", "text/x-python"),
    (&["javascript", "js"], "js", "application/javascript"),
    (&["typescript", "ts"], "ts", "application/typescript"),
    (&["r"], "r", "text/x-r"),
    (&["julia"], "jl", "text/x-julia"),
    (&["bash", "sh", "shell"], "sh", "application/x-sh"),
    (&["rust"], "rs", "text/x-rust"),
    (&["go"], "go", "text/x-go"),
    (&["java"], "java", "text/x-java"),
    (&["kotlin"], "kt", "text/x-kotlin"),
    (&["scala"], "scala", "text/x-scala"),
    (&["c"], "c", "text/x-c"),
    (&["c++", "cpp"], "cpp", "text/x-c++"),
    (&["c#", "csharp"], "cs", "text/x-csharp"),
    (&["ruby"], "rb", "text/x-ruby"),
    (&["sql"], "sql", "application/sql"),
    (&["json"], "json", "application/json"),
];

fn known(language: &str) -> Option<&'static Language> {
    let lower = language.to_ascii_lowercase();
    LANGUAGES.iter().find(|(names, ..)| names.contains(&lower.as_str()))
}
